// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// CK's own dispatchers, without launching: which instance they pick for a problem.
#pragma once

#include <cstdint>

namespace aiter_attn::dispatch_reference {

struct CkProblem {
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
struct CkInstance {
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

struct CkBackward {
  CkInstance dot_do_o;
  CkInstance dq_dk_dv;
  CkInstance convert_dq;
};

CkInstance ck_forward(const CkProblem& problem);
CkBackward ck_backward(const CkProblem& problem);

}  // namespace aiter_attn::dispatch_reference
