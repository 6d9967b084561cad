// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Independent pieces of work on all cores, which the caller's interrupt can stop.
#pragma once

#include <cstdint>
#include <functional>

namespace AITER_ATTN_NAMESPACE::runtime {

class Team;  // the threads of one parallel_for

// The channel by which a piece of work tells its progress, and is stopped. One for each thread.
class Pulse {
 public:
  // Elementary steps after which work should have called: a fraction of a millisecond.
  static constexpr int64_t kSteps = 1 << 18;

  Pulse(Team& team, bool is_caller) : team_(team), is_caller_(is_caller) {}

  // `steps` elementary steps were done. Does not return where the work is to end: leave the
  // exception alone.
  void operator()(int64_t steps) {
    left_ -= steps;
    if (left_ <= 0) look();
  }

 private:
  void look();

  Team& team_;
  const bool is_caller_;
  int64_t left_ = kSteps;
};

// Pieces of work.
struct Pieces {
  int64_t count;
  double steps;    // elementary steps of all of them
  double scratch;  // bytes of memory that a thread takes for one
};

// Bytes of memory that this machine has.
double host_memory();

// Calls work(i, pulse) once for every i in [0, count), on as many threads as the steps are worth
// and as memory and the system allow. The first exception of work is thrown here, after all threads
// have ended; so is Status::kInterrupted where the calling thread's interrupt asks to stop. It is
// polled by this thread alone, without a lock held.
void parallel_for(const Pieces& pieces, const std::function<void(int64_t, Pulse&)>& work);

}  // namespace AITER_ATTN_NAMESPACE::runtime
