// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The arguments of the sum_heads kernels, for the device and for the host that launches them.
//
// Upstream's backward writes dk and dv per query head. Where several query heads share a key head,
// these kernels sum each group in fp32:
//
//   src  [tokens, heads_k * group, head_size], contiguous
//   dst  [tokens, heads_k, head_size]; token t lies at batch t / seqlen, position t % seqlen
//
// Where sequences are padded, tokens of padding are neither read nor written.
#pragma once

#include <stdint.h>

// No function here has a symbol: libraries of two namespaces may hold them.
namespace sum_heads {

struct Args {
  const void* src;
  void* dst;
  const int32_t* cu_seqlens;  // [batch + 1] where sequences are padded, else NULL
  const int32_t* seqused;     // [batch]: those that are used; or NULL
  const int32_t* cu_seqused;  // [batch + 1]: the same as sums; or NULL
  int64_t tokens;
  int64_t seqlen;  // tokens per batch entry; in group mode all of them
  int64_t dst_stride_batch;
  int64_t dst_stride_seq;
  int64_t dst_stride_head;
  int32_t heads_k;
  int32_t group;  // query heads per key head
  int32_t head_size;
  int32_t batch;        // sequences, where they are padded, else 0
  uint32_t workgroups;  // workgroups_for(...): the kernel asks for no hidden argument
};

constexpr uint32_t kBlockSize = 256;
// Elements that one work-item sums at a time: 16 bytes.
constexpr int32_t kVector = 8;

// Vectors that a row of head_size elements takes.
static constexpr int32_t vectors_per_row(int32_t head_size) {
  return (head_size + kVector - 1) / kVector;
}

// How many workgroups to launch, as grid {n, 1, 1} of kBlockSize work-items: one vector of
// output per work-item, up to where the device is full and work-items take several. There must be
// fewer than 2^32 vectors: 64 GiB of output.
static constexpr uint32_t workgroups_for(int64_t tokens, int32_t heads_k, int32_t head_size) {
  constexpr int64_t kEnough = 65536;
  const int64_t vectors = tokens * heads_k * vectors_per_row(head_size);
  const int64_t workgroups = (vectors + kBlockSize - 1) / kBlockSize;
  return static_cast<uint32_t>(workgroups < 1 ? 1 : workgroups < kEnough ? workgroups : kEnough);
}

}  // namespace sum_heads
