// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The arguments of the kernels of attention sinks, for the device and for the host that launches
// them.
//
// A sink is one more score of every query of a head, of a key whose value is 0. Attention kernels
// know none. With the sums of a row, sum_j exp(s_j) = exp(lse), it is algebra:
//
//   lse' = log(exp(lse) + exp(sink))    o' = o exp(lse - lse')
//
// Dropout does not change that: it leaves the sums as they are, and o is linear in the weights that
// it keeps. A row without a key has lse = -inf and o = 0, hence lse' = sink and o' = 0. Backward
// kernels take the softmax from lse, as exp(s_j - lse'), and delta = rowsum(dout o'): so given lse'
// and o' they are exact. The sink's weight is exp(sink - lse') and its value 0, so that
//
//   dsink = - sum over all rows of the head of exp(sink - lse') delta
#pragma once

#include <stdint.h>

// No function here has a symbol: libraries of two namespaces may hold them.
namespace sinks {

constexpr uint32_t kBlockSize = 256;
// Elements of o that one work-item scales at a time: 16 bytes.
constexpr uint32_t kVector = 8;
// Work-items of a row, at most. Every wave has as many or more, and a row is one wave's.
constexpr uint32_t kMostRowItems = 32;

// o and lse become those with the sink, in place.
struct Args {
  void* o;     // fp16 or bf16, [batch, seqlen_q, heads, head_size], in group mode [rows, ...]
  float* lse;  // [batch, heads, seqlen_q], in group mode [heads, rows], contiguous
  const float* sink;                              // [heads]
  const int32_t* cu_seqlens_q;                    // [batch + 1] in group mode, else NULL
  const int32_t* seqused_q;                       // [batch]: rows beyond are padding; or NULL
  const int32_t* cu_seqused_q;                    // [batch + 1]: the same as sums; or NULL
  int64_t stride_batch, stride_seq, stride_head;  // of o, in elements
  uint32_t batch, heads;
  uint32_t rows;  // of a head in lse: seqlen_q, in group mode total_q
  uint32_t head_size;
  int32_t min_seqlen_q;    // sequences of that many queries or fewer stay as they are
  uint32_t row_items;      // row_items_for(head_size)
  uint32_t workgroups[2];  // the grid: the kernels ask for no hidden argument
};

// dsink, of lse with the sink. One workgroup sums all rows of a head, in a fixed order.
struct GradArgs {
  float* dsink;        // [heads]
  const float* sink;   // [heads]
  const float* lse;    // as above, with the sink
  const float* delta;  // as lse: rowsum(dout o') / scale
  // Where sequences are padded, of which `batch` are in each run; or NULL: as above.
  const int32_t* cu_seqlens_q;
  const int32_t* seqused_q;
  const int32_t* cu_seqused_q;
  float scale;
  uint32_t batch;
  uint32_t runs;  // contiguous pieces of a head in lse: batch, in group mode 1
  uint32_t rows;  // of each
  uint32_t heads;
};

// A power of two.
static constexpr uint32_t row_items_for(uint32_t head_size) {
  uint32_t items = 1;
  while (items < kMostRowItems && items * kVector < head_size) items *= 2;
  return items;
}

// The grid {x, y, 1} for a head's rows and for all heads of all batch entries: each work-item has
// one row's part, up to where the device is full and they take several.
static constexpr void workgroups_for(int64_t rows, int64_t heads, uint32_t row_items,
                                     uint32_t grid[2]) {
  constexpr int64_t kMostHeads = 4096, kEnough = 65536;
  const int64_t y = heads < 1 ? 1 : heads < kMostHeads ? heads : kMostHeads;
  const int64_t each = kBlockSize / row_items;
  const int64_t wanted = (rows + each - 1) / each;
  const int64_t most = kEnough / y;
  grid[0] = static_cast<uint32_t>(wanted < 1 ? 1 : wanted < most ? wanted : most);
  grid[1] = static_cast<uint32_t>(y);
}

}  // namespace sinks
