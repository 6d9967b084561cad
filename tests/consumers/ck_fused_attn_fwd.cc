// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Every field is set, by name, as TransformerEngine's set-up wants it (set_up.py): of a pin whose
// forward struct has num_splits.
#include <qola_mha_fwd.h>

#include <stdexcept>
#include <utility>

#include "ck_tile/host.hpp"
#include "tests/consumers/ck_fused_attn.h"

namespace ck_fused_attn {

float forward(const Problem& p, const Stream& s, const Operand& q, const Operand& k,
              const Operand& v, const void* bias, const Operand& o, float* lse) {
  const int32_t rows_q = p.packed ? p.all_q : p.rows_q;
  const int32_t rows_kv = p.packed ? p.all_kv : p.rows_kv;
  const int32_t matrix = p.rows_q * p.rows_kv;
  aiter::mha_fwd_args fmha_args{};
  fmha_args.use_asm_v3 = p.v3;
  fmha_args.v3_api_check = s.only_path;
  fmha_args.how_v3_bf16_cvt = p.v3_rounding;
  fmha_args.data_type = p.dtype;
  fmha_args.is_group_mode = p.packed;
  fmha_args.bias_type = p.bias_kind;
  fmha_args.has_lse = lse != nullptr;
  fmha_args.qscale_type = 0;
  fmha_args.has_sink = false;
  fmha_args.q_ptr = q.data;
  fmha_args.k_ptr = k.data;
  fmha_args.v_ptr = v.data;
  fmha_args.bias_ptr = bias;
  fmha_args.q_descale_ptr = nullptr;
  fmha_args.k_descale_ptr = nullptr;
  fmha_args.v_descale_ptr = nullptr;
  fmha_args.rand_val_ptr = nullptr;
  fmha_args.lse_ptr = lse;
  fmha_args.o_ptr = o.data;
  fmha_args.seqstart_q_ptr = p.packed ? p.padded_starts_q : nullptr;
  fmha_args.seqstart_k_ptr = p.packed ? p.padded_starts_kv : nullptr;
  fmha_args.seqlen_q_ptr = nullptr;
  fmha_args.seqlen_k_ptr = nullptr;
  fmha_args.cu_seqlen_q_ptr = p.packed ? p.starts_q : nullptr;
  fmha_args.cu_seqlen_k_ptr = p.packed ? p.starts_kv : nullptr;
  fmha_args.block_scale_seqstart_q_ptr = nullptr;
  fmha_args.block_scale_seqstart_k_ptr = nullptr;
  fmha_args.sink_ptr = nullptr;
  fmha_args.seqlen_q = rows_q;
  fmha_args.seqlen_k = rows_kv;
  fmha_args.batch = p.batch;
  fmha_args.max_seqlen_q = p.rows_q;
  fmha_args.hdim_q = p.size_qk;
  fmha_args.hdim_v = p.size_v;
  fmha_args.nhead_q = p.heads;
  fmha_args.nhead_k = p.groups;
  fmha_args.scale_s = p.scale;
  fmha_args.logits_soft_cap = 0;
  fmha_args.stride_q = q.row;
  fmha_args.stride_k = k.row;
  fmha_args.stride_v = v.row;
  // ALiBi's slopes are [batch, heads].
  fmha_args.stride_bias = p.bias_kind == 1 ? p.rows_kv : p.bias_kind == 2 ? p.heads : 0;
  fmha_args.stride_randval = 0;
  fmha_args.stride_o = o.row;
  fmha_args.nhead_stride_q = q.head;
  fmha_args.nhead_stride_k = k.head;
  fmha_args.nhead_stride_v = v.head;
  fmha_args.nhead_stride_bias = p.bias_kind == 1 && p.bias_heads > 1 ? matrix : 0;
  fmha_args.nhead_stride_randval = 0;
  fmha_args.nhead_stride_lse = rows_q;
  fmha_args.nhead_stride_o = o.head;
  fmha_args.nhead_stride_q_descale = 0;
  fmha_args.nhead_stride_k_descale = 0;
  fmha_args.nhead_stride_v_descale = 0;
  fmha_args.batch_stride_q = q.entry;
  fmha_args.batch_stride_k = k.entry;
  fmha_args.batch_stride_v = v.entry;
  fmha_args.batch_stride_bias = p.bias_kind == 1 && p.bias_entries > 1 ? p.bias_heads * matrix : 0;
  fmha_args.batch_stride_randval = 0;
  fmha_args.batch_stride_lse = p.heads * rows_q;
  fmha_args.batch_stride_o = o.entry;
  fmha_args.batch_stride_q_descale = 0;
  fmha_args.batch_stride_k_descale = 0;
  fmha_args.batch_stride_v_descale = 0;
  fmha_args.window_size_left = p.left;
  fmha_args.window_size_right = p.right;
  fmha_args.sink_size = 0;
  fmha_args.mask_type = p.mask;
  fmha_args.min_seqlen_q = 0;
  fmha_args.p_drop = p.drop;
  fmha_args.s_randval = false;
  fmha_args.drop_seed_offset = std::pair<const void*, const void*>(p.seed, p.offset);
  fmha_args.block_scale_size_q = 0;
  fmha_args.block_scale_size_kv = 0;
  fmha_args.num_splits = 0;
  fmha_args.splitkv_workspace_ptr = nullptr;

  // The keys' splits are asked for first, and memory for them.
  fmha_args.num_splits = QOLA_NS(mha_fwd_calculate_num_splits)(fmha_args);
  if (QOLA_NS(mha_fwd_workspace_size)(fmha_args) != 0) {
    throw std::runtime_error("forward: memory is wanted for keys that are not split");
  }
  const float answer = QOLA_NS(mha_fwd)(
      fmha_args, ck_tile::stream_config{static_cast<hipStream_t>(s.handle), s.timed, 0});
  if (answer < 0 && !s.only_path) throw std::runtime_error("forward: no kernel");
  return answer;
}

}  // namespace ck_fused_attn
