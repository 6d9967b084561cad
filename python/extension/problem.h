// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// aiter_attn._C.Problem.
#pragma once

#include <cstdint>

#include "aiter/attn.h"

namespace AITER_ATTN_NAMESPACE::python {

// A problem, and what of a pass's args is known before there are arrays.
struct Problem : attn_problem {
  int32_t min_seqlen_q;   // forward, also over a cache
  int32_t bias_grad;      // backward
  int32_t dbias_sums;     // backward
  int32_t deterministic;  // backward
  int32_t v_layout;       // forward, as what follows: fp8
  float descale_q, descale_k, descale_v, scale_o;
};

}  // namespace AITER_ATTN_NAMESPACE::python
