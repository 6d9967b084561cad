// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// QoLA's functions over those of one pin of AITER. Compiled once for each pin.
#include "aiter/compat/questions.h"
#include "qola_mha_bwd.h"
#include "qola_mha_fwd.h"

namespace compat = ::AITER_ATTN_NAMESPACE::compat;

QOLA_NS_BEGIN

float mha_fwd(const ::aiter::mha_fwd_args& args, const ck_tile::stream_config& stream) {
  return ::aiter::mha_fwd(args, stream);
}

float mha_bwd(const ::aiter::mha_bwd_args& args, const ck_tile::stream_config& stream) {
  return ::aiter::mha_bwd(args, stream);
}

#ifdef PIN_HAS_SPLITS
int mha_fwd_calculate_num_splits(const ::aiter::mha_fwd_args& args) {
  return ::aiter::mha_fwd_calculate_num_splits(args);
}

size_t mha_fwd_workspace_size(const ::aiter::mha_fwd_args& args) {
  return ::aiter::mha_fwd_workspace_size(args);
}
#endif

bool mha_fwd_with_sink_supported(const ::aiter::mha_fwd_args& args) {
  // Of a sink nothing but its presence counts.
  static const float kSink = 0;
  ::aiter::mha_fwd_args asked = args;
  if (!asked.sink_ptr) asked.sink_ptr = &kSink;
  return compat::is_served(asked);
}

#ifdef PIN_ASKS_FOR_WORKSPACE
size_t mha_bwd_workspace_size(const fmha_bwd_traits& t) {
  ::aiter::mha_bwd_args a{};
  a.use_asm_v3 = true;
  a.data_type = t.data_type;
  a.is_group_mode = t.is_group_mode;
  a.hdim_q = t.hdim_q;
  a.hdim_v = t.hdim_v;
  a.seqlen_q = t.seqlen_q;
  a.seqlen_k = t.seqlen_k;
  a.batch = t.batch;
  a.max_seqlen_q = t.is_group_mode ? t.max_seqlen_q : t.seqlen_q;
  a.max_seqlen_k = t.is_group_mode ? t.max_seqlen_k : t.seqlen_k;
  a.nhead_q = t.nhead_q;
  a.nhead_k = t.nhead_k;
  a.scale = 1;
  a.mask_type = static_cast<int>(t.mask_type);
  a.window_size_left = a.window_size_right = -1;
  // The causal mask: no window takes more memory.
  if (t.mask_type != mask_enum::no_mask) a.window_size_right = 0;
  a.bias_type = static_cast<int>(t.bias_type);
  a.has_dbias = t.has_dbias;
  a.has_dropout = t.has_dropout;
  a.p_drop = t.has_dropout ? 0.5f : 0.0f;
  a.p_undrop = 1 - a.p_drop;
  a.is_store_randval = t.is_store_randval;
  a.is_deterministic = t.is_deterministic;
  // Contiguous tensors, of which the size of the memory does not depend: rows of all heads.
  const auto lay = [&](int heads, int rows, int size, int* row, int* head, int* batch) {
    *head = size;
    *row = heads * size;
    *batch = rows * *row;
  };
  lay(t.nhead_q, t.seqlen_q, t.hdim_q, &a.stride_q, &a.nhead_stride_q, &a.batch_stride_q);
  lay(t.nhead_k, t.seqlen_k, t.hdim_q, &a.stride_k, &a.nhead_stride_k, &a.batch_stride_k);
  lay(t.nhead_k, t.seqlen_k, t.hdim_v, &a.stride_v, &a.nhead_stride_v, &a.batch_stride_v);
  lay(t.nhead_q, t.seqlen_q, t.hdim_v, &a.stride_o, &a.nhead_stride_o, &a.batch_stride_o);
  lay(t.nhead_q, t.seqlen_q, t.hdim_v, &a.stride_do, &a.nhead_stride_do, &a.batch_stride_do);
  lay(t.nhead_q, t.seqlen_q, t.hdim_q, &a.stride_dq, &a.nhead_stride_dq, &a.batch_stride_dq);
  lay(t.nhead_q, t.seqlen_k, t.hdim_q, &a.stride_dk, &a.nhead_stride_dk, &a.batch_stride_dk);
  lay(t.nhead_q, t.seqlen_k, t.hdim_v, &a.stride_dv, &a.nhead_stride_dv, &a.batch_stride_dv);
  a.nhead_stride_lsed = t.seqlen_q;
  a.batch_stride_lsed = t.nhead_q * t.seqlen_q;
  if (t.bias_type == bias_enum::elementwise_bias) {
    const int keys = t.is_group_mode ? t.max_seqlen_k : t.seqlen_k;
    a.stride_bias = a.stride_dbias = keys;
    a.nhead_stride_bias = a.nhead_stride_dbias = t.seqlen_q * keys;
    a.batch_stride_bias = a.batch_stride_dbias = t.nhead_q * t.seqlen_q * keys;
  }
  return compat::workspace_size(a);
}
#endif

QOLA_NS_END
