// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Every field that TransformerEngine's set-up sees is set, by name: of a pin whose backward struct
// has workspace_alloc.
#include <qola_mha_bwd.h>

#include <memory>
#include <stdexcept>
#include <utility>

#include "ck_tile/host.hpp"
#include "tests/consumers/ck_fused_attn.h"

namespace ck_fused_attn {
namespace {

// Set-up does not see these fields: they are initialised by braces.
void set_memory(const std::function<void*(size_t)>& scratch, aiter::mha_bwd_args* args) {
  args->workspace_alloc = [&scratch](size_t bytes, bool) { return scratch(bytes); };
  args->pinned_host_alloc = [](size_t bytes) -> std::shared_ptr<void> {
    return {new char[bytes], [](void* memory) { delete[] static_cast<char*>(memory); }};
  };
}

}  // namespace

float backward(const Problem& p, const Stream& s, const Operand& q, const Operand& k,
               const Operand& v, const void* bias, const Operand& o, const float* lse,
               const Operand& dout, const Operand& dq, const Operand& dk, const Operand& dv,
               void* dbias, const std::function<void*(size_t)>& scratch) {
  const int32_t rows_q = p.packed ? p.all_q : p.rows_q;
  const int32_t rows_kv = p.packed ? p.all_kv : p.rows_kv;
  const int32_t matrix = p.rows_q * p.rows_kv;
  const bool has_bias = p.bias_kind == 1, has_dbias = has_bias && dbias;
  aiter::mha_bwd_args fmha_args{};
  fmha_args.use_asm_v3 = p.v3;
  fmha_args.v3_atomic_fp32 = true;
  fmha_args.v3_bf16_cvt = p.v3_rounding;
  fmha_args.v3_api_check = s.only_path;
  fmha_args.hdim_q = p.size_qk;
  fmha_args.hdim_v = p.size_v;
  fmha_args.data_type = p.dtype;
  fmha_args.is_group_mode = p.packed;
  fmha_args.mask_type = p.mask;
  fmha_args.bias_type = p.bias_kind;
  fmha_args.has_dbias = has_dbias;
  fmha_args.has_dropout = p.drop > 0;
  fmha_args.is_store_randval = false;
  fmha_args.is_deterministic = p.deterministic;
  fmha_args.q_ptr = q.data;
  fmha_args.k_ptr = k.data;
  fmha_args.v_ptr = v.data;
  fmha_args.bias_ptr = bias;
  fmha_args.o_ptr = o.data;
  fmha_args.lse_ptr = lse;
  fmha_args.do_ptr = dout.data;
  fmha_args.d_ptr = nullptr;
  fmha_args.rand_val_ptr = nullptr;
  fmha_args.dq_ptr = dq.data;
  fmha_args.dk_ptr = dk.data;
  fmha_args.dv_ptr = dv.data;
  fmha_args.dbias_ptr = has_dbias ? dbias : nullptr;
  fmha_args.sink_ptr = nullptr;
  fmha_args.d_sink_ptr = nullptr;
  fmha_args.seqstart_q_ptr = p.packed ? p.padded_starts_q : nullptr;
  fmha_args.seqstart_k_ptr = p.packed ? p.padded_starts_kv : nullptr;
  fmha_args.seqlen_q_ptr = nullptr;
  fmha_args.seqlen_k_ptr = nullptr;
  fmha_args.cu_seqlen_q_ptr = p.packed ? p.starts_q : nullptr;
  fmha_args.cu_seqlen_k_ptr = p.packed ? p.starts_kv : nullptr;
  fmha_args.seqlen_q = rows_q;
  fmha_args.seqlen_k = rows_kv;
  fmha_args.batch = p.batch;
  fmha_args.max_seqlen_q = p.rows_q;
  fmha_args.max_seqlen_k = p.rows_kv;
  fmha_args.nhead_q = p.heads;
  fmha_args.nhead_k = p.groups;
  fmha_args.scale = p.scale;
  fmha_args.stride_q = q.row;
  fmha_args.stride_k = k.row;
  fmha_args.stride_v = v.row;
  // ALiBi's slopes are [batch, heads].
  fmha_args.stride_bias = has_bias ? p.rows_kv : p.bias_kind == 2 ? p.heads : 0;
  fmha_args.stride_o = o.row;
  fmha_args.stride_randval = 0;
  fmha_args.stride_do = dout.row;
  fmha_args.stride_dq = dq.row;
  fmha_args.stride_dk = dk.row;
  fmha_args.stride_dv = dv.row;
  fmha_args.stride_dbias = has_dbias ? p.rows_kv : 0;
  fmha_args.nhead_stride_q = q.head;
  fmha_args.nhead_stride_k = k.head;
  fmha_args.nhead_stride_v = v.head;
  fmha_args.nhead_stride_bias = has_bias && p.bias_heads > 1 ? matrix : 0;
  fmha_args.nhead_stride_o = o.head;
  fmha_args.nhead_stride_randval = 0;
  fmha_args.nhead_stride_do = dout.head;
  fmha_args.nhead_stride_lsed = rows_q;
  fmha_args.nhead_stride_dq = dq.head;
  fmha_args.nhead_stride_dk = dk.head;
  fmha_args.nhead_stride_dv = dv.head;
  fmha_args.nhead_stride_dbias = has_dbias ? matrix : 0;
  fmha_args.batch_stride_q = q.entry;
  fmha_args.batch_stride_k = k.entry;
  fmha_args.batch_stride_v = v.entry;
  fmha_args.batch_stride_bias = has_bias && p.bias_entries > 1 ? p.bias_heads * matrix : 0;
  fmha_args.batch_stride_o = o.entry;
  fmha_args.batch_stride_randval = 0;
  fmha_args.batch_stride_do = dout.entry;
  fmha_args.batch_stride_lsed = p.heads * rows_q;
  fmha_args.batch_stride_dq = dq.entry;
  fmha_args.batch_stride_dk = dk.entry;
  fmha_args.batch_stride_dv = dv.entry;
  fmha_args.batch_stride_dbias = has_dbias ? p.heads * matrix : 0;
  fmha_args.window_size_left = p.left;
  fmha_args.window_size_right = p.right;
  fmha_args.p_drop = p.drop;
  fmha_args.p_undrop = 1 - p.drop;
  fmha_args.drop_seed_offset = std::pair<const void*, const void*>(p.seed, p.offset);
  set_memory(scratch, &fmha_args);

  const float answer = QOLA_NS(mha_bwd)(
      fmha_args, ck_tile::stream_config{static_cast<hipStream_t>(s.handle), s.timed, 0});
  if (answer < 0 && !s.only_path) throw std::runtime_error("backward: no kernel");
  return answer;
}

}  // namespace ck_fused_attn
