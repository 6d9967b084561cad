// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/sum_heads.h"

#include <cstring>

#include "kernels/sum_heads/sum_heads.h"

namespace aiter_attn {

KernelLaunch make_sum_heads(const attn_problem& problem, const Extents& e, const attn_tensor& from,
                            const attn_tensor& to) {
  SumHeadsArgs args = {};
  args.src = from.data;
  args.dst = to.data;
  args.tokens = e.batch * e.seq;
  args.seqlen = e.seq;
  args.dst_stride_batch = to.stride_batch;
  args.dst_stride_seq = to.stride_seq;
  args.dst_stride_head = to.stride_head;
  args.heads_k = problem.heads_k;
  args.group = problem.heads_q / problem.heads_k;
  args.head_size = static_cast<int32_t>(e.head_size);
  args.workgroups = sum_heads_workgroups(args.tokens, args.heads_k, args.head_size);

  KernelLaunch launch = {};
  launch.grid[0] = args.workgroups;
  launch.grid[1] = 1;
  launch.grid[2] = 1;
  launch.kernarg_size = sizeof(args);
  static_assert(sizeof(args) <= sizeof(launch.kernarg));
  std::memcpy(launch.kernarg, &args, sizeof(args));
  return launch;
}

}  // namespace aiter_attn
