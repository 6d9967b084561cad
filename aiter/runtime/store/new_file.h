// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A file that one of all threads and processes makes: who makes it holds the lock (flock) of a file
// beside it, writes to one of its own, whose name has 16 random hex digits more and which is
// locked, too, and renames that when it is complete and on the disk. Locks die with their process
// (children that it forked give them up at once), and the next maker takes them over. Where the
// file system has no locks, or other machines do not know of them, as NFS may, several make the
// file: none is torn.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "aiter/runtime/store/store.h"

namespace AITER_ATTN_NAMESPACE::runtime {

class NewFile {
 public:
  explicit NewFile(std::string path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  // Waits for another maker as long as `patience`, and gets its name told after a second: the
  // process and the host, or "another process". false: it cannot be had, or not in time. Throws
  // Status::kInterrupted where the calling thread's interrupt (interrupt.h) says so meanwhile.
  bool acquire(std::chrono::milliseconds patience,
               const std::function<void(const std::string&)>& waits = {});
  // Writes it, and renames it to `target`. header: NULL: there is none. false: that failed, or it
  // is not this process's.
  bool publish(const void* header, size_t header_size, const Bytes& bytes,
               const std::string& target);
  // The reason of a failure of that, and the remedy; "": there was none.
  const std::string& error() const { return error_; }

 private:
  class Lock;

  using Clock = std::chrono::steady_clock;
  using Waits = std::function<void(const std::string&)>;

  bool open_and_lock(std::chrono::milliseconds patience, const Waits& waits);
  bool lock(Clock::time_point since, std::chrono::milliseconds patience, const Waits& waits);
  bool open_own();
  std::string maker() const;
  bool fail_by(const char* call);

  const std::string path_;
  const std::unique_ptr<Lock> lock_;
  std::string own_path_;
  const std::unique_ptr<Lock> own_;
  bool told_ = false;  // whom it waits for
  pid_t maker_ = 0;    // this process, once it is its to make: not a child's that is forked then
  std::string error_;
};

// The message of a call that failed with an error of errno.h: the reason, and the remedy.
std::string failure(const char* call, const std::string& path, int error);
// The message about a file or folder that is_trusted() is false of.
std::string distrust(const std::string& path);

}  // namespace AITER_ATTN_NAMESPACE::runtime
