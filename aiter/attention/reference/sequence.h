// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// One batch entry of a problem: where its rows are, and which keys each query sees.
#pragma once

#include <algorithm>
#include <cstdint>

#include "aiter/attention/problem/problem.h"
#include "aiter/attn.h"

namespace AITER_ATTN_NAMESPACE::attention {

struct KeyRange {
  int64_t begin;
  int64_t end;  // == begin where no key is seen
};

class Sequence {
 public:
  Sequence(const Problem& p, int32_t batch) : batch(batch), problem_(p) {
    queries = queries_of(p, batch);
    keys = keys_of(p, batch);
    if (is_group(p)) {
      first_query_ = p.cu_seqlens_q[batch];
      lse_head_stride_ = p.total_q;
      lse_start_ = first_query_;
    } else {
      query_entry_ = batch;
      lse_head_stride_ = p.seqlen_q;
      lse_start_ = int64_t{batch} * p.heads_q * p.seqlen_q;
    }
    const attn_kvcache& cache = p.cache;
    if (in_pages(p)) {
      page_size_ = cache.page_size;
      pages_ = in_page_list(p) ? cache.page_indices + cache.page_indptr[batch]
                               : cache.block_table + batch * cache.block_table_stride;
    } else if (is_group(p)) {
      first_key_ = p.cu_seqlens_k[batch];
    } else {
      key_entry_ = cache.batch_index ? cache.batch_index[batch] : batch;
    }
  }

  int64_t batch;  // which entry it is
  int64_t queries;
  int64_t keys;

  // Offsets, in elements, of a row in a tensor of the query's or the key's side.
  int64_t query_row(const attn_tensor& t, int64_t head, int64_t i) const {
    return query_entry_ * t.stride_batch + (first_query_ + i) * t.stride_seq + head * t.stride_head;
  }
  int64_t key_row(const attn_tensor& t, int64_t head, int64_t j) const {
    const int64_t entry = pages_ ? pages_[j / page_size_] : key_entry_;
    const int64_t row = pages_ ? j % page_size_ : first_key_ + j;
    return entry * t.stride_batch + row * t.stride_seq + head * t.stride_head;
  }
  // Of element d of all keys, with ATTN_V_COLUMNS.
  int64_t value_column(const attn_tensor& t, int64_t head, int64_t d) const {
    return key_entry_ * t.stride_batch + d * t.stride_seq + head * t.stride_head;
  }
  int64_t lse(int64_t head, int64_t i) const { return lse_start_ + head * lse_head_stride_ + i; }

  // The key that query i sits at, which need not exist.
  int64_t diagonal(int64_t i) const {
    return problem_.mask == ATTN_MASK_TOP_LEFT ? i : i + keys - queries;
  }

  KeyRange visible(int64_t i) const {
    if (problem_.mask == ATTN_MASK_NONE) return {0, keys};
    const int64_t diagonal = this->diagonal(i);
    const int64_t left = problem_.window_left, right = problem_.window_right;
    const int64_t begin = left < 0 ? 0 : std::max<int64_t>(0, diagonal - left);
    const int64_t end = right < 0 ? keys : std::min(keys, diagonal + right + 1);
    return {std::min(begin, keys), std::max(std::min(begin, keys), end)};
  }

 private:
  const attn_problem& problem_;
  // Of tensors: in group mode they have one entry.
  int64_t query_entry_ = 0;
  int64_t key_entry_ = 0;
  const int32_t* pages_ = nullptr;  // where keys lie in pages: the sequence's
  int64_t page_size_ = 1;
  int64_t first_query_ = 0;
  int64_t first_key_ = 0;
  int64_t lse_head_stride_;
  int64_t lse_start_;
};

}  // namespace AITER_ATTN_NAMESPACE::attention
