// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Kernel arguments and grid of a forward instance of upstream's third version.
#pragma once

#include "fmha_fwd_v3_impl.hpp"
#include "kernels/ck_fmha/launch/common.h"

namespace AITER_ATTN_NAMESPACE::kernels::ck_fmha {

// As fmha_fwd_v3_kernel_launch has it, which launches at once.
template <typename Kernel>
void fwd_v3_launch(const LaunchArgs& args, Launch* launch) {
  const attn_problem& problem = args.problem;
  // No kernel of upstream's reads how its workgroups are numbered anew.
  const bool by_special =
      problem.mask == ATTN_MASK_NONE || (problem.heads_q % 8 == 0 && problem.seqlen_q <= 16384);
  const Index numbering = by_special ? 2 : problem.seqlen_q < 65536 ? 1 : 0;
  const auto kargs = Kernel::MakeKargs(
      args.q.data, args.k.data, args.v.data, nullptr, args.o.data, problem.seqlen_q,
      problem.seqlen_k, problem.head_size_qk, problem.head_size_v, problem.heads_q,
      problem.heads_q / problem.heads_k, problem.softmax_scale, index(args.q.stride_seq),
      index(args.k.stride_seq), index(args.v.stride_seq), index(args.o.stride_seq),
      index(args.q.stride_head), index(args.k.stride_head), index(args.v.stride_head), 0,
      index(args.o.stride_head), index(args.q.stride_batch), index(args.k.stride_batch),
      index(args.v.stride_batch), 0, index(args.o.stride_batch), problem.window_left,
      problem.window_right, problem.mask, numbering);
  const dim3 grid =
      Kernel::GridSize(problem.batch, problem.heads_q, problem.seqlen_q, problem.head_size_v);
  store_launch(ck_tile::make_tuple(kargs, grid), launch);
}

}  // namespace AITER_ATTN_NAMESPACE::kernels::ck_fmha
