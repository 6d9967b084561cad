// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ck_tile/ops/fmha/block/variants.hpp"
#include "fmha_fwd.hpp"
#include "tests/bench/dispatch/upstream.h"

namespace bench = AITER_ATTN_NAMESPACE::bench;

static const void* picked;

// Upstream declares this for every instance's file to specialise. Here all of them record.
template <typename Traits, typename Arch>
float fmha_fwd_(const ck_tile::stream_config&, fmha_fwd_args) {
  picked = &bench::instance_of<Traits>;
  return 0;
}

#include "fwd_dispatcher.inc"

// Upstream's dispatchers ask for the device's name in every call.
extern "C" hipError_t hipGetDevice(int* device) {
  *device = 0;
  return hipSuccess;
}
extern "C" hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int) {
  std::strcpy(properties->gcnArchName, "gfx942");
  properties->multiProcessorCount = 304;
  return hipSuccess;
}

const void* bench::upstream_forward(const Problem& p) {
  fmha_fwd_traits traits = {};
  traits.hdim_q = p.head_size_qk;
  traits.hdim_v = p.head_size_v;
  traits.data_type = p.bf16 ? "bf16" : "fp16";
  traits.is_group_mode = p.group_mode;
  traits.is_v_rowmajor = true;
  traits.mask_type = p.mask ? mask_enum::mask_bottom_right : mask_enum::no_mask;
  traits.bias_type = bias_enum::no_bias;
  traits.has_lse = p.lse;
  fmha_fwd_args args = {};
  args.seqlen_q = p.seqlen_q;
  args.seqlen_k = p.seqlen_k;
  args.hdim_q = p.head_size_qk;
  args.hdim_v = p.head_size_v;
  picked = nullptr;
  fmha_fwd(traits, args, ck_tile::stream_config{});
  return picked;
}
