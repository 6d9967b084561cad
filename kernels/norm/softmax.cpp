// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
// Softmax over rows, forward and backward. README.md lists the macros that choose a kernel.
//
//   forward   y = exp(s - max(s)) / sum(exp(s - max(s))),  s = scale * x
//   backward  dx = scale * y * (dy - sum(y * dy))
//
// SOFTMAX_BACKWARD: which of the two it is. A kernel that is compiled at a first call is all that
// the call waits for.
//
// SOFTMAX_MASK: NO_MASK; EXPLICIT_MASK: where the mask is 1, s = -10000, and a row whose largest s
// is that gives 0, one with a NaN that is not masked NaN; CAUSAL_MASK: row q of `queries` has the
// first q + HIDDEN - queries + 1 columns (with queries == HIDDEN: the upper-triangular mask); the
// rest is 0 and not read.
#include "rows.h"

#define NO_MASK 0
#define EXPLICIT_MASK 1
#define CAUSAL_MASK 2

using X = SOFTMAX_X;
constexpr int MASK = SOFTMAX_MASK;
constexpr float LOG2_E = 1.44269504088896340736f;
constexpr float MASKED = -10000.0f;

using Values = Pack<X, VECTOR>;

struct CausalRow {
  int queries;
  DEVICE int operator()(int row) const {
    int columns = row % queries + HIDDEN - queries + 1;
    return columns < 0 ? 0 : columns < HIDDEN ? (int)columns : HIDDEN;
  }
};
using Limit = Choose<MASK == CAUSAL_MASK, CausalRow, WholeRow>::type;
template <class L>
DEVICE L limit_of(int queries) {
  if constexpr (same<L, CausalRow>)
    return L{queries};
  else
    return L{};
}

#if !SOFTMAX_BACKWARD

/// s = t * magnitude with t = x * sign. Differences are taken of t, where x is exact, and scaled
/// after that: a product that is rounded first would differ by the more, the larger x is.
struct Scale {
  float sign, magnitude;
  DEVICE explicit Scale(float scale)
      : sign(scale > 0   ? 1.0f
             : scale < 0 ? -1.0f
                         : scale * 0),
        magnitude(1) {
    if (sign * scale > 0) magnitude = sign * scale;
  }
  /// exp(s - largest s), of their t.
  DEVICE float exponential(float t, float largest) const {
    return exp2_approx((t - largest) * (magnitude * LOG2_E));
  }
};

/// Largest t and the sum of exponentials relative to it.
struct Partial {
  float largest, sum;
};

/// Partial of all slices; on return `factor` turns this warp's exponentials into the softmax.
DEVICE Partial merged(Exchange<2>& exchange, int i, Partial own, const Scale& scale) {
  if constexpr (SLOTS == 1) return own;
  const float neutral[2] = {-as_float(INFINITY_BITS), 0};
  Gathered<2> all = exchange.gather(i, neutral);
  float largest = all.value[0][0];
#pragma unroll
  for (int j = 1; j < all.PER_LANE; j++) largest = max_of(largest, all.value[j][0]);
  largest = warp_max<Gathered<2>::LANES_OF>(largest);
  float sum = 0;
#pragma unroll
  for (int j = 0; j < all.PER_LANE; j++)
    // An empty slice, or one of -inf alone, adds nothing; NaN goes through.
    if (all.value[j][1] != 0) sum += all.value[j][1] * scale.exponential(all.value[j][0], largest);
  return {largest, warp_sum<Gathered<2>::LANES_OF>(sum)};
}

ROW_KERNEL softmax_forward(SoftmaxForwardArguments a) {
  begin();
  DYNAMIC_SHARED(shared);
  using Rows = Input<Limit, true, X>;
  __shared__ u64 barriers[Rows::BARRIERS];
  __shared__ TurnStorage turn_storage;
  __shared__ ExchangeStorage<2> storage;
  Position at(a.groups);
  Turns turns(turn_storage, at, a.rows, a.counter);
  Rows in(at, turns, limit_of<Limit>(a.queries), keep_reads_if_many<X>(a.rows), shared, barriers,
          a.x);
  Exchange<2> exchange(storage, at);
  const float INF = as_float(INFINITY_BITS);
  const Scale scale(a.scale);
  const float masked_t = MASKED / scale.magnitude;

  for (int i = 0; at.more(a.rows); i++, at.row = turns.row(i)) {
    at.shift = in.shift_of(at.row);
    in.open(at.row);
    const int packs = at.packs();
    const u8* mask = nullptr;
    if constexpr (MASK == EXPLICIT_MASK)
      mask = a.mask +
             (i64)(at.row / a.queries / a.mask_repeat * a.queries + at.row % a.queries) * HIDDEN;
    const int columns = in.limit(at.row);
    // t of pack k; columns that the row lacks are -inf.
    auto scores = [&](const Values& x, int k, float (&t)[VECTOR]) {
      Pack<u8, VECTOR> masked;
      if (MASK == EXPLICIT_MASK && SHIFTED && at.has(k) && at.active(a.rows))
        masked.gather(mask, at.column(k), HIDDEN);
      else if (MASK == EXPLICIT_MASK && at.has(k) && at.active(a.rows))
        masked = *(const Pack<u8, VECTOR>*)(mask + at.column(k));
      else
        masked.clear();
      int column = at.column(k);
#pragma unroll
      for (int e = 0; e < VECTOR; e++) {
        t[e] = x.get(e) * scale.sign;
        if (MASK == EXPLICIT_MASK && masked.get(e) == 1) t[e] = masked_t;
        if ((RAGGED || MASK == CAUSAL_MASK) && column + e >= columns) t[e] = -INF;
        if (SHIFTED && column + e < 0) t[e] = -INF;
      }
    };
    X* const to = (X*)a.y + (i64)at.row * a.y_stride;
    auto put = [&](int k, const float (&y)[VECTOR]) {
      Values out;
      out.set(y);
      in.put(k, out, to, in.edge[0]);
    };

    Partial own{-INF, 0};
    float s[HOLD ? PACKS : 1][VECTOR];
    if constexpr (HOLD) {
      Values x[PACKS];
#pragma unroll
      for (int k = 0; k < PACKS; k++) x[k] = in.template get<0>(k);
      in.close();
#pragma unroll
      for (int k = 0; k < PACKS; k++) {
        scores(x[k], k, s[k]);
#pragma unroll
        for (int e = 0; e < VECTOR; e++) own.largest = max_of(own.largest, s[k][e]);
      }
      own.largest = warp_max<WARP_LANES>(own.largest);
      const float off = own.largest == -INF ? 0.0f : own.largest;
#pragma unroll
      for (int k = 0; k < PACKS; k++) {
        float part = 0;  // short chains of additions
#pragma unroll
        for (int e = 0; e < VECTOR; e++) part += s[k][e] = scale.exponential(s[k][e], off);
        own.sum += part;
      }
      own.sum = warp_sum<WARP_LANES>(own.sum);
    } else {
      // Each lane goes on with its largest so far, then the lanes merge.
      float largest = -INF, sum = 0;
#pragma unroll UNROLL
      for (int k = 0; k < packs && at.reads(k); k++) {
        float v[VECTOR], before = largest;
        scores(in.template get<0>(k), k, v);
#pragma unroll
        for (int e = 0; e < VECTOR; e++) largest = max_of(largest, v[e]);
        const float off = largest == -INF ? 0.0f : largest;
        if (sum != 0) sum *= scale.exponential(before, off);
#pragma unroll
        for (int e = 0; e < VECTOR; e++) sum += scale.exponential(v[e], off);
      }
      own.largest = warp_max<WARP_LANES>(largest);
      own.sum =
          warp_sum<WARP_LANES>(sum != 0 ? sum * scale.exponential(largest, own.largest) : 0.0f);
    }
    exchange.publish(i, {own.largest, own.sum});
    const Partial all = merged(exchange, i, own, scale);
    // Every row of numbers sums to 1 or more. 0: all -inf, which has no softmax, or no columns.
    // A NaN is in the sum alone.
    const bool nothing = MASK == EXPLICIT_MASK ? all.largest == masked_t && all.sum == all.sum
                                               : MASK == CAUSAL_MASK && in.limit(at.row) <= 0;
    const float off = HOLD ? own.largest : all.largest;
    float factor = nothing ? 0.0f : inverse_approx(all.sum);
    if (HOLD && SLOTS > 1 && own.sum != 0 && !nothing)
      factor *= scale.exponential(own.largest, all.largest);
    if (!nothing && all.sum == 0) factor = as_float(NAN_BITS);
    if constexpr (HOLD) {
#pragma unroll
      for (int k = 0; k < PACKS; k++) {
        int column = at.column(k);
#pragma unroll
        for (int e = 0; e < VECTOR; e++)
          s[k][e] = MASK == CAUSAL_MASK && column + e >= columns ? 0.0f : s[k][e] * factor;
        put(k, s[k]);
      }
    } else {
#pragma unroll UNROLL
      for (int n = 0; n < packs && at.reads(n); n++) {
        const int k = at.again(n, packs);
        float v[VECTOR];
        scores(in.template get<0>(k), k, v);
        int column = at.column(k);
#pragma unroll
        for (int e = 0; e < VECTOR; e++)
          v[e] = nothing || (MASK == CAUSAL_MASK && column + e >= columns)
                     ? 0.0f
                     : scale.exponential(v[e], off) * factor;
        put(k, v);
      }
      in.close();
    }
    in.write_edges(in.edge[0], to);
  }
  turns.retire(a.groups);
}

#else

ROW_KERNEL softmax_backward(SoftmaxBackwardArguments a) {
  begin();
  DYNAMIC_SHARED(shared);
  using Rows = Input<Limit, STAGES == 0 || PACKS == 1, X, X>;
  __shared__ u64 barriers[Rows::BARRIERS];
  __shared__ TurnStorage turn_storage;
  __shared__ ExchangeStorage<1> storage;
  Position at(a.groups);
  Turns turns(turn_storage, at, a.rows, a.counter);
  const L2Policy policy = keep_reads_if_many<X>(a.rows, FEW_BACKWARD);
  Rows in(at, turns, limit_of<Limit>(a.queries), policy, shared, barriers, a.y, a.dy);
  Exchange<1> exchange(storage, at);

  for (int i = 0; at.more(a.rows); i++, at.row = turns.row(i)) {
    at.shift = in.shift_of(at.row);
    in.open(at.row);
    const int packs = at.packs();
    const int columns = in.limit(at.row);
    X* const to = (X*)a.dx + (i64)at.row * a.dx_stride;
    auto put = [&](int k, const Values& y, const Values& dy, float total) {
      float dx[VECTOR];
      int column = at.column(k);
#pragma unroll
      for (int e = 0; e < VECTOR; e++) {
        dx[e] = a.scale * (y.get(e) * (dy.get(e) - total));
        if (MASK == CAUSAL_MASK && column + e >= columns) dx[e] = 0;
      }
      Values out;
      out.set(dx);
      in.put(k, out, to, in.edge[0]);
    };
    float own[1] = {0}, total[1];
    auto add = [&](int k, const Values& y, const Values& dy) {
      int column = at.column(k);
      float part = 0;
#pragma unroll
      for (int e = 0; e < VECTOR; e++)
        if (MASK != CAUSAL_MASK || column + e < columns)
          part = fused_multiply_add(y.get(e), dy.get(e), part);
      own[0] += part;
    };
    if constexpr (HOLD) {
      Values y[PACKS], dy[PACKS];
#pragma unroll
      for (int k = 0; k < PACKS; k++) {
        y[k] = in.template get<0>(k);
        dy[k] = in.template get<1>(k);
      }
      in.close();
#pragma unroll
      for (int k = 0; k < PACKS; k++) add(k, y[k], dy[k]);
      own[0] = warp_sum<WARP_LANES>(own[0]);
      exchange.publish(i, own);
      exchange.sum(i, own, total);
#pragma unroll
      for (int k = 0; k < PACKS; k++) {
        const u32 zero = as_bits(total[0]) & (u32)(at.row >> 31);
        put(k, opaque(y[k], zero), opaque(dy[k], zero), total[0]);
      }
    } else {
#pragma unroll UNROLL
      for (int k = 0; k < packs && at.reads(k); k++)
        add(k, in.template get<0>(k), in.template get<1>(k));
      own[0] = warp_sum<WARP_LANES>(own[0]);
      exchange.publish(i, own);
      exchange.sum(i, own, total);
#pragma unroll UNROLL
      for (int n = 0; n < packs && at.reads(n); n++) {
        const int k = at.again(n, packs);
        put(k, in.template get<0>(k), in.template get<1>(k), total[0]);
      }
      in.close();
    }
    in.write_edges(in.edge[0], to);
  }
  turns.retire(a.groups);
}

#endif
