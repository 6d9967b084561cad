// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The descriptions of attention over key-value caches that AITER takes, with the fields of
// Composable Kernel at d5acfd8d, 40ee1ee0, af7118e3 and 15e12dd7. docs/consumers.md says what each
// field is here.
#pragma once

#include <bias.hpp>
#include <ck_tile/host.hpp>
#include <ck_tile/ops/fmha/block/block_attention_kvcache_layout_enum.hpp>
#include <cstdint>
#include <mask.hpp>
#include <quant.hpp>
#include <utility>
#include <variant>

struct fmha_fwd_splitkv_args {
  const void* q_ptr;
  const void* k_ptr;
  const void* v_ptr;
  const void* bias_ptr;
  void* lse_acc_ptr;
  void* o_acc_ptr;
  void* lse_ptr;
  void* o_ptr;
  void* block_table_ptr;
  ck_tile::index_t batch_stride_block_table;
  ck_tile::index_t page_block_size;
  bool is_gappy;
  const void* cache_batch_idx;
  const void* seqstart_q_ptr;
  const void* seqstart_k_ptr;
  const void* seqlen_k_ptr;
  const void* sink_ptr;
  ck_tile::index_t seqlen_q;
  ck_tile::index_t seqlen_k;
  ck_tile::index_t batch;
  ck_tile::index_t max_seqlen_q;
  ck_tile::index_t hdim_q;
  ck_tile::index_t hdim_v;
  ck_tile::index_t nhead_q;
  ck_tile::index_t nhead_k;
  ck_tile::index_t num_splits;
  float scale_s;
  float scale_p;
  float scale_o;
  float logits_soft_cap;
  ck_tile::index_t stride_q;
  ck_tile::index_t stride_k;
  ck_tile::index_t stride_v;
  ck_tile::index_t stride_bias;
  ck_tile::index_t stride_o_acc;
  ck_tile::index_t stride_o;
  ck_tile::index_t nhead_stride_q;
  ck_tile::index_t nhead_stride_k;
  ck_tile::index_t nhead_stride_v;
  ck_tile::index_t nhead_stride_bias;
  ck_tile::index_t nhead_stride_lse;
  ck_tile::index_t nhead_stride_lse_acc;
  ck_tile::index_t nhead_stride_o_acc;
  ck_tile::index_t nhead_stride_o;
  ck_tile::index_t batch_stride_q;
  ck_tile::index_t batch_stride_k;
  ck_tile::index_t batch_stride_v;
  ck_tile::index_t batch_stride_bias;
  ck_tile::index_t batch_stride_lse;
  ck_tile::index_t batch_stride_lse_acc;
  ck_tile::index_t batch_stride_o_acc;
  ck_tile::index_t batch_stride_o;
  ck_tile::index_t split_stride_lse_acc;
  ck_tile::index_t split_stride_o_acc;
  ck_tile::index_t window_size_left;
  ck_tile::index_t window_size_right;
  ck_tile::index_t sink_size;
  ck_tile::index_t mask_type;
};

struct fmha_batch_prefill_args {
  const void* q_ptr;
  const void* k_ptr;
  const void* v_ptr;
  const void* bias_ptr;
  const void* q_descale_ptr;
  const void* k_descale_ptr;
  const void* v_descale_ptr;
  void* rand_val_ptr;
  void* lse_ptr;
  void* o_ptr;
  const void* seqstart_q_ptr;
  const void* sink_ptr;
  ck_tile::index_t seqlen_q;
  ck_tile::index_t seqlen_k;
  ck_tile::index_t batch;
  ck_tile::index_t max_seqlen_q;
  ck_tile::index_t hdim_q;
  ck_tile::index_t hdim_v;
  ck_tile::index_t nhead_q;
  ck_tile::index_t nhead_k;
  int32_t num_total_pages;
  ck_tile::index_t page_block_size;
  ck_tile::BlockAttentionKVCacheMemoryLayoutEnum kv_memory_layout;
  ck_tile::BlockAttentionKVCacheLookupTableEnum kv_lookup_table;
  void* kv_indptr;
  void* kv_page_indices;
  void* kv_last_page_lens;
  void* seqlen_k_ptr;
  ck_tile::index_t batch_stride_block_table;
  float scale_s;
  float scale_p;
  float scale_o;
  float logits_soft_cap;
  ck_tile::index_t stride_q;
  ck_tile::index_t stride_k;
  ck_tile::index_t stride_v;
  ck_tile::index_t stride_bias;
  ck_tile::index_t stride_randval;
  ck_tile::index_t stride_o;
  ck_tile::index_t nhead_stride_q;
  ck_tile::index_t nhead_stride_k;
  ck_tile::index_t nhead_stride_v;
  ck_tile::index_t nhead_stride_bias;
  ck_tile::index_t nhead_stride_randval;
  ck_tile::index_t nhead_stride_lse;
  ck_tile::index_t nhead_stride_o;
  ck_tile::index_t batch_stride_q;
  ck_tile::index_t batch_stride_k;
  ck_tile::index_t batch_stride_v;
  ck_tile::index_t batch_stride_bias;
  ck_tile::index_t batch_stride_randval;
  ck_tile::index_t batch_stride_lse;
  ck_tile::index_t batch_stride_o;
  ck_tile::index_t window_size_left;
  ck_tile::index_t window_size_right;
  ck_tile::index_t sink_size;
  ck_tile::index_t mask_type;
  float p_drop;
  bool s_randval;
  std::variant<std::pair<uint64_t, uint64_t>, std::pair<const void*, const void*>> drop_seed_offset;
  ck_tile::index_t nblock_stride_kv_block_descale = 0;
  ck_tile::index_t nhead_stride_kv_block_descale = 0;
};
