// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Independent pieces of work on all cores.
#pragma once

#include <cstdint>
#include <functional>

namespace AITER_ATTN_NAMESPACE::attention {

// Calls work(i) once for every i in [0, count), on several threads where cost, the work's total in
// elementary steps, is worth it. What work throws is thrown here, the first of it, after all
// threads have ended.
void parallel_for(int64_t count, double cost, const std::function<void(int64_t)>& work);

}  // namespace AITER_ATTN_NAMESPACE::attention
