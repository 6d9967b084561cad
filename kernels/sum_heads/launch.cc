// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The launch of the sum_heads kernels: LaunchArgs::sum_from, summed over the query heads of each
// key head, to LaunchArgs::sum_to.
#include <cstring>

#include "kernels/launch_table/launch_table.h"
#include "kernels/sum_heads/sum_heads.h"

namespace AITER_ATTN_NAMESPACE::kernels {

// The launch table names it.
// NOLINTNEXTLINE(misc-use-internal-linkage)
void sum_heads_launch(const LaunchArgs& args, Launch* launch) {
  const attn_problem& problem = args.problem;
  const bool group_mode = problem.mode == ATTN_MODE_GROUP;
  static_assert(sizeof(sum_heads::Args) <= kMostKernargSize);
  sum_heads::Args made = {};
  made.src = args.sum_from.data;
  made.dst = args.sum_to.data;
  // dbias, which is summed as a problem of batch mode, is never of padded sequences.
  if (group_mode && (problem.seqused_k || problem.cu_seqused_k)) {
    made.cu_seqlens = problem.cu_seqlens_k;
    made.seqused = problem.seqused_k;
    made.cu_seqused = problem.cu_seqused_k;
    made.batch = problem.batch;
  }
  made.seqlen = group_mode ? problem.total_k : problem.seqlen_k;
  made.tokens = group_mode ? made.seqlen : int64_t{problem.batch} * made.seqlen;
  made.dst_stride_batch = args.sum_to.stride_batch;
  made.dst_stride_seq = args.sum_to.stride_seq;
  made.dst_stride_head = args.sum_to.stride_head;
  made.heads_k = problem.heads_k;
  made.group = problem.heads_q / problem.heads_k;
  made.head_size = args.sum_head_size;
  made.workgroups = sum_heads::workgroups_for(made.tokens, made.heads_k, made.head_size);

  launch->grid[0] = made.workgroups;
  launch->grid[1] = 1;
  launch->grid[2] = 1;
  launch->dynamic_lds = 0;
  launch->kernarg_size = sizeof(made);
  std::memcpy(launch->kernarg, &made, sizeof(made));
}

}  // namespace AITER_ATTN_NAMESPACE::kernels
