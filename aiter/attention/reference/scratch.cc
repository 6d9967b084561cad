// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/reference/scratch.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "aiter/attention/problem/error.h"
#include "aiter/runtime/parallel.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

// Keys of one sequence, at most.
int64_t most_keys(const Problem& p) {
  if (p.cache.seqlens_k || p.cache.page_indptr) {
    // Caches have room for more than is in use.
    int64_t most = 0;
    for (int32_t i = 0; i < p.batch; ++i) most = std::max(most, keys_of(p, i));
    return most;
  }
  return is_group(p) && !in_pages(p) ? std::min(p.total_k, p.seqlen_k) : p.seqlen_k;
}

}  // namespace

Scratch::Scratch(const Problem& p, int64_t columns, double sums) : p_(p) {
  // Beside the matrices, the rows of a query, and the numbers of a query for each key.
  const double sizes = double{1} * p.head_size_qk + p.head_size_v;
  const double keys = static_cast<double>(most_keys(p));
  bytes_ = sizeof(double) * (keys * static_cast<double>(columns + 4) + 2 * sizes + sums);
}

template <typename... Parts>
void Scratch::fail_with(Parts&&... parts) const {
  fail(Status::kOutOfMemory,
       "the CPU reference keeps the keys of a head in double: ", most_keys(p_),
       " keys (seqlen_k) of head_size_qk ", p_.head_size_qk, " and head_size_v ", p_.head_size_v,
       " take ", bytes_ / (1 << 20), " MiB", std::forward<Parts>(parts)...,
       ": pass fewer keys or smaller heads");
}

void Scratch::require() const {
  const double most = runtime::host_memory();
  if (bytes_ > most) fail_with(", but this machine has ", most / (1 << 20), " MiB");
}

void Scratch::refuse() const { fail_with(", which the system does not give"); }

}  // namespace AITER_ATTN_NAMESPACE::attention
