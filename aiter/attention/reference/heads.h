// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The division of the reference's work: heads of sequences, and where these are few, parts of their
// queries, on all cores.
#pragma once

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
  bool divisible = false;    // the queries of a head may be divided
};

struct QueryRange {
  int64_t begin;
  int64_t end;
};

// Calls work for every head of every batch entry that has rows to be written, and all of its
// queries or the parts that these are divided into. Throws as parallel_for does, and
// Status::kOutOfMemory, naming the sizes, where memory is too short.
void for_each_head(const Problem& problem, const HeadWork& all,
                   const std::function<void(const Problem&, const Sequence&, int64_t head,
                                            QueryRange, runtime::Pulse&)>& work);

}  // namespace AITER_ATTN_NAMESPACE::attention
