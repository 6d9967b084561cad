// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The device code of sum_heads.h, for any element type that converts to and from float.
#pragma once

#include <hip/hip_runtime.h>

#include "kernels/sum_heads/sum_heads.h"

namespace sum_heads {

template <typename Element>
struct alignas(sizeof(Element) * kVector) Vector {
  Element element[kVector];
};

// Sums the group for one vector of the output: width elements, loaded and stored at once where
// vectorised.
template <bool kVectorised, typename Element>
__device__ inline void sum_one_vector(const Element* src, int64_t src_stride_head, int32_t group,
                                      int32_t width, Element* dst) {
  float sum[kVector] = {};
  for (int32_t g = 0; g < group; ++g, src += src_stride_head) {
    Vector<Element> loaded;
    if constexpr (kVectorised) {
      loaded = *reinterpret_cast<const Vector<Element>*>(src);
    } else {
      for (int32_t i = 0; i < kVector; ++i) {
        loaded.element[i] = i < width ? src[i] : Element(0.0f);
      }
    }
    for (int32_t i = 0; i < kVector; ++i) sum[i] += static_cast<float>(loaded.element[i]);
  }
  Vector<Element> rounded;
  for (int32_t i = 0; i < kVector; ++i) rounded.element[i] = static_cast<Element>(sum[i]);
  if constexpr (kVectorised) {
    *reinterpret_cast<Vector<Element>*>(dst) = rounded;
  } else {
    for (int32_t i = 0; i < kVector; ++i) {
      if (i < width) dst[i] = rounded.element[i];
    }
  }
}

// Of a token of padded sequences: whether it is padding.
__device__ inline bool is_padding(const Args& args, int32_t token) {
  // The last sequence that begins at the token or before.
  int32_t first = 0, count = args.batch;
  while (count > 1) {
    const int32_t half = count / 2;
    if (args.cu_seqlens[first + half] <= token) {
      first += half;
      count -= half;
    } else {
      count = half;
    }
  }
  const int32_t used =
      args.seqused ? args.seqused[first] : args.cu_seqused[first + 1] - args.cu_seqused[first];
  return token - args.cu_seqlens[first] >= used;
}

template <bool kVectorised, typename Element>
__device__ inline void sum_all_vectors(const Args& args) {
  const Element* const src = static_cast<const Element*>(args.src);
  Element* const dst = static_cast<Element*>(args.dst);
  // Numbers of vectors fit 32 bits, whose division is much cheaper than that of 64.
  const uint32_t row_vectors = vectors_per_row(args.head_size);
  const uint32_t heads_k = args.heads_k;
  const uint32_t seqlen = static_cast<uint32_t>(args.seqlen);
  const uint64_t vectors = static_cast<uint64_t>(args.tokens) * heads_k * row_vectors;
  const uint64_t step = uint64_t{args.workgroups} * kBlockSize;
  for (uint64_t i = uint64_t{blockIdx.x} * kBlockSize + threadIdx.x; i < vectors; i += step) {
    const uint32_t vector = static_cast<uint32_t>(i);
    const uint32_t row = vector / row_vectors;
    const uint32_t column = (vector - row * row_vectors) * kVector;
    const uint32_t token = row / heads_k;
    const uint32_t head = row - token * heads_k;
    if (args.batch != 0 && is_padding(args, static_cast<int32_t>(token))) continue;
    const uint32_t batch = token / seqlen;
    const uint32_t position = token - batch * seqlen;
    sum_one_vector<kVectorised>(
        src + int64_t{row} * args.group * args.head_size + column, args.head_size, args.group,
        args.head_size - static_cast<int32_t>(column),
        dst + batch * args.dst_stride_batch + position * args.dst_stride_seq +
            head * args.dst_stride_head + column);
  }
}

template <typename Element>
__device__ inline void sum_heads(const Args& args) {
  const uint64_t must_be_aligned =
      reinterpret_cast<uint64_t>(args.src) | reinterpret_cast<uint64_t>(args.dst) |
      sizeof(Element) * static_cast<uint64_t>(args.head_size | args.dst_stride_batch |
                                              args.dst_stride_seq | args.dst_stride_head);
  if (must_be_aligned % sizeof(Vector<Element>) == 0) {
    sum_all_vectors<true, Element>(args);
  } else {
    sum_all_vectors<false, Element>(args);
  }
}

}  // namespace sum_heads
