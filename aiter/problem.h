// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// What follows from an attn_problem by arithmetic alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "aiter/attn.h"

namespace aiter_attn {

enum class Mode {
  kBatch,  // equal lengths: tensors are [batch, seqlen, heads, head_size]
  kGroup,  // lengths by cu_seqlens: tensors are [total, heads, head_size]
};

inline const char* name(Mode mode) { return mode == Mode::kGroup ? "group" : "batch"; }

// The mode of args that come without one (explain, workspace size): group mode is what only group
// mode has.
inline Mode implied_mode(const attn_problem& p) {
  const bool group = p.cu_seqlens_q || p.cu_seqlens_k || p.total_q || p.total_k;
  return group ? Mode::kGroup : Mode::kBatch;
}

inline const char* dtype_name(int32_t dtype) {
  switch (dtype) {
    case ATTN_DTYPE_FP16:
      return "fp16";
    case ATTN_DTYPE_BF16:
      return "bf16";
    case ATTN_DTYPE_FP32:
      return "fp32";
    default:
      return "unknown";
  }
}

inline size_t dtype_size(int32_t dtype) { return dtype == ATTN_DTYPE_FP32 ? 4 : 2; }

// A tensor's sizes beside head_size. In group mode there is one batch entry of `total` rows.
struct Extents {
  int64_t batch;
  int64_t seq;
  int64_t heads;
  int64_t head_size;
};

inline Extents query_extents(const attn_problem& p, Mode mode, int32_t head_size) {
  if (mode == Mode::kGroup) return {1, p.total_q, p.heads_q, head_size};
  return {p.batch, p.seqlen_q, p.heads_q, head_size};
}

inline Extents key_extents(const attn_problem& p, Mode mode, int32_t heads, int32_t head_size) {
  if (mode == Mode::kGroup) return {1, p.total_k, heads, head_size};
  return {p.batch, p.seqlen_k, heads, head_size};
}

// Rows over all batch entries.
inline int64_t query_rows(const attn_problem& p, Mode mode) {
  return mode == Mode::kGroup ? p.total_q : int64_t{p.batch} * p.seqlen_q;
}

inline int64_t key_rows(const attn_problem& p, Mode mode) {
  return mode == Mode::kGroup ? p.total_k : int64_t{p.batch} * p.seqlen_k;
}

}  // namespace aiter_attn
