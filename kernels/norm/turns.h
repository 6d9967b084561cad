// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
// Which rows a cluster takes: in advance, or on demand.
#pragma once

#include "arguments.h"
#include "layout.h"

using namespace row_kernels;

/// A power of two, for cheap remainders: a turn's entry outlives the turns that may be under way.
CONSTANT int turn_entries() {
  int entries = 4;
  while (entries < STAGES + 3) entries *= 2;
  return entries;
}
struct TurnStorage {
  static constexpr int ENTRIES = ON_DEMAND ? turn_entries() : 1;
  u64 barrier[ENTRIES];
  u32 row[ENTRIES];
};

/// Which rows a cluster takes, one a turn. In advance: every `step`-th row. ON_DEMAND: its first
/// AHEAD turns are dealt like that, and for the others its first thread counts rows off a counter
/// that all clusters share, AHEAD turns before the row is read, and tells all its CTAs.
struct Turns {
  static constexpr int AHEAD = STAGES + 1;
  TurnStorage& shared;
  const Position& position;
  TurnCounter* counter;
  int rows, first;
  int newest;       // row of the latest turn that was dealt (on the warp that deals)
  u32 claimed = 0;  // what the counter gave for the turn after it (on the thread that deals)

  DEVICE Turns(TurnStorage& storage, const Position& at, int row_count, TurnCounter* from)
      : shared(storage), position(at), counter(from), rows(row_count), first(at.row) {
    newest = first + STAGES * at.step;
#if HAS_BULK_COPY
    if constexpr (ON_DEMAND) {
      if (thread_index() == 0) {
        for (int i = 0; i < TurnStorage::ENTRIES; i++)
          barrier_init(shared_address(&shared.barrier[i]), 1);
        if (position.rank == 0) claimed = count_up(&counter->dealt);
      }
    }
#endif
  }

  /// Row of a turn, which is the first one or follows a turn with a row.
  DEVICE int row(int turn) const {
#if HAS_BULK_COPY
    if constexpr (ON_DEMAND) {
      if (turn >= AHEAD) {
        int entry = (turn - AHEAD) % TurnStorage::ENTRIES;
        barrier_wait(shared_address(&shared.barrier[entry]),
                     (turn - AHEAD) / TurnStorage::ENTRIES & 1);
        return (int)*(volatile u32*)&shared.row[entry];
      }
    }
#endif
    return first + turn * position.step;
  }

  /// Once in each turn, by every thread: deals the turn that is AHEAD.
  DEVICE void deal(int turn) {
#if HAS_BULK_COPY
    if constexpr (ON_DEMAND) {
      if (thread_index() >= WARP_SIZE) return;
      int entry = turn % TurnStorage::ENTRIES;  // of turn + AHEAD
      u32 barrier = shared_address(&shared.barrier[entry]);
      if (CLUSTER > 1 && position.lane == 0) barrier_expect(barrier, 4);
      if (position.rank > 0 || newest >= rows) return;
      newest = AHEAD * position.step + (int)as_bits(shuffle_from(as_float(claimed), 0, WARP_SIZE));
      if (CLUSTER == 1 && position.lane == 0) {
        shared.row[entry] = (u32)newest;
        barrier_arrive(barrier);
      }
      if (CLUSTER > 1 && position.lane < CLUSTER) {
        u32 to = address_in(shared_address(&shared.row[entry]), position.lane);
        send(to, as_float((u32)newest), address_in(barrier, position.lane));
      }
      if (position.lane == 0 && newest < rows) claimed = count_up(&counter->dealt);
    }
#endif
  }

  /// At the end: the last cluster to come leaves zeros behind.
  DEVICE void retire(int groups) {
#if HAS_BULK_COPY
    if constexpr (ON_DEMAND) {
      if (thread_index() > 0 || position.rank > 0) return;
      if (count_up_in_order(&counter->retired) == (u32)groups - 1) *counter = TurnCounter{0, 0};
    }
#endif
  }
};

/// In turn 0, before anything is sent to another CTA: all CTAs of the cluster are there. Their
/// Exchange says that they are.
DEVICE void meet(int turn) {
#if HAS_BULK_COPY
  if constexpr (CLUSTER > 1) {
    if (turn == 0) cluster_wait();
  }
#endif
}
