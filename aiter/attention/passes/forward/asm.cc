// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/passes/forward/asm.h"

#include <cstdint>

#include "aiter/attention/problem/operands.h"
#include "aiter/attention/problem/pass.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

constexpr int64_t kElement = 2;  // bytes
constexpr int64_t kVector = 16;  // bytes that they load and store at a time
// AITER's: fewer queries are another kernel's.
constexpr int32_t kMostShortQueries = 128;
// Rows of a tile: their offsets are computed also where the rows are no more there.
constexpr int64_t kTileRows = 256;
constexpr int64_t kLimit = int64_t{1} << 32;

// The mask is none, or lets a query see all keys up to the diagonal from the bottom right.
bool has_mask(const Problem& p) {
  if (p.mask == ATTN_MASK_NONE) return true;
  if (!is_causal(p)) return false;
  return p.mask == ATTN_MASK_BOTTOM_RIGHT || (!is_group(p) && p.seqlen_q == p.seqlen_k);
}

bool is_aligned(const attn_tensor& t) {
  const auto is_multiple = [](int64_t bytes) { return bytes % kVector == 0; };
  return is_multiple(static_cast<int64_t>(reinterpret_cast<uintptr_t>(t.data))) &&
         is_multiple(t.stride_batch * kElement) && is_multiple(t.stride_seq * kElement) &&
         is_multiple(t.stride_head * kElement);
}

// Offsets of batch entry, head and row are sums and products of 32 bits, up to the ends of two
// tiles (a workgroup has two with a mask) and of the next one, which is prefetched.
bool fits_32_bits(const attn_tensor& t, const Extents& e) {
  if (t.stride_batch < 0 || t.stride_seq < 0 || t.stride_head < 0) return false;
  const int64_t rows = e.seq + 3 * kTileRows;
  const auto fits = [](int64_t count, int64_t stride) {
    return stride == 0 || count < kLimit / kElement / stride;
  };
  if (!fits(e.batch, t.stride_batch) || !fits(e.heads, t.stride_head) ||
      !fits(rows, t.stride_seq)) {
    return false;
  }
  return (e.batch * t.stride_batch + e.heads * t.stride_head + rows * t.stride_seq) * kElement <
         kLimit;
}

// A plan may have no tensors: they are taken for contiguous ones.
attn_tensor given_or_contiguous(const attn_tensor& t, const Extents& e) {
  if (t.data || t.stride_seq != 0) return t;
  const int64_t row = e.heads * e.head_size;
  return {nullptr, e.batch > 1 ? e.seq * row : 0, row, e.head_size};
}

bool lse_fits_32_bits(const Problem& p) {
  return query_rows(p) < kLimit / static_cast<int64_t>(sizeof(float)) / p.heads_q;
}

}  // namespace

const char* why_not_asm(const Problem& p) {
  if (p.dtype != ATTN_DTYPE_BF16) return "are for bf16";
  if (p.head_size_v != 128 || (p.head_size_qk != 128 && p.head_size_qk != 192)) {
    return "are for head size 128, or 192 (q, k) and 128 (v)";
  }
  if (p.bias != ATTN_BIAS_NONE) return "have no bias";
  if (p.dropout_p > 0) return "have no dropout";
  if (p.logits_soft_cap > 0) return "have no soft cap";
  if (!has_scores(p)) return "need a key";
  if (p.min_seqlen_q > 0) return "leave no sequence out, as min_seqlen_q asks";
  if (!has_mask(p)) return "have no mask but the causal one, aligned to the bottom right";
  for (const Operand& operand : p.pass->operands(p)) {
    const attn_tensor t = given_or_contiguous(p.*operand.tensor, operand.extents);
    if (t.stride_seq < operand.extents.head_size) return "take no rows that overlap";
    if (!fits_32_bits(t, operand.extents)) return "address a tensor in 32 bits of bytes";
    if (!is_aligned(t)) return "take data and strides that are multiples of 16 bytes";
  }
  if (!lse_fits_32_bits(p)) return "address lse in 32 bits of bytes";
  return nullptr;
}

const char* why_asm_by_name(const Problem& p) {
  if (is_group(p) || p.seqlen_q > kMostShortQueries) return nullptr;
  return "are for more than 128 queries where AITER chooses";
}

uint32_t asm_hazards(const Request& request, const kernels::Row& row) {
  using kernels::Hazard;
  const bool group = request.traits.group_mode, mask = request.traits.mask;
  // Not kNoKeys: such rows are filled afterwards. Group mode has the greatest lengths: a sequence
  // may have any below.
  const int64_t without_keys = request.seqlen_q - (group ? 0 : int64_t{request.seqlen_k});
  uint32_t met = bit(Hazard::kAlways);
  if (mask && request.seqlen_q > row.tile_seqlen_q) met |= bit(Hazard::kTwoTiles);
  if (mask && without_keys >= 2 * row.tile_seqlen_q) met |= bit(Hazard::kTwoTilesWithoutKeys);
  return met;
}

}  // namespace AITER_ATTN_NAMESPACE::attention
