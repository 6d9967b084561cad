// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
// How a row is shared out among threads; the same for every kernel here.
//
// A row of ROW_HIDDEN columns belongs to ROW_LANES threads in each CTA of a cluster of ROW_CLUSTER.
// Every warp owns a contiguous slice of it.
#pragma once

#include "device.h"

constexpr int HIDDEN = ROW_HIDDEN;            // columns of a row
constexpr int THREADS = ROW_THREADS;          // of a CTA
constexpr int LANES = ROW_LANES;              // threads of a CTA that share a row
constexpr int CLUSTER = ROW_CLUSTER;          // CTAs that share a row
constexpr int VECTOR = ROW_VECTOR;            // columns that a thread takes at once
constexpr int STAGES = ROW_STAGES;            // slots of the ring, or 0
constexpr int CTAS_PER_SM = ROW_CTAS_PER_SM;  // that registers must allow
constexpr bool ON_DEMAND = ROW_ON_DEMAND;     // a cluster asks for its next row

// Where rows start at any element of a vector of memory, threads take such vectors or, with
// ROW_REALIGNED, vectors of the row, each made of two of memory: columns then keep their threads.
#ifndef ROW_REALIGNED
#define ROW_REALIGNED 0
#endif
constexpr bool SHIFTED = ROW_SHIFTED && !ROW_REALIGNED;
constexpr bool REALIGNED = ROW_SHIFTED && ROW_REALIGNED;

constexpr int ROWS = THREADS / LANES;  // rows that a CTA has in hand
constexpr int WARP_LANES = least(LANES, WARP_SIZE);
constexpr int WARPS = LANES / WARP_LANES;                  // of a CTA, per row
constexpr int SPAN = HIDDEN + (SHIFTED ? VECTOR - 1 : 0);  // columns of the vectors of a row
constexpr int PACKS = divided_up(SPAN, CLUSTER * LANES * VECTOR);
constexpr int PACK_STEP = WARP_LANES * VECTOR;  // columns from one pack of a thread to the next
constexpr int SLICE = PACKS * PACK_STEP;        // columns of one warp
constexpr int SLOTS = WARPS * CLUSTER;          // slices of a row
constexpr bool RAGGED = SHIFTED || SLICE * SLOTS != HIDDEN;
constexpr bool RESIDENT = PACKS * VECTOR <= 64;  // registers can hold a row
constexpr bool HOLD = ROW_HOLD && RESIDENT;      // and do; else it is read again where it came from
constexpr int UNROLL = RESIDENT ? PACKS : least(PACKS, 4);  // loads on their way at a time

static_assert(ROW_SHIFTED ? HIDDEN > VECTOR : HIDDEN > 0 && HIDDEN % VECTOR == 0,
              "a row is a whole number of vectors, or begins and ends in two");
static_assert((LANES < WARP_SIZE ? WARP_SIZE % LANES : LANES % WARP_SIZE) == 0,
              "lanes share a warp evenly, or are whole warps");
static_assert(THREADS % LANES == 0, "a CTA has whole rows in hand");
static_assert(THREADS % WARP_SIZE == 0, "threads: whole warps");
static_assert(WARPS == 1 || ROWS <= 15, "a block has 15 barriers beyond its own");
static_assert(CLUSTER == 1 || ROWS == 1, "a cluster has one row in hand");
static_assert(STAGES == 0 || LANES >= WARP_SIZE, "a ring feeds whole warps");
static_assert(!ON_DEMAND || (ROWS == 1 && SLOTS > 1), "who asks for rows has one in hand");
#if !HAS_BULK_COPY && (defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__))
static_assert(STAGES == 0 && CLUSTER == 1 && !ON_DEMAND,
              "rings, clusters and rows on demand need compute capability 9.0");
#endif

#if ROW_CLUSTER > 1
#define ROW_KERNEL                                                  \
  extern "C" __global__ LAUNCH_BOUNDS(ROW_THREADS, ROW_CTAS_PER_SM) \
      __cluster_dims__(ROW_CLUSTER, 1, 1) void
#else
#define ROW_KERNEL extern "C" __global__ LAUNCH_BOUNDS(ROW_THREADS, ROW_CTAS_PER_SM) void
#endif

/// Which part of which rows this thread has.
struct Position {
  int lane;       // among the lanes of its warp that share its row
  int warp;       // slice of the row
  int row_slot;   // row of the CTA
  int rank;       // CTA of the cluster
  int group;      // cluster of the grid
  int row, step;  // first row and distance to the next
  int shift = 0;  // columns by which the row's first vector starts ahead of it

  /// `blocks` of the grid come before its clusters.
  DEVICE explicit Position(int groups, int blocks = 0) {
    int thread = thread_index();
    lane = thread % WARP_LANES;
    row_slot = thread / LANES;
    rank = 0;
#if HAS_BULK_COPY
    if constexpr (CLUSTER > 1) rank = cluster_rank();
#endif
    warp = rank * WARPS + thread % LANES / WARP_LANES;
    group = (block_index() - blocks) / CLUSTER;
    row = group * ROWS + row_slot;
    step = groups * ROWS;
  }
  /// Rows left for this thread's warp? Its lanes may have several rows, the last past the end.
  DEVICE bool more(int rows) const {
    if constexpr (LANES >= WARP_SIZE) return row < rows;
    return row - row_slot % (WARP_SIZE / WARP_LANES) < rows;
  }
  DEVICE bool active(int rows) const { return LANES >= WARP_SIZE || row < rows; }
  /// First column of a pack; of the row's first pack below 0 where the row is shifted.
  DEVICE int column(int pack) const {
    return warp * SLICE + (pack * WARP_LANES + lane) * VECTOR - (SHIFTED ? shift : 0);
  }
  /// The same for an address: all packs have one, and distances from it that are constants.
  DEVICE i64 place(int pack) const { return (i64)column(0) + pack * PACK_STEP; }
  DEVICE bool has(int pack) const { return !RAGGED || column(pack) < HIDDEN; }
  /// Packs of a row that is read again: a loop over them asks nothing of each.
  DEVICE int packs() const {
    if constexpr (RESIDENT || !RAGGED) return PACKS;
    const int left = most(0, HIDDEN - column(0));
    return least(PACKS, left / PACK_STEP + (left % PACK_STEP > 0));
  }
  DEVICE bool reads(int pack) const { return !RESIDENT || has(pack); }
  /// Pack k of the second reading: backwards, as the last ones may still be in L2.
  static DEVICE int again(int k, int packs) { return RESIDENT ? k : packs - 1 - k; }
  /// Whether all of a pack that the row has is of the row.
  DEVICE bool whole(int pack) const {
    return !SHIFTED || (column(pack) >= 0 && column(pack) + VECTOR <= HIDDEN);
  }
  /// Whether element `e` of a pack that the row has is of the row.
  DEVICE bool inside(int pack, int e) const {
    return !SHIFTED || (u32)(column(pack) + e) < (u32)HIDDEN;
  }
  /// Columns of this thread.
  DEVICE int count() const {
    if constexpr (!RAGGED) return PACKS * VECTOR;
    const int first = column(0), left = most(0, HIDDEN - first), packs = left / PACK_STEP;
    const int columns =
        packs < PACKS ? packs * VECTOR + least(VECTOR, left % PACK_STEP) : PACKS * VECTOR;
    return SHIFTED && first < 0 ? columns + first : columns;
  }
  /// Columns of slice `warp`.
  DEVICE int count_of(int warp) const {
    if constexpr (!RAGGED) return SLICE;
    if constexpr (!SHIFTED) return columns_of(warp);
    return columns_of(warp, HIDDEN + shift) - (warp == 0 ? shift : 0);
  }
  /// Columns of slice `warp`, or of the first `most` from its start on, among the first `limit` of
  /// the vectors of the row.
  static DEVICE int columns_of(int warp, int limit = HIDDEN, int most = SLICE) {
    int left = limit - warp * SLICE;
    return left < 0 ? 0 : left < most ? left : most;
  }
};
