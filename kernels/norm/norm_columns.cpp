// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
// dgamma and dbeta of LayerNorm and RMSNorm: sums over the rows. README.md lists the macros.
//
// norm_backward_reduce adds up, in a fixed order, the parts that norm_backward or
// norm_backward_long has made. It is a source of its own to be compiled while theirs is: a first
// call waits for the longer compile, not for both.
#include "arguments.h"
#include "device.h"

using namespace row_kernels;

using W = NORM_W;
constexpr int HIDDEN = ROW_HIDDEN;  // columns of a row
constexpr int VECTOR = ROW_VECTOR;  // columns that a thread takes at once
constexpr int THREADS = 256;        // of a CTA

constexpr int REDUCE_VECTOR = VECTOR % 4 == 0 ? 4 : 1;  // dgamma is aligned as x is

/// `side` threads share the parts of a vector of columns.
/// Grid: (HIDDEN / REDUCE_VECTOR / (THREADS / side), 1 or 2 for dgamma and dbeta).
extern "C" __global__ LAUNCH_BOUNDS(256, 1) void norm_backward_reduce(NormReduceArguments a) {
  __shared__ float partial[THREADS][REDUCE_VECTOR];
  using In = Pack<fp32, REDUCE_VECTOR>;
  const int lanes = THREADS / a.side;  // vectors of columns
  const int lane = thread_index() % lanes, first = thread_index() / lanes;
  const i64 column = ((i64)block_index() * lanes + lane) * REDUCE_VECTOR;
  const float* parts = block_index_y() ? a.parts[1] : a.parts[0];
  void* sum = block_index_y() ? a.sum[1] : a.sum[0];
  wait_for_previous_grid();
  float total[REDUCE_VECTOR] = {};
  if (column < HIDDEN) {
#pragma unroll 8
    for (int p = first; p < a.count; p += a.side) {
      In in = *(const In*)(parts + (i64)p * HIDDEN + column);
#pragma unroll
      for (int e = 0; e < REDUCE_VECTOR; e++) total[e] += in.get(e);
    }
  }
#pragma unroll
  for (int e = 0; e < REDUCE_VECTOR; e++) partial[thread_index()][e] = total[e];
  for (int half = a.side / 2; half; half /= 2) {
    block_barrier();
    if (first < half) {
#pragma unroll
      for (int e = 0; e < REDUCE_VECTOR; e++)
        partial[thread_index()][e] += partial[thread_index() + half * lanes][e];
    }
  }
  if (first == 0 && column < HIDDEN) {
#pragma unroll
    for (int e = 0; e < REDUCE_VECTOR; e++) total[e] = partial[thread_index()][e];
    Pack<W, REDUCE_VECTOR> out;
    out.set(total);
    *(Pack<W, REDUCE_VECTOR>*)((W*)sum + column) = out;
  }
}
