// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Upstream's dispatchers, without launching.
#pragma once

#include <cstdint>

namespace AITER_ATTN_NAMESPACE::bench {

struct Problem {
  bool bf16;
  bool group_mode;
  bool mask;
  bool lse;
  int32_t head_size_qk;
  int32_t head_size_v;
  int32_t seqlen_q;
  int32_t seqlen_k;
};

// Distinct for each instance, so that no two branches of a dispatcher are the same code.
template <typename Traits>
inline const char instance_of = 0;

// The instance that upstream picks, of backward that of dq_dk_dv; nullptr where it picks none.
const void* upstream_forward(const Problem& problem);
const void* upstream_backward(const Problem& problem);

}  // namespace AITER_ATTN_NAMESPACE::bench
