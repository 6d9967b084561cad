// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The arguments of the sum_heads kernels, for the device and for the host that launches them.
//
// CK's backward writes dk and dv per query head. Where several query heads share a key head, these
// kernels sum each group in fp32:
//
//   src  [tokens, heads_k * group, head_size], contiguous
//   dst  [tokens, heads_k, head_size]; token t lies at batch t / seqlen, position t % seqlen
#pragma once

#include <stdint.h>

namespace aiter_attn {

struct SumHeadsArgs {
  const void* src;
  void* dst;
  int64_t tokens;
  int64_t seqlen;  // tokens per batch entry; in group mode all of them
  int64_t dst_stride_batch;
  int64_t dst_stride_seq;
  int64_t dst_stride_head;
  int32_t heads_k;
  int32_t group;  // query heads per key head
  int32_t head_size;
  uint32_t workgroups;  // sum_heads_workgroups(...): the kernel asks for no hidden argument
};

constexpr uint32_t kSumHeadsBlockSize = 256;
// Elements that one work-item sums at a time: 16 bytes.
constexpr int32_t kSumHeadsVector = 8;

// Vectors that a row of head_size elements takes.
constexpr int32_t sum_heads_vectors(int32_t head_size) {
  return (head_size + kSumHeadsVector - 1) / kSumHeadsVector;
}

// How many workgroups to launch, as grid {n, 1, 1} of kSumHeadsBlockSize work-items: one vector of
// output per work-item, up to where the device is full and work-items take several. There must be
// fewer than 2^32 vectors: 64 GiB of output.
constexpr uint32_t sum_heads_workgroups(int64_t tokens, int32_t heads_k, int32_t head_size) {
  constexpr int64_t kEnough = 65536;
  const int64_t vectors = tokens * heads_k * sum_heads_vectors(head_size);
  const int64_t workgroups = (vectors + kSumHeadsBlockSize - 1) / kSumHeadsBlockSize;
  return static_cast<uint32_t>(workgroups < 1 ? 1 : workgroups < kEnough ? workgroups : kEnough);
}

}  // namespace aiter_attn
