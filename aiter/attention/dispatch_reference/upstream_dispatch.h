// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Upstream's dispatchers, without launching: which instance they pick for a problem.
#pragma once

#include <cstdint>

namespace AITER_ATTN_NAMESPACE::attention::dispatch_reference {

struct UpstreamProblem {
  bool bf16;
  bool group_mode;
  bool mask;
  bool lse;
  int32_t head_size_qk;
  int32_t head_size_v;
  int32_t seqlen_q;
  int32_t seqlen_k;
};

// The compile-time choices of a picked instance; those that a kind does not have are zero.
struct UpstreamInstance {
  bool picked;
  bool bf16;
  bool group_mode;
  bool mask;
  bool lse;
  int32_t head_size_qk;
  int32_t head_size_v;
  bool pad_seqlen_q;
  bool pad_seqlen_k;
  bool pad_head_size_qk;
  bool pad_head_size_v;
};

struct UpstreamBackward {
  UpstreamInstance dot_do_o;
  UpstreamInstance dq_dk_dv;
  UpstreamInstance convert_dq;
};

UpstreamInstance upstream_forward(const UpstreamProblem& problem);
UpstreamBackward upstream_backward(const UpstreamProblem& problem);

}  // namespace AITER_ATTN_NAMESPACE::attention::dispatch_reference
