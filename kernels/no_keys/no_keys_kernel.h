// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The device code of no_keys.h, for elements of two bytes whose zero is all zeros.
#pragma once

#include <hip/hip_runtime.h>

#include "kernels/no_keys/no_keys.h"

namespace no_keys {

struct alignas(16) Vector {
  uint16_t element[kVector];
};

// One head's rows from first up to last.
__device__ inline void fill_rows(const Args& args, uint32_t head, int64_t first, int64_t last) {
  uint16_t* const o = static_cast<uint16_t*>(args.o) + head * args.stride_head;
  const uint32_t row_vectors = args.head_size / kVector;
  const uint32_t at_once = kBlockSize / row_vectors;
  const uint32_t row = threadIdx.x / row_vectors;
  const uint32_t column = (threadIdx.x - row * row_vectors) * kVector;
  if (row < at_once) {
    for (int64_t i = first + row; i < last; i += at_once) {
      *reinterpret_cast<Vector*>(o + i * args.stride_seq + column) = Vector{};
    }
  }
  if (!args.lse) return;
  float* const lse = args.lse + head * args.total_q;
  for (int64_t i = first + threadIdx.x; i < last; i += kBlockSize) lse[i] = -__builtin_inff();
}

__device__ inline void fill(const Args& args) {
  const uint64_t all = uint64_t{args.batch} * args.heads;
  for (uint64_t i = blockIdx.x; i < all; i += args.workgroups) {
    const uint64_t batch = i / args.heads;
    if (args.cu_seqlens_k[batch] != args.cu_seqlens_k[batch + 1]) continue;
    fill_rows(args, static_cast<uint32_t>(i - batch * args.heads), args.cu_seqlens_q[batch],
              args.cu_seqlens_q[batch + 1]);
  }
}

}  // namespace no_keys
