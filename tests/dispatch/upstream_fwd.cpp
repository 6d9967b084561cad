// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstring>
#include <string>

#include "ck_tile/ops/fmha/block/variants.hpp"
#include "fmha_fwd.hpp"
#include "fwd_dispatcher.inc"
#include "tests/dispatch/upstream_stub.h"

// Upstream's dispatchers ask for the device's arch, and two of them for its compute units. Its host
// code knows waves of 32 by the major version: gfx942 is 9.4.2, gfx1201 is 12.0.1.
extern "C" hipError_t hipGetDevice(int* device) {
  *device = 0;
  return hipSuccess;
}
extern "C" hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int) {
  properties->multiProcessorCount = AITER_ATTN_NAMESPACE::attention::dispatch_parity::compute_units;
  const char* const arch = AITER_ATTN_NAMESPACE::attention::dispatch_parity::kArch;
  std::strcpy(properties->gcnArchName, arch);
  properties->major = std::atoi(arch + std::strlen("gfx")) / 100;
  return hipSuccess;
}

namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity {
namespace {

using Index = ck_tile::index_t;

constexpr Index kVector = 8;

bool is_fp8(const Forward& call) {
  const int32_t dtype = call.problem.dtype;
  return dtype == ATTN_DTYPE_FP8_E4M3 || dtype == ATTN_DTYPE_FP8_E4M3_FNUZ;
}

std::string data_type_of(const Forward& call) {
  if (!is_fp8(call)) return call.problem.dtype == ATTN_DTYPE_BF16 ? "bf16" : "fp16";
  if (call.args.o_dtype == ATTN_DTYPE_BF16) return "fp8bf16";
  return call.args.o_dtype == ATTN_DTYPE_FP32 ? "fp8fp32" : "fp8";
}

fmha_fwd_traits traits_of(const Forward& call, const Told& told) {
  const attn_problem& p = call.problem;
  fmha_fwd_traits traits = {};
  traits.hdim_q = told.bucket_qk;
  traits.hdim_v = told.bucket_v;
  traits.data_type = data_type_of(call);
  traits.is_group_mode = p.mode == ATTN_MODE_GROUP;
  traits.is_v_rowmajor = call.args.v_layout == ATTN_V_ROWS;
  traits.has_logits_soft_cap = p.logits_soft_cap > 0;
  traits.mask_type = told.mask ? mask_enum::mask_bottom_right : mask_enum::no_mask;
  traits.bias_type = static_cast<bias_enum>(p.bias);
  traits.has_lse = call.args.lse != nullptr;
  traits.has_dropout = p.dropout_p > 0;
  traits.do_fp8_static_quant = is_fp8(call);
  traits.skip_min_seqlen_q = call.args.min_seqlen_q > 0;
  return traits;
}

// The scales of fp8, as the same program derives them: it divides by the factors that elements were
// multiplied by, which are one over the descales here. With an o of fp8 there is one of o.
void set_scales(const Forward& call, fmha_fwd_args* a) {
  const attn_fwd_args& args = call.args;
  const float largest = call.problem.dtype == ATTN_DTYPE_FP8_E4M3 ? 448 : 240;
  a->scale_s = a->scale_s / (1 / args.descale_q);
  a->scale_s = a->scale_s / (1 / args.descale_k);
  a->scale_p = largest;
  a->scale_o = static_cast<float>(1.0 / largest / (1 / args.descale_v));
  if (args.o_dtype == 0) a->scale_o = a->scale_o * args.scale_o;
}

// As the program beside upstream's kernels fills them in (01_fmha/fmha_fwd.cpp), but that random
// numbers are not written out.
fmha_fwd_args args_of(const Forward& call) {
  const attn_problem& p = call.problem;
  const attn_fwd_args& args = call.args;
  const bool group = p.mode == ATTN_MODE_GROUP;
  const bool alibi = p.bias == ATTN_BIAS_ALIBI;
  const Index rows_q = group ? p.total_q : p.seqlen_q;
  const auto index = [](int64_t stride) { return static_cast<Index>(stride); };
  fmha_fwd_args a = {};
  a.q_ptr = args.q.data;
  a.k_ptr = args.k.data;
  a.v_ptr = args.v.data;
  a.bias_ptr = alibi ? static_cast<const void*>(args.alibi_slopes) : args.bias.data;
  a.lse_ptr = args.lse;
  a.o_ptr = args.o.data;
  a.seqstart_q_ptr = group ? p.cu_seqlens_q : nullptr;
  a.seqstart_k_ptr = group ? p.cu_seqlens_k : nullptr;
  a.seqlen_q_ptr = p.seqused_q;
  a.seqlen_k_ptr = p.seqused_k;
  a.cu_seqlen_q_ptr = p.cu_seqused_q;
  a.cu_seqlen_k_ptr = p.cu_seqused_k;
  a.seqlen_q = rows_q;
  a.seqlen_k = group ? p.total_k : p.seqlen_k;
  a.batch = p.batch;
  a.max_seqlen_q = p.seqlen_q;
  a.hdim_q = p.head_size_qk;
  a.hdim_v = p.head_size_v;
  a.nhead_q = p.heads_q;
  a.nhead_k = p.heads_k;
  a.scale_s = p.softmax_scale;
  a.scale_p = 1;
  a.scale_o = 1;
  if (is_fp8(call)) set_scales(call, &a);
  a.logits_soft_cap = p.logits_soft_cap;
  a.stride_q = index(args.q.stride_seq);
  a.stride_k = index(args.k.stride_seq);
  a.stride_v = index(args.v.stride_seq);
  a.stride_bias = index(alibi ? args.alibi_stride_batch : args.bias.stride_seq);
  a.stride_o = index(args.o.stride_seq);
  a.nhead_stride_q = index(args.q.stride_head);
  a.nhead_stride_k = index(args.k.stride_head);
  a.nhead_stride_v = index(args.v.stride_head);
  a.nhead_stride_bias = index(args.bias.stride_head);
  a.nhead_stride_lse = rows_q;
  a.nhead_stride_o = index(args.o.stride_head);
  a.batch_stride_q = index(args.q.stride_batch);
  a.batch_stride_k = index(args.k.stride_batch);
  a.batch_stride_v = index(args.v.stride_batch);
  a.batch_stride_bias = index(args.bias.stride_batch);
  a.batch_stride_lse = p.heads_q * rows_q;
  a.batch_stride_o = index(args.o.stride_batch);
  a.window_size_left = p.window_left;
  a.window_size_right = p.window_right;
  a.mask_type = p.mask;
  a.min_seqlen_q = args.min_seqlen_q;
  a.p_drop = p.dropout_p;
  if (p.rng_state) {
    a.drop_seed_offset = std::pair<const void*, const void*>(p.rng_state, p.rng_state + 1);
  } else {
    a.drop_seed_offset = std::make_pair(p.dropout_seed, p.dropout_offset);
  }
  return a;
}

bool reads_transposed(const std::vector<Launch>& launches) {
  return !launches.empty() && launches[0].name.find("_qr_async_trload_") != std::string::npos;
}

}  // namespace

std::vector<Launch> upstream(const Forward& call, const Told& told) {
  if (std::vector<Launch> launches = upstream_v3(call); !launches.empty()) return launches;
  const fmha_fwd_args args = args_of(call);
  fmha_fwd_args seen = args;
  seen.seqlen_q = told.seqlen_q;
  seen.seqlen_k = told.seqlen_k;
  seen.hdim_q = told.head_size_qk;
  seen.hdim_v = told.head_size_v;
  fmha_fwd(traits_of(call, told), seen, ck_tile::stream_config{});
  std::vector<Launch> launches = launches_of(args);
  const bool are_vectors = seen.hdim_q % kVector == 0 && seen.hdim_v % kVector == 0;
  if (told.in_vectors && !are_vectors && reads_transposed(launches)) return {};
  return launches;
}

}  // namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity
