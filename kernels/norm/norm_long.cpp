// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
// LayerNorm and RMSNorm, backward, of rows that are longer than registers hold; norm_backward.cpp
// has the formulas. README.md lists the macros.
//
// Two kernels, in whose grids a CTA has a slice of some rows: norm_backward_slices sums the slices
// up, norm_backward_long adds the sums of a row's slices, writes dx and makes the CTA's part of
// dgamma and dbeta. A row has as many CTAs as slices, and every matrix is read twice.
#include "arguments.h"
#include "device.h"

using namespace row_kernels;

// Macros that most kernels are without.
#ifndef NORM_GAMMA
#define NORM_GAMMA 1  // 0: gamma is 1
#endif
#ifndef NORM_SUMS
#define NORM_SUMS 1  // 0: dx alone
#endif

using X = NORM_X;
using W = NORM_W;
using Y = NORM_Y;
constexpr bool LAYER = NORM_LAYER;  // LayerNorm, else RMSNorm
constexpr bool GAMMA = NORM_GAMMA;
constexpr bool ADD = NORM_ADD;
constexpr bool ZERO_CENTRED = NORM_ZERO_CENTRED;  // gamma is stored less 1
constexpr int SUMS = LAYER ? 2 : 1;
constexpr int HIDDEN = ROW_HIDDEN;  // columns of a row
constexpr int VECTOR = ROW_VECTOR;  // columns that a thread takes at once
constexpr int THREADS = 256;        // of a CTA
constexpr int WARPS = THREADS / WARP_SIZE;
constexpr int SLICE = 2048;  // columns
constexpr int PACKS = SLICE / (THREADS * VECTOR);
constexpr int SLICES = divided_up(HIDDEN, SLICE);
constexpr int BATCH = 2;   // rows on their way at a time
constexpr int CHUNK = 64;  // rows whose sums are in shared memory at a time

using Values = Pack<X, VECTOR>;
using Grads = Pack<Y, VECTOR>;
using Weights = Pack<W, VECTOR>;

/// The columns and the rows of this thread.
struct Part {
  int first, end;  // rows
  int slice = block_index();

  DEVICE explicit Part(const NormLongArguments& a)
      : first(block_index_y() * a.rows_per_part), end(least(first + a.rows_per_part, a.rows)) {}
  DEVICE i64 column(int k) const {
    return (i64)slice * SLICE + (k * THREADS + thread_index()) * VECTOR;
  }
  DEVICE bool has(int k) const { return HIDDEN % SLICE == 0 || column(k) < HIDDEN; }
  DEVICE i64 readable(int k) const { return has(k) ? column(k) : HIDDEN - VECTOR; }
};

/// Of `row`. Where the part has no such row or column, others, so that no read is conditional.
template <class P>
DEVICE void read(const Part& at, const Matrix& m, int row, P (&to)[PACKS]) {
  const i64 start = (i64)least(row, at.end - 1) * m.stride;
#pragma unroll
  for (int k = 0; k < PACKS; k++)
    to[k] = *(const P*)((const char*)m.data + (start + at.readable(k)) * (P::BYTES / VECTOR));
}

DEVICE void read_gamma(const Part& at, const void* gamma, Weights (&to)[PACKS]) {
#pragma unroll
  for (int k = 0; k < PACKS; k++) {
    if constexpr (GAMMA)
      to[k] = *(const Weights*)((const W*)gamma + at.readable(k));
    else
      to[k].clear();
  }
}
DEVICE float factor_of(const Weights& w, int e) {
  const float factor = GAMMA ? w.get(e) : 1.0f;
  return GAMMA && ZERO_CENTRED ? factor + 1.0f : factor;  // 0 would be added, too
}

/// slices[row][slice]: the sums of wdy * xhat and, of LayerNorm, wdy.
/// Grid: (SLICES, parts).
extern "C" __global__ LAUNCH_BOUNDS(256, 2) void norm_backward_slices(NormLongArguments a) {
  __shared__ float of_warps[2][BATCH][WARPS][SUMS];
  const Part at(a);
  const int thread = thread_index();
  Weights gamma[PACKS];
  read_gamma(at, a.gamma, gamma);
  int turn = 0;  // while a batch is added up, the next one is written beside it
  for (int row = at.first; row < at.end; row += BATCH, turn ^= 1) {
    Values x[BATCH][PACKS];
    Grads dy[BATCH][PACKS];
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      read(at, a.x, row + b, x[b]);
      read(at, a.dy, row + b, dy[b]);
    }
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      const int of = least(row + b, at.end - 1);
      const float rstd = a.rstd[of], mean = LAYER ? a.mean[of] : 0.0f;
      float own[SUMS] = {};
#pragma unroll
      for (int k = 0; k < PACKS; k++) {
        float sum[SUMS] = {};
#pragma unroll
        for (int e = 0; e < VECTOR; e++) {
          const float wdy = dy[b][k].get(e) * factor_of(gamma[k], e);
          const float xhat = (LAYER ? x[b][k].get(e) - mean : x[b][k].get(e)) * rstd;
          sum[0] = fused_multiply_add(wdy, xhat, sum[0]);
          if constexpr (LAYER) sum[SUMS - 1] += wdy;
        }
#pragma unroll
        for (int s = 0; s < SUMS; s++) own[s] += at.has(k) ? sum[s] : 0.0f;
      }
#pragma unroll
      for (int s = 0; s < SUMS; s++) {
        own[s] = warp_sum<WARP_SIZE>(own[s]);
        if (lane_index() == 0) of_warps[turn][b][thread / WARP_SIZE][s] = own[s];
      }
    }
    block_barrier();
    const int b = thread / SUMS, s = thread % SUMS;
    if (b < BATCH && row + b < at.end) {
      float total = 0;
#pragma unroll
      for (int w = 0; w < WARPS; w++) total += of_warps[turn][b][w][s];
      a.slices[((i64)(row + b) * SLICES + at.slice) * SUMS + s] = total;
    }
  }
}

/// dx, and part y of dgamma and dbeta: the columns of a CTA over `rows_per_part` rows.
/// Grid: (SLICES, parts).
extern "C" __global__ LAUNCH_BOUNDS(256, 2) void norm_backward_long(NormLongArguments a) {
  __shared__ float totals[CHUNK][SUMS];
  const Part at(a);
  const int warp = thread_index() / WARP_SIZE;
  Weights gamma[PACKS];
  read_gamma(at, a.gamma, gamma);
  float dgamma[PACKS][VECTOR] = {}, dbeta[PACKS][VECTOR] = {};
  for (int chunk = at.first; chunk < at.end; chunk += CHUNK) {
    const int end = least(chunk + CHUNK, at.end);
    block_barrier();  // the chunk before has been read
    for (int row = chunk + warp; row < end; row += WARPS) {
      const float* const from = a.slices + (i64)row * SLICES * SUMS;
      float total[SUMS] = {};
#pragma unroll 4
      for (int i = lane_index(); i < SLICES; i += WARP_SIZE) {
#pragma unroll
        for (int s = 0; s < SUMS; s++) total[s] += from[i * SUMS + s];
      }
#pragma unroll
      for (int s = 0; s < SUMS; s++) {
        total[s] = warp_sum<WARP_SIZE>(total[s]);
        if (lane_index() == 0) totals[row - chunk][s] = total[s];
      }
    }
    block_barrier();
    for (int first = chunk; first < end; first += BATCH) {
      Values x[BATCH][PACKS], dh[BATCH][PACKS];
      Grads dy[BATCH][PACKS];
#pragma unroll
      for (int b = 0; b < BATCH; b++) {
        read(at, a.x, first + b, x[b]);
        read(at, a.dy, first + b, dy[b]);
        if constexpr (ADD) read(at, a.dh, first + b, dh[b]);
      }
#pragma unroll
      for (int b = 0; b < BATCH; b++) {
        const int row = first + b;
        if (row >= at.end) break;  // CHUNK is a whole number of batches
        const float rstd = a.rstd[row], mean = LAYER ? a.mean[row] : 0.0f;
        const float* const total = totals[row - chunk];
        const float of_x = total[0] * (-1.0f / HIDDEN) * rstd * rstd;
        const float shift = LAYER ? total[SUMS - 1] * (-1.0f / HIDDEN) * rstd : 0.0f;
#pragma unroll
        for (int k = 0; k < PACKS; k++) {
          float dx[VECTOR];
#pragma unroll
          for (int e = 0; e < VECTOR; e++) {
            const float g = dy[b][k].get(e);
            const float off = LAYER ? x[b][k].get(e) - mean : x[b][k].get(e);
            dx[e] = fused_multiply_add(g * factor_of(gamma[k], e), rstd,
                                       fused_multiply_add(off, of_x, shift));
            if constexpr (ADD) dx[e] += dh[b][k].get(e);
            if constexpr (NORM_SUMS) {
              dgamma[k][e] = fused_multiply_add(g, off * rstd, dgamma[k][e]);
              if constexpr (LAYER) dbeta[k][e] += g;
            }
          }
          Values out;
          out.set(dx);
          if (at.has(k)) *(Values*)((X*)a.dx + (i64)row * a.dx_stride + at.column(k)) = out;
        }
      }
    }
  }
  if constexpr (NORM_SUMS) {
#pragma unroll
    for (int k = 0; k < PACKS; k++) {
      if (!at.has(k)) continue;
      const i64 to = (i64)block_index_y() * HIDDEN + at.column(k);
      Pack<fp32, VECTOR> out;
      out.set(dgamma[k]);
      *(Pack<fp32, VECTOR>*)(a.dgamma_parts + to) = out;
      if constexpr (LAYER) {
        out.set(dbeta[k]);
        *(Pack<fp32, VECTOR>*)(a.dbeta_parts + to) = out;
      }
    }
  }
}
