// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A call over a key-value cache by its parts, which know neither AITER's structs nor the C ABI's,
// and AITER's structs of it.
#pragma once

#include <mha_fwd.h>

#include <cstdint>

#include "aiter/compat/tests/consumer.h"

namespace consumer {

struct CachedCall {
  const char* dtype = "fp16";
  bool group = false, lse = true;
  int32_t batch = 2, heads_q = 4, heads_k = 2, size = 128, rows = 40, longest = 40;
  int32_t entries = 2;    // of k and v: that a caller of batch prefill or of the C ABI tells
  int32_t keys = 300;     // in place; in group mode of all together; by a list of the longest
  int32_t page_size = 0;  // 0: in place
  int32_t width = 4;      // pages in a row of a block table
  bool by_list = false;   // of single keys
  int32_t splits = 1, mask = 0, left = -1, right = -1;
  float scale = 0.5f, cap = 0;
  Tensor q, k, v, o;
  float* lse_data = nullptr;
  const int32_t *starts_q = nullptr, *starts_k = nullptr, *lengths = nullptr, *index = nullptr,
                *pages = nullptr;
  const float *slopes = nullptr, *sink = nullptr;
  void* stream = nullptr;
};

template <typename Args>
Args args_of(const CachedCall& c) {
  Args a{};
  a.q_ptr = c.q.data;
  a.k_ptr = c.k.data;
  a.v_ptr = c.v.data;
  a.o_ptr = c.o.data;
  a.lse_ptr = c.lse_data;
  a.bias_ptr = c.slopes;
  a.sink_ptr = c.sink;
  a.seqstart_q_ptr = c.starts_q;
  a.seqlen_q = c.rows;
  a.seqlen_k = c.keys;
  a.batch = c.batch;
  a.max_seqlen_q = c.longest;
  a.hdim_q = a.hdim_v = c.size;
  a.nhead_q = c.heads_q;
  a.nhead_k = c.heads_k;
  a.page_block_size = c.page_size;
  a.batch_stride_block_table = c.width;
  a.seqlen_k_ptr = const_cast<int32_t*>(c.lengths);
  a.scale_s = c.scale;
  a.scale_p = a.scale_o = 1;
  a.logits_soft_cap = c.cap;
  a.stride_q = c.q.row;
  a.stride_k = c.k.row;
  a.stride_v = c.v.row;
  a.stride_o = c.o.row;
  a.nhead_stride_q = c.q.head;
  a.nhead_stride_k = c.k.head;
  a.nhead_stride_v = c.v.head;
  a.nhead_stride_o = c.o.head;
  a.batch_stride_q = c.q.batch;
  a.batch_stride_k = c.k.batch;
  a.batch_stride_v = c.v.batch;
  a.batch_stride_o = c.o.batch;
  a.nhead_stride_lse = c.rows;
  a.batch_stride_lse = c.heads_q * c.rows;
  a.window_size_left = c.left;
  a.window_size_right = c.right;
  a.mask_type = c.mask;
  return a;
}

inline fmha_fwd_splitkv_args splitkv_args(const CachedCall& c) {
  auto a = args_of<fmha_fwd_splitkv_args>(c);
  a.num_splits = c.splits;
  a.cache_batch_idx = c.index;
  a.seqstart_k_ptr = c.starts_k;
  if (c.page_size != 0) {
    a.block_table_ptr = const_cast<int32_t*>(c.pages);
    a.seqlen_k = c.width * c.page_size;
  }
  return a;
}

inline fmha_batch_prefill_args prefill_args(const CachedCall& c) {
  using Layout = ck_tile::BlockAttentionKVCacheMemoryLayoutEnum;
  using Table = ck_tile::BlockAttentionKVCacheLookupTableEnum;
  auto a = args_of<fmha_batch_prefill_args>(c);
  a.num_total_pages = c.entries;
  a.kv_memory_layout = Layout::LINEAR_LAYOUT;
  a.kv_lookup_table = c.by_list ? Table::SGLANG_PAGE_TABLE_1D : Table::VLLM_BLOCK_TABLE_2D;
  a.kv_page_indices = const_cast<int32_t*>(c.pages);
  if (c.by_list) a.kv_indptr = const_cast<int32_t*>(c.starts_k);
  return a;
}

inline bias_enum bias_of(const CachedCall& c) {
  return c.slopes ? bias_enum::alibi : bias_enum::no_bias;
}

inline ck_tile::stream_config stream_of(const CachedCall& c) {
  return {static_cast<hipStream_t>(c.stream), false, 0};
}

inline float splitkv(const CachedCall& c, const fmha_fwd_splitkv_args& args) {
  return aiter::mha_fwd_splitkv(args, stream_of(c), c.dtype, c.group,
                                static_cast<mask_enum>(c.mask), bias_of(c), c.lse);
}

inline float prefill(const CachedCall& c, const fmha_batch_prefill_args& args,
                     quant_scale_enum scales = quant_scale_enum::no_scale) {
  return aiter::mha_batch_prefill(args, stream_of(c), c.dtype, c.group,
                                  static_cast<mask_enum>(c.mask), bias_of(c), c.lse, scales, false);
}

}  // namespace consumer
