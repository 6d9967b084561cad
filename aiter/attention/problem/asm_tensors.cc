// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/problem/asm_tensors.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

constexpr int64_t kElement = 2;  // bytes
constexpr int64_t kVector = 16;  // bytes that they load and store at a time
// The most rows of a tile: their offsets are computed also where the rows are no more there.
constexpr int64_t kTileRows = 256;
constexpr int64_t kLimit = int64_t{1} << 32;

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

}  // namespace

attn_tensor given_or_contiguous(const attn_tensor& t, const Extents& e) {
  if (t.data || t.stride_seq != 0) return t;
  const int64_t row = e.heads * e.head_size;
  return {nullptr, e.batch > 1 ? e.seq * row : 0, row, e.head_size};
}

const char* why_not_asm_operand(const Problem& p, const Operand& operand) {
  const attn_tensor t = given_or_contiguous(p.*operand.tensor, operand.extents);
  if (t.stride_seq < operand.extents.head_size) return "take no rows that overlap";
  if (!fits_32_bits(t, operand.extents)) return "address a tensor in 32 bits of bytes";
  if (!is_aligned(t)) return "take data and strides that are multiples of 16 bytes";
  return nullptr;
}

bool asm_reaches(int64_t rows, int64_t row_bytes) { return rows < kLimit / row_bytes; }

}  // namespace AITER_ATTN_NAMESPACE::attention
