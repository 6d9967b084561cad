// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

namespace AITER_ATTN_NAMESPACE::runtime {

// A mutex that fork() itself holds while it makes a child: in the child it is free, and what it
// guards is whole. Under one, a thread takes no other ForkMutex, makes and destroys none, waits for
// nothing, and loads no library: fork() of another thread would wait for it, or for good.
class ForkMutex {
 public:
  ForkMutex();
  ~ForkMutex();
  ForkMutex(const ForkMutex&) = delete;
  ForkMutex& operator=(const ForkMutex&) = delete;

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

// A mutex under which a library is opened: that takes as long as it likes, and may register what is
// done about forks, so fork() does not wait for it. In a child it is free, even where a thread of
// the parent holds it: what it guards must be whole at any time.
class OpeningMutex {
 public:
  OpeningMutex();
  ~OpeningMutex();
  OpeningMutex(const OpeningMutex&) = delete;
  OpeningMutex& operator=(const OpeningMutex&) = delete;

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  // In a child, before anything else runs there.
  void free_in_child();

 private:
  std::mutex mutex_;
};

}  // namespace AITER_ATTN_NAMESPACE::runtime
