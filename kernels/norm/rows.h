// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
// How rows are fetched: through a ring in shared memory of ROW_STAGES slots, which each warp fills
// and empties for itself by bulk copies, so that no barrier of the block guards data; with 0
// stages, loads go straight to registers. A warp keeps its slice in registers (HOLD) or reads it
// again.
//
// Where rows are SHIFTED, vectors are those of memory: a row's first and last one can be its edges,
// of which it has only some elements; the others read as zero. Edges are written by element, by the
// lanes that have them. They are read so, too, where they reach out of a matrix: ahead of its first
// row and behind its last one. Where rows are REALIGNED, a slot has the vectors of memory that the
// slice's columns lie in, one more than they fill.
#pragma once

#include "exchange.h"
#include "turns.h"

struct WholeRow {
  DEVICE int operator()(int) const { return HIDDEN; }
};

/// Vectors of T that are made of two are so by either(): faster where there is a ring, but not of
/// float32 rows that are read twice.
template <class T>
constexpr bool PERMUTED = STAGES > 0 && (HOLD || sizeof(T) < 4);

template <int I, class First, class... Rest>
struct Nth : Nth<I - 1, Rest...> {};
template <class First, class... Rest>
struct Nth<0, First, Rest...> {
  using type = First;
};

/// For a kernel that reads `rows` rows of T and writes as much. Beyond `few` bytes what is read
/// leaves L2 last and what is written early. Of 128 MiB, several times L2, and less, a forward
/// kernel's output is what should stay.
template <class T>
DEVICE L2Policy keep_reads_if_many(int rows, int few = 1 << 27) {
  return evict_last((i64)rows * HIDDEN * (int)sizeof(T) > few);
}
/// Of a backward kernel: L2 holds all that so few bytes are read and written beside.
__device__ constexpr int FEW_BACKWARD = 1 << 24;

/// The matrices that a kernel reads row by row, elements of types T. Limit gives the columns of a
/// row that are wanted; what lies beyond reads as zero. EDGES_APART: all edges are read by element,
/// while the rest of the row is on its way, which is faster where a CTA has one row alone.
template <class Limit, bool EDGES_APART, class... T>
struct Input {
  static constexpr int COUNT = sizeof...(T);
  static constexpr int COLUMNS = SLICE + (REALIGNED ? VECTOR : 0);     // of a warp, per slot
  static constexpr int WARP_BYTES = COLUMNS * ((int)sizeof(T) + ...);  // likewise
  static constexpr int BYTES = STAGES * (THREADS / WARP_SIZE) * WARP_BYTES;
  static constexpr int BARRIERS = most(1, STAGES*(THREADS / WARP_SIZE));

  const Position& position;
  Turns& turns;
  int rows;
  Limit limit;
  L2Policy policy;
  Matrix matrix[COUNT];
  int row, turn;
  int shift = 0;                // REALIGNED: shift_of(row)
  int ahead;                    // row of the turn that was fetched last, on the lane that fetches
  int wanted;                   // columns of this warp's slice in the current row
  bool copied;                  // a bulk copy has brought some of them
  bool head_apart, tail_apart;  // edges of the current row that are read by element
  Pack<typename Nth<0, T...>::type, VECTOR> edge[SHIFTED ? COUNT : 1][2];  // first and last
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
      return offset<I - 1>() + COLUMNS * size<I - 1>();
    }
  }

  template <class... M>
  DEVICE Input(const Position& at, Turns& rows_of, Limit columns, L2Policy of_reads, char* shared,
               u64* barriers, M... matrices)
      : position(at),
        turns(rows_of),
        rows(rows_of.rows),
        limit(columns),
        policy(of_reads),
        matrix{matrices...},
        row(0),
        turn(0),
        wanted(0),
        copied(false) {
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
      for (int i = 0; i < STAGES; i++) fetch(ahead = position.row + i * position.step, i);
    }
#endif
  }

  /// Of row `of`; the same in all matrices.
  DEVICE int shift_of(int of) const {
    if constexpr (!SHIFTED && !REALIGNED) return 0;
    return (int)((u64)matrix[0].data / size<0>() + (u64)of * (u64)matrix[0].stride) & (VECTOR - 1);
  }
  /// Columns of this warp's slot that are wanted of row `of`, in whole vectors.
  DEVICE int columns_wanted(int of) const {
    int left = position.columns_of(position.warp, limit(of) + shift_of(of), COLUMNS);
    return (left + VECTOR - 1) / VECTOR * VECTOR;
  }
  /// Whether the first vector of row `of` begins ahead of a matrix.
  template <int I = 0>
  DEVICE bool head_leaves(int of) const {
    if constexpr (EDGES_APART) return true;
    if ((i64)of * matrix[I].stride < shift_of(of)) return true;
    if constexpr (I + 1 < COUNT) return head_leaves<I + 1>(of);
    return false;
  }
  /// Whether the last one ends behind a matrix.
  template <int I = 0>
  DEVICE bool tail_leaves(int of) const {
    if constexpr (EDGES_APART) return true;
    const int shift = shift_of(of);
    const int behind = (HIDDEN + shift + VECTOR - 1) / VECTOR * VECTOR - HIDDEN - shift;
    if ((i64)(rows - 1 - of) * matrix[I].stride < behind) return true;
    if constexpr (I + 1 < COUNT) return tail_leaves<I + 1>(of);
    return false;
  }
  /// Those of them that are not read by element: from the first one to the end.
  struct Copied {
    int first, end;
  };
  DEVICE Copied columns_copied(int of) const {
    const int columns = columns_wanted(of);
    if constexpr (!SHIFTED && !REALIGNED) return {0, columns};
    const int whole = (HIDDEN + shift_of(of)) / VECTOR * VECTOR - position.warp * SLICE;
    return {position.warp == 0 && shift_of(of) > 0 && head_leaves(of) ? VECTOR : 0,
            tail_leaves(of) ? least(columns, whole) : columns};
  }

#if HAS_BULK_COPY
  template <int I>
  DEVICE void copy(int from, int to, const Copied& columns) {
    const int first = position.warp * SLICE + columns.first - shift_of(from);
    const char* source =
        (const char*)matrix[I].data + ((i64)from * matrix[I].stride + first) * size<I>();
    bulk_copy(ring + to * WARP_BYTES + offset<I>() + columns.first * size<I>(), source,
              (columns.end - columns.first) * size<I>(), barrier + 8 * to, policy);
    if constexpr (I + 1 < COUNT) copy<I + 1>(from, to, columns);
  }
  DEVICE void fetch(int from, int to) {
    if (position.lane != 0 || from >= rows) return;
    const Copied columns = columns_copied(from);
    if (columns.end <= columns.first) return;
    barrier_expect(barrier + 8 * to, (columns.end - columns.first) * ((int)sizeof(T) + ...));
    copy<0>(from, to, columns);
  }
#endif

  /// This lane's edges of the current row: work(which of the two, column of its first element).
  template <class Work>
  DEVICE void for_edges(Work work) const {
    if (!position.active(rows)) return;
    const int last = (HIDDEN + position.shift) / VECTOR * VECTOR;  // and columns before the row
    if (position.shift > 0 && position.column(0) == -position.shift) work(0, -position.shift);
    if (last < HIDDEN + position.shift && last / SLICE == position.warp &&
        last % SLICE / VECTOR % WARP_LANES == position.lane)
      work(1, last - position.shift);
  }
  /// Those that need not be read by element.
  template <int I>
  DEVICE void take_edges() {
    for_edges([&](int which, int column) {
      if (which == 0 ? head_apart : tail_apart) return;
      using P = Pack<typename Nth<I, T...>::type, VECTOR>;
      P pack;
#if HAS_BULK_COPY
      if constexpr (STAGES > 0) {
        const int of_slice = column + position.shift - position.warp * SLICE;
        pack = *(const P*)(slots + slot * WARP_BYTES + offset<I>() + of_slice * size<I>());
      }
#endif
      if constexpr (STAGES == 0)
        pack = load<P>(
            (const char*)matrix[I].data + ((i64)row * matrix[I].stride + column) * size<I>(),
            policy);
      // Not edge[I][which]: that would go through local memory.
      if (which == 0) edge[I][0] = pack, edge[I][0].keep(-column, VECTOR);
      if (which == 1) edge[I][1] = pack, edge[I][1].keep(0, HIDDEN - column);
    });
    if constexpr (I + 1 < COUNT) take_edges<I + 1>();
  }
  template <int I>
  DEVICE void read_edges() {
    using Type = typename Nth<I, T...>::type;
    const Type* from = (const Type*)matrix[I].data + (i64)row * matrix[I].stride;
    for_edges([&](int which, int column) {
      if (which == 0 && head_apart) edge[I][0].read(from + column, -column, VECTOR);
      if (which == 1 && tail_apart) edge[I][1].read(from + column, 0, HIDDEN - column);
    });
    if constexpr (I + 1 < COUNT) read_edges<I + 1>();
  }
  /// REALIGNED: brings the elements of the current row's edges, of which some leave a matrix, to
  /// their places in the slot.
  template <int I>
  DEVICE void fill_edges(bool head, bool tail) {
#if HAS_BULK_COPY
    using Type = typename Nth<I, T...>::type;
    Type* const to = (Type*)(slots + slot * WARP_BYTES + offset<I>());
    const Type* const from = (const Type*)matrix[I].data + (i64)row * matrix[I].stride;
    const int first = position.warp * SLICE - shift;  // column at the slot's begin
    const int last = (HIDDEN + shift) / VECTOR * VECTOR - shift;
    const int e = position.lane;
    if (e < VECTOR) {
      if (head && position.warp == 0 && e >= shift) to[e] = from[e - shift];
      if (tail && last + e < HIDDEN && last >= first && last < first + COLUMNS)
        to[last + e - first] = from[last + e];
    }
    if constexpr (I + 1 < COUNT) fill_edges<I + 1>(head, tail);
#endif
  }
  /// Writes `pack` to the row at `to`, or keeps it in `edges`: write_edges() follows when all are
  /// there.
  template <class P, class Type>
  DEVICE void put(int k, const P& pack, Type* to, P (&edges)[2]) const {
    if (!position.has(k) || !position.active(rows)) return;
    if (position.whole(k))
      *(P*)(to + position.place(k)) = pack;
    else if (position.column(k) < 0)
      edges[0] = pack;
    else
      edges[1] = pack;
  }
  template <class P, class Type>
  DEVICE void write_edges(const P (&edges)[2], Type* to) const {
    if constexpr (SHIFTED) {
      for_edges([&](int which, int column) {
        if (which == 0) edges[0].write(to + column, -column, VECTOR);
        if (which == 1) edges[1].write(to + column, 0, HIDDEN - column);
      });
    }
  }

  /// Writes the row's vector k to the row at `to`, in vectors of memory: the first part of each
  /// comes from the lane ahead, `before` is this lane's vector k - 1. put_ends() follows. All lanes
  /// of a warp call both, this for every k.
  template <class P, class Type>
  DEVICE void put_realigned(int k, int of_row, const P& before, const P& pack, Type* to) const {
    constexpr int LAST = WARP_LANES - 1;
    const bool sends_before = of_row > 0 && position.lane == LAST;
    const int from = of_row > 0 ? (position.lane + LAST) % WARP_LANES : position.lane;
    P ahead, out;
#pragma unroll
    for (int i = 0; i < P::WORDS; i++) {
      const u32 own = sends_before ? before.word[i] : pack.word[i];
      ahead.word[i] = as_bits(shuffle_from(as_float(own), from, WARP_LANES));
    }
    out.template between<PERMUTED<Type>>(ahead, pack, (VECTOR - of_row) % VECTOR);
    const int first = position.column(k) - of_row;
    const bool all = position.active(rows) && (k > 0 || position.lane > 0 || of_row == 0);
    if (all && first + VECTOR <= HIDDEN) *(P*)(to + first) = out;
    if (row_ends() && all && first + VECTOR > HIDDEN) out.write(to + first, 0, HIDDEN - first);
  }
  /// The elements of a slice's ends, of its vectors `first` and `last`, that share their vectors of
  /// memory with other slices.
  template <class P, class Type>
  DEVICE void put_ends(int of_row, const P& first, const P& last, Type* to) const {
    constexpr int LAST = WARP_LANES - 1;
    const int begin = position.warp * SLICE, end = begin + SLICE - VECTOR;  // columns of both
    if constexpr (LANES < WARP_SIZE) {
      if (!position.active(rows)) return;
      if (position.lane == 0 && of_row > 0)
        first.write(to + begin, 0, least(VECTOR - of_row, HIDDEN - begin));
      if (position.lane == LAST) last.write(to + end, VECTOR - of_row, HIDDEN - end);
    } else {
      if (of_row == 0) return;
      // An element each, side by side.
      const int e = position.lane % VECTOR;
      const bool of_last = position.lane >= VECTOR;
      P pack;
#pragma unroll
      for (int i = 0; i < P::WORDS; i++) {
        const u32 own = position.lane == LAST ? last.word[i] : first.word[i];
        pack.word[i] = as_bits(shuffle_from(as_float(own), of_last ? LAST : 0, WARP_LANES));
      }
      const int column = (of_last ? end : begin) + e;
      if (position.lane < 2 * VECTOR && of_last == (e >= VECTOR - of_row) && column < HIDDEN)
        pack.write_one(to + column, e);
    }
  }
  /// REALIGNED: whether the row ends in this warp's columns or its last vector of memory.
  DEVICE bool row_ends() const { return (position.warp + 1) * SLICE + VECTOR > HIDDEN; }

  /// Row `which` is read next: rows come in the order of the turns. position.shift is its.
  DEVICE void open(int which) {
    row = which;
    wanted = position.active(rows) ? columns_wanted(row) : 0;
    if constexpr (SHIFTED) {
      head_apart = head_leaves(row), tail_apart = tail_leaves(row);
      if (head_apart || tail_apart) read_edges<0>();
    }
#if HAS_BULK_COPY
    if constexpr (STAGES > 0) {
      const Copied columns = columns_copied(row);
      copied = wanted > 0 && columns.first < columns.end;
      if (copied) barrier_wait(barrier + 8 * slot, phases >> slot & 1);
    }
#endif
    if constexpr (SHIFTED && !EDGES_APART) take_edges<0>();
    if constexpr (REALIGNED) {
      shift = shift_of(row);
      const bool head = shift > 0 && head_leaves(row), tail = tail_leaves(row);
      if (STAGES > 0 && (head || tail)) {
        fill_edges<0>(head, tail);
        warp_barrier();
      }
    }
  }

  /// An edge in the place of `pack`, where pack k is one.
  template <int I, class P>
  DEVICE void or_edge(int k, P& pack) const {
    if constexpr (SHIFTED) {
      if (position.whole(k)) return;
      // Word by word: the choice of a whole would go through local memory.
#pragma unroll
      for (int i = 0; i < P::WORDS; i++)
        pack.word[i] = position.column(k) < 0 ? edge[I][0].word[i] : edge[I][1].word[i];
    }
  }
  /// Pack `k` of matrix I; T of 16 bits has the packs of 16 bytes that the ring is laid out for.
  template <int I>
  DEVICE auto get(int k) const {
    Pack<typename Nth<I, T...>::type, VECTOR> pack;
    int column = (k * WARP_LANES + position.lane) * VECTOR;
    if constexpr (REALIGNED) {
      using Type = typename Nth<I, T...>::type;
      const int of_row = position.column(k);
#if HAS_BULK_COPY
      if constexpr (STAGES > 0) {
        const auto* low =
            (const decltype(pack)*)(slots + slot * WARP_BYTES + offset<I>() + column * size<I>());
        pack.template between<PERMUTED<Type>>(low[0], low[1], shift);
        if (row_ends()) pack.keep(0, HIDDEN - of_row);
        return pack;
      }
#endif
      pack.clear();
      if (wanted == 0 || of_row >= HIDDEN) return pack;
      pack.gather((const Type*)matrix[I].data + (i64)row * matrix[I].stride, of_row, HIDDEN);
      return pack;
    }
    constexpr bool IN_PART = RAGGED || !same<Limit, WholeRow>;  // else of a row all or nothing
    if (IN_PART ? column >= wanted : LANES < WARP_SIZE && wanted == 0) {
      pack.clear();
      return pack;
    }
    if constexpr (SHIFTED && (EDGES_APART || STAGES == 0)) {
      if (!position.whole(k)) {
        or_edge<I>(k, pack);
        return pack;
      }
    }
#if HAS_BULK_COPY
    if constexpr (STAGES > 0) {
      pack = *(const decltype(pack)*)(slots + slot * WARP_BYTES + offset<I>() + column * size<I>());
      or_edge<I>(k, pack);
      return pack;
    }
#endif
    const char* from = (const char*)matrix[I].data;
    from += ((i64)row * matrix[I].stride + position.place(k)) * size<I>();
    return load<decltype(pack)>(from, policy);
  }

  /// The row is in registers: its slot takes the row that is STAGES turns further on.
  DEVICE void close() {
    if constexpr (HOLD) meet(turn);
    turns.deal(turn);
#if HAS_BULK_COPY
    if constexpr (STAGES > 0) {
      if constexpr (!ON_DEMAND) ahead = row + STAGES * position.step;
      if (ON_DEMAND || ahead < rows) {
        reads_before_bulk_copies();
        warp_barrier();
      }
      if constexpr (ON_DEMAND) {
        if (position.lane == 0 && ahead < rows) fetch(ahead = turns.row(turn + STAGES), slot);
      } else {
        fetch(ahead, slot);
      }
      if (copied) phases ^= 1u << slot;
      if (++slot == STAGES) slot = 0;
    }
#endif
    turn++;
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
