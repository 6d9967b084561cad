// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// HIP: the sums that aiter::mha_bwd leaves to its caller, which TransformerEngine's ck_fused_attn
// makes by kernels of its own. Contiguous arrays; a thread for each number of the result.
#include <hip/hip_runtime.h>
#include <qola_mha_bwd.h>

#include <cstdint>

#include "ck_tile/host.hpp"

namespace {

using ck_tile::bf16_t;
using ck_tile::half_t;

__device__ float number(half_t x) { return static_cast<float>(x); }
__device__ float number(bf16_t x) { return ck_tile::bf16_to_float(x); }
__device__ void store(float x, half_t* out) { *out = static_cast<half_t>(x); }
__device__ void store(float x, bf16_t* out) { *out = ck_tile::float_to_bf16(x); }

__device__ int64_t thread() { return int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }

// [tokens, groups, heads of a group, size] -> [tokens, groups, size].
template <typename T>
__device__ void sum_groups(const T* in, T* out, int64_t count, int32_t heads, int32_t size) {
  const int64_t i = thread();
  if (i >= count) return;
  const T* first = in + i / size * heads * size + i % size;
  float sum = 0;
  for (int32_t head = 0; head < heads; ++head) sum += number(first[int64_t{head} * size]);
  store(sum, out + i);
}

// [entries, heads, matrix] -> [entries or 1, heads or 1, matrix].
template <typename T>
__device__ void sum_bias(const T* in, T* out, int32_t entries, int32_t heads, int32_t out_entries,
                         int32_t out_heads, int32_t matrix) {
  const int64_t i = thread();
  if (i >= int64_t{out_entries} * out_heads * matrix) return;
  const int32_t entry = static_cast<int32_t>(i / matrix / out_heads);
  const int32_t head = static_cast<int32_t>(i / matrix % out_heads);
  float sum = 0;
  for (int32_t e = entry; e < entries; e += out_entries) {
    for (int32_t h = head; h < heads; h += out_heads) {
      sum += number(in[(int64_t{e} * heads + h) * matrix + i % matrix]);
    }
  }
  store(sum, out + i);
}

}  // namespace

extern "C" {

__global__ void sum_groups_fp16(const half_t* in, half_t* out, int64_t count, int32_t heads,
                                int32_t size) {
  sum_groups(in, out, count, heads, size);
}

__global__ void sum_groups_bf16(const bf16_t* in, bf16_t* out, int64_t count, int32_t heads,
                                int32_t size) {
  sum_groups(in, out, count, heads, size);
}

__global__ void sum_bias_fp16(const half_t* in, half_t* out, int32_t entries, int32_t heads,
                              int32_t out_entries, int32_t out_heads, int32_t matrix) {
  sum_bias(in, out, entries, heads, out_entries, out_heads, matrix);
}
}
