// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The launch of the kernel that fills the outputs of sequences without keys: LaunchArgs::o and lse
// of group mode.
#include <cstring>

#include "kernels/launch_table/launch_table.h"
#include "kernels/no_keys/no_keys.h"

namespace AITER_ATTN_NAMESPACE::kernels {

// The launch table names it.
// NOLINTNEXTLINE(misc-use-internal-linkage)
void no_keys_launch(const LaunchArgs& args, Launch* launch) {
  const attn_problem& problem = args.problem;
  static_assert(sizeof(no_keys::Args) <= kMostKernargSize);
  no_keys::Args made = {};
  made.o = args.o.data;
  made.lse = args.lse;
  made.cu_seqlens_q = problem.cu_seqlens_q;
  made.cu_seqlens_k = problem.cu_seqlens_k;
  made.stride_seq = args.o.stride_seq;
  made.stride_head = args.o.stride_head;
  made.total_q = problem.total_q;
  made.batch = problem.batch;
  made.heads = problem.heads_q;
  made.head_size = problem.head_size_v;
  made.workgroups = no_keys::workgroups_for(problem.batch, problem.heads_q);

  launch->grid[0] = made.workgroups;
  launch->grid[1] = 1;
  launch->grid[2] = 1;
  launch->dynamic_lds = 0;
  launch->kernarg_size = sizeof(made);
  std::memcpy(launch->kernarg, &made, sizeof(made));
}

}  // namespace AITER_ATTN_NAMESPACE::kernels
