// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The device code of sinks.h.
#pragma once

#include <hip/hip_runtime.h>

#include "kernels/sinks/sinks.h"

namespace sinks {

constexpr float kInfinity = __builtin_inff();
constexpr float kLog2OfE = 1.44269504f, kLnOf2 = 0.693147181f;

// By the instructions that attention kernels take: lse has been rounded by them.
__device__ inline float exponential(float x) { return __builtin_amdgcn_exp2f(x * kLog2OfE); }
__device__ inline float logarithm(float x) { return __builtin_amdgcn_logf(x) * kLnOf2; }

template <typename Element>
struct alignas(sizeof(Element) * kVector) Vector {
  Element element[kVector];
};

template <bool kVectorised, typename Element>
__device__ inline void scale_vector(Element* o, uint32_t width, float factor) {
  if constexpr (kVectorised) {
    Vector<Element> v = *reinterpret_cast<const Vector<Element>*>(o);
    for (uint32_t i = 0; i < kVector; ++i) {
      v.element[i] = static_cast<Element>(static_cast<float>(v.element[i]) * factor);
    }
    *reinterpret_cast<Vector<Element>*>(o) = v;
  } else {
    for (uint32_t i = 0; i < kVector; ++i) {
      if (i < width) o[i] = static_cast<Element>(static_cast<float>(o[i]) * factor);
    }
  }
}

// A row's numbers with the sink.
struct Row {
  float lse;
  float factor;  // exp(lse without - lse with)
};

__device__ inline Row with_sink(float lse, float sink) {
  // Neither a key nor a sink is then a difference that is not a number.
  if (lse == -kInfinity) return {sink, 0.0f};
  const float more = exponential(sink - lse);
  const float least = fminf(lse, sink), greatest = fmaxf(lse, sink);
  const float together = greatest + logarithm(1.0f + exponential(least - greatest));
  return {together, __builtin_amdgcn_rcpf(1.0f + more)};
}

// All rows of one head of one batch entry.
template <bool kVectorised, typename Element>
__device__ inline void apply_to_head(const Args& args, Element* o, float* lse, uint32_t queries,
                                     float sink) {
  const uint32_t part = threadIdx.x & (args.row_items - 1);
  const uint32_t shift = __builtin_ctz(args.row_items);
  const uint32_t each = kBlockSize >> shift;
  for (uint32_t i = blockIdx.x * each + (threadIdx.x >> shift); i < queries;
       i += args.workgroups[0] * each) {
    const Row row = with_sink(lse[i], sink);
    Element* const of_row = o + int64_t{i} * args.stride_seq;
    for (uint32_t c = part * kVector; c < args.head_size; c += args.row_items * kVector) {
      scale_vector<kVectorised>(of_row + c, args.head_size - c, row.factor);
    }
    // All work-items of the row are of this wave, and have read it.
    if (part == 0) lse[i] = row.lse;
  }
}

// The rows of a sequence that are not padding, where it has `rows` of them.
template <typename AnyArgs>
__device__ inline uint32_t used_queries(const AnyArgs& args, uint64_t batch, uint32_t rows) {
  if (args.seqused_q) return args.seqused_q[batch];
  if (args.cu_seqused_q) return args.cu_seqused_q[batch + 1] - args.cu_seqused_q[batch];
  return rows;
}

template <bool kVectorised, typename Element>
__device__ inline void apply_to_all(const Args& args) {
  const uint64_t heads = uint64_t{args.batch} * args.heads;
  for (uint64_t index = blockIdx.y; index < heads; index += args.workgroups[1]) {
    const uint64_t batch = index / args.heads, head = index - batch * args.heads;
    Element* o = static_cast<Element*>(args.o) + head * args.stride_head;
    float* lse = args.lse;
    uint32_t queries = args.rows;
    if (args.cu_seqlens_q) {
      const uint32_t start = args.cu_seqlens_q[batch];
      queries = args.cu_seqlens_q[batch + 1] - start;
      o += int64_t{start} * args.stride_seq;
      lse += head * args.rows + start;
    } else {
      o += batch * args.stride_batch;
      lse += index * args.rows;
    }
    queries = used_queries(args, batch, queries);
    if (queries <= static_cast<uint32_t>(args.min_seqlen_q)) continue;
    apply_to_head<kVectorised>(args, o, lse, queries, args.sink[head]);
  }
}

template <typename Element>
__device__ inline void apply(const Args& args) {
  const uint64_t must_be_aligned =
      reinterpret_cast<uint64_t>(args.o) |
      sizeof(Element) * static_cast<uint64_t>(args.head_size | args.stride_batch | args.stride_seq |
                                              args.stride_head);
  if (must_be_aligned % sizeof(Vector<Element>) == 0) {
    apply_to_all<true, Element>(args);
  } else {
    apply_to_all<false, Element>(args);
  }
}

// Those of one head that lie side by side.
__device__ inline void sum_rows(const GradArgs& args, uint64_t first, uint32_t rows, float sink,
                                double* sum) {
  const float* const lse = args.lse + first;
  const float* const delta = args.delta + first;
#pragma unroll 4
  for (uint32_t i = threadIdx.x; i < rows; i += kBlockSize) {
    // Where neither a key nor a sink has a weight.
    const float weight = lse[i] == -kInfinity ? 0.0f : exponential(sink - lse[i]);
    *sum -= static_cast<double>(weight * delta[i]);
  }
}

__device__ inline void sum_gradient(const GradArgs& args) {
  __shared__ double sums[kBlockSize];
  const uint32_t head = blockIdx.x;
  const float sink = args.sink[head];
  double sum = 0;
  if (args.seqused_q || args.cu_seqused_q) {
    const uint64_t first = uint64_t{head} * args.rows;
    for (uint32_t b = 0; b < args.batch; ++b) {
      sum_rows(args, first + args.cu_seqlens_q[b], used_queries(args, b, 0), sink, &sum);
    }
  } else {
    for (uint32_t run = 0; run < args.runs; ++run) {
      sum_rows(args, (uint64_t{run} * args.heads + head) * args.rows, args.rows, sink, &sum);
    }
  }
  sums[threadIdx.x] = sum;
  for (uint32_t half = kBlockSize / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) args.dsink[head] = static_cast<float>(sums[0] * args.scale);
}

}  // namespace sinks
