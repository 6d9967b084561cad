// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A folder for the files of one compile, which is gone with the object of this class. One that a
// killed process left behind is removed by the next that makes one beside it.
#pragma once

#include <memory>
#include <string>

#include "aiter/runtime/store/file.h"

namespace AITER_ATTN_NAMESPACE::runtime {

class WorkFolder {
 public:
  // In `place`, which is made for this user alone where it is missing and its parent is there; in
  // TMPDIR or /tmp where that is "", cannot be written to, or is others' to write to. Throws
  // Status::kUnsupported where neither can be had.
  explicit WorkFolder(const std::string& place);
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  bool make_in(const std::string& place);

  std::string path_;
  // Locked (flock) as long as it is used: the lock dies with the process.
  std::unique_ptr<const File> lock_;
};

}  // namespace AITER_ATTN_NAMESPACE::runtime
