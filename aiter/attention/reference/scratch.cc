// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/reference/scratch.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "aiter/attention/error.h"
#include "aiter/attention/reference/bias_gradient.h"
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
  if (has_cache(p)) return p.seqlen_k;
  const Extents e = key_extents(p, p.heads_k, p.head_size_qk);
  return std::min(e.seq, e.longest);
}

template <typename... Parts>
[[noreturn]] void refuse_scratch(const Problem& p, Parts&&... parts) {
  fail(Status::kOutOfMemory, "the CPU reference keeps the keys of a head in double: ", most_keys(p),
       " keys (seqlen_k) of head_size_qk ", p.head_size_qk, " and head_size_v ", p.head_size_v,
       " take ", scratch_bytes(p) / (1 << 20), " MiB", std::forward<Parts>(parts)...,
       ": pass fewer keys or smaller heads");
}

}  // namespace

double scratch_bytes(const Problem& p) {
  const double sizes = double{1} * p.head_size_qk + p.head_size_v;
  const double keys = static_cast<double>(most_keys(p));
  // Matrices of the keys' side, the rows of a query, and what a query has of each key.
  const double matrices = !is_backward(p) ? sizes : 2 * sizes + p.head_size_qk;
  // Several queries of sums beside each other.
  const double sums = p.dbias_sums ? double{kSummedQueries} * p.seqlen_k : 0;
  return sizeof(double) * (keys * matrices + 2 * sizes + 4 * keys + sums);
}

void require_scratch(const Problem& p) {
  const double most = runtime::host_memory();
  if (scratch_bytes(p) > most) {
    refuse_scratch(p, ", but this machine has ", most / (1 << 20), " MiB");
  }
}

void out_of_scratch(const Problem& p) { refuse_scratch(p, ", which the system does not give"); }

}  // namespace AITER_ATTN_NAMESPACE::attention
