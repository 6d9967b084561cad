// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "ck_tile/ops/fmha/block/variants.hpp"
#include "tests/dispatch/upstream_kvcache.h"

// Instances' files define what they are called, which the dispatcher may print.
template <typename Traits, typename Arch>
std::string fmha_fwd_splitkv_get_name_() {
  return "";
}
template <typename Traits, typename Arch>
std::string fmha_fwd_splitkv_combine_get_name_() {
  return "";
}

namespace ck_tile {
// Preferred to upstream's own, which times kernels and asks HIP for errors.
template <typename A, typename B>
float launch_kernel(const stream_config& s, A&& a, B&& b) {
  a(s);
  b(s);
  return 0;
}
}  // namespace ck_tile

#include "fwd_splitkv_dispatcher.inc"

namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity {

std::vector<Launch> upstream_splitkv(const Cached& call, const Told& told) {
  auto args = cached_args_of<fmha_fwd_splitkv_args>(call);
  const ck_tile::index_t rows = args.seqlen_q;
  args.num_splits = call.splits;
  args.lse_acc_ptr = call.lse_acc;
  args.o_acc_ptr = call.o_acc;
  args.stride_o_acc = args.hdim_v;
  args.nhead_stride_lse_acc = call.splits * rows;
  args.nhead_stride_o_acc = call.splits * rows * args.hdim_v;
  args.batch_stride_lse_acc = args.nhead_q * call.splits * rows;
  args.batch_stride_o_acc = args.nhead_q * call.splits * rows * args.hdim_v;
  args.split_stride_lse_acc = rows;
  args.split_stride_o_acc = rows * args.hdim_v;
  fmha_fwd_splitkv(cached_traits_of<fmha_fwd_splitkv_traits>(call, told), as_told(args, told),
                   ck_tile::stream_config{});
  in_plain_form = call.plain_form;
  return launches_of(args);
}

}  // namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity
