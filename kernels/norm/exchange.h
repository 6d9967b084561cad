// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
// Partial results of the slices of a row, sent to all of them.
#pragma once

#include "turns.h"

/// Shared memory of an Exchange of VALUES floats per slice.
template <int VALUES>
struct alignas(16) ExchangeStorage {
  static constexpr int BUFFERS = 4;  // a CTA of a cluster can be two rows ahead of another
  float slot[SLOTS > 1 ? BUFFERS : 1][ROWS][SLOTS][VALUES];
  u64 barrier[BUFFERS];
};

/// The least power of two that is not below `count`, up to the lanes of a warp.
CONSTANT int lanes_for(int count) {
  int lanes = 1;
  while (lanes < least(count, WARP_SIZE)) lanes *= 2;
  return lanes;
}

/// What the lanes of a warp got from the slices of a row: lane j has slices j, j + LANES_OF, ...
/// Each group of LANES_OF lanes has all, so that a few steps add them up.
template <int VALUES>
struct Gathered {
  static constexpr int LANES_OF = lanes_for(SLOTS);
  static constexpr int PER_LANE = divided_up(SLOTS, LANES_OF);
  float value[PER_LANE][VALUES];
  /// Slice of entry i on this lane; the row has none if it is SLOTS or more.
  static DEVICE int slice(int i) { return lane_index() % LANES_OF + i * LANES_OF; }
};

/// All-gather of VALUES floats per slice among the slices of a row. Call publish(i) and then
/// gather(i) for i = 0, 1, ...; publish(i + 1) may come before gather(i).
template <int VALUES>
struct Exchange {
  ExchangeStorage<VALUES>& shared;
  const Position& position;

  DEVICE Exchange(ExchangeStorage<VALUES>& storage, const Position& at)
      : shared(storage), position(at) {
#if HAS_BULK_COPY
    if constexpr (CLUSTER > 1) {
      if (thread_index() == 0) {
        for (int i = 0; i < shared.BUFFERS; i++)
          barrier_init(shared_address(&shared.barrier[i]), 1);
        barrier_init_fence();
      }
      cluster_arrive();
    } else if constexpr (ON_DEMAND) {
      block_barrier();
    }
#endif
  }

  /// `value` is the same on all lanes of the warp.
  DEVICE void publish(int i, const float (&value)[VALUES]) {
    int buffer = i % shared.BUFFERS;
    if constexpr (SLOTS == 1) return;
    if constexpr (!HOLD) meet(i);
    float* slot = shared.slot[buffer][position.row_slot][position.warp];
#if HAS_BULK_COPY
    if constexpr (CLUSTER > 1) {
      u32 barrier = shared_address(&shared.barrier[buffer]);
      if (thread_index() == 0) barrier_expect(barrier, SLOTS * VALUES * 4);
      if (position.lane < CLUSTER) {
        u32 to = address_in(shared_address(slot), position.lane);
        u32 done = address_in(barrier, position.lane);
        if constexpr (VALUES == 1) send(to, value[0], done);
        if constexpr (VALUES == 2) send(to, value[0], value[1], done);
      }
      return;
    }
#endif
    if (position.lane == 0) {
#pragma unroll
      for (int v = 0; v < VALUES; v++) slot[v] = value[v];
    }
  }

  /// `neutral` is what lanes without a slice get.
  DEVICE Gathered<VALUES> gather(int i, const float (&neutral)[VALUES]) {
    int buffer = i % shared.BUFFERS;
#if HAS_BULK_COPY
    if constexpr (CLUSTER > 1) {
      barrier_wait(shared_address(&shared.barrier[buffer]), i / shared.BUFFERS & 1);
    }
#endif
    if constexpr (CLUSTER == 1) group_barrier<LANES, THREADS>(position.row_slot);
    Gathered<VALUES> result;
#pragma unroll
    for (int j = 0; j < result.PER_LANE; j++) {
      int slice = result.slice(j);
#pragma unroll
      for (int v = 0; v < VALUES; v++)
        result.value[j][v] =
            slice < SLOTS ? shared.slot[buffer][position.row_slot][slice][v] : neutral[v];
    }
    return result;
  }

  /// Sums over the row of what publish(i) gave; `own` is that of this warp.
  DEVICE void sum(int i, const float (&own)[VALUES], float (&total)[VALUES]) {
    if constexpr (SLOTS == 1) {
#pragma unroll
      for (int v = 0; v < VALUES; v++) total[v] = own[v];
    } else {
      constexpr float ZERO[VALUES] = {};
      Gathered<VALUES> all = gather(i, ZERO);
#pragma unroll
      for (int v = 0; v < VALUES; v++) {
        total[v] = 0;
#pragma unroll
        for (int j = 0; j < all.PER_LANE; j++) total[v] += all.value[j][v];
        total[v] = warp_sum<Gathered<VALUES>::LANES_OF>(total[v]);
      }
    }
  }
};
