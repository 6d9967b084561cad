// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The launch of the kernel that sums dk and dv over the query heads that share a key head.
#pragma once

#include "aiter/launch_table.h"
#include "aiter/problem.h"

namespace aiter_attn {

// `to` has extents `e`; `from` is contiguous and has heads_q heads instead of heads_k.
KernelLaunch make_sum_heads(const attn_problem& problem, const Extents& e, const attn_tensor& from,
                            const attn_tensor& to);

}  // namespace aiter_attn
