// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
// dgamma and dbeta of LayerNorm and RMSNorm: sums over the rows. README.md lists the macros.
//
// norm_backward_reduce adds up, in a fixed order, the parts that norm_backward has made;
// norm_backward_columns makes them where that did not. They are a source of their own to be
// compiled while norm_backward.cpp is: a first call waits for the longer compile, not for both.
#include "arguments.h"
#include "device.h"

using namespace row_kernels;

using X = NORM_X;
using W = NORM_W;
using Y = NORM_Y;
constexpr bool LAYER = NORM_LAYER;  // LayerNorm, else RMSNorm
constexpr int HIDDEN = ROW_HIDDEN;  // columns of a row
constexpr int VECTOR = ROW_VECTOR;  // columns that a thread takes at once
constexpr int THREADS = 256;        // of a CTA

using Values = Pack<X, VECTOR>;
using Grads = Pack<Y, VECTOR>;

/// Part y of dgamma and dbeta: the columns of a thread over `rows_per_part` rows.
/// Grid: (HIDDEN / VECTOR / THREADS, parts).
extern "C" __global__ LAUNCH_BOUNDS(256, 1) void norm_backward_columns(NormColumnsArguments a) {
  i64 column = ((i64)block_index() * THREADS + thread_index()) * VECTOR;
  if (column >= HIDDEN) return;
  int row = block_index_y() * a.rows_per_part, end = row + a.rows_per_part;
  if (end > a.rows) end = a.rows;
  float dgamma[VECTOR] = {}, dbeta[VECTOR] = {};
#pragma unroll 4
  for (; row < end; row++) {
    Values x;
    Grads dy;
    x = *(const decltype(x)*)((const X*)a.x.data + (i64)row * a.x.stride + column);
    dy = *(const decltype(dy)*)((const Y*)a.dy.data + (i64)row * a.dy.stride + column);
    float rstd = a.rstd[row], mean = LAYER ? a.mean[row] : 0.0f;
#pragma unroll
    for (int e = 0; e < VECTOR; e++) {
      dgamma[e] = fused_multiply_add(dy.get(e), (x.get(e) - mean) * rstd, dgamma[e]);
      dbeta[e] += dy.get(e);
    }
  }
  Pack<fp32, VECTOR> out;
  out.set(dgamma);
  *(Pack<fp32, VECTOR>*)(a.dgamma_parts + (i64)block_index_y() * HIDDEN + column) = out;
  if constexpr (LAYER) {
    out.set(dbeta);
    *(Pack<fp32, VECTOR>*)(a.dbeta_parts + (i64)block_index_y() * HIDDEN + column) = out;
  }
}

constexpr int REDUCE_VECTOR = VECTOR % 4 == 0 ? 4 : 1;  // dgamma is aligned as x is
constexpr int REDUCE_LANES = 8;                         // vectors of columns in a CTA
constexpr int REDUCE_PARTS = THREADS / REDUCE_LANES;

/// Grid: (HIDDEN / REDUCE_VECTOR / REDUCE_LANES, 1 or 2 for dgamma and dbeta).
extern "C" __global__ LAUNCH_BOUNDS(256, 1) void norm_backward_reduce(NormReduceArguments a) {
  __shared__ float partial[REDUCE_PARTS][REDUCE_LANES][REDUCE_VECTOR];
  using In = Pack<fp32, REDUCE_VECTOR>;
  int lane = thread_index() % REDUCE_LANES, first = thread_index() / REDUCE_LANES;
  int column = (block_index() * REDUCE_LANES + lane) * REDUCE_VECTOR;
  const float* parts = block_index_y() ? a.parts[1] : a.parts[0];
  void* sum = block_index_y() ? a.sum[1] : a.sum[0];
  wait_for_previous_grid();
  float total[REDUCE_VECTOR] = {};
  if (column < HIDDEN) {
#pragma unroll 8
    for (int p = first; p < a.count; p += REDUCE_PARTS) {
      In in = *(const In*)(parts + (i64)p * HIDDEN + column);
#pragma unroll
      for (int e = 0; e < REDUCE_VECTOR; e++) total[e] += in.get(e);
    }
  }
#pragma unroll
  for (int e = 0; e < REDUCE_VECTOR; e++) partial[first][lane][e] = total[e];
#pragma unroll
  for (int half = REDUCE_PARTS / 2; half; half /= 2) {
    block_barrier();
    if (first < half) {
#pragma unroll
      for (int e = 0; e < REDUCE_VECTOR; e++)
        partial[first][lane][e] += partial[first + half][lane][e];
    }
  }
  if (first == 0 && column < HIDDEN) {
#pragma unroll
    for (int e = 0; e < REDUCE_VECTOR; e++) total[e] = partial[0][lane][e];
    Pack<W, REDUCE_VECTOR> out;
    out.set(total);
    *(Pack<W, REDUCE_VECTOR>*)((W*)sum + column) = out;
  }
}
