// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The device code of sum_heads.h, for any element type that converts to and from float.
#pragma once

#include <hip/hip_runtime.h>

#include "kernels/sum_heads/sum_heads.h"

namespace aiter_attn {

template <typename Element>
struct alignas(sizeof(Element) * kSumHeadsVector) Vector {
  Element element[kSumHeadsVector];
};

// Sums the group for one vector of the output: width elements, loaded and stored at once where
// vectorised.
template <bool kVectorised, typename Element>
__device__ inline void sum_one_vector(const Element* src, int64_t src_stride_head, int32_t group,
                                      int32_t width, Element* dst) {
  float sum[kSumHeadsVector] = {};
  for (int32_t g = 0; g < group; ++g, src += src_stride_head) {
    Vector<Element> loaded;
    if constexpr (kVectorised) {
      loaded = *reinterpret_cast<const Vector<Element>*>(src);
    } else {
      for (int32_t i = 0; i < kSumHeadsVector; ++i) {
        loaded.element[i] = i < width ? src[i] : Element(0.0f);
      }
    }
    for (int32_t i = 0; i < kSumHeadsVector; ++i) sum[i] += static_cast<float>(loaded.element[i]);
  }
  Vector<Element> rounded;
  for (int32_t i = 0; i < kSumHeadsVector; ++i) rounded.element[i] = static_cast<Element>(sum[i]);
  if constexpr (kVectorised) {
    *reinterpret_cast<Vector<Element>*>(dst) = rounded;
  } else {
    for (int32_t i = 0; i < kSumHeadsVector; ++i) {
      if (i < width) dst[i] = rounded.element[i];
    }
  }
}

template <bool kVectorised, typename Element>
__device__ inline void sum_all_vectors(const SumHeadsArgs& args) {
  const Element* const src = static_cast<const Element*>(args.src);
  Element* const dst = static_cast<Element*>(args.dst);
  const int32_t vectors_per_row = (args.head_size + kSumHeadsVector - 1) / kSumHeadsVector;
  const int64_t vectors = args.tokens * args.heads_k * vectors_per_row;
  const int64_t step = int64_t{args.workgroups} * kSumHeadsBlockSize;
  for (int64_t v = int64_t{blockIdx.x} * kSumHeadsBlockSize + threadIdx.x; v < vectors; v += step) {
    const int64_t row = v / vectors_per_row;
    const int32_t column = static_cast<int32_t>(v - row * vectors_per_row) * kSumHeadsVector;
    const int64_t token = row / args.heads_k;
    const int64_t head = row - token * args.heads_k;
    const int64_t batch = token / args.seqlen;
    const int64_t position = token - batch * args.seqlen;
    sum_one_vector<kVectorised>(
        src + row * args.group * args.head_size + column, args.head_size, args.group,
        args.head_size - column,
        dst + batch * args.dst_stride_batch + position * args.dst_stride_seq +
            head * args.dst_stride_head + column);
  }
}

template <typename Element>
__device__ inline void sum_heads(const SumHeadsArgs& args) {
  const uint64_t must_be_aligned = reinterpret_cast<uint64_t>(args.src) |
                                   reinterpret_cast<uint64_t>(args.dst) |
                                   sizeof(Element) * static_cast<uint64_t>(
                                                         args.head_size | args.dst_stride_batch |
                                                         args.dst_stride_seq | args.dst_stride_head);
  if (must_be_aligned % sizeof(Vector<Element>) == 0) {
    sum_all_vectors<true, Element>(args);
  } else {
    sum_all_vectors<false, Element>(args);
  }
}

}  // namespace aiter_attn
