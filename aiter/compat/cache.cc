// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/compat/cache.h"

#include <cstdint>

#include "aiter/attn.h"
#include "aiter/compat/call.h"
#include "aiter/compat/hip.h"
#include "aiter/compat/reading.h"
#include "aiter/runtime/error.h"

namespace AITER_ATTN_NAMESPACE::compat {
namespace {

using runtime::fail;
using runtime::Field;
using runtime::refuse;
using runtime::Status;

// Entries of a cache whose number the struct does not tell: as few as have a stride between them.
// No kernel asks for more than that.
constexpr int32_t kSome = 2;

const int32_t* numbers(const void* array) { return static_cast<const int32_t*>(array); }

void require_one(const char* field, float scale) {
  if (scale != 1) refuse(field, scale, "must be 1: it is a scale of fp8, which is not served");
}

template <typename Args>
void set_queries(const Args& a, const CacheTraits& traits, attn_problem* p) {
  p->seqlen_q = a.max_seqlen_q;
  if (traits.group) {
    p->total_q = a.seqlen_q;
    p->cu_seqlens_q = numbers(a.seqstart_q_ptr);
    return;
  }
  require_null("seqstart_q_ptr", a.seqstart_q_ptr, " in batch mode: pass is_group_mode");
  if (a.max_seqlen_q != a.seqlen_q) {
    refuse("max_seqlen_q", a.max_seqlen_q, "must be seqlen_q, ", a.seqlen_q, ", in batch mode");
  }
}

// All but the keys' places.
template <typename Args>
Cached cached_call(const Args& a, const CacheTraits& traits, const ck_tile::stream_config& s) {
  Cached call = {};
  attn_problem& p = call.problem;
  p.struct_size = sizeof(p);
  p.mode = traits.group ? ATTN_MODE_GROUP : ATTN_MODE_BATCH;
  p.device_type = ATTN_DEVICE_ROCM;
  p.stream = s.stream_id_;
  p.dtype = dtype_of("q_dtype_str", traits.dtype, "gather the keys, and call attn_fwd");
  p.batch = a.batch;
  p.heads_q = a.nhead_q;
  p.heads_k = a.nhead_k;
  p.head_size_qk = a.hdim_q;
  p.head_size_v = a.hdim_v;
  p.softmax_scale = a.scale_s;
  p.logits_soft_cap = a.logits_soft_cap;
  require_one("scale_p", a.scale_p);
  require_one("scale_o", a.scale_o);
  require_no_sink_size(a.sink_size);
  if (a.mask_type != static_cast<int>(traits.mask)) {
    refuse("mask_type", a.mask_type, "must be the function's mask_type, ",
           static_cast<int>(traits.mask));
  }
  set_mask(a.mask_type, a.window_size_left, a.window_size_right, &p);
  set_queries(a, traits, &p);

  attn_kvcache_fwd_args& args = call.args;
  args.struct_size = sizeof(args);
  args.q = tensor(a.q_ptr, a.batch_stride_q, a.stride_q, a.nhead_stride_q);
  args.k = tensor(a.k_ptr, a.batch_stride_k, a.stride_k, a.nhead_stride_k);
  args.v = tensor(a.v_ptr, a.batch_stride_v, a.stride_v, a.nhead_stride_v);
  args.o = tensor(a.o_ptr, a.batch_stride_o, a.stride_o, a.nhead_stride_o);
  args.sink = static_cast<const float*>(a.sink_ptr);
  p.bias = static_cast<int32_t>(traits.bias);
  if (p.bias == ATTN_BIAS_ALIBI) {
    if (!a.bias_ptr) refuse("bias_ptr", "NULL", "bias_type 2 (ALiBi) needs slopes");
    args.alibi_slopes = static_cast<const float*>(a.bias_ptr);
    args.alibi_stride_batch = a.stride_bias;
  }
  if (traits.lse) {
    if (!a.lse_ptr) refuse("lse_ptr", "NULL", "has_lse needs one");
    args.lse = static_cast<float*>(a.lse_ptr);
    set_lse({"nhead_stride_lse", a.nhead_stride_lse, "batch_stride_lse", a.batch_stride_lse}, &p);
  }
  call.cache.struct_size = sizeof(call.cache);
  return call;
}

// Pages of a block table, which is as wide as a sequence has room.
void set_block_table(const void* table, int32_t stride, int32_t page_size, Cached* call) {
  if (page_size < 1) refuse("page_block_size", page_size, "must be at least 1 with a block table");
  const int64_t room = int64_t{stride} * page_size;
  if (stride < 0 || room > INT32_MAX) {
    refuse("batch_stride_block_table", stride, "times page_block_size (", page_size,
           ") must be from 0 to ", INT32_MAX, " keys");
  }
  call->cache.page_size = page_size;
  call->cache.block_table = numbers(table);
  call->cache.block_table_stride = stride;
  call->problem.seqlen_k = static_cast<int32_t>(room);
}

void set_places_in_pages(const fmha_fwd_splitkv_args& a, Cached* call) {
  set_block_table(a.block_table_ptr, a.batch_stride_block_table, a.page_block_size, call);
  call->cache.entries = kSome;
  call->cache.batch_index = numbers(a.cache_batch_idx);
  if (a.is_gappy) {
    fail(Status::kUnsupported, Field("is_gappy"), " is true, but must be false: sequences begin ",
         "at their first page");
  }
  attn_problem& p = call->problem;
  if (p.mode == ATTN_MODE_GROUP) {
    p.cu_seqlens_k = numbers(a.seqstart_k_ptr);
  } else if (!a.seqlen_k_ptr && a.seqlen_k != p.seqlen_k) {
    refuse("seqlen_k", a.seqlen_k, "must be the room of a row of block_table_ptr, ", p.seqlen_k,
           ", without seqlen_k_ptr");
  }
}

void set_places(const fmha_fwd_splitkv_args& a, Cached* call) {
  attn_problem& p = call->problem;
  call->cache.seqlens_k = numbers(a.seqlen_k_ptr);
  if (a.block_table_ptr) return set_places_in_pages(a, call);
  call->cache.batch_index = numbers(a.cache_batch_idx);
  call->cache.entries = a.cache_batch_idx ? kSome : a.batch;
  p.seqlen_k = a.seqlen_k;
  if (p.mode == ATTN_MODE_GROUP) {
    // The greatest number of keys is not told: no sequence has more than all.
    p.total_k = a.seqlen_k;
    p.cu_seqlens_k = numbers(a.seqstart_k_ptr);
  }
}

void set_places(const fmha_batch_prefill_args& a, Cached* call) {
  using Layout = ck_tile::BlockAttentionKVCacheMemoryLayoutEnum;
  using Table = ck_tile::BlockAttentionKVCacheLookupTableEnum;
  if (a.kv_memory_layout != Layout::LINEAR_LAYOUT) {
    fail(Status::kUnsupported, Field("kv_memory_layout"), " is ",
         static_cast<int>(a.kv_memory_layout), ", but must be LINEAR_LAYOUT (1), [pages, ",
         "page_size, heads, head_size]");
  }
  attn_kvcache& cache = call->cache;
  cache.entries = a.num_total_pages;
  if (a.kv_lookup_table == Table::VLLM_BLOCK_TABLE_2D) {
    if (!a.seqlen_k_ptr) refuse("seqlen_k_ptr", "NULL", "a block table needs the lengths");
    set_block_table(a.kv_page_indices, a.batch_stride_block_table, a.page_block_size, call);
    cache.seqlens_k = numbers(a.seqlen_k_ptr);
    return;
  }
  if (a.kv_lookup_table != Table::SGLANG_PAGE_TABLE_1D) {
    refuse("kv_lookup_table", static_cast<int>(a.kv_lookup_table),
           "must be VLLM_BLOCK_TABLE_2D (0) or SGLANG_PAGE_TABLE_1D (1)");
  }
  if (a.page_block_size != 1) {
    fail(Status::kUnsupported, Field("page_block_size"), " is ", a.page_block_size,
         ", but must be 1 with SGLANG_PAGE_TABLE_1D: pass the pages as a block table");
  }
  cache.page_size = 1;
  cache.page_indptr = numbers(a.kv_indptr);
  cache.page_indices = numbers(a.kv_page_indices);
  call->problem.seqlen_k = a.seqlen_k;
}

Names cache_names(bool group) {
  Names names = common_names();
  if (group) names.emplace_back("seqlen_q", "max_seqlen_q");
  names.insert(names.begin(), {{"dtype", "q_dtype_str"},
                               {"softmax_scale", "scale_s"},
                               {"seqlens_k", "seqlen_k_ptr"},
                               {"page_size", "page_block_size"},
                               {"block_table_stride", "batch_stride_block_table"}});
  return names;
}

Names splitkv_names(bool group) {
  Names names = cache_names(group);
  names.insert(names.end(), {{"splits", "num_splits"},
                             {"batch_index", "cache_batch_idx"},
                             {"block_table", "block_table_ptr"}});
  return names;
}

Names prefill_names(bool group) {
  Names names = cache_names(group);
  names.insert(names.end(), {{"entries", "num_total_pages"},
                             {"page_indptr", "kv_indptr"},
                             {"page_indices", "kv_page_indices"},
                             {"block_table", "kv_page_indices"}});
  return names;
}

}  // namespace

float splitkv(const fmha_fwd_splitkv_args& a, const CacheTraits& traits,
              const ck_tile::stream_config& stream) noexcept {
  return answered(
      "aiter::mha_fwd_splitkv", [&] { return splitkv_names(traits.group); },
      [&] {
        Cached call = cached_call(a, traits, stream);
        if (a.num_splits < 1) refuse("num_splits", a.num_splits, "must be at least 1");
        call.args.splits = a.num_splits;
        set_places(a, &call);
        call.problem.device_id = current_device();
        return run(call, stream);
      });
}

float batch_prefill(const fmha_batch_prefill_args& a, const CacheTraits& traits,
                    quant_scale_enum scales, const ck_tile::stream_config& stream) noexcept {
  return answered(
      "aiter::mha_batch_prefill", [&] { return prefill_names(traits.group); },
      [&] {
        Cached call = cached_call(a, traits, stream);
        if (scales != quant_scale_enum::no_scale) {
          fail(Status::kUnsupported, Field("qscale_type"), " is ", static_cast<int>(scales),
               ", but must be no_scale (0): scales on the device are not served");
        }
        if (a.p_drop != 0) {
          fail(Status::kUnsupported, Field("p_drop"), " is ", a.p_drop,
               ", but must be 0: attention over a cache has no dropout");
        }
        if (a.s_randval) {
          fail(Status::kUnsupported, Field("s_randval"),
               " is true, but must be false: random numbers are not stored");
        }
        call.args.splits = 1;
        set_places(a, &call);
        call.problem.device_id = current_device();
        return run(call, stream);
      });
}

}  // namespace AITER_ATTN_NAMESPACE::compat
