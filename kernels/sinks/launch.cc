// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The launches of the kernels of sinks: LaunchArgs::o and lse get LaunchArgs::sink; dsink is summed
// of lse and delta.
#include <cstring>

#include "kernels/launch_table/launch_table.h"
#include "kernels/sinks/sinks.h"

namespace AITER_ATTN_NAMESPACE::kernels {
namespace {

template <typename Args>
void set_kernarg(const Args& made, Launch* launch) {
  static_assert(sizeof(made) <= kMostKernargSize);
  launch->dynamic_lds = 0;
  launch->kernarg_size = sizeof(made);
  std::memcpy(launch->kernarg, &made, sizeof(made));
}

}  // namespace

// The launch table names them.
// NOLINTBEGIN(misc-use-internal-linkage)
void sink_launch(const LaunchArgs& args, Launch* launch) {
  const attn_problem& problem = args.problem;
  const bool group_mode = problem.mode == ATTN_MODE_GROUP;
  sinks::Args made = {};
  made.o = args.o.data;
  made.lse = args.lse;
  made.sink = args.sink;
  if (group_mode) made.cu_seqlens_q = problem.cu_seqlens_q;
  made.seqused_q = problem.seqused_q;
  made.cu_seqused_q = problem.cu_seqused_q;
  made.stride_batch = args.o.stride_batch;
  made.stride_seq = args.o.stride_seq;
  made.stride_head = args.o.stride_head;
  made.batch = problem.batch;
  made.heads = problem.heads_q;
  made.rows = group_mode ? problem.total_q : problem.seqlen_q;
  made.head_size = problem.head_size_v;
  made.min_seqlen_q = args.features.min_seqlen_q;
  made.row_items = sinks::row_items_for(made.head_size);
  sinks::workgroups_for(problem.seqlen_q, int64_t{problem.batch} * problem.heads_q, made.row_items,
                        made.workgroups);

  launch->grid[0] = made.workgroups[0];
  launch->grid[1] = made.workgroups[1];
  launch->grid[2] = 1;
  set_kernarg(made, launch);
}

void sink_grad_launch(const LaunchArgs& args, Launch* launch) {
  const attn_problem& problem = args.problem;
  const bool group_mode = problem.mode == ATTN_MODE_GROUP;
  sinks::GradArgs made = {};
  made.dsink = args.dsink;
  made.sink = args.sink;
  made.lse = args.lse;
  made.delta = args.delta;
  made.cu_seqlens_q = problem.cu_seqlens_q;
  made.seqused_q = problem.seqused_q;
  made.cu_seqused_q = problem.cu_seqused_q;
  made.batch = problem.batch;
  // Upstream's delta has the factor of the weights that dropout keeps in it.
  made.scale = 1.0f / (1.0f - args.features.p_drop);
  made.runs = group_mode ? 1 : problem.batch;
  made.rows = group_mode ? problem.total_q : problem.seqlen_q;
  made.heads = problem.heads_q;

  launch->grid[0] = made.heads;
  launch->grid[1] = 1;
  launch->grid[2] = 1;
  set_kernarg(made, launch);
}
// NOLINTEND(misc-use-internal-linkage)

}  // namespace AITER_ATTN_NAMESPACE::kernels
