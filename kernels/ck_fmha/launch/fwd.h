// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Kernel arguments and grid of a forward instance, made by upstream's host code.
#pragma once

#include <utility>

#include "fmha_fwd.hpp"
#include "kernels/ck_fmha/launch/common.h"

namespace AITER_ATTN_NAMESPACE::kernels::ck_fmha {

template <typename Kernel>
void fwd_launch(const LaunchArgs& args, Launch* launch) {
  const Features& features = args.features;
  auto ck = forward_args<fmha_fwd_args>(args, Kernel::kIsGroupMode);
  ck.seqstart_k_ptr = args.problem.cu_seqlens_k;
  ck.seqlen_q_ptr = args.problem.seqused_q;
  ck.seqlen_k_ptr = args.problem.seqused_k;
  ck.cu_seqlen_q_ptr = args.problem.cu_seqused_q;
  ck.cu_seqlen_k_ptr = args.problem.cu_seqused_k;
  ck.min_seqlen_q = features.min_seqlen_q;
  ck.p_drop = features.p_drop;
  ck.scale_p = features.scale_p;
  ck.scale_o = features.scale_o;
  ck.drop_seed_offset = seed_offset<decltype(ck.drop_seed_offset)>(args);
  store_launch(fmha_fwd_create_kargs_and_grids<Kernel>(ck), launch);
}

}  // namespace AITER_ATTN_NAMESPACE::kernels::ck_fmha
