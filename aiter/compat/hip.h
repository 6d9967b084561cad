// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The part of HIP that AITER's callers leave to AITER: the current device, scratch memory, time.
#pragma once

#include <cstddef>

namespace AITER_ATTN_NAMESPACE::compat {

// Of the calling thread. These throw Status::kDriver, or kOutOfMemory, in words.
int current_device();

// Memory of the current device's pool, in the order of a stream: freed behind the work that is
// queued by then.
class Scratch {
 public:
  Scratch(size_t bytes, void* stream);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  void* stream_;
};

// A point of a stream's time.
class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  void record(void* stream);
  // Waits for this event.
  float milliseconds_since(const Event& earlier);

 private:
  void* event_ = nullptr;
};

}  // namespace AITER_ATTN_NAMESPACE::compat
