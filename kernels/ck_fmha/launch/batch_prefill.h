// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Kernel arguments and grid of a forward instance over pages of one key each.
#pragma once

#include <utility>

#include "fmha_fwd.hpp"
#include "kernels/ck_fmha/launch/common.h"

namespace AITER_ATTN_NAMESPACE::kernels::ck_fmha {

template <typename Kernel>
void fwd_batch_prefill_launch(const LaunchArgs& args, Launch* launch) {
  const Features& features = args.features;
  auto ck = forward_args<fmha_batch_prefill_args>(args, Kernel::kIsGroupMode);
  // A page is a key: its stride is the one between keys.
  ck.stride_k = index(args.k.stride_batch);
  ck.stride_v = index(args.v.stride_batch);
  ck.num_total_pages = features.pages;
  ck.kv_indptr = const_cast<int32_t*>(features.page_indptr);
  ck.kv_page_indices = const_cast<int32_t*>(features.page_indices);
  ck.p_drop = features.p_drop;
  ck.drop_seed_offset = std::make_pair(features.drop_seed, features.drop_offset);
  store_launch(fmha_batch_prefill_create_kargs_and_grids<Kernel>(ck), launch);
}

}  // namespace AITER_ATTN_NAMESPACE::kernels::ck_fmha
