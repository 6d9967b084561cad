// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Files in a folder that others may have written to.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace AITER_ATTN_NAMESPACE::runtime {

// An open file, if it could be opened. Children that are started by exec do not have it.
class File {
 public:
  enum class Links { kRefused, kFollowed };
  // flags: open()'s. Links and pipes, which have no end, do not hold it up. Where it could not be
  // opened errno says why.
  File(const std::string& path, int flags, Links links = Links::kRefused);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }

 private:
  int fd_;
};

// Whether all of it was read or written.
bool read_all(int fd, void* data, size_t size);
bool read_all_at(int fd, void* data, size_t size, uint64_t offset);
bool write_all(int fd, const void* data, size_t size);

// Whether only this user, or root, which has all rights anyhow, can change it. Images
// have folders of root's.
bool is_trusted(const struct stat& status);
// Whether others can neither replace nor remove this user's files in the folder: it is trusted,
// or a sticky one of this user's or of root's, such as /tmp. The owner of a sticky folder can.
bool is_trusted_folder(const struct stat& status);

}  // namespace AITER_ATTN_NAMESPACE::runtime
