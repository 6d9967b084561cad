// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The launch of the dropout mask's kernel: of the problem's dropout, to LaunchArgs::kept.
#include <cmath>
#include <cstring>

#include "kernels/dropout_mask/dropout_mask.h"
#include "kernels/launch_table/launch_table.h"

namespace AITER_ATTN_NAMESPACE::kernels {
namespace {

// In float32, as upstream's host code computes it. Without dropout every byte stays.
uint32_t threshold_of(float dropout_p) {
  constexpr float kMost = 255.0f;
  return static_cast<uint32_t>(std::floor((1.0f - dropout_p) * kMost));
}

}  // namespace

// The launch table names it.
// NOLINTNEXTLINE(misc-use-internal-linkage)
void dropout_mask_launch(const LaunchArgs& args, Launch* launch) {
  const attn_problem& problem = args.problem;
  const bool group_mode = problem.mode == ATTN_MODE_GROUP;
  static_assert(sizeof(dropout_mask::Args) <= kMostKernargSize);
  dropout_mask::Args made = {};
  made.kept = args.kept;
  if (group_mode) {
    made.cu_seqlens_q = problem.cu_seqlens_q;
    made.cu_seqlens_k = problem.cu_seqlens_k;
    made.seqused_q = problem.seqused_q;
    made.seqused_k = problem.seqused_k;
    made.cu_seqused_q = problem.cu_seqused_q;
    made.cu_seqused_k = problem.cu_seqused_k;
  }
  // Without dropout it may be anything.
  if (problem.dropout_p > 0) made.rng_state = problem.rng_state;
  made.seed = problem.dropout_seed;
  made.offset = problem.dropout_offset;
  made.batch = problem.batch;
  made.heads = problem.heads_q;
  made.seqlen_q = problem.seqlen_q;
  made.seqlen_k = problem.seqlen_k;
  made.rows = group_mode ? problem.total_q : problem.seqlen_q;
  made.threshold = threshold_of(problem.dropout_p);
  const int64_t tiles =
      int64_t{dropout_mask::tiles_of(made.seqlen_q)} * dropout_mask::tiles_of(made.seqlen_k);
  dropout_mask::workgroups_for(tiles, int64_t{made.batch} * made.heads, made.workgroups);

  launch->grid[0] = made.workgroups[0];
  launch->grid[1] = made.workgroups[1];
  launch->grid[2] = 1;
  launch->dynamic_lds = 0;
  launch->kernarg_size = sizeof(made);
  std::memcpy(launch->kernarg, &made, sizeof(made));
}

}  // namespace AITER_ATTN_NAMESPACE::kernels
