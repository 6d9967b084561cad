// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
// How rows are shared out among threads, fetched and reduced; the same for every kernel here.
//
// A row of ROW_HIDDEN columns belongs to ROW_LANES threads in each CTA of a cluster of ROW_CLUSTER.
// Every warp owns a contiguous slice of the row and keeps it in registers (HOLD) or reads it again.
// Rows come in through a ring in shared memory of ROW_STAGES slots, which each warp fills and
// empties for itself by bulk copies, so that no barrier of the block guards data; with 0 stages,
// loads go straight to registers. Partial results of warps meet in an Exchange.
#pragma once

#include "device.h"

constexpr int HIDDEN = ROW_HIDDEN;            // columns of a row
constexpr int THREADS = ROW_THREADS;          // of a CTA
constexpr int LANES = ROW_LANES;              // threads of a CTA that share a row
constexpr int CLUSTER = ROW_CLUSTER;          // CTAs that share a row
constexpr int VECTOR = ROW_VECTOR;            // columns that a thread takes at once
constexpr int STAGES = ROW_STAGES;            // slots of the ring, or 0
constexpr int CTAS_PER_SM = ROW_CTAS_PER_SM;  // that registers must allow

constexpr int ROWS = THREADS / LANES;  // rows that a CTA has in hand
constexpr int WARP_LANES = least(LANES, WARP_SIZE);
constexpr int WARPS = LANES / WARP_LANES;  // of a CTA, per row
constexpr int PACKS = divided_up(HIDDEN, CLUSTER * LANES * VECTOR);
constexpr int SLICE = PACKS * WARP_LANES * VECTOR;  // columns of one warp
constexpr int SLOTS = WARPS * CLUSTER;              // slices of a row
constexpr bool RAGGED = SLICE * SLOTS != HIDDEN;
constexpr bool RESIDENT = PACKS * VECTOR <= 64;  // registers can hold a row
constexpr bool HOLD = ROW_HOLD && RESIDENT;      // and do; else it is read again where it came from
constexpr int UNROLL = RESIDENT ? PACKS : 1;

static_assert(HIDDEN > 0 && HIDDEN % VECTOR == 0, "a row is a whole number of vectors");
static_assert((LANES & (LANES - 1)) == 0 && THREADS % LANES == 0, "lanes: a power of two");
static_assert(THREADS % WARP_SIZE == 0, "threads: whole warps");
static_assert(WARPS == 1 || ROWS <= 15, "a block has 15 barriers beyond its own");
static_assert(CLUSTER == 1 || ROWS == 1, "a cluster has one row in hand");
static_assert(STAGES == 0 || LANES >= WARP_SIZE, "a ring feeds whole warps");
#if !HAS_BULK_COPY && (defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__))
static_assert(STAGES == 0 && CLUSTER == 1, "rings and clusters need compute capability 9.0");
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

  DEVICE explicit Position(int groups) {
    int thread = thread_index();
    lane = thread % WARP_LANES;
    row_slot = thread / LANES;
    rank = 0;
#if HAS_BULK_COPY
    if constexpr (CLUSTER > 1) rank = cluster_rank();
#endif
    warp = rank * WARPS + thread % LANES / WARP_LANES;
    group = block_index() / CLUSTER;
    row = group * ROWS + row_slot;
    step = groups * ROWS;
  }
  /// Rows left for this thread's warp? Its lanes may have several rows, the last past the end.
  DEVICE bool more(int rows) const {
    if constexpr (LANES >= WARP_SIZE) return row < rows;
    return row - row_slot % (WARP_SIZE / WARP_LANES) < rows;
  }
  DEVICE bool active(int rows) const { return LANES >= WARP_SIZE || row < rows; }
  DEVICE int column(int pack) const { return warp * SLICE + (pack * WARP_LANES + lane) * VECTOR; }
  DEVICE bool has(int pack) const { return !RAGGED || column(pack) < HIDDEN; }
  /// Columns of slice `warp` that the row has.
  static DEVICE int columns_of(int warp) {
    if constexpr (!RAGGED) return SLICE;
    int left = HIDDEN - warp * SLICE;
    return left < 0 ? 0 : left < SLICE ? left : SLICE;
  }
};

struct WholeRow {
  DEVICE int operator()(int) const { return HIDDEN; }
};

/// A matrix, rows `stride` elements apart; at most 2^31 - 2^20 rows, so that a row's number and the
/// next ones are ints.
struct Matrix {
  const void* data;
  i64 stride;
};

template <int I, class First, class... Rest>
struct Nth : Nth<I - 1, Rest...> {};
template <class First, class... Rest>
struct Nth<0, First, Rest...> {
  using type = First;
};

/// The matrices that a kernel reads row by row, elements of types T. Limit gives the columns of a
/// row that are wanted; what lies beyond reads as zero.
template <class Limit, class... T>
struct Input {
  static constexpr int COUNT = sizeof...(T);
  static constexpr int WARP_BYTES = SLICE * ((int)sizeof(T) + ...);  // per slot
  static constexpr int BYTES = STAGES * (THREADS / WARP_SIZE) * WARP_BYTES;
  static constexpr int BARRIERS = most(1, STAGES*(THREADS / WARP_SIZE));

  const Position& position;
  int rows;
  Limit limit;
  Matrix matrix[COUNT];
  int row;
  int wanted;  // columns of this warp's slice in the current row
#if HAS_BULK_COPY
  u32 ring, barrier;
  const char* slots;
  int slot = 0;
  u32 phases = 0;  // a bit for each slot
#endif

  template <int I>
  static CONSTANT int size() {
    return (int)sizeof(typename Nth<I, T...>::type);
  }
  template <int I>
  static CONSTANT int offset() {
    if constexpr (I == 0) {
      return 0;
    } else {
      return offset<I - 1>() + SLICE * size<I - 1>();
    }
  }

  template <class... M>
  DEVICE Input(const Position& at, int row_count, Limit columns, char* shared, u64* barriers,
               M... matrices)
      : position(at), rows(row_count), limit(columns), matrix{matrices...}, row(0), wanted(0) {
#if HAS_BULK_COPY
    if constexpr (STAGES > 0) {
      int warp = thread_index() / WARP_SIZE;
      slots = shared + warp * (STAGES * WARP_BYTES);
      ring = shared_address(slots);
      barrier = shared_address(barriers + warp * STAGES);
      if (position.lane == 0) {
        for (int i = 0; i < STAGES; i++) barrier_init(barrier + 8 * i, 1);
        barrier_init_fence();
      }
      warp_barrier();
      for (int i = 0; i < STAGES; i++) fetch(position.row + i * position.step, i);
    }
#endif
  }

  DEVICE int columns_wanted(int of) const {
    int left = limit(of) - position.warp * SLICE;
    left = left < 0 ? 0 : left < SLICE ? left : SLICE;
    return (left + VECTOR - 1) / VECTOR * VECTOR;
  }

#if HAS_BULK_COPY
  template <int I>
  DEVICE void copy(int from, int to, int columns) {
    const char* source = (const char*)matrix[I].data +
                         ((i64)from * matrix[I].stride + position.warp * SLICE) * size<I>();
    bulk_copy(ring + to * WARP_BYTES + offset<I>(), source, columns * size<I>(), barrier + 8 * to);
    if constexpr (I + 1 < COUNT) copy<I + 1>(from, to, columns);
  }
  DEVICE void fetch(int from, int to) {
    if (position.lane != 0 || from >= rows) return;
    int columns = columns_wanted(from);
    if (columns == 0) return;
    barrier_expect(barrier + 8 * to, columns * ((int)sizeof(T) + ...));
    copy<0>(from, to, columns);
  }
#endif

  /// Row `which` is read next: rows come in the order of the position.
  DEVICE void open(int which) {
    row = which;
    wanted = position.active(rows) ? columns_wanted(row) : 0;
#if HAS_BULK_COPY
    if constexpr (STAGES > 0) {
      if (wanted > 0) barrier_wait(barrier + 8 * slot, phases >> slot & 1);
    }
#endif
  }

  /// Columns of this warp's slice that the row has, not rounded up to whole vectors.
  DEVICE int wanted_exactly() const {
    int left = limit(row) - position.warp * SLICE;
    return left < 0 ? 0 : left < SLICE ? left : SLICE;
  }

  /// Pack `k` of matrix I; T of 16 bits has the packs of 16 bytes that the ring is laid out for.
  template <int I>
  DEVICE auto get(int k) const {
    Pack<typename Nth<I, T...>::type, VECTOR> pack;
    int column = (k * WARP_LANES + position.lane) * VECTOR;
    if ((RAGGED || !same<Limit, WholeRow> || LANES < WARP_SIZE) && column >= wanted) {
      pack.clear();
      return pack;
    }
#if HAS_BULK_COPY
    if constexpr (STAGES > 0) {
      pack = *(const decltype(pack)*)(slots + slot * WARP_BYTES + offset<I>() + column * size<I>());
      return pack;
    }
#endif
    const char* from = (const char*)matrix[I].data;
    return *(const decltype(pack)*)(from +
                                    ((i64)row * matrix[I].stride + position.warp * SLICE + column) *
                                        size<I>());
  }

  /// The row is in registers: its slot takes the row that is STAGES further on.
  DEVICE void close() {
#if HAS_BULK_COPY
    if constexpr (STAGES > 0) {
      reads_before_bulk_copies();
      warp_barrier();
      fetch(row + STAGES * position.step, slot);
      if (wanted > 0) phases ^= 1u << slot;
      if (++slot == STAGES) slot = 0;
    }
#endif
  }
};

/// Shared memory of an Exchange of VALUES floats per slice.
template <int VALUES>
struct alignas(16) ExchangeStorage {
  static constexpr int BUFFERS = 4;  // a CTA of a cluster can be two rows ahead of another
  float slot[SLOTS > 1 ? BUFFERS : 1][ROWS][SLOTS][VALUES];
  u64 barrier[BUFFERS];
};

/// What the lanes of a warp got from the slices of a row: lane j has slices j, j + WARP_SIZE, ...
template <int VALUES>
struct Gathered {
  static constexpr int PER_LANE = divided_up(SLOTS, WARP_SIZE);
  float value[PER_LANE][VALUES];
  /// Slice of entry i on this lane; the row has none if it is SLOTS or more.
  static DEVICE int slice(int i) { return lane_index() + i * WARP_SIZE; }
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
      cluster_barrier();
    }
#endif
  }

  /// `value` is the same on all lanes of the warp.
  DEVICE void publish(int i, const float (&value)[VALUES]) {
    int buffer = i % shared.BUFFERS;
    if constexpr (SLOTS == 1) return;
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
        total[v] = warp_sum<WARP_SIZE>(total[v]);
      }
    }
  }

  /// Before a CTA ends: no other of its cluster sends to it or waits for it any more.
  DEVICE void finish() {
#if HAS_BULK_COPY
    if constexpr (CLUSTER > 1) cluster_barrier();
#endif
  }
};

/// One float per row (a mean, say), fetched well ahead of its use: a batch for the lanes' next rows
/// at a time, the batch after it under way.
struct RowScalars {
  const float* data;
  int rows, row, step;
  float now, next;
  int used = 0, lane;

  DEVICE RowScalars(const float* from, int row_count, const Position& at)
      : data(from), rows(row_count), row(at.row), step(at.step), lane(at.lane) {
    now = fetch();
    next = fetch();
  }
  DEVICE float fetch() {
    int mine = row + lane * step;
    row += WARP_LANES * step;
    return data && mine < rows ? data[mine] : 0.0f;
  }
  DEVICE float take() {
    if (used == WARP_LANES) {
      now = next;
      next = fetch();
      used = 0;
    }
    return shuffle_from(now, used++, WARP_LANES);
  }
};
