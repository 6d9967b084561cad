// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A planned problem on the GPU: the queue on which its pass puts fills and launches.
#pragma once

#include <cstdint>

#include "aiter/attention/dispatch.h"
#include "aiter/attention/problem/operands.h"
#include "aiter/attention/problem/problem.h"
#include "aiter/runtime/driver/driver.h"
#include "aiter/runtime/loader.h"

namespace AITER_ATTN_NAMESPACE::attention {

// The problem's stream. Throws what the driver and the store throw.
class Queue {
 public:
  // arch: the device's own.
  Queue(const kernels::LaunchTable& table, const Problem& problem, int arch,
        runtime::Driver& driver, runtime::Loader& loader)
      : table_(table), p_(problem), arch_(arch), driver_(driver), loader_(loader) {}

  // A kernel; all of a plan's, in order.
  void launch(const Step& step, const kernels::LaunchArgs& args);
  void launch(const Plan& plan, const kernels::LaunchArgs& args) {
    for (const Step& step : plan) launch(step, args);
  }
  // Whether a step's object is known to be wrong on such problems, unless its launch avoids it.
  bool has_hazard(const Step& step, kernels::Hazard hazard) const {
    return table_.object(*step.row, arch_)->hazards & bit(hazard);
  }
  // Zeroes a tensor of the problem's dtype: as few and as wide fills as its strides allow.
  void zero(const attn_tensor& tensor, const Extents& extents);
  // count: 32-bit words.
  void zero(void* data, uint64_t count) { driver_.fill_words(data, 0, count, p_.stream); }

 private:
  const kernels::LaunchTable& table_;
  const Problem& p_;
  const int arch_;
  runtime::Driver& driver_;
  runtime::Loader& loader_;
};

// The arguments that the launch code of most kinds reads: of q, k, v, o and lse, of scores and of a
// key-value cache.
kernels::LaunchArgs launch_args(const Problem& problem);

// Throws kInvalidArgument where a tensor is not aligned as the instances of a complete plan need
// it.
void require_alignment(const kernels::LaunchTable& table, const Problem& problem, const Plan& plan);

// Queues the kernels of a complete plan for arch, the device's own, on the problem's stream and
// returns. Tensors are aligned. Throws what the driver and the store throw; then some of the work
// may have been queued, and the outputs are undefined.
void launch(const kernels::LaunchTable& table, const Problem& problem, const Plan& plan, int arch,
            runtime::Driver& driver, runtime::Loader& loader);

// The outputs of a problem without work: queues zeroes, and -inf for lse.
void fill_outputs(const Problem& problem, runtime::Driver& driver);

}  // namespace AITER_ATTN_NAMESPACE::attention
