// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The division of the reference's work: heads of sequences, on all cores; and within one query,
// parts of its keys, between which it can be stopped.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "aiter/attention/problem/problem.h"
#include "aiter/attention/reference/scratch.h"
#include "aiter/attention/reference/sequence.h"
#include "aiter/runtime/parallel.h"

namespace AITER_ATTN_NAMESPACE::attention {

// A pass over heads of batch entries.
struct HeadWork {
  int32_t heads;
  double steps;  // elementary ones, of all of it
  Scratch scratch;
  bool writes_keys = false;  // entries with keys have rows to be written, too
};

// Calls work for every head of every batch entry that has rows to be written. Throws as
// parallel_for does, and Status::kOutOfMemory, naming the sizes, where memory is too short.
void for_each_head(const Problem& problem, const HeadWork& all,
                   const std::function<void(const Problem&, const Sequence&, int64_t head,
                                            runtime::Pulse&)>& work);

// Calls work(begin, end) for the range in parts, one after the other, of steps_each steps per key.
template <typename Work>
void in_parts(KeyRange range, int64_t steps_each, runtime::Pulse& pulse, Work&& work) {
  const int64_t most = std::max<int64_t>(1, runtime::Pulse::kSteps / steps_each);
  for (int64_t begin = range.begin; begin < range.end; begin += most) {
    const int64_t end = std::min(begin + most, range.end);
    work(begin, end);
    pulse((end - begin) * steps_each);
  }
}

}  // namespace AITER_ATTN_NAMESPACE::attention
