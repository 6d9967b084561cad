// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Upstream's dispatchers and its host code, asked for the calls of the C ABI. Nothing is launched.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "aiter/attn.h"

namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity {

// A kernel as upstream's host code launches it.
struct Launch {
  std::string name;  // of the instance
  uint32_t grid[3];
  uint32_t block[3];
  std::vector<unsigned char> kernarg;
  // 1 for the bytes of kernarg that are part of a field; bytes between fields may have any value.
  std::vector<unsigned char> is_field;
};

// The traits that upstream's dispatcher chooses by. Kernel arguments and grids follow from the call
// alone.
struct Told {
  bool mask;
  int32_t seqlen_q, seqlen_k;
  int32_t head_size_qk, head_size_v;
  // Its traits have the head sizes again, and find the bucket by them.
  int32_t bucket_qk, bucket_v;
  // Kernels with transposed loads take head sizes in vectors alone, as asynchronous ones do.
  bool in_vectors = false;
};

struct Forward {
  attn_problem problem;
  attn_fwd_args args;
};

struct Backward {
  attn_problem problem;
  attn_bwd_args args;
  // The caller's scratch memory.
  float* delta;
  float* dq_acc;
  attn_tensor dk, dv;  // with heads_q heads
};

// Over a cache. In upstream the caller says whether keys are split, and into how many parts.
struct Cached {
  attn_problem problem;
  attn_kvcache cache;
  attn_kvcache_fwd_args args;
  int32_t splits;  // 0: by the kernels for pages, which do not split
  // The caller's scratch memory.
  float* lse_acc;
  float* o_acc;
  // Split kernels in the form that serves every call, not in that which upstream chooses.
  bool plain_form;
  // Kernels over listed keys as for a GPU that has no idle compute units.
  bool busy;
};

// A call that puts new keys and values into a cache.
struct Appended {
  attn_problem problem;
  attn_kvcache cache;
  attn_append_kv_args args;
};

// The kernels in the order of their launches; none: it refuses.
std::vector<Launch> upstream(const Forward& call, const Told& told);
std::vector<Launch> upstream_v3(const Forward& call);  // the part of it that is for v3
std::vector<Launch> upstream(const Backward& call, const Told& told);
std::vector<Launch> upstream(const Cached& call, const Told& told);
std::vector<Launch> upstream(const Appended& call, const Told& told);

}  // namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity
