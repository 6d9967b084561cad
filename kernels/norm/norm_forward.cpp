// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
// LayerNorm and RMSNorm, forward. README.md lists the macros that choose a kernel.
//
//   h = x + residual (NORM_ADD), rounded to the type of x and stored
//   LayerNorm  y = (h - mean) * rstd * (gamma + zero_centred) + beta
//   RMSNorm    y = h * rstd * (gamma + zero_centred)
//
// mean and rstd are kept for the backward pass. With an fp8 output y is multiplied by *scale and
// amax becomes the largest |y| before that; or (NORM_SCALES) each row or block of columns is
// divided by a scale of its own, by which its largest |y| becomes the largest number of the type.
#include "rows.h"

// Macros that most kernels are without.
#ifndef NORM_GAMMA
#define NORM_GAMMA 1  // 0: gamma is 1
#endif
#ifndef NORM_IN_PLACE
#define NORM_IN_PLACE 0  // 1: the sum takes the residual's place, and memory is read twice
#endif
#ifndef NORM_SCALES
#define NORM_SCALES 0  // 1: of rows, 2: of blocks
#endif

using X = NORM_X;
using W = NORM_W;
using Y = NORM_Y;
constexpr bool LAYER = NORM_LAYER;  // LayerNorm, else RMSNorm
constexpr bool BETA = NORM_BETA;
constexpr bool GAMMA = NORM_GAMMA;
constexpr bool IN_PLACE = NORM_IN_PLACE;
constexpr bool ROW_SCALES = NORM_SCALES == 1, BLOCK_SCALES = NORM_SCALES == 2;
constexpr bool FP8 = sizeof(Y) == 1 && NORM_SCALES == 0;  // one scale for all
constexpr int BLOCK = 32;                                 // columns with a scale
// Where gamma and beta stay: in registers as stored (1) or converted (2), in shared memory (3).
// Those of shifted rows do not stay in registers: a thread's columns differ from row to row.
constexpr bool KEEP = (NORM_KEEP_WEIGHTS == 1 || NORM_KEEP_WEIGHTS == 2) && RESIDENT;
constexpr bool PACKED = NORM_KEEP_WEIGHTS == 1;
constexpr bool SHARED_WEIGHTS = NORM_KEEP_WEIGHTS == 3;
static_assert(!SHIFTED || !KEEP, "columns of shifted rows change their threads");
static_assert(!IN_PLACE || (NORM_ADD && !HOLD && STAGES == 0), "else a row is read once");
static_assert(NORM_SCALES == 0 || sizeof(Y) == 1, "scales are of fp8 outputs");
static_assert(!BLOCK_SCALES || (!SHIFTED && HIDDEN % BLOCK == 0 && WARP_LANES * VECTOR >= BLOCK),
              "the lanes of a block are side by side");
// Whether the mean of a row in one warp is that of its sum. Sums of equal elements, of at most 11
// bits, are exact then, and divided by their count give just the element.
constexpr bool ROW_MEAN = LAYER && SLOTS == 1 && !SHIFTED && sizeof(X) == 2 && HIDDEN <= 8192;
constexpr bool CONVERT_AGAIN = PACKS * VECTOR > 32;  // x, rather than keep it converted
constexpr bool ZERO_CENTRED = NORM_ZERO_CENTRED;     // gamma is stored less 1

using Values = Pack<X, VECTOR>;
using Weights = Pack<W, VECTOR>;
using Results = Pack<Y, VECTOR>;
#if NORM_ADD
using Rows = Input<WholeRow, false, X, X>;
#else
using Rows = Input<WholeRow, false, X>;
#endif

/// Count, mean and sum of squared deviations; for RMSNorm the mean is 0.
struct Moments {
  float count, mean, squares;
};

/// What differences can be taken from: of infinity and itself there is none.
DEVICE float origin(float v) { return v - v == 0 ? v : 0.0f; }

/// Moments of LANES lanes together, `count` columns, from those of each; lane `first` has some.
/// Differences are taken from its mean: equal means give just that, and what cancels in the squares
/// is at most as many times the result as `count` is the count of that lane.
template <int LANES>
DEVICE Moments of_lanes(Moments own, float count, float inverse, int first) {
  const float from = origin(shuffle_from(own.mean, first, LANES));
  const float off = own.count > 0 ? own.mean - from : 0.0f, share = own.count * off;
  const float shares = warp_sum<LANES>(share), mean = shares * inverse;
  const float squares = warp_sum<LANES>(fused_multiply_add(share, off, own.squares));
  const float rest = squares - shares * mean;
  return {count, from + mean, rest < 0 ? 0.0f : rest};
}

/// Moments of all slices from those of each: exact counts, no cancellation. Means are added up as
/// differences from the first, so that equal ones give just that.
DEVICE Moments merged(Exchange<2>& exchange, const Position& at, int i, Moments own) {
  if constexpr (SLOTS == 1) return own;
  const float zero[2] = {0, 0};
  constexpr int LANES_OF = Gathered<2>::LANES_OF;
  Gathered<2> all = exchange.gather(i, zero);
  if constexpr (LAYER && SLOTS <= WARP_SIZE) {
    const int slice = all.slice(0);
    const float count = slice < SLOTS ? (float)at.count_of(slice) : 0.0f;
    return of_lanes<LANES_OF>({count, all.value[0][0], all.value[0][1]}, HIDDEN, 1.0f / HIDDEN, 0);
  }
  float mean = 0, squares = 0;
  if constexpr (LAYER) {
    const float first = origin(shuffle_from(all.value[0][0], 0, LANES_OF));
#pragma unroll
    for (int j = 0; j < all.PER_LANE; j++)
      mean += (float)at.count_of(all.slice(j)) * (1.0f / HIDDEN) *
              (all.slice(j) < SLOTS ? all.value[j][0] - first : 0.0f);
    mean = first + warp_sum<LANES_OF>(mean);
  }
#pragma unroll
  for (int j = 0; j < all.PER_LANE; j++) {
    float off = all.value[j][0] - mean;
    squares += all.value[j][1];
    if (LAYER && all.slice(j) < SLOTS) squares += (float)at.count_of(all.slice(j)) * off * off;
  }
  return {(float)HIDDEN, mean, warp_sum<LANES_OF>(squares)};
}

/// Squares and sum of what is left, without `from`, of the elements of a pack that has its first
/// one at `column`. Of elements outside of the row nothing is.
template <bool ALL>
DEVICE void add_rest(const Values& v, int column, float from, float& squares, float& sum) {
  float of_squares = 0, of_sum = 0;  // short chains of additions
#pragma unroll
  for (int e = 0; e < VECTOR; e++) {
    const float off = ALL || (u32)(column + e) < (u32)HIDDEN ? v.get(e) - from : 0.0f;
    of_squares = fused_multiply_add(off, off, of_squares);
    of_sum += off;
  }
  squares += of_squares;
  sum += of_sum;
}

/// Of the fp8 type: the largest number is 1.75 * 2^EXPONENT.
constexpr int LARGEST_EXPONENT = same<Y, fp8_e5m2> ? 15 : 8;
constexpr float LARGEST = same<Y, fp8_e5m2> ? 57344.0f : 448.0f;
constexpr float LEAST_SCALE = 0x1p-100f;  // of a row: its inverse is a number, too

/// The exponent, with 127 added, of the least power of two by which `largest` can be divided for
/// the type to have it; from 0 to 254.
DEVICE int block_exponent(float largest) {
  const u32 bits = as_bits(largest);
  return most((int)(bits >> 23) - LARGEST_EXPONENT + ((bits & 0x7fffff) > 0x600000), 0);
}
/// 1 / 2^(exponent - 127)
DEVICE float block_factor(int exponent) { return as_float((u32)(254 - exponent) << 23); }

ROW_KERNEL norm_forward(NormForwardArguments a) {
  begin();
  DYNAMIC_SHARED(shared);
  __shared__ u64 barriers[Rows::BARRIERS];
  __shared__ TurnStorage turn_storage;
  __shared__ ExchangeStorage<2> storage;
  Position at(a.groups);
  Turns turns(turn_storage, at, a.rows, a.counter);
  const L2Policy policy = keep_reads_if_many<X>(a.rows);
#if NORM_ADD
  Rows in(at, turns, WholeRow{}, policy, shared, barriers, a.x, a.residual);
#else
  Rows in(at, turns, WholeRow{}, policy, shared, barriers, a.x);
#endif
  Exchange<2> exchange(storage, at);
  const float scale = FP8 && a.scale ? *a.scale : 1.0f;
  float amax = 0;

  auto weights = [&](const void* of, int k) {
    Weights w;
    if constexpr (SHIFTED)
      w.gather((const W*)of, at.column(k), HIDDEN);
    else if (at.has(k))
      w = *((const Weights*)of + at.column(k) / VECTOR);
    else
      w.clear();
    return w;
  };
  Weights gamma[KEEP && GAMMA ? PACKS : 1], beta[KEEP && BETA ? PACKS : 1];
  if constexpr (KEEP) {
#pragma unroll
    for (int k = 0; k < PACKS; k++) {
      if constexpr (GAMMA) gamma[k] = weights(a.gamma, k);
      if constexpr (BETA) beta[k] = weights(a.beta, k);
    }
  }
  // Of rows that are not shifted, each thread reads only what it wrote: no barrier. Of shifted ones
  // the vectors of the CTA's columns lie in order, one more ahead of them and one behind.
  // They are stored word by word, the first words of all ahead of the second ones: threads read
  // words that lie side by side, from any word of a vector on.
  Weights* shared_gamma = (Weights*)(shared + Rows::BYTES);
  Weights* shared_beta = shared_gamma + PACKS * THREADS + 2;
  constexpr int WORDS = Weights::WORDS, STEP = PACKS * LANES + 2;
  if constexpr (SHARED_WEIGHTS && SHIFTED) {
    const int first = at.rank * WARPS * SLICE - VECTOR;
    for (int i = thread_index(); i < STEP; i += THREADS) {
      auto put = [&](Weights* to, const void* of) {
        Weights w;
        w.gather((const W*)of, first + i * VECTOR, HIDDEN);
#pragma unroll
        for (int word = 0; word < WORDS; word++) ((u32*)to)[word * STEP + i] = w.word[word];
      };
      if constexpr (GAMMA) put(shared_gamma, a.gamma);
      if constexpr (BETA) put(shared_beta, a.beta);
    }
    block_barrier();
  } else if constexpr (SHARED_WEIGHTS) {
#pragma unroll 4
    for (int k = 0; k < PACKS; k++) {
      if constexpr (GAMMA) shared_gamma[k * THREADS + thread_index()] = weights(a.gamma, k);
      if constexpr (BETA) shared_beta[k * THREADS + thread_index()] = weights(a.beta, k);
    }
  }
  auto kept = [&](const Weights* registers, const Weights* shared, const void* of, int k) {
    if constexpr (SHARED_WEIGHTS && SHIFTED) {
      const int whole = at.warp % WARPS * (SLICE / VECTOR) + at.lane + 1;
      const int bytes = (VECTOR - at.shift) % VECTOR * (int)sizeof(W);  // of the vector ahead
      const u32* const from = (const u32*)shared + whole - (at.shift > 0);
      u32 word[WORDS + 1];
#pragma unroll
      for (int i = 0; i < WORDS + (sizeof(W) < 4); i++) {
        const int which = bytes / 4 + i;
        word[i] = from[which % WORDS * STEP + which / WORDS + k * WARP_LANES];
      }
      Weights w;
#pragma unroll
      for (int i = 0; i < WORDS; i++)
        w.word[i] = sizeof(W) < 4 ? funnel(word[i], word[i + 1], bytes % 4 * 8) : word[i];
      return w;
    }
    if constexpr (SHARED_WEIGHTS) return shared[k * THREADS + thread_index()];
    if constexpr (!KEEP) return weights(of, k);
    if constexpr (PACKED) return opaque(registers[k], (u32)(at.row >> 31));
    return registers[k];
  };
  Results y_edges[2];
#if NORM_ADD
  Values sum_edges[2];
#endif
  // The row's pack k, with the residual added; stores the sum on the first reading.
  auto value = [&](int k, bool first) __attribute__((always_inline)) {
    Values x = in.template get<0>(k);
#if NORM_ADD
    Values residual = in.template get<1>(k);
    if constexpr (IN_PLACE && !SHIFTED) {
      if (!first) return residual;
    }
    float sum[VECTOR];
#pragma unroll
    for (int e = 0; e < VECTOR; e++) sum[e] = x.get(e) + residual.get(e);
    x.set(sum);
    if constexpr (IN_PLACE && SHIFTED) {
      // Edges are in registers, as they were. Word by word: a whole would go through scratch
      // memory.
      const bool is_sum = !first && at.whole(k);
#pragma unroll
      for (int i = 0; i < Values::WORDS; i++) x.word[i] = is_sum ? residual.word[i] : x.word[i];
    }
    if (first) in.put(k, x, (X*)a.sum + (i64)in.row * a.sum_stride, sum_edges);
#endif
    return x;
  };

  // add_rest of the row's edges, where its packs are held.
  auto add_rest_of_edges = [&](float from, float& squares, float& sum) {
    if constexpr (LAYER && SHIFTED)
      in.for_edges([&](int which, int column) {
        Values v;
#pragma unroll
        for (int i = 0; i < v.WORDS; i++)
#if NORM_ADD
          v.word[i] = which == 0 ? sum_edges[0].word[i] : sum_edges[1].word[i];
#else
          v.word[i] = which == 0 ? in.edge[0][0].word[i] : in.edge[0][1].word[i];
#endif
        add_rest<false>(v, column, from, squares, sum);
      });
  };
  auto write_sum_edges = [&] {
#if NORM_ADD
    in.write_edges(sum_edges, (X*)a.sum + (i64)in.row * a.sum_stride);
#endif
  };

  for (int i = 0; at.more(a.rows); i++, at.row = turns.row(i)) {
    at.shift = in.shift_of(at.row);
    in.open(at.row);
    const int packs = at.packs();
    Values x[HOLD ? PACKS : 1];
    Moments own{(float)at.count_of(at.warp), 0, 0};
    if constexpr (HOLD) {
#pragma unroll
      for (int k = 0; k < PACKS; k++) x[k] = value(k, true);
      write_sum_edges();
      in.close();
      Moments of_lane{LAYER ? (float)at.count() : 0.0f, 0, 0};
      const float inverse = of_lane.count > 0 ? inverse_approx(of_lane.count) : 0.0f;
      if constexpr (ROW_MEAN) {
        float sum = 0;
#pragma unroll
        for (int k = 0; k < PACKS; k++) {
          float part = 0;  // short chains of additions
#pragma unroll
          for (int e = 0; e < VECTOR; e++) part += x[k].get(e);
          sum += part;
        }
        of_lane.mean = warp_sum<WARP_LANES>(sum) / HIDDEN;
        if constexpr (PACKS * VECTOR >= 32) {  // else it would keep all of it converted
#pragma unroll
          for (int k = 0; k < PACKS; k++)
            x[k] = opaque(x[k], as_bits(of_lane.mean) & (u32)(at.row >> 31));
        }
      } else if constexpr (LAYER) {
        // Differences are taken from one of the lane's elements: those of equal ones are 0, and
        // what cancels in the squares is at most as many times the result as the lane has columns.
        const bool in_front = SHIFTED && at.column(0) < 0;
        of_lane.mean = origin(in_front ? x[0].get(VECTOR - 1) : x[0].get(0));
      }
      float rest = 0;  // of the sum, when the mean has been taken off
#pragma unroll
      for (int k = 0; k < PACKS; k++) {
        if (!LAYER || (at.has(k) && at.whole(k)))
          add_rest<true>(x[k], at.column(k), of_lane.mean, of_lane.squares, rest);
      }
      add_rest_of_edges(of_lane.mean, of_lane.squares, rest);
      if constexpr (ROW_MEAN) {
        own = {HIDDEN, of_lane.mean, warp_sum<WARP_LANES>(of_lane.squares)};
      } else if constexpr (LAYER) {
        const float correction = rest * inverse;
        of_lane.mean += correction;
        if (of_lane.squares < as_float(INFINITY_BITS))
          of_lane.squares = max_of(of_lane.squares - rest * correction, 0.0f);
        // The first lane may have a few columns of the row's first vector alone.
        own = of_lanes<WARP_LANES>(of_lane, own.count,
                                   own.count > 0 ? inverse_approx(own.count) : 0.0f,
                                   SHIFTED && at.warp == 0);
      } else {
        own.squares = warp_sum<WARP_LANES>(of_lane.squares);
      }
    } else {
      // Each lane merges vector after vector (Chan, Golub, LeVeque), as differences from its mean
      // so far, then the lanes merge.
      float mean = 0, squares = 0, count = 0;
#pragma unroll UNROLL
      for (int k = 0; k < packs && at.reads(k); k++) {
        Values v = value(k, true);
        float columns = VECTOR, each = 1.0f / VECTOR;  // of the row; their shares of the mean
        if (LAYER && !at.whole(k)) {
          columns = (float)(at.column(k) < 0 ? VECTOR + at.column(k) : HIDDEN - at.column(k));
          each = 1.0f / columns;
        }
        // The first pack's last element is of the row, the last pack's first one.
        if (LAYER && k == 0)
          mean = origin(SHIFTED && at.column(0) < 0 ? v.get(VECTOR - 1) : v.get(0));
        float off = 0, rest = 0;
        if constexpr (LAYER) {
#pragma unroll
          for (int e = 0; e < VECTOR; e++) off += at.inside(k, e) ? (v.get(e) - mean) * each : 0.0f;
        }
        add_rest<!LAYER || !SHIFTED>(v, at.column(k), mean + off, squares, rest);
        if constexpr (LAYER) {
          const float share = columns / (count + columns);
          squares += off * off * count * share;
          mean += off * share;
        }
        count += columns;
      }
      write_sum_edges();
      if constexpr (LAYER) {
        const float first = origin(shuffle_from(mean, 0, WARP_LANES));
        const float rest = warp_sum<WARP_LANES>((mean - first) * count);
        own.mean = own.count > 0 ? first + rest / own.count : 0.0f;
        squares += (mean - own.mean) * (mean - own.mean) * count;
      }
      own.squares = warp_sum<WARP_LANES>(squares);
    }
    const int first = ROW_SCALES ? 2 * i : i;  // of the row's exchanges
    exchange.publish(first, {own.mean, own.squares});
    Moments row = merged(exchange, at, first, own);
    if constexpr (IN_PLACE) warp_barrier();  // the sum is stored before it is read
    float rstd = inverse_sqrt(row.squares * (1.0f / HIDDEN) + a.epsilon);
    if (at.warp == 0 && at.lane == 0 && at.active(a.rows)) {
      if (LAYER && a.mean) a.mean[at.row] = row.mean;
      if (a.rstd) a.rstd[at.row] = rstd;
    }

    Y* const to = (Y*)a.y + (i64)at.row * a.y_stride;
    // Before any scale.
    auto normalise = [&](const Values& v, const Weights& g, const Weights& b,
                         int e) __attribute__((always_inline)) {
      float normed = (LAYER ? v.get(e) - row.mean : v.get(e)) * rstd;
      float factor = GAMMA ? g.get(e) : 1.0f;
      if constexpr (GAMMA && ZERO_CENTRED) factor += 1.0f;  // 0 would be added, too
      return BETA ? fused_multiply_add(normed, factor, b.get(e)) : normed * factor;
    };
    // A comparison with NaN is false: the largest is of numbers, as with fmax.
    auto larger = [&](float than, float y, int k, int e) __attribute__((always_inline)) {
      const float size = y < 0 ? -y : y;
      const bool counts = at.has(k) && at.inside(k, e) && at.active(a.rows);
      return counts && size > than ? size : than;
    };
    float row_factor = 1;  // ROW_SCALES
    auto finish = [&](int k, const Values& v, const Weights& g, const Weights& b) {
      float y[VECTOR];
#pragma unroll
      for (int e = 0; e < VECTOR; e++) {
        y[e] = normalise(v, g, b, e);
        if constexpr (FP8) {
          amax = larger(amax, y[e], k, e);
          y[e] *= scale;
        }
        if constexpr (ROW_SCALES) y[e] *= row_factor;
      }
      if constexpr (BLOCK_SCALES) {
        float largest = 0;
#pragma unroll
        for (int e = 0; e < VECTOR; e++) largest = larger(largest, y[e], k, e);
        const int exponent = block_exponent(warp_max<BLOCK / VECTOR>(largest));
#pragma unroll
        for (int e = 0; e < VECTOR; e++) y[e] *= block_factor(exponent);
        if (at.lane % (BLOCK / VECTOR) == 0 && at.has(k) && at.active(a.rows))
          ((u8*)a.amax)[(i64)at.row * (HIDDEN / BLOCK) + at.column(k) / BLOCK] = (u8)exponent;
      }
      Results out;
      out.set(y);
      in.put(k, out, to, y_edges);
    };
    auto row_value = [&](int k) {
      if constexpr (!HOLD) return value(k, false);
      // Depends on rstd, so that the conversions are not moved ahead of it.
      if constexpr (CONVERT_AGAIN) return opaque(x[k], as_bits(rstd) & (u32)(at.row >> 31));
      return x[k];
    };
    if constexpr (ROW_SCALES) {
      float largest = 0;
#pragma unroll UNROLL
      for (int n = 0; n < packs && at.reads(n); n++) {
        const int k = at.again(n, packs);
        const Values v = row_value(k);
        const Weights g = GAMMA ? kept(gamma, shared_gamma, a.gamma, k) : Weights{};
        const Weights b = BETA ? kept(beta, shared_beta, a.beta, k) : Weights{};
#pragma unroll
        for (int e = 0; e < VECTOR; e++) largest = larger(largest, normalise(v, g, b, e), k, e);
      }
      largest = warp_max<WARP_LANES>(largest);
      if constexpr (SLOTS > 1) {
        exchange.publish(first + 1, {largest, 0});
        const float zero[2] = {0, 0};
        const Gathered<2> all = exchange.gather(first + 1, zero);
#pragma unroll
        for (int j = 0; j < all.PER_LANE; j++) largest = max_of(largest, all.value[j][0]);
        largest = warp_max<Gathered<2>::LANES_OF>(largest);
      }
      const float row_scale = max_of(largest * (1 / LARGEST), LEAST_SCALE);
      row_factor = 1 / row_scale;
      if (at.warp == 0 && at.lane == 0 && at.active(a.rows)) a.amax[at.row] = row_scale;
    }
    const int of_lanes = BLOCK_SCALES ? PACKS : packs;  // those of a block take part in all
#pragma unroll UNROLL
    for (int n = 0; n < of_lanes && (BLOCK_SCALES || at.reads(n)); n++) {
      const int k = at.again(n, of_lanes);
      finish(k, row_value(k), GAMMA ? kept(gamma, shared_gamma, a.gamma, k) : Weights{},
             BETA ? kept(beta, shared_beta, a.beta, k) : Weights{});
    }
    in.write_edges(y_edges, to);
    if (!HOLD) in.close();
  }
  if (FP8 && a.amax) {
    amax = warp_max<WARP_SIZE>(amax);
    if (lane_index() == 0) atomic_max_of_positive(a.amax, amax);
  }
  turns.retire(a.groups);
}
