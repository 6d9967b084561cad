// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/dispatch_reference/upstream_pick.h"
#include "ck_tile/ops/fmha/block/variants.hpp"
#include "fmha_fwd.hpp"

namespace {

using AITER_ATTN_NAMESPACE::attention::dispatch_reference::picked;
using AITER_ATTN_NAMESPACE::attention::dispatch_reference::UpstreamInstance;

UpstreamInstance forward_pick;

}  // namespace

// Upstream declares this for every instance's file to specialise. Here all of them record.
template <typename Traits>
float fmha_fwd_(const ck_tile::stream_config&, fmha_fwd_args) {
  UpstreamInstance instance =
      picked<Traits>(std::is_same_v<typename Traits::DataType, FmhaFwdBf16>);
  instance.head_size_v = Traits::kN1;
  instance.mask = Traits::FmhaMask::IsMasking;
  instance.lse = Traits::kStoreLse;
  instance.pad_seqlen_k = Traits::kPadSK;
  instance.pad_head_size_qk = Traits::kPadD;
  instance.pad_head_size_v = Traits::kPadDv;
  forward_pick = instance;
  return 0;
}

#include "fmha_fwd_api.inc"

// upstream's forward dispatcher asks for the number of compute units; nothing of its choice depends
// on it.
extern "C" hipError_t hipGetDevice(int* device) {
  *device = 0;
  return hipSuccess;
}
extern "C" hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int) {
  properties->multiProcessorCount = 304;
  return hipSuccess;
}

namespace AITER_ATTN_NAMESPACE::attention::dispatch_reference {

UpstreamInstance upstream_forward(const UpstreamProblem& p) {
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
  forward_pick = {};
  fmha_fwd(traits, args, ck_tile::stream_config{});
  return forward_pick;
}

}  // namespace AITER_ATTN_NAMESPACE::attention::dispatch_reference
