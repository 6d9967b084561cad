// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "fmha_bwd.hpp"
#include "tests/bench/dispatch/upstream.h"

namespace bench = AITER_ATTN_NAMESPACE::bench;

static const void* picked;
static const void* picked_beside;

// Upstream declares these for every instance's file to specialise. Here all of them record.

template <typename Traits, typename Arch>
void fmha_bwd_dot_do_o_oneshot_(const ck_tile::stream_config&, fmha_bwd_args) {
  picked_beside = &bench::instance_of<Traits>;
}

template <typename Traits, typename Arch>
void fmha_bwd_dq_dk_dv_oneshot_(const ck_tile::stream_config&, fmha_bwd_args) {
  picked = &bench::instance_of<Traits>;
}

template <typename Traits, typename Arch>
void fmha_bwd_convert_dq_oneshot_(const ck_tile::stream_config&, fmha_bwd_args) {
  picked_beside = &bench::instance_of<Traits>;
}

template <typename Traits, typename Arch>
std::string fmha_bwd_dot_do_o_get_name_() {
  return "";
}
template <typename Traits, typename Arch>
std::string fmha_bwd_dq_dk_dv_get_name_() {
  return "";
}
template <typename Traits, typename Arch>
std::string fmha_bwd_convert_dq_get_name_() {
  return "";
}

namespace ck_tile {
// Preferred to upstream's own, which times kernels and asks HIP for errors.
template <typename A, typename B, typename... More>
float launch_kernel(const stream_config& s, A&& a, B&& b, More&&... more) {
  a(s);
  b(s);
  (more(s), ...);
  return 0;
}
}  // namespace ck_tile

#include "bwd_dispatcher.inc"

const void* bench::upstream_backward(const Problem& p) {
  fmha_bwd_traits traits = {};
  traits.hdim_q = p.head_size_qk;
  traits.hdim_v = p.head_size_v;
  traits.data_type = p.bf16 ? "bf16" : "fp16";
  traits.is_group_mode = p.group_mode;
  traits.mask_type = p.mask ? mask_enum::mask_bottom_right : mask_enum::no_mask;
  traits.bias_type = bias_enum::no_bias;
  fmha_bwd_args args = {};
  args.seqlen_q = p.seqlen_q;
  args.seqlen_k = p.seqlen_k;
  args.hdim_q = p.head_size_qk;
  args.hdim_v = p.head_size_v;
  picked = nullptr;
  fmha_bwd<2>(traits, args, ck_tile::stream_config{});
  return picked;
}
