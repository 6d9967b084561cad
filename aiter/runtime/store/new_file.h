// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A file that one of all threads and processes makes: it is locked (flock) by who makes it, and
// renamed when it is complete and on the disk. The lock dies with its process (children that it
// forked give it up at once), and the next maker takes over the file that a killed one left behind.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "aiter/runtime/store/store.h"

namespace AITER_ATTN_NAMESPACE::runtime {

class NewFile {
 public:
  explicit NewFile(std::string path);
  // Where it was acquired and not published, the file is gone.
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  // Waits for another maker as long as `patience`. false: it cannot be had, or not in time.
  bool acquire(std::chrono::milliseconds patience);
  // Writes it, and renames it to `target`. header: NULL: there is none. false: that failed, or it
  // is not this process's.
  bool publish(const void* header, size_t header_size, const Bytes& bytes,
               const std::string& target);
  // The reason of a failure of that, and the remedy; "": there was none.
  const std::string& error() const { return error_; }

 private:
  class Lock;

  bool open_and_lock(std::chrono::steady_clock::time_point deadline,
                     std::chrono::milliseconds patience);
  bool lock(std::chrono::steady_clock::time_point deadline, std::chrono::milliseconds patience);
  bool fail_by(const char* call);

  const std::string path_;
  const std::unique_ptr<Lock> lock_;
  bool published_ = false;
  std::string error_;
};

// The message of a call that failed with an error of errno.h: the reason, and the remedy.
std::string failure(const char* call, const std::string& path, int error);
// The message about a file or folder that is_trusted() is false of.
std::string distrust(const std::string& path);

}  // namespace AITER_ATTN_NAMESPACE::runtime
