// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/norm/configure.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <utility>

#include "kernels/archs/archs.h"

namespace AITER_ATTN_NAMESPACE::norm {
namespace {

constexpr int kWeightsInSharedMemory = 3;  // of keep_weights
constexpr int kRegisterElements = 64;      // of a row, that a thread keeps at most
constexpr int kReservedSharedBytes = 1024;
constexpr int kOldestCapability = 70;
constexpr int kBulkCopyCapability = 90;
constexpr int64_t kVectorBytes = 16;

// Of rows that are split among workgroups: norm_long.cpp.
constexpr int kSplitThreads = 256;
constexpr int64_t kMostOfHandful = 16;  // columns of a thread
constexpr int64_t kBesideSums = 24;     // registers of a thread, at the least

constexpr int64_t kShortElements = 1 << 23;  // of all rows

constexpr int64_t kWidestShifted = 1 << 18;  // columns: shifted rows of norm_backward

// Of few rows. Their time is how long a row takes, not bandwidth.
constexpr int64_t kNarrow = 1024;                 // columns of 16 bits that a few warps have anyway
constexpr int64_t kFewColumns = 1 << 21;          // of 16 bits, of all rows: all but norm_backward
constexpr int64_t kFewBytes = int64_t{32} << 20;  // of x and dy, which L2 holds: norm_backward
constexpr int64_t kMostDozens = 128;              // rows: neither of norms' forward passes
constexpr int64_t kVectors = 2;                   // of a row, that a thread should have
constexpr int64_t kMostVectors = 4;
constexpr int64_t kUsualThreads = 256;  // of a CTA
constexpr int64_t kMostThreads = 1024;
constexpr int64_t kWidest = 8192;       // columns of 16 bits of hundreds of rows
constexpr int kMostCluster = 8;         // that every device with clusters holds
constexpr int kScaleBlock = 32;         // columns of a row, of ATTN_NORM_SCALES_BLOCKS
constexpr int64_t kMostHeldBytes = 64;  // of a row, by a thread
constexpr int64_t kColumnCtas = 128;    // that sum columns, or fewer
constexpr int kLeastColumnLanes = 8;    // of them, side by side: 128 bytes of bfloat16
constexpr int kMostColumnLanes = 32;
constexpr int64_t kColumnBytes = 32 << 10;  // of their shared memory

int64_t divided_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// --- The resources of a configuration. ---

int64_t row_elements(const RowConfiguration& c, const RowTraits& rows) {  // of a thread
  return divided_up(rows.hidden, int64_t{c.cluster} * c.lanes * rows.vector) * rows.vector;
}

bool is_resident(const RowConfiguration& c, const RowTraits& rows) {
  return row_elements(c, rows) <= kRegisterElements;
}

// Of norm_backward's rows that are shifted, a slot has a vector more than a warp has columns.
int64_t ring_bytes(const RowConfiguration& c, const RowTraits& rows) {
  const int64_t columns = row_elements(c, rows) * std::min(c.lanes, 32) +
                          (rows.shifted && rows.sums > 0 ? rows.vector : 0);
  return int64_t{c.stages} * (c.threads / 32) * columns * rows.element_bytes;
}

int64_t weights_bytes(const RowConfiguration& c, const RowTraits& rows) {
  if (c.keep_weights != kWeightsInSharedMemory) return 0;
  return (c.threads * row_elements(c, rows) + int64_t{2} * rows.vector) * rows.weight_bytes;
}

int64_t combine_bytes(const RowConfiguration& c, const RowTraits& rows) {
  if (c.few_rows || c.split || c.threads == c.lanes || !is_resident(c, rows)) return 0;
  return c.threads * row_elements(c, rows) * 4 * rows.sums;
}

int64_t other_shared(const RowConfiguration& c) {
  const int slots = c.cluster * std::max(1, c.lanes / 32);
  const int exchange = (slots > 1 ? 4 : 1) * (c.threads / c.lanes) * slots * 2 * 4 + 32;
  const int barriers = 8 * c.stages * (c.threads / 32);
  const int turns = 16 * std::max(4, 2 * (c.stages + 3));
  return barriers + exchange + turns + kReservedSharedBytes;
}

int64_t shared(const RowConfiguration& c, const RowTraits& rows) {
  return ring_bytes(c, rows) + weights_bytes(c, rows) + other_shared(c);
}

// --- Calls. ---

// A matrix or vector as vectors see it.
struct Operand {
  const void* data;
  int64_t stride;  // in elements; of a vector 0
  int32_t dtype;
};

// Columns of 16 bytes of the narrowest operand.
int whole_vector(std::initializer_list<Operand> operands) {
  int64_t narrowest = 4;
  for (const Operand& o : operands) {
    if (o.data) narrowest = std::min(narrowest, std::max<int64_t>(dtype_size(o.dtype), 2));
  }
  return static_cast<int>(kVectorBytes / narrowest);
}

// Columns that a thread can move at once: a whole vector, or fewer.
int vector_for(int64_t hidden, int64_t rows, std::initializer_list<Operand> operands) {
  const auto fits = [&](int64_t vector) {
    if (hidden % vector != 0) return false;
    for (const Operand& o : operands) {
      if (!o.data) continue;
      const int64_t bytes = std::min(kVectorBytes, vector * dtype_size(o.dtype));
      if (reinterpret_cast<uintptr_t>(o.data) % static_cast<uintptr_t>(bytes) != 0) return false;
      if (rows > 1 && o.stride * dtype_size(o.dtype) % bytes != 0) return false;
    }
    return true;
  };
  int vector = whole_vector(operands);
  while (vector > 1 && !fits(vector)) vector /= 2;
  return vector;
}

// Whether rows that no whole vector divides have their vectors at the same columns in all
// matrices, so that a kernel can take the first and the last of a row apart.
bool can_be_shifted(int64_t hidden, int64_t rows, int whole,
                    std::initializer_list<Operand> matrices) {
  const auto vector = static_cast<uint64_t>(whole);
  const auto ahead = [&](const Operand& o) {
    const auto size = static_cast<uint64_t>(dtype_size(o.dtype));
    return reinterpret_cast<uintptr_t>(o.data) / size % vector;
  };
  const auto step = [&](const Operand& o) {
    return rows > 1 ? static_cast<uint64_t>(o.stride) % vector : 0;
  };
  const Operand& first = *matrices.begin();
  return hidden > whole && std::all_of(matrices.begin(), matrices.end(), [&](const Operand& o) {
           return !o.data || (ahead(o) == ahead(first) && step(o) == step(first));
         });
}

// Takes whole vectors where the rows allow fewer columns at once otherwise.
void shift_if_possible(Shape& shape, int64_t rows, int whole,
                       std::initializer_list<Operand> matrices) {
  shape.shifted = shape.vector < whole && can_be_shifted(shape.hidden, rows, whole, matrices);
  if (shape.shifted) shape.vector = whole;
}

Operand matrix(const attn_rows& m, int32_t dtype) { return {m.data, m.stride, dtype}; }
Operand row(const void* data, int32_t dtype) { return {data, 0, dtype}; }

RowOperation norm_operation(int32_t kind, bool forward) {
  if (kind == ATTN_NORM_LAYER) {
    return forward ? RowOperation::kLayerForward : RowOperation::kLayerBackward;
  }
  return forward ? RowOperation::kRmsForward : RowOperation::kRmsBackward;
}

Shape norm_shape(const attn_norm_problem& p, bool forward,
                 std::initializer_list<Operand> operands) {
  Shape shape = {};
  shape.operation = norm_operation(p.kind, forward);
  shape.dtypes = {p.x_dtype, p.weight_dtype, p.y_dtype};
  shape.hidden = p.hidden;
  shape.vector = vector_for(p.hidden, p.rows, operands);
  shape.zero_centred = p.zero_centred != 0;
  return shape;
}

Shape softmax_shape(const attn_softmax_problem& p, RowOperation operation,
                    std::initializer_list<Operand> operands) {
  Shape shape = {};
  shape.operation = operation;
  shape.dtypes = {p.dtype, 0, 0};
  shape.hidden = p.columns;
  shape.vector = vector_for(p.columns, p.rows, operands);
  shift_if_possible(shape, p.rows, whole_vector(operands), operands);
  shape.mask = p.mask_kind;
  return shape;
}

// --- Shapes. ---

bool is_softmax(RowOperation o) {
  return o == RowOperation::kSoftmaxForward || o == RowOperation::kSoftmaxBackward;
}
bool is_layer(RowOperation o) {
  return o == RowOperation::kLayerForward || o == RowOperation::kLayerBackward;
}
bool is_norm_backward(RowOperation o) {
  return o == RowOperation::kRmsBackward || o == RowOperation::kLayerBackward;
}

RowTraits row_traits(const Shape& shape) {
  const int x = static_cast<int>(dtype_size(shape.dtypes[0]));
  const int w = static_cast<int>(dtype_size(shape.dtypes[1]));
  const int y = static_cast<int>(dtype_size(shape.dtypes[2]));
  const bool of_memory = shape.shifted && !is_norm_backward(shape.operation);
  RowTraits rows = {shape.hidden + (of_memory ? shape.vector - 1 : 0),
                    shape.vector,
                    x,
                    x,
                    0,
                    0,
                    int64_t{shape.vector} * x % kVectorBytes == 0,
                    shape.shifted,
                    shape.few_rows,
                    x,
                    is_layer(shape.operation)};
  if (shape.operation == RowOperation::kSoftmaxBackward) rows.element_bytes = 2 * x;
  if (is_softmax(shape.operation)) return rows;
  rows.element_bytes = x * (shape.add ? 2 : 1);
  if (is_norm_backward(shape.operation)) {
    rows.element_bytes += y;
    rows.largest_bytes = std::max(x, y);
    rows.sums = is_layer(shape.operation) ? 2 : 1;
    rows.sixteen_bytes = rows.sixteen_bytes && int64_t{shape.vector} * y % kVectorBytes == 0;
  } else {
    rows.weight_bytes = w * (shape.beta ? 2 : 1);
  }
  return rows;
}

const char* type_name(int32_t dtype) {
  switch (dtype) {
    case ATTN_DTYPE_FP16:
      return "fp16";
    case ATTN_DTYPE_BF16:
      return "bf16";
    case ATTN_DTYPE_FP8_E4M3:
      return "fp8_e4m3";
    case ATTN_DTYPE_FP8_E5M2:
      return "fp8_e5m2";
    default:
      return "fp32";
  }
}

// README.md of kernels/norm explains the macros.
class Defines {
 public:
  template <typename Value>
  void operator()(const char* name, const Value& value) {
    flags_.push_back(concat("-D", name, "=", value));
  }
  std::vector<std::string> flags() && { return std::move(flags_); }

 private:
  std::vector<std::string> flags_;
};

// The macros of a norm's rows, for vectors of `vector` columns.
void define_norm(Defines& define, const Shape& shape, int vector) {
  define("ROW_HIDDEN", shape.hidden);
  define("ROW_VECTOR", vector);
  define("NORM_LAYER", static_cast<int>(is_layer(shape.operation)));
  define("NORM_X", type_name(shape.dtypes[0]));
  define("NORM_W", type_name(shape.dtypes[1]));
  define("NORM_Y", type_name(shape.dtypes[2]));
}

int64_t column_ctas(const Shape& shape, const RowConfiguration& c) {
  if (c.few_rows == 0) return 0;
  return divided_up(divided_up(shape.hidden, int64_t{c.few_rows} * shape.vector), c.cluster) *
         c.cluster;
}

// Of parts of sums no row but the first needs to be aligned.
int columns_vector(const Shape& shape) { return shape.shifted ? 1 : shape.vector; }

std::vector<std::string> columns_flags_for(const Shape& shape) {
  Defines define;
  define("ROW_HIDDEN", shape.hidden);
  define("ROW_VECTOR", columns_vector(shape));
  define("NORM_W", type_name(shape.dtypes[1]));
  return std::move(define).flags();
}

// Of norm_long.cpp.
std::vector<std::string> split_flags_for(const Shape& shape) {
  Defines define;
  define_norm(define, shape, columns_vector(shape));
  define("NORM_ADD", static_cast<int>(shape.add));
  define("NORM_ZERO_CENTRED", static_cast<int>(shape.zero_centred));
  if (shape.without_gamma) define("NORM_GAMMA", 0);
  if (shape.without_sums) define("NORM_SUMS", 0);
  return std::move(define).flags();
}

// Whether norm_forward reads a row from memory again when it has stored the sum.
bool reads_again(const RowConfiguration& c, const RowTraits& rows) {
  return c.stages == 0 && !(c.hold_row && is_resident(c, rows));
}

std::vector<std::string> flags_for(const Shape& shape, const RowConfiguration& c) {
  Defines define;
  define("ROW_THREADS", c.threads);
  define("ROW_LANES", c.lanes);
  define("ROW_CLUSTER", c.cluster);
  define("ROW_STAGES", c.stages);
  define("ROW_CTAS_PER_SM", c.ctas_per_sm);
  define("ROW_HOLD", c.hold_row);
  define("ROW_ON_DEMAND", c.on_demand);
  define("ROW_SHIFTED", static_cast<int>(shape.shifted));
  if (is_softmax(shape.operation)) {
    define("ROW_HIDDEN", shape.hidden);
    define("ROW_VECTOR", shape.vector);
    define("SOFTMAX_BACKWARD", static_cast<int>(shape.operation == RowOperation::kSoftmaxBackward));
    define("SOFTMAX_X", type_name(shape.dtypes[0]));
    define("SOFTMAX_MASK", shape.mask);
    return std::move(define).flags();
  }
  define_norm(define, shape, shape.vector);
  define("NORM_ADD", static_cast<int>(shape.add));
  define("NORM_KEEP_WEIGHTS", c.keep_weights);
  define("NORM_ZERO_CENTRED", static_cast<int>(shape.zero_centred));
  if (shape.without_gamma) define("NORM_GAMMA", 0);
  if (shape.without_sums) define("NORM_SUMS", 0);
  if (shape.in_place && reads_again(c, row_traits(shape))) define("NORM_IN_PLACE", 1);
  if (shape.scales != ATTN_NORM_SCALES_NONE) define("NORM_SCALES", shape.scales);
  if (is_norm_backward(shape.operation)) {
    define("NORM_LAG", c.lag);
    define("NORM_FEW_ROWS", c.few_rows);
  } else {
    define("NORM_BETA", static_cast<int>(shape.beta));
  }
  return std::move(define).flags();
}

void set_few_rows(Shape& shape, int64_t rows) {
  shape.few_rows = few_rows(shape.operation, rows, row_traits(shape));
  if (shape.few_rows) shape.on_demand = false;  // there are no rows to wait for
}

}  // namespace

DeviceTraits device_traits(const std::string& arch, int64_t shared_bytes) {
  if (arch.compare(0, 3, "sm_") == 0) {
    const int capability = std::stoi(arch.substr(3));
    if (capability < kOldestCapability) {
      fail(Status::kUnsupported, "the device is ", arch, ", but norms and softmax need sm_",
           kOldestCapability, " (Volta) or newer: use another GPU, or arrays in host memory");
    }
    return {32, capability >= kBulkCopyCapability, true, shared_bytes};
  }
  // The kernels are for waves of 64.
  std::string archs;
  for (const kernels::ArchFacts& known : kernels::kArchs) {
    if (known.wave_size != 64) continue;
    if (known.name == arch) return {known.wave_size, false, false, shared_bytes};
    archs += (archs.empty() ? "" : ", ") + std::string(known.name);
  }
  fail(Status::kUnsupported, "the device is ", arch, ", but norms and softmax have kernels for ",
       "sm_", kOldestCapability, " and newer, ", archs, ": use another GPU, or arrays in host ",
       "memory");
}

namespace {

// For rows of `width` columns of 16 bits, from the row that was tuned for `tuned.hidden`.
RowConfiguration narrowed(const kernels::TunedRow& tuned, int64_t width) {
  RowConfiguration c = tuned.configuration;
  if (c.lanes < 32) return c;
  const int64_t vectors = divided_up(tuned.hidden, int64_t{8} * c.cluster * c.lanes);
  const int in_hand = c.threads / c.lanes;
  c.lanes =
      static_cast<int>(divided_up(divided_up(width, int64_t{8} * c.cluster * vectors), 32)) * 32;
  c.threads = c.lanes * in_hand;
  return c;
}

// CTAs for a row of `vectors` vectors, of which one takes `each`.
int clusters_for(int64_t vectors, int64_t each) {
  int cluster = 1;
  while (cluster < kMostCluster && vectors > each * cluster) cluster *= 2;
  return cluster;
}

RowConfiguration for_few_rows(const RowTraits& rows, const DeviceTraits& device) {
  RowConfiguration c = {};
  const int64_t vectors = divided_up(rows.hidden, rows.vector);
  const bool norm_forward = rows.weight_bytes > 0, norm_backward = rows.sums > 0;
  // Of a handful, many CTAs for every row; of dozens of a norm's, rows come by bulk copies where
  // that leaves no thread idle.
  const bool tells_kinds = device.bulk_copies;
  const bool handful = tells_kinds && rows.few_rows == kHandful;
  const bool hundreds = tells_kinds && rows.few_rows == kHundreds && !norm_backward;
  // A row of RMSNorm's has as many CTAs as there can be, of a warp or two.
  const bool spread = handful && norm_forward && !rows.layer;
  // Backward, dozens of rows have larger CTAs, and a thread of hundreds has four vectors where a
  // CTA's warps are enough to sum columns.
  const bool wide = tells_kinds && norm_backward && rows.few_rows == kDozens;
  const bool heavy = tells_kinds && norm_backward && rows.few_rows == kHundreds && !rows.shifted &&
                     vectors >= kMostVectors * kUsualThreads;
  const bool is_whole =
      hundreds || vectors % (kMostVectors * device.warp *
                             clusters_for(vectors, kMostVectors * kUsualThreads / 2)) ==
                      0;
  const bool copied = tells_kinds && norm_forward && !handful && !rows.shifted && is_whole &&
                      rows.sixteen_bytes &&
                      kMostVectors * rows.vector * rows.x_bytes <= kMostHeldBytes;
  const int64_t usual_vectors = spread            ? kVectors
                                : handful         ? 1
                                : copied || heavy ? kMostVectors
                                                  : kVectors;
  int64_t most = kUsualThreads;
  if (!device.bulk_copies) most = kMostThreads;
  if (wide || (hundreds && !norm_forward)) most = 2 * kUsualThreads;
  if (!hundreds && (handful || copied)) most = kUsualThreads / 2;
  if (spread) most = int64_t{2} * device.warp;
  const bool clusters = device.bulk_copies && !hundreds;
  const int64_t of_cta = spread ? device.warp : most;  // threads
  c.cluster = clusters ? clusters_for(vectors, usual_vectors * of_cta) : 1;
  while (most < kMostThreads && vectors > kMostVectors * most * c.cluster) most *= 2;
  const int64_t each =
      std::max(hundreds ? 1 : usual_vectors, divided_up(vectors, most * c.cluster));
  c.lanes = static_cast<int>(divided_up(vectors, c.cluster * each * device.warp)) * device.warp;
  c.threads = c.lanes;
  c.ctas_per_sm = 1;
  if (norm_backward) {
    // Its warps' sums lie in shared memory.
    const int64_t lane_bytes = int64_t{rows.sums} * (c.threads / device.warp) * rows.vector * 4;
    c.few_rows = handful || wide ? 2 * kLeastColumnLanes : kLeastColumnLanes;
    while (c.few_rows < kMostColumnLanes && vectors > kColumnCtas * c.few_rows &&
           int64_t{2} * c.few_rows * lane_bytes <= kColumnBytes) {
      c.few_rows *= 2;
    }
    // CTAs that sum columns have to find registers beside others.
    const int64_t threads = (heavy ? 2 : 3) * kUsualThreads;  // of a multiprocessor
    c.ctas_per_sm = std::max(1, static_cast<int>(threads) / c.threads);
  }
  c.hold_row = each * rows.vector * rows.x_bytes <= kMostHeldBytes;
  c.stages = copied && c.hold_row && (!hundreds || each > kVectors) ? 1 : 0;
  if (hundreds) {
    const int64_t threads = norm_forward ? kMostThreads : 2 * kMostThreads;  // of a multiprocessor
    c.ctas_per_sm = std::max(1, static_cast<int>(threads) / c.threads);
    return c;
  }
  // A thread's columns are the same in every row, but forward not where rows are shifted.
  c.keep_weights = c.hold_row && (rows.sums > 0 || (!rows.shifted && rows.weight_bytes > 0));
  return c;
}

// Of many rows of a norm's backward pass that start at any element of a vector, all matrices of 16
// bits. Registers hold a row and its sums: the fewer threads of a multiprocessor, the more vectors
// to each. Idle threads cost most. tests/bench/norms/sweep.py found the bounds at seven odd widths
// of bf16; of float32, and of both types, the table's configurations are faster.
RowConfiguration for_shifted_backward(const RowTraits& rows) {
  struct Way {
    int64_t vectors;  // of a thread
    int64_t lanes;    // at most: their registers are there
  };
  static constexpr Way kRms[] = {{3, 448}, {4, 416}, {5, 352}, {6, 320}, {7, 256}, {8, 256}};
  static constexpr Way kLayer[] = {{3, 384}, {2, 512}, {4, 352}};
  constexpr int64_t kThreads = 384;  // of a multiprocessor, where they have several rows in hand
  constexpr int64_t kMostRows = 15, kLanes = 256, kMostEach = 8;
  const bool rms = rows.sums == 1;
  const int64_t most = rms ? 2048 : 1408;  // vectors of a CTA
  RowConfiguration c = {};
  const int64_t vectors = divided_up(rows.hidden, rows.vector);
  c.cluster = 1;
  while (c.cluster < 2 * kMostCluster && vectors > most * c.cluster) c.cluster *= 2;
  c.hold_row = 1;
  int64_t least = std::numeric_limits<int64_t>::max();
  const auto consider = [&](const Way& way) {
    const int64_t lanes = divided_up(vectors, 32 * way.vectors * c.cluster) * 32;
    if (lanes > way.lanes || lanes * way.vectors >= least) return;
    least = lanes * way.vectors;
    c.lanes = static_cast<int>(lanes);
  };
  if (rms) {
    std::for_each(std::begin(kRms), std::end(kRms), consider);
  } else {
    std::for_each(std::begin(kLayer), std::end(kLayer), consider);
  }
  if (c.lanes == 0) {  // registers do not have room for the row beside its sums
    c.hold_row = 0;
    const int64_t lanes = divided_up(vectors, 32 * kMostEach * c.cluster) * 32;
    c.lanes = static_cast<int>(std::min(kMostThreads, std::max(kLanes, lanes)));
  }
  // Of 4097 columns one row in hand and gamma as it is stored were faster, but not with dh.
  const bool is_alone = rms && c.lanes == kThreads / 2 && rows.element_bytes == 4;
  const int64_t in_hand =
      c.cluster > 1 || is_alone ? 1 : std::clamp<int64_t>(kThreads / c.lanes, 1, kMostRows);
  c.threads = static_cast<int>(c.lanes * in_hand);
  c.stages = 2;
  c.ctas_per_sm = 1;
  c.waves = 1;
  c.keep_weights = is_alone ? 1 : 2;
  return c;
}

// Lanes and cluster of many rows that start at any element of a vector, of 160 lanes that have five
// to eight vectors each, so many as leave the fewest threads idle; `threads` of a multiprocessor.
RowConfiguration for_shifted(const RowTraits& rows, int threads, int most_cluster) {
  constexpr int64_t kLanes = 160, kLeastVectors = 5, kMostVectors = 8;
  RowConfiguration c = {};
  const int64_t vectors = divided_up(rows.hidden, rows.vector);
  c.cluster = 1;
  while (c.cluster < most_cluster && vectors > kLeastVectors * kLanes * c.cluster) c.cluster *= 2;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int64_t each = kLeastVectors; each <= kMostVectors; ++each) {
    const int64_t lanes = divided_up(vectors, 32 * each * c.cluster) * 32;
    if (lanes * each >= least) continue;
    least = lanes * each;
    c.lanes = static_cast<int>(std::min(kMostThreads, lanes));
  }
  c.threads = c.lanes;
  c.stages = 1;
  c.ctas_per_sm = std::max(1, threads / c.threads);
  return c;
}

// Registers hold a row, and shared memory has gamma.
RowConfiguration for_shifted_norm(const RowTraits& rows) {
  RowConfiguration c = for_shifted(rows, 640, kMostCluster);  // with 102 registers each
  c.waves = c.hold_row = 1;
  c.keep_weights = kWeightsInSharedMemory;
  c.on_demand = c.lanes * c.cluster > 32;
  return c;
}

// Forward, CTAs stay and registers hold a row. Backward, a CTA has one row, which it reads twice
// from the ring. tests/bench/norms/sweep.py found both on an H200, for bf16.
RowConfiguration for_shifted_softmax(const RowTraits& rows) {
  if (rows.element_bytes > rows.x_bytes) return for_shifted(rows, 960, 2 * kMostCluster);
  RowConfiguration c = for_shifted(rows, 768, kMostCluster);
  c.waves = c.hold_row = 1;
  return c;
}

// One CTA has the row that a cluster has elsewhere, and no ring brings rows to those that stay.
// Forward there is a CTA for every row. tests/bench/norms/sweep.py found both rules on an H200, for
// bf16.
RowConfiguration without_cluster(RowConfiguration c, const RowTraits& rows,
                                 const DeviceTraits& device) {
  c.on_demand = 0;
  const int64_t vectors = divided_up(rows.hidden, rows.vector);
  const int64_t width = rows.hidden * rows.x_bytes / 2;
  const bool norm_forward = rows.weight_bytes > 0 && !rows.shifted;
  const auto share_out = [&](int64_t each) {
    const int64_t lanes = divided_up(vectors, each * device.warp) * device.warp;
    c.threads = c.lanes = static_cast<int>(std::min(kMostThreads, lanes));
  };
  if (rows.sums > 0 && !rows.shifted && (c.stages > 0 || c.cluster > 1) && width > kNarrow) {
    share_out(width > (rows.layer ? kWidest : kWidest / 2) ? kMostVectors : kVectors);
    c.keep_weights = c.hold_row = 1;
    c.lag = 0;
  } else if (c.cluster > 1) {
    c.threads = c.lanes = static_cast<int>(std::min(kMostThreads, int64_t{c.lanes} * c.cluster));
    if (norm_forward) {
      share_out(kMostVectors);
      if (c.threads > 2 * kUsualThreads) share_out(2 * kMostVectors);
      c.waves = c.keep_weights = 0;
      c.hold_row = !rows.layer || c.threads * kMostVectors >= vectors;
    }
  } else {
    return c;
  }
  c.cluster = 1;
  c.ctas_per_sm = norm_forward ? static_cast<int>(kMostThreads) / c.threads : 1;
  return c;
}

// Of a multiprocessor.
int64_t registers_of(const DeviceTraits& device) { return device.warp == 64 ? 131072 : 65536; }

// Of a configuration that was found with a ring, where there is none: registers have less, and so
// many CTAs as hide each other's loads.
void fit_registers(RowConfiguration& c, const RowTraits& rows, const DeviceTraits& device) {
  const int64_t spare = rows.sums > 0 ? 38 : 24;  // of a thread
  const int64_t registers = registers_of(device);
  const auto kept = [&] {
    const int64_t columns = row_elements(c, rows);
    const int64_t weights = rows.sums > 0 ? rows.x_bytes : rows.weight_bytes;
    const int64_t of_weights = c.keep_weights == 1 ? weights : c.keep_weights == 2 ? 4 : 0;
    const int64_t of_row = c.hold_row ? rows.element_bytes * (1 + c.lag) : 0;
    return columns * (of_weights + of_row + int64_t{4} * rows.sums) / 4;
  };
  const int64_t room = registers / c.threads - spare;
  if (kept() > room) c.lag = 0;
  if (kept() > room && c.keep_weights != kWeightsInSharedMemory) c.keep_weights = 0;
  if (kept() > room) c.hold_row = 0;
  if (rows.sums > 0) {
    const int64_t ctas = registers / ((kept() + spare) * c.threads);
    c.ctas_per_sm = static_cast<int>(std::clamp<int64_t>(ctas, 1, kMostThreads / c.threads));
  }
}

// Whether CTAs share a row of norm_backward's that would be too long for one, or for a cluster.
bool is_split(const RowConfiguration& c, const RowTraits& rows, const DeviceTraits& device) {
  if (rows.sums == 0) return false;
  if (!is_resident(c, rows)) return true;
  const int64_t columns = row_elements(c, rows);
  if (c.few_rows) {
    const bool is_long = device.bulk_copies ? c.threads > 2 * kUsualThreads  // of 8 CTAs
                                            : columns > kMostOfHandful;
    return rows.few_rows == kHandful && is_long;
  }
  if (device.bulk_copies) return false;
  return columns * rows.sums + kBesideSums > registers_of(device) / c.threads;
}

RowConfiguration split() {
  RowConfiguration c = {kSplitThreads, kSplitThreads, 1, 0, 1, 0, 0, 0, 0, 0};
  c.split = 1;
  return c;
}

}  // namespace

int few_rows(RowOperation operation, int64_t count, const RowTraits& rows) {
  if (is_norm_backward(operation)) {
    const bool few = rows.sixteen_bytes && count <= kHundreds &&
                     count * rows.hidden * rows.element_bytes <= kFewBytes;
    if (!few) return 0;
    if (rows.shifted || count > kMostDozens) return kHundreds;
    return count <= kHandful ? kHandful : kDozens;
  }
  const int64_t width = rows.hidden * rows.x_bytes / 2;
  if (width <= kNarrow) return 0;
  if (count <= kHandful && count * width <= kFewColumns) return kHandful;
  const int64_t most = operation == RowOperation::kRmsForward     ? 64
                       : operation == RowOperation::kLayerForward ? 256
                                                                  : kMostDozens;
  if (count <= most && count * width <= kFewColumns) return kDozens;
  const int64_t least = operation == RowOperation::kLayerForward      ? 2048
                        : operation == RowOperation::kSoftmaxBackward ? 4096
                                                                      : kWidest;
  return count <= kHundreds && width > least && width <= kWidest && !rows.shifted ? kHundreds : 0;
}

RowConfiguration choose(const RowConfigurations& table, const RowTraits& rows,
                        const DeviceTraits& device) {
  // Where one CTA has a row anyway, hundreds of rows are many.
  const bool are_many = rows.few_rows == kHundreds && rows.sums == 0 && !device.bulk_copies;
  if (rows.few_rows && !are_many) {
    const RowConfiguration c = for_few_rows(rows, device);
    return is_split(c, rows, device) ? split() : c;
  }
  const kernels::TunedRow* const end = table.tuned + table.count;
  const int64_t width = rows.hidden * rows.x_bytes / 2;  // the table's columns have 16 bits
  const kernels::TunedRow* const row =
      std::find_if(table.tuned, end, [&](const auto& r) { return width <= r.hidden; });
  RowConfiguration c = row == end ? table.general : narrowed(*row, width);
  if (rows.shifted && rows.weight_bytes > 0) {
    c.keep_weights = 0;
    if (width > kNarrow) c = for_shifted_norm(rows);
  }
  if (rows.shifted && rows.sums > 0 && device.bulk_copies && rows.largest_bytes == 2 &&
      width > kNarrow && width <= kWidestShifted) {
    c = for_shifted_backward(rows);
  }
  const bool softmax = rows.weight_bytes == 0 && rows.sums == 0;
  if (rows.shifted && softmax && device.bulk_copies && width > kNarrow) {
    c = for_shifted_softmax(rows);
  }
  const bool leaves_a_ring = !device.bulk_copies && (c.stages > 0 || c.cluster > 1);
  if (!device.bulk_copies) c = without_cluster(c, rows, device);
  if (c.lanes > device.warp && c.lanes % device.warp != 0) {
    c.lanes = c.threads = static_cast<int>(divided_up(c.lanes, device.warp)) * device.warp;
  }
  c.threads = static_cast<int>(divided_up(c.threads, device.warp)) * device.warp;
  if (!device.bulk_copies || !rows.sixteen_bytes) c.stages = 0;
  if ((c.lanes > device.warp && !device.named_barriers) ||
      other_shared(c) + combine_bytes(c, rows) > device.shared_bytes) {
    c.threads = std::max(c.lanes, device.warp);
  }
  while ((c.stages > 0 || c.keep_weights == kWeightsInSharedMemory) &&
         c.ctas_per_sm * shared(c, rows) > device.shared_bytes) {
    // Shifted rows keep their weights there as long as they can.
    const bool weights_go_first = c.keep_weights == kWeightsInSharedMemory && !rows.shifted;
    if (c.stages > 1) {
      --c.stages;
    } else if (c.ctas_per_sm > 1 && !weights_go_first) {
      --c.ctas_per_sm;
    } else if (c.keep_weights == kWeightsInSharedMemory) {
      c.keep_weights = 0;
    } else {
      c.stages = 0;
    }
  }
  if (leaves_a_ring) fit_registers(c, rows, device);
  if (!is_resident(c, rows) || c.lanes * c.cluster <= device.warp) c.lag = 0;
  return is_split(c, rows, device) ? split() : c;
}

Shape shape_of(const NormForward& call) {
  const attn_norm_problem& p = call.p;
  const Operand x = matrix(call.x, p.x_dtype), y = matrix(call.y, p.y_dtype);
  const Operand residual = matrix(call.residual, p.x_dtype), sum = matrix(call.sum, p.x_dtype);
  const std::initializer_list<Operand> operands = {
      x, y, residual, sum, row(call.gamma, p.weight_dtype), row(call.beta, p.weight_dtype)};
  Shape shape = norm_shape(p, true, operands);
  // The columns of a block are those of lanes side by side.
  if (call.scales_kind != ATTN_NORM_SCALES_BLOCKS) {
    shift_if_possible(shape, p.rows, whole_vector(operands), {x, y, residual, sum});
  }
  shape.add = call.residual.data != nullptr;
  shape.without_gamma = call.gamma == nullptr;
  shape.in_place = shape.add && call.sum.data == call.residual.data;
  shape.scales = call.scales_kind;
  shape.beta = call.beta != nullptr;
  shape.on_demand = call.barrier != nullptr;
  set_few_rows(shape, p.rows);
  return shape;
}

Shape shape_of(const NormBackward& call) {
  const attn_norm_problem& p = call.p;
  const Operand x = matrix(call.x, p.x_dtype), dy = matrix(call.dy, p.y_dtype);
  const Operand dx = matrix(call.dx, p.x_dtype), dh = matrix(call.dh, p.x_dtype);
  const std::initializer_list<Operand> operands = {x,
                                                   dy,
                                                   dx,
                                                   dh,
                                                   row(call.gamma, p.weight_dtype),
                                                   row(call.dgamma, p.weight_dtype),
                                                   row(call.dbeta, p.weight_dtype)};
  Shape shape = norm_shape(p, false, operands);
  shift_if_possible(shape, p.rows, whole_vector(operands), {x, dy, dx, dh});
  shape.add = call.dh.data != nullptr;
  shape.without_gamma = call.gamma == nullptr;
  shape.without_sums = call.dgamma == nullptr && call.dbeta == nullptr;
  set_few_rows(shape, p.rows);
  return shape;
}

Shape shape_of(const SoftmaxForward& call) {
  Shape shape = softmax_shape(call.p, RowOperation::kSoftmaxForward,
                              {matrix(call.x, call.p.dtype), matrix(call.y, call.p.dtype)});
  // The mask is contiguous, a byte a column; rows that are shifted read it by the byte.
  while (!shape.shifted &&
         reinterpret_cast<uintptr_t>(call.mask) % static_cast<uintptr_t>(shape.vector) != 0) {
    shape.vector /= 2;
  }
  shape.on_demand = call.barrier != nullptr;
  set_few_rows(shape, call.p.rows);
  return shape;
}

Shape shape_of(const SoftmaxBackward& call) {
  Shape shape = softmax_shape(
      call.p, RowOperation::kSoftmaxBackward,
      {matrix(call.y, call.p.dtype), matrix(call.dy, call.p.dtype), matrix(call.dx, call.p.dtype)});
  if (shape.mask == ATTN_SOFTMAX_MASK_EXPLICIT) shape.mask = ATTN_SOFTMAX_MASK_NONE;  // y tells
  shape.on_demand = call.barrier != nullptr;
  set_few_rows(shape, call.p.rows);
  return shape;
}

bool has_kind(const Shape& shape) {
  const RowTraits rows = row_traits(shape);
  int64_t count = 1;
  while (count <= kHundreds && few_rows(shape.operation, count, rows) != shape.few_rows) ++count;
  return count <= kHundreds || shape.few_rows == 0;
}

Kernels configure(const Shape& shape, const DeviceTraits& device) {
  const RowTraits rows = row_traits(shape);
  Kernels k = {};
  k.configuration = choose(kernels::row_configurations(shape.operation), rows, device);
  // Rows are the same whoever takes them.
  if (!shape.on_demand) k.configuration.on_demand = 0;
  if (shape.without_sums) k.configuration.few_rows = 0;  // nothing to sum beside the rows
  if (shape.scales == ATTN_NORM_SCALES_BLOCKS &&
      k.configuration.lanes * shape.vector < kScaleBlock) {
    k.configuration.lanes = kScaleBlock / shape.vector;
    k.configuration.threads = std::max(k.configuration.threads, k.configuration.lanes);
  }
  k.flags = k.configuration.split ? split_flags_for(shape) : flags_for(shape, k.configuration);
  k.column_ctas = column_ctas(shape, k.configuration);
  k.sums = k.column_ctas > 0 || shape.without_sums ? 0 : rows.sums;
  if (k.configuration.split) {
    k.slices = divided_up(shape.hidden, kernels::row_split().slice);
    k.slice_sums = rows.sums;
  }
  // norm_backward lets the next kernel start early, where the device can; norm_long.cpp does not.
  k.waits_itself = k.reduce_waits_itself = k.slices == 0 && device.bulk_copies;
  const int64_t ring = ring_bytes(k.configuration, rows);
  int64_t bytes = ring;
  if (is_softmax(shape.operation)) {
    k.source = "softmax.cpp";
    k.symbol =
        shape.operation == RowOperation::kSoftmaxForward ? "softmax_forward" : "softmax_backward";
  } else if (is_norm_backward(shape.operation)) {
    k.source = k.slices > 0 ? "norm_long.cpp" : "norm_backward.cpp";
    k.symbol = k.slices > 0 ? "norm_backward_long" : "norm_backward";
    if (k.sums > 0) k.columns_flags = columns_flags_for(shape);
    k.columns_vector = columns_vector(shape);
    bytes = std::max(ring, combine_bytes(k.configuration, rows));
  } else {
    k.source = "norm_forward.cpp";
    k.symbol = "norm_forward";
    bytes = ring + weights_bytes(k.configuration, rows);
  }
  k.dynamic_shared_bytes = static_cast<uint32_t>(bytes);
  return k;
}

int64_t groups_for(const RowConfiguration& c, int64_t rows, int64_t held) {
  // A thread counts some hundred turns beyond its row, in 32 bits.
  constexpr int64_t kTurnsAhead = 256;
  constexpr int64_t kMostCount = std::numeric_limits<int32_t>::max();
  const int64_t in_hand = c.threads / c.lanes;
  int64_t groups = divided_up(rows, in_hand);
  if (c.waves > 0) groups = std::min(groups, held * c.waves);
  groups = std::min(groups, (kMostCount - rows) / kTurnsAhead / in_hand);
  groups = std::min(groups, kMostCount / c.cluster);
  // HIP counts the work-items of a grid in 32 bits.
  constexpr int64_t kMostThreads = std::numeric_limits<uint32_t>::max();
  groups = std::min(groups, kMostThreads / (int64_t{c.threads} * c.cluster));
  return std::max<int64_t>(groups, 1);
}

bool is_short(int64_t rows, int64_t hidden) { return rows <= kShortElements / hidden; }

Parts parts_for(const Kernels& made_for, int64_t rows, int64_t groups) {
  if (made_for.slices == 0) return {groups, 0};
  const kernels::RowSplit split = kernels::row_split();
  const int64_t most =
      std::clamp<int64_t>(split.enough_workgroups / made_for.slices, 1, split.most_parts);
  const int64_t each = divided_up(rows, std::min(divided_up(rows, split.batch), most));
  return {divided_up(rows, each), each};
}

uint64_t workspace_bytes(const Kernels& kernels, const Parts& parts, int64_t rows, int64_t hidden) {
  const int64_t of_parts = kernels.sums * parts.count * hidden;
  const int64_t of_slices = rows * kernels.slices * kernels.slice_sums;
  return static_cast<uint64_t>(of_parts + of_slices) * sizeof(float);
}

}  // namespace AITER_ATTN_NAMESPACE::norm
