// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Kernel arguments and grid of a forward instance over paged keys and values.
#pragma once

#include "fmha_fwd.hpp"
#include "kernels/ck_fmha/launch/common.h"

namespace AITER_ATTN_NAMESPACE::kernels::ck_fmha {

template <typename Kernel>
void fwd_pagedkv_launch(const LaunchArgs& args, Launch* launch) {
  auto ck = cache_args<fmha_fwd_pagedkv_args>(args, Kernel::kIsGroupMode);
  ck.min_seqlen_q = args.features.min_seqlen_q;
  store_launch(fmha_fwd_pagedkv_create_kargs_and_grids<Kernel>(ck), launch);
}

}  // namespace AITER_ATTN_NAMESPACE::kernels::ck_fmha
