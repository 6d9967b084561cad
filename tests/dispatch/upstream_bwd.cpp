// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "fmha_bwd.hpp"
#include "tests/dispatch/upstream_stub.h"

// Instances' files define what they are called, which the dispatcher may print.
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

namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity {
namespace {

using Index = ck_tile::index_t;

fmha_bwd_traits traits_of(const Backward& call, const Told& told) {
  const attn_problem& p = call.problem;
  fmha_bwd_traits traits = {};
  traits.hdim_q = told.bucket_qk;
  traits.hdim_v = told.bucket_v;
  traits.data_type = p.dtype == ATTN_DTYPE_BF16 ? "bf16" : "fp16";
  traits.is_group_mode = p.mode == ATTN_MODE_GROUP;
  traits.mask_type = told.mask ? mask_enum::mask_bottom_right : mask_enum::no_mask;
  traits.bias_type = static_cast<bias_enum>(p.bias);
  traits.has_dbias = call.args.bias_grad != 0;
  traits.has_dropout = p.dropout_p > 0;
  traits.is_deterministic = call.args.deterministic != 0;
  return traits;
}

// As the program beside upstream's kernels fills them in (01_fmha/fmha_bwd.cpp), but that random
// numbers are not written out.
fmha_bwd_args args_of(const Backward& call) {
  const attn_problem& p = call.problem;
  const attn_bwd_args& args = call.args;
  const bool group = p.mode == ATTN_MODE_GROUP;
  const bool alibi = p.bias == ATTN_BIAS_ALIBI;
  const Index rows_q = group ? p.total_q : p.seqlen_q;
  const Index entries = group ? 1 : p.batch;
  const auto index = [](int64_t stride) { return static_cast<Index>(stride); };
  fmha_bwd_args a = {};
  a.q_ptr = args.q.data;
  a.k_ptr = args.k.data;
  a.v_ptr = args.v.data;
  a.bias_ptr = alibi ? static_cast<const void*>(args.alibi_slopes) : args.bias.data;
  a.o_ptr = args.o.data;
  a.lse_ptr = args.lse;
  a.do_ptr = args.dout.data;
  a.d_ptr = call.delta;
  a.dq_ptr = args.dq.data;
  a.dk_ptr = call.dk.data;
  a.dv_ptr = call.dv.data;
  a.dbias_ptr = args.dbias.data;
  a.dq_acc_ptr = call.dq_acc;
  a.seqstart_q_ptr = p.cu_seqlens_q;
  a.seqstart_k_ptr = p.cu_seqlens_k;
  a.seqlen_q_ptr = p.seqused_q;
  a.seqlen_k_ptr = p.seqused_k;
  a.cu_seqlen_q_ptr = p.cu_seqused_q;
  a.cu_seqlen_k_ptr = p.cu_seqused_k;
  a.seqlen_q = rows_q;
  a.seqlen_k = group ? p.total_k : p.seqlen_k;
  a.batch = p.batch;
  a.max_seqlen_q = p.seqlen_q;
  a.max_seqlen_k = p.seqlen_k;
  a.hdim_q = p.head_size_qk;
  a.hdim_v = p.head_size_v;
  a.nhead_q = p.heads_q;
  a.nhead_k = p.heads_k;
  a.scale = p.softmax_scale;
  a.stride_q = index(args.q.stride_seq);
  a.stride_k = index(args.k.stride_seq);
  a.stride_v = index(args.v.stride_seq);
  a.stride_bias = index(alibi ? args.alibi_stride_batch : args.bias.stride_seq);
  a.stride_o = index(args.o.stride_seq);
  a.stride_do = index(args.dout.stride_seq);
  a.stride_dq_acc = p.heads_q * p.head_size_qk;
  a.stride_dq = index(args.dq.stride_seq);
  a.stride_dk = index(call.dk.stride_seq);
  a.stride_dv = index(call.dv.stride_seq);
  a.stride_dbias = index(args.dbias.stride_seq);
  a.nhead_stride_q = index(args.q.stride_head);
  a.nhead_stride_k = index(args.k.stride_head);
  a.nhead_stride_v = index(args.v.stride_head);
  a.nhead_stride_bias = index(args.bias.stride_head);
  a.nhead_stride_o = index(args.o.stride_head);
  a.nhead_stride_do = index(args.dout.stride_head);
  a.nhead_stride_lsed = rows_q;
  a.nhead_stride_dq_acc = p.head_size_qk;
  a.nhead_stride_dq = index(args.dq.stride_head);
  a.nhead_stride_dk = index(call.dk.stride_head);
  a.nhead_stride_dv = index(call.dv.stride_head);
  a.nhead_stride_dbias = index(args.dbias.stride_head);
  a.batch_stride_q = index(args.q.stride_batch);
  a.batch_stride_k = index(args.k.stride_batch);
  a.batch_stride_v = index(args.v.stride_batch);
  a.batch_stride_bias = index(args.bias.stride_batch);
  a.batch_stride_o = index(args.o.stride_batch);
  a.batch_stride_do = index(args.dout.stride_batch);
  a.batch_stride_lsed = p.heads_q * rows_q;
  a.batch_stride_dq_acc = rows_q * p.heads_q * p.head_size_qk;
  a.batch_stride_dq = index(args.dq.stride_batch);
  a.batch_stride_dk = index(call.dk.stride_batch);
  a.batch_stride_dv = index(call.dv.stride_batch);
  a.batch_stride_dbias = index(args.dbias.stride_batch);
  a.split_stride_dq_acc = entries * rows_q * p.heads_q * p.head_size_qk;
  a.window_size_left = p.window_left;
  a.window_size_right = p.window_right;
  a.mask_type = p.mask;
  a.p_drop = p.dropout_p;
  a.p_undrop = 1.0f - p.dropout_p;
  if (p.rng_state) {
    a.drop_seed_offset = std::pair<const void*, const void*>(p.rng_state, p.rng_state + 1);
  } else {
    a.drop_seed_offset = std::make_pair(p.dropout_seed, p.dropout_offset);
  }
  return a;
}

}  // namespace

std::vector<Launch> upstream(const Backward& call, const Told& told) {
  const fmha_bwd_args args = args_of(call);
  fmha_bwd_args seen = args;
  seen.seqlen_q = told.seqlen_q;
  seen.seqlen_k = told.seqlen_k;
  seen.hdim_q = told.head_size_qk;
  seen.hdim_v = told.head_size_v;
  fmha_bwd<2>(traits_of(call, told), seen, ck_tile::stream_config{});
  return launches_of(args);
}

}  // namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity
