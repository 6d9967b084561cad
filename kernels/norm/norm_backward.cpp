// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
// LayerNorm and RMSNorm, backward. README.md lists the macros that choose a kernel.
//
//   xhat   = (x - mean) * rstd          (RMSNorm: x * rstd)
//   wdy    = dy * (gamma + zero_centred)
//   dx     = (wdy - mean(wdy * xhat) * xhat - mean(wdy)) * rstd   (RMSNorm: without mean(wdy))
//            + dh (NORM_ADD: what the residual stream brings back)
//   dgamma = sum over rows of dy * xhat,  dbeta = sum over rows of dy
//
// norm_backward writes dx and, of each cluster, its part of dgamma and dbeta, which
// norm_columns.cpp adds up. Of few rows (NORM_FEW_ROWS) its first CTAs sum the columns, as mean and
// rstd are there: it is all of the pass. norm_long.cpp takes rows that are too long for registers.
#define ROW_REALIGNED 1  // dgamma's columns keep their threads
#include "rows.h"

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
constexpr bool LAYER = NORM_LAYER;               // LayerNorm, else RMSNorm
constexpr bool KEEP = NORM_KEEP_WEIGHTS > 0;     // gamma stays in registers,
constexpr bool PACKED = NORM_KEEP_WEIGHTS == 1;  // 1: as stored, 2: converted
constexpr bool LAG = NORM_LAG;  // finish a row while the next is summed: hides the exchange
constexpr bool FEW_ROWS = NORM_FEW_ROWS > 0;
constexpr bool GAMMA = NORM_GAMMA;
// The first CTAs of the grid sum columns of few rows: NORM_FEW_ROWS threads of one are side by
// side.
constexpr int COLUMN_LANES = FEW_ROWS ? NORM_FEW_ROWS : WARP_SIZE;
constexpr int COLUMN_CTAS =
    FEW_ROWS ? divided_up(divided_up(HIDDEN, COLUMN_LANES* VECTOR), CLUSTER) * CLUSTER : 0;
constexpr bool SUM_ROWS = !FEW_ROWS && NORM_SUMS;  // for dgamma, dbeta: in registers
constexpr bool ZERO_CENTRED = NORM_ZERO_CENTRED;   // gamma is stored less 1
constexpr int SUMS = LAYER ? 2 : 1;

using Values = Pack<X, VECTOR>;
using Grads = Pack<Y, VECTOR>;
using Weights = Pack<W, VECTOR>;
#if NORM_ADD
using Rows = Input<WholeRow, false, X, Y, X>;
#else
using Rows = Input<WholeRow, false, X, Y>;
#endif

static_assert(RESIDENT, "longer rows are norm_long.cpp's");
static_assert(!ON_DEMAND, "a cluster's part of dgamma has the same rows every time");
static_assert(NORM_KEEP_WEIGHTS < 3, "gamma stays in registers");
static_assert(NORM_SUMS || !FEW_ROWS, "its first CTAs sum columns");
static_assert(!LAG || (HOLD && SLOTS > 1), "there is an exchange to hide");

/// A row on its way: what is kept of it between its sums and its end.
struct Row {
  int row, shift;
  float mean, rstd;
  float own[SUMS];  // this warp's sums of wdy * xhat and wdy
  Values x[HOLD ? PACKS : 1];
  Grads dy[HOLD ? PACKS : 1];
#if NORM_ADD
  Values dh[HOLD ? PACKS : 1];
#endif
};

/// Adds the rows of the CTA up and writes them as one part; `shared` has a float for every element
/// of every thread, which nothing else uses any more.
template <int COUNT>
DEVICE void write_part(const Position& at, const float (&sum)[COUNT][VECTOR], float* parts,
                       float* shared) {
  const int thread = thread_index();
  if constexpr (ROWS > 1) {
#pragma unroll
    for (int k = 0; k < COUNT; k++)
#pragma unroll
      for (int e = 0; e < VECTOR; e++) shared[(k * VECTOR + e) * THREADS + thread] = sum[k][e];
    block_barrier();
    if (thread >= LANES) return;
  }
#pragma unroll
  for (int k = 0; k < COUNT; k++) {
    float total[VECTOR];
#pragma unroll
    for (int e = 0; e < VECTOR; e++) {
      total[e] = sum[k][e];
#pragma unroll 1
      for (int r = 1; r < ROWS; r++)
        total[e] += shared[(k * VECTOR + e) * THREADS + r * LANES + thread];
    }
    if (!at.has(k)) continue;
    Pack<fp32, VECTOR> out;
    out.set(total);
    float* const to = parts + (i64)at.group * HIDDEN + at.column(k);
    if constexpr (REALIGNED)
      out.write(to, 0, HIDDEN - at.column(k));
    else
      *(Pack<fp32, VECTOR>*)to = out;
  }
}

/// Of few rows: dgamma and dbeta of the columns of block `block`.
DEVICE void sum_columns(const NormBackwardArguments& a, int block) {
  constexpr int COLUMNS = COLUMN_LANES * VECTOR;
  constexpr int STEP = THREADS / COLUMN_LANES;         // rows that are read at a time
  constexpr int WARP_STEP = WARP_SIZE / COLUMN_LANES;  // by a warp
  __shared__ float parts[SUMS][THREADS / WARP_SIZE][COLUMNS];
  const int thread = thread_index(), first = block * COLUMNS;
  const int column = first + thread % COLUMN_LANES * VECTOR;
  float sum[SUMS][VECTOR] = {};
  if (column < HIDDEN) {
#pragma unroll 4
    for (int row = thread / COLUMN_LANES; row < a.rows; row += STEP) {
      const X* const x_row = (const X*)a.x.data + (i64)row * a.x.stride;
      const Y* const dy_row = (const Y*)a.dy.data + (i64)row * a.dy.stride;
      Values x;
      Grads dy;
      if constexpr (REALIGNED) {
        x.gather(x_row, column, HIDDEN);
        dy.gather(dy_row, column, HIDDEN);
      } else {
        x = *(const Values*)(x_row + column);
        dy = *(const Grads*)(dy_row + column);
      }
      const float rstd = a.rstd[row], mean = LAYER ? a.mean[row] : 0.0f;
#pragma unroll
      for (int e = 0; e < VECTOR; e++) {
        const float xhat = (LAYER ? x.get(e) - mean : x.get(e)) * rstd;
        sum[0][e] = fused_multiply_add(dy.get(e), xhat, sum[0][e]);
        if constexpr (LAYER) sum[SUMS - 1][e] += dy.get(e);
      }
    }
  }
  // Groups of a warp add up in registers, then warps in shared memory.
#pragma unroll
  for (int s = 0; s < SUMS; s++)
#pragma unroll
    for (int e = 0; e < VECTOR; e++) {
#pragma unroll
      for (int mask = COLUMN_LANES; mask < WARP_SIZE; mask *= 2)
        sum[s][e] += shuffle_xor(sum[s][e], mask);
      if (lane_index() < COLUMN_LANES)
        parts[s][thread / WARP_SIZE][lane_index() * VECTOR + e] = sum[s][e];
    }
  block_barrier();
  const int warps = least(THREADS / WARP_SIZE, divided_up(a.rows, WARP_STEP));  // that had a row
  for (int i = thread; i < SUMS * COLUMNS; i += THREADS) {
    const int s = i / COLUMNS, of = i % COLUMNS;
    W* const to = (W*)(s == 0 ? a.dgamma : a.dbeta);
    if (first + of >= HIDDEN || !to) continue;
    float total[1] = {0};
    for (int w = 0; w < warps; w++) total[0] += parts[s][w][of];
    Pack<W, 1> out;
    out.set(total);
    *(Pack<W, 1>*)(to + first + of) = out;
  }
}

ROW_KERNEL norm_backward(NormBackwardArguments a) {
  begin();
  if constexpr (FEW_ROWS) {
    if (block_index() < COLUMN_CTAS) {
      sum_columns(a, block_index());
      return;
    }
  }
  DYNAMIC_SHARED(shared);
  __shared__ u64 barriers[Rows::BARRIERS];
  __shared__ TurnStorage turn_storage;
  __shared__ ExchangeStorage<SUMS> storage;
  Position at(a.groups, COLUMN_CTAS);
  Turns turns(turn_storage, at, a.rows, nullptr);
  const L2Policy policy = keep_reads_if_many<X>(a.rows, FEW_BACKWARD);
#if NORM_ADD
  Rows in(at, turns, WholeRow{}, policy, shared, barriers, a.x, a.dy, a.dh);
#else
  Rows in(at, turns, WholeRow{}, policy, shared, barriers, a.x, a.dy);
#endif
  RowScalars means(LAYER ? a.mean : nullptr, a.rows, at), rstds(a.rstd, a.rows, at);
  Exchange<SUMS> exchange(storage, at);

  auto weights = [&](int k) {
    Weights w;
    if constexpr (!GAMMA)
      w.clear();
    else if constexpr (REALIGNED)
      w.gather((const W*)a.gamma, at.column(k), HIDDEN);
    else if (at.has(k))
      w = *((const Weights*)a.gamma + at.column(k) / VECTOR);
    else
      w.clear();
    return w;
  };
  Weights gamma[KEEP ? PACKS : 1];
  float dgamma[SUM_ROWS ? PACKS : 1][VECTOR], dbeta[SUM_ROWS && LAYER ? PACKS : 1][VECTOR];
#pragma unroll
  for (int k = 0; k < PACKS; k++) {
    if constexpr (KEEP) gamma[k] = weights(k);
    if constexpr (SUM_ROWS) {
#pragma unroll
      for (int e = 0; e < VECTOR; e++) {
        dgamma[k][e] = 0;
        if constexpr (LAYER) dbeta[k][e] = 0;
      }
    }
  }

  auto gamma_of = [&](int k) {
    if constexpr (!KEEP) return weights(k);
    if constexpr (PACKED) return opaque(gamma[k], (u32)(at.row >> 31));
    return gamma[k];
  };

  auto factor_of = [](const Weights& w, int e) {
    const float factor = GAMMA ? w.get(e) : 1.0f;
    return GAMMA && ZERO_CENTRED ? factor + 1.0f : factor;  // 0 would be added, too
  };

  // One pack's contribution to the row's sums and, where they are kept, to dgamma and dbeta.
  auto add = [&](Row& r, int k, const Values& x, const Grads& dy, const Weights& w) {
#pragma unroll
    for (int e = 0; e < VECTOR; e++) {
      float xhat = (LAYER ? x.get(e) - r.mean : x.get(e)) * r.rstd;
      float g = dy.get(e), factor = factor_of(w, e);
      if constexpr (LAYER) {
        float wdy = g * factor;
        r.own[0] = fused_multiply_add(wdy, xhat, r.own[0]);
        r.own[LAYER] += wdy;
        if constexpr (SUM_ROWS) {
          dgamma[k][e] = fused_multiply_add(g, xhat, dgamma[k][e]);
          dbeta[SUM_ROWS && LAYER ? k : 0][e] += g;
        }
      } else {
        float product = g * xhat;
        r.own[0] = fused_multiply_add(product, factor, r.own[0]);
        if constexpr (SUM_ROWS) dgamma[k][e] += product;
      }
    }
  };
  auto result = [&](const Row& r, const float (&total)[SUMS], const Values& x, const Grads& dy,
                    const Weights& w, const Values& dh) {
    const float along = total[0] * (-1.0f / HIDDEN) * r.rstd;  // of xhat, times rstd
    const float shift = LAYER ? total[SUMS - 1] * (-1.0f / HIDDEN) * r.rstd : 0.0f;
    const float of_x = along * r.rstd;
    float dx[VECTOR];
#pragma unroll
    for (int e = 0; e < VECTOR; e++) {
      float wdy = dy.get(e) * factor_of(w, e);
      float rest = LAYER ? fused_multiply_add(x.get(e) - r.mean, of_x, shift) : x.get(e) * of_x;
      dx[e] = fused_multiply_add(wdy, r.rstd, rest);
#if NORM_ADD
      dx[e] += dh.get(e);
#endif
    }
    Values out;
    out.set(dx);
    return out;
  };
  auto finish = [&](Row& r, int i) {
    float total[SUMS];
    exchange.sum(i, r.own, total);
    auto result_of = [&](int k) {
      Values dh;
      if constexpr (HOLD) {
#if NORM_ADD
        dh = r.dh[k];
#endif
        const u32 zero = (u32)(r.row >> 31);
        return result(r, total, opaque(r.x[k], zero), opaque(r.dy[k], zero), gamma_of(k), dh);
      } else {
#if NORM_ADD
        dh = in.template get<2>(k);
#endif
        return result(r, total, in.template get<0>(k), in.template get<1>(k), gamma_of(k), dh);
      }
    };
    X* const to = (X*)a.dx + (i64)r.row * a.dx_stride;
    if constexpr (REALIGNED) {
      Values before, first;
      before.clear();
#pragma unroll UNROLL
      for (int k = 0; k < PACKS; k++) {
        const Values out = result_of(k);
        in.put_realigned(k, r.shift, before, out, to);
        if (k == 0) first = out;
        before = out;
      }
      in.put_ends(r.shift, first, before, to);
    } else {
#pragma unroll UNROLL
      for (int k = 0; k < PACKS && at.has(k); k++) {
        const Values out = result_of(k);
        if (at.active(a.rows)) *(Values*)(to + at.column(k)) = out;
      }
    }
  };

  Row last;
  int i = 0;
  for (; at.more(a.rows); i++, at.row += at.step) {
    Row r;
    in.open(at.row);
    r.row = at.row;
    r.shift = in.shift_of(at.row);
    r.rstd = rstds.take();
    r.mean = LAYER ? means.take() : 0.0f;
#pragma unroll
    for (int s = 0; s < SUMS; s++) r.own[s] = 0;
    if constexpr (HOLD) {
#pragma unroll
      for (int k = 0; k < PACKS; k++) {
        r.x[k] = in.template get<0>(k);
        r.dy[k] = in.template get<1>(k);
#if NORM_ADD
        r.dh[k] = in.template get<2>(k);
#endif
      }
      in.close();
#pragma unroll
      for (int k = 0; k < PACKS; k++) add(r, k, r.x[k], r.dy[k], gamma_of(k));
    } else {
#pragma unroll UNROLL
      for (int k = 0; k < PACKS && (REALIGNED || at.has(k)); k++)
        add(r, k, in.template get<0>(k), in.template get<1>(k), gamma_of(k));
    }
#pragma unroll
    for (int s = 0; s < SUMS; s++) r.own[s] = warp_sum<WARP_LANES>(r.own[s]);
    exchange.publish(i, r.own);
    if constexpr (LAG) {
      if (i > 0) finish(last, i - 1);
      last = r;
    } else {
      finish(r, i);
      if (!HOLD) in.close();
    }
  }
  if constexpr (LAG) {
    if (i > 0) finish(last, i - 1);
  }
  if constexpr (SUM_ROWS) {
    if constexpr (ROWS > 1) block_barrier();  // the ring is read out
    float* room = (float*)shared;
    write_part(at, dgamma, (float*)a.dgamma, room);
    if constexpr (LAYER) write_part(at, dbeta, (float*)a.dbeta, room + PACKS * VECTOR * THREADS);
  }
}
