// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
// LayerNorm and RMSNorm, backward. README.md lists the macros that choose a kernel.
//
//   xhat   = (x - mean) * rstd          (RMSNorm: x * rstd)
//   wdy    = dy * (gamma + zero_centred)
//   dx     = (wdy - mean(wdy * xhat) * xhat - mean(wdy)) * rstd   (RMSNorm: without mean(wdy))
//            + dh (NORM_ADD: what the residual stream brings back)
//   dgamma = sum over rows of dy * xhat,  dbeta = sum over rows of dy
//
// norm_backward writes dx and, of each cluster, its part of dgamma and dbeta. Where a row is too
// long to stay in registers it writes dx alone. norm_columns.cpp does the rest.
#include "rows.h"

using X = NORM_X;
using W = NORM_W;
using Y = NORM_Y;
constexpr bool LAYER = NORM_LAYER;                        // LayerNorm, else RMSNorm
constexpr bool KEEP = NORM_KEEP_WEIGHTS > 0 && RESIDENT;  // gamma stays in registers,
constexpr bool PACKED = NORM_KEEP_WEIGHTS == 1;           // 1: as stored, 2: converted
constexpr bool LAG = NORM_LAG;  // finish a row while the next is summed: hides the exchange
constexpr float ZERO_CENTRED = NORM_ZERO_CENTRED;  // 1 if gamma is stored as gamma - 1
constexpr int SUMS = LAYER ? 2 : 1;

using Values = Pack<X, VECTOR>;
using Grads = Pack<Y, VECTOR>;
using Weights = Pack<W, VECTOR>;
#if NORM_ADD
using Rows = Input<WholeRow, X, Y, X>;
#else
using Rows = Input<WholeRow, X, Y>;
#endif

static_assert(!ON_DEMAND, "a cluster's part of dgamma has the same rows every time");
static_assert(NORM_KEEP_WEIGHTS < 3, "gamma stays in registers");
static_assert(!LAG || (HOLD && SLOTS > 1), "there is an exchange to hide");

/// A row on its way: what is kept of it between its sums and its end.
struct Row {
  int row;
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
    *(Pack<fp32, VECTOR>*)(parts + (i64)at.group * HIDDEN + at.column(k)) = out;
  }
}

ROW_KERNEL norm_backward(NormBackwardArguments a) {
  DYNAMIC_SHARED(shared);
  __shared__ u64 barriers[Rows::BARRIERS];
  __shared__ TurnStorage turn_storage;
  __shared__ ExchangeStorage<SUMS> storage;
  let_dependents_start();
  Position at(a.groups);
  Turns turns(turn_storage, at, a.rows, nullptr);
#if NORM_ADD
  Rows in(at, turns, WholeRow{}, evict_last(true), shared, barriers, a.x, a.dy, a.dh);
#else
  Rows in(at, turns, WholeRow{}, evict_last(true), shared, barriers, a.x, a.dy);
#endif
  RowScalars means(LAYER ? a.mean : nullptr, a.rows, at), rstds(a.rstd, a.rows, at);
  Exchange<SUMS> exchange(storage, at);

  auto weights = [&](int k) {
    Weights w;
    if (at.has(k))
      w = *((const Weights*)a.gamma + at.column(k) / VECTOR);
    else
      w.clear();
    return w;
  };
  Weights gamma[KEEP ? PACKS : 1];
  float dgamma[RESIDENT ? PACKS : 1][VECTOR], dbeta[RESIDENT && LAYER ? PACKS : 1][VECTOR];
  if constexpr (RESIDENT) {
#pragma unroll
    for (int k = 0; k < PACKS; k++) {
      if constexpr (KEEP) gamma[k] = weights(k);
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

  // One pack's contribution to the row's sums and, where they are kept, to dgamma and dbeta.
  auto add = [&](Row& r, int k, const Values& x, const Grads& dy, const Weights& w) {
#pragma unroll
    for (int e = 0; e < VECTOR; e++) {
      float xhat = (LAYER ? x.get(e) - r.mean : x.get(e)) * r.rstd;
      float g = dy.get(e), factor = w.get(e) + ZERO_CENTRED;
      if constexpr (LAYER) {
        float wdy = g * factor;
        r.own[0] = fused_multiply_add(wdy, xhat, r.own[0]);
        r.own[LAYER] += wdy;
        if constexpr (RESIDENT) {
          dgamma[k][e] = fused_multiply_add(g, xhat, dgamma[k][e]);
          dbeta[RESIDENT && LAYER ? k : 0][e] += g;
        }
      } else {
        float product = g * xhat;
        r.own[0] = fused_multiply_add(product, factor, r.own[0]);
        if constexpr (RESIDENT) dgamma[k][e] += product;
      }
    }
  };
  auto put = [&](const Row& r, const float (&total)[SUMS], int k, const Values& x, const Grads& dy,
                 const Weights& w, const Values& dh) {
    const float along = total[0] * (-1.0f / HIDDEN) * r.rstd;  // of xhat, times rstd
    const float shift = LAYER ? total[SUMS - 1] * (-1.0f / HIDDEN) * r.rstd : 0.0f;
    const float of_x = along * r.rstd;
    float dx[VECTOR];
#pragma unroll
    for (int e = 0; e < VECTOR; e++) {
      float wdy = dy.get(e) * (w.get(e) + ZERO_CENTRED);
      float rest = LAYER ? fused_multiply_add(x.get(e) - r.mean, of_x, shift) : x.get(e) * of_x;
      dx[e] = fused_multiply_add(wdy, r.rstd, rest);
#if NORM_ADD
      dx[e] += dh.get(e);
#endif
    }
    Values out;
    out.set(dx);
    if (at.has(k) && at.active(a.rows))
      *(decltype(out)*)((X*)a.dx + (i64)r.row * a.dx_stride + at.column(k)) = out;
  };
  auto finish = [&](Row& r, int i) {
    float total[SUMS];
    exchange.sum(i, r.own, total);
    auto put_pack = [&](int k) {
      Values dh;
      if constexpr (HOLD) {
#if NORM_ADD
        dh = r.dh[k];
#endif
        const u32 zero = (u32)(r.row >> 31);
        put(r, total, k, opaque(r.x[k], zero), opaque(r.dy[k], zero), gamma_of(k), dh);
      } else {
#if NORM_ADD
        dh = in.template get<2>(k);
#endif
        put(r, total, k, in.template get<0>(k), in.template get<1>(k), gamma_of(k), dh);
      }
    };
#pragma unroll UNROLL
    for (int k = 0; k < PACKS && at.has(k); k++) put_pack(k);
  };

  Row last;
  int i = 0;
  for (; at.more(a.rows); i++, at.row += at.step) {
    Row r;
    in.open(at.row);
    r.row = at.row;
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
      for (int k = 0; k < PACKS && at.has(k); k++)
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
  if constexpr (RESIDENT) {
    if constexpr (ROWS > 1) block_barrier();  // the ring is read out
    float* room = (float*)shared;
    write_part(at, dgamma, a.dgamma_parts, room);
    if constexpr (LAYER) write_part(at, dbeta, a.dbeta_parts, room + PACKS * VECTOR * THREADS);
  }
}
