// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A call as the library sees it, and the values that follow from it by arithmetic alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "aiter/attn.h"

namespace AITER_ATTN_NAMESPACE::attention {

class Pass;

// A caller's arrays of lengths, entries and pages, by the names of their fields.
struct Arrays {
  const int32_t *cu_seqlens_q, *cu_seqlens_k, *seqused_q, *seqused_k, *cu_seqused_q, *cu_seqused_k;
  const int32_t *seqlens_k, *batch_index, *block_table, *page_indptr, *page_indices;
};

// A computation and its operands. A pass makes it of a caller's structs, whose fields have their
// names here; only a valid one reaches any other part.
struct Problem : attn_problem {
  const Pass* pass;
  attn_tensor q, k, v, o;
  attn_tensor dout, dq, dk, dv;  // backward
  float* lse;                    // forward: NULL where it is not wanted
  void* workspace;               // forward, backward, kvcache
  uint64_t workspace_size;
  attn_tensor bias_matrix;    // ATTN_BIAS_ELEMENTWISE
  const float* alibi_slopes;  // ATTN_BIAS_ALIBI
  int64_t alibi_stride_batch;
  const float* sink;     // forward, backward, kvcache: NULL where there is none
  float* dsink;          // backward: NULL where it is not wanted
  int32_t min_seqlen_q;  // forward
  int32_t v_layout;      // forward, as the fields below
  float descale_q, descale_k, descale_v, scale_o;
  int32_t o_dtype;           // 0: dtype
  attn_tensor dbias_matrix;  // backward
  int32_t bias_grad;
  int32_t dbias_sums;  // attn_dbias_sum
  int32_t deterministic;
  int32_t preference;  // on the GPU: of attn_kernels, what `kernels` means; no default
  // forward on the GPU without an lse: a kernel may leave one in the workspace.
  bool spare_lse;
  // On the GPU, results that the workspace keeps apart until they are put together: sums of dq, 1
  // but where backward is deterministic; over a cache, those of parts of the keys, 0 where the
  // kernels need none; forward, an lse that is not wanted, or 0. Pass::most_parts tells it.
  int64_t most_parts = 0;
  attn_kvcache cache;  // kvcache, append
  int32_t splits;      // kvcache; 0: as dispatch chooses
  // append
  attn_tensor k_new, v_new;
  int32_t seqlen_new;
  int32_t rotary;
  int32_t rotary_size;
  int32_t rotary_length;
  const void* rotary_cos;
  const void* rotary_sin;
  uint8_t* kept;  // dropout_mask, which has no tensor
  // Where the caller's arrays lie. On the CPU the fields above are copies, as far as they are read:
  // the caller's may change after they were checked.
  Arrays lent;
  std::vector<std::shared_ptr<const int32_t[]>> copies;
};

inline bool is_group(const attn_problem& p) { return p.mode == ATTN_MODE_GROUP; }
inline bool in_pages(const Problem& p) { return p.cache.page_size > 0; }
// Keys are found one by one (SGLang's page list), not by a row of pages. A plan has no pointers.
inline bool in_page_list(const Problem& p) {
  const attn_kvcache& c = p.cache;
  return c.page_indptr || (c.page_size == 1 && !c.block_table && c.block_table_stride == 0);
}

inline bool is_fp8(int32_t dtype) {
  return dtype == ATTN_DTYPE_FP8_E4M3 || dtype == ATTN_DTYPE_FP8_E4M3_FNUZ;
}

inline int64_t dtype_size(int32_t dtype) {
  return is_fp8(dtype) ? 1 : dtype == ATTN_DTYPE_FP32 ? 4 : 2;
}

inline int32_t dtype_of_o(const Problem& p) { return p.o_dtype ? p.o_dtype : p.dtype; }

// Of an elementwise bias.
inline int32_t bias_dtype(const attn_problem& p) {
  return is_fp8(p.dtype) ? int32_t{ATTN_DTYPE_FP32} : p.dtype;
}

// A tensor's sizes. In group mode there is one batch entry of `total` rows.
struct Extents {
  int64_t batch;
  int64_t seq;
  int64_t heads;
  int64_t head_size;
  int64_t longest;  // rows of one sequence, at most
};

inline Extents query_extents(const attn_problem& p, int32_t head_size) {
  if (is_group(p)) return {1, p.total_q, p.heads_q, head_size, p.seqlen_q};
  return {p.batch, p.seqlen_q, p.heads_q, head_size, p.seqlen_q};
}

inline Extents key_extents(const attn_problem& p, int32_t heads, int32_t head_size) {
  if (is_group(p)) return {1, p.total_k, heads, head_size, p.seqlen_k};
  return {p.batch, p.seqlen_k, heads, head_size, p.seqlen_k};
}

// On the GPU: an lse that the caller does not want, but the kernel of the sink does.
inline bool keeps_lse(const Problem& p) {
  return p.sink && !p.lse && p.device_type != ATTN_DEVICE_CPU;
}

// Rows over all batch entries.
inline int64_t query_rows(const attn_problem& p) {
  return is_group(p) ? p.total_q : int64_t{p.batch} * p.seqlen_q;
}

inline int64_t key_rows(const attn_problem& p) {
  return is_group(p) ? p.total_k : int64_t{p.batch} * p.seqlen_k;
}

// Of the k and v of a call over a cache.
inline Extents cache_extents(const Problem& p, int32_t head_size) {
  const attn_kvcache& c = p.cache;
  if (in_pages(p)) return {c.entries, c.page_size, p.heads_k, head_size, c.page_size};
  if (is_group(p)) return key_extents(p, p.heads_k, head_size);
  return {c.entries, p.seqlen_k, p.heads_k, head_size, p.seqlen_k};
}

// Whether some rows of tensors are padding.
inline bool has_padded_queries(const attn_problem& p) { return p.seqused_q || p.cu_seqused_q; }
inline bool has_padded_keys(const attn_problem& p) { return p.seqused_k || p.cu_seqused_k; }
inline bool is_padded(const attn_problem& p) { return has_padded_queries(p) || has_padded_keys(p); }

// Queries and keys of a sequence, where the arrays of lengths can be read: in host memory. There
// validation has made seqused_* of cu_seqused_*.
inline int64_t queries_of(const attn_problem& p, int64_t batch) {
  if (p.seqused_q) return p.seqused_q[batch];
  if (is_group(p)) return int64_t{p.cu_seqlens_q[batch + 1]} - p.cu_seqlens_q[batch];
  return p.seqlen_q;
}

inline int64_t keys_of(const Problem& p, int64_t batch) {
  const attn_kvcache& c = p.cache;
  if (p.seqused_k) return p.seqused_k[batch];
  if (c.seqlens_k) return c.seqlens_k[batch];
  if (c.page_indptr) return int64_t{c.page_indptr[batch + 1]} - c.page_indptr[batch];
  if (is_group(p)) return int64_t{p.cu_seqlens_k[batch + 1]} - p.cu_seqlens_k[batch];
  return p.seqlen_k;
}

// The causal mask: queries see all keys up to the diagonal.
inline bool is_causal(const attn_problem& p) {
  return p.mask != ATTN_MASK_NONE && p.window_left < 0 && p.window_right == 0;
}

// The factor of products of elements of q and k, and that of sums of v.
inline double score_scale(const Problem& p) {
  const double scale = p.softmax_scale;
  return is_fp8(p.dtype) ? scale * p.descale_q * p.descale_k : scale;
}
inline double output_scale(const Problem& p) {
  if (!is_fp8(p.dtype)) return 1;
  return p.o_dtype ? p.descale_v : double{p.descale_v} * p.scale_o;
}

// Whether any score is computed, over keys that are not in a cache. Without, outputs that have
// entries become zero, and lse -inf.
inline bool has_scores(const attn_problem& p) { return query_rows(p) != 0 && key_rows(p) != 0; }

// The same, or that padding must be told apart from rows of zeros.
inline bool has_rows(const attn_problem& p) {
  return has_scores(p) || (is_padded(p) && (query_rows(p) != 0 || key_rows(p) != 0));
}

// Of a bias, and of its gradient; head_size is that of a row: the keys.
inline Extents score_extents(const attn_problem& p) { return query_extents(p, p.seqlen_k); }

}  // namespace AITER_ATTN_NAMESPACE::attention
