// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A planned problem on the GPU: workspace, and the launches.
#pragma once

#include "aiter/attention/dispatch.h"
#include "aiter/attention/problem.h"
#include "aiter/runtime/driver/driver.h"
#include "aiter/runtime/loader.h"

namespace AITER_ATTN_NAMESPACE::attention {

// Throws kInvalidArgument where a tensor is not aligned as the instances of a complete plan need
// it.
void require_alignment(const kernels::LaunchTable& table, const Problem& problem, const Plan& plan);

// Queues the kernels of a complete plan for arch, the device's own, on the problem's stream and
// returns. Tensors are aligned. Throws what the driver and the store throw; then some of the work
// may have been queued, and the outputs are undefined.
void launch(const kernels::LaunchTable& table, const Problem& problem, const Plan& plan, int arch,
            runtime::Driver& driver, runtime::Loader& loader);

// The outputs of a problem without work, where it has any: queues zeroes, and -inf for lse.
void fill_outputs(const Problem& problem, runtime::Driver& driver);

}  // namespace AITER_ATTN_NAMESPACE::attention
