// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The contract between kernels/, which generates it, and the library, which dispatches by it: the
// facts of every kernel instance of a build, as data that is read in place.
//
// A launch table is one blob (table.py writes it): a header, and sections of fixed-size records. A
// row needs no code object's bytes, only its key: where the bytes are is the store's matter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "aiter/attn.h"
#include "kernels/launch_table/traits.h"

namespace AITER_ATTN_NAMESPACE::kernels {

// ---- launching ---------------------------------------------------------------------------------

// The arguments that some instances take beyond the problem's tensors. Zero: without. Strides are
// in elements.
struct Features {
  // Elementwise: of the problem's dtype (fp32 with fp8), [batch, heads_q, seqlen_q, seqlen_k] by
  // the strides below; its gradient alike, by its own. ALiBi: fp32 slopes [batch, heads_q],
  // bias_stride_seq between batches.
  const void* bias;
  int64_t bias_stride_batch, bias_stride_head, bias_stride_seq;
  void* dbias;
  int64_t dbias_stride_batch, dbias_stride_head, dbias_stride_seq;
  float logits_soft_cap;
  float p_drop;
  uint64_t drop_seed, drop_offset;
  int32_t min_seqlen_q;
  // fp8: the factors of probabilities before they are rounded, and of sums of v at last. The
  // problem's softmax_scale has the scales of q and k in it; v's rows are of keys, one per element
  // of a head.
  float scale_p, scale_o;
  int64_t dq_acc_stride_split;  // deterministic: between the partial sums of dq_acc
  // Split keys: fp32 partial results [batch, heads_q, splits, rows](, head_size_v), contiguous; in
  // group mode [heads_q, splits, total_q].
  int32_t splits;  // from 1 to kMostSplits
  float* o_acc;
  float* lse_acc;
  // Paged keys and values: [page, page_size] in the place of [batch, seqlen].
  const int32_t* block_table;  // [batch, block_table_stride]
  int64_t block_table_stride;
  int32_t page_size;
  const int32_t* seqlens_k;    // [batch]
  const int32_t* batch_index;  // [batch], or NULL: entry b is b
  // Keys and values in pages of one key each.
  int32_t pages;                // that k and v have
  const int32_t* page_indptr;   // [batch + 1]
  const int32_t* page_indices;  // from page_indptr[b] on: the pages of batch entry b
  // Appending to a cache: behind the seqlens_k keys that each batch entry has.
  int32_t seqlen_new;
  attn_tensor k_new, v_new;
  int32_t rotary_size;
  const void* rotary_cos;  // [token, rotary_size / 2]
  const void* rotary_sin;
};

// All that the launch code of any kind reads; each kind reads its own part. Not an ABI: it may
// grow. Valid before any launch code runs: extents and strides fit upstream's 32-bit index.
struct LaunchArgs {
  attn_problem problem;  // at this library's size
  attn_tensor q, k, v, o, dout, dq;
  attn_tensor dk, dv;  // with heads_q heads: where there are fewer key heads, sum_heads follows
  float* lse;          // [batch, heads_q, seqlen_q] or [heads_q, total_q]; NULL: not wanted
  float* delta;        // backward, as lse
  // Backward: fp32 [batch, seqlen_q, heads_q, head_size_qk] or [total_q, ...], contiguous, zeroed;
  // by head as lse, [batch, heads_q, seqlen_q, head_size_qk] or [heads_q, total_q, ...].
  float* dq_acc;
  bool dq_acc_by_head;
  // sum_heads: [batch, seqlen, heads_q, sum_head_size], contiguous, to
  // [batch, seqlen, heads_k, sum_head_size]; in group mode [total, ...]. The seqlen is that of
  // keys.
  attn_tensor sum_from, sum_to;
  int32_t sum_head_size;
  // dropout_mask: uint8 [batch, heads_q, seqlen_q, seqlen_k], in group mode
  // [heads_q, total_q, seqlen_k], contiguous.
  uint8_t* kept;
  // sink: fp32 [heads_q], which o and lse get; sink_grad: of lse with it and delta, to dsink.
  const float* sink;
  float* dsink;
  Features features;
};

// Parts that the kernels which combine split keys take at most.
inline constexpr int32_t kMostSplits = 8;

// Bytes of arguments that a kernel may have.
inline constexpr size_t kMostKernargSize = 4096;

// A kernel's launch as its host code computes it.
struct Launch {
  uint32_t grid[3];        // in workgroups
  uint32_t dynamic_lds;    // bytes
  uint32_t kernarg_size;   // bytes written
  unsigned char* kernarg;  // the caller's: kMostKernargSize bytes, 16-byte aligned
  // The caller's: work-items of a workgroup on the device; 0: as with waves of 64.
  uint32_t work_items;
};
using MakeLaunch = void (*)(const LaunchArgs&, Launch*);

// ---- the blob ----------------------------------------------------------------------------------
// Little-endian; every section is 8-byte aligned; offsets are from the blob's start.

struct Arch {
  char name[16];  // "gfx942", zero-padded
};

// One instance. Kinds are together, and within a kind rows come in the order in which upstream's
// dispatcher tries them: first those of the variant set, then further ones, of which no bytes were
// built.
struct Row {
  uint32_t name;                 // offset into the strings
  uint32_t symbol;               // the kernel's, alike; in most rows the name
  uint32_t launch;               // index of its launch function
  uint32_t kernarg_size;         // bytes, as the compiler laid it out; 0: no bytes were built
  uint16_t head_size_alignment;  // padded head sizes must be a multiple of this; 1: any
  // What a dimension must be a multiple of where it is not padded. 0: has no such dimension.
  uint16_t tile_seqlen_q, tile_seqlen_k, tile_head_size_qk, tile_head_size_v;
  Traits traits;
};

// Of row r on arch a: objects[r * arch_count + a].
struct CodeObjectRow {
  uint8_t key[32];     // all zero: the instance does not exist on this arch
  uint8_t sha256[32];  // of the code object's bytes; all zero: not known, as none were built
  uint64_t size;       // of the code object; 0: no bytes were built
  uint16_t block[3];   // work-items per workgroup: waves differ by arch
  uint16_t hazards;    // bit of a Hazard: its results may be wrong on such problems
  // With the arch and a recipe, its spec, whose digest is the key (code_object/spec.py).
  uint8_t source[32];  // sha256 of its source
  uint32_t recipe;     // from 1: of LaunchTable::recipe(); 0: how it is made is not known
  uint32_t group;      // of LaunchTable::group(); 0: it is compiled by itself
};

// Greatest head sizes that instances of a kind and dtype serve, in the order they are tried.
struct Bucket {
  uint8_t kind;
  uint8_t dtype;
  uint16_t head_size_qk, head_size_v;
  uint16_t reserved;
};

// Of a hash table by exact_key: open addressing, linear probing, a power of two of slots.
struct Slot {
  uint64_t exact_key;
  uint32_t first, count;  // into slot_rows: the rows with that key, in table order; count 0: empty
};

struct TableHeader {
  char magic[8];  // "ATTNTBL3"
  uint32_t row_count, arch_count, bucket_count, slot_count, slot_row_count, recipe_count;
  uint32_t string_size;
  // Offsets. A recipe is an offset into the strings, uint32_t.
  uint32_t rows, archs, objects, buckets, slots, slot_rows, recipes, strings;
  uint32_t variant_set;  // offset into the strings
  uint32_t total_size;
  uint32_t reserved;
};

// Records in a row.
template <typename Record>
struct Range {
  const Record* first;
  const Record* last;

  const Record* begin() const { return first; }
  const Record* end() const { return last; }
  size_t size() const { return static_cast<size_t>(last - first); }
  bool empty() const { return first == last; }
};

// A view of a blob and its launch functions. Cheap to copy; refers to static data.
class LaunchTable {
 public:
  // Whether the blob is a well-formed table: 8-byte aligned; all that the functions below read is
  // in bounds, and all that they promise holds; every kind, trait and hazard is one that
  // traits.h knows; texts are printable ASCII and end with a zero. So any bytes are either refused
  // or can be read.
  static bool valid(const void* blob, uint64_t size);

  // The blob must be valid.
  constexpr LaunchTable(const void* blob, const MakeLaunch* launches, uint32_t launch_count)
      : blob_(blob), launches_(launches), launch_count_(launch_count) {}

  uint32_t row_count() const { return header().row_count; }
  const Row& row(uint32_t index) const { return at<Row>(header().rows)[index]; }
  uint32_t index(const Row& row) const {
    return static_cast<uint32_t>(&row - at<Row>(header().rows));
  }
  std::string_view name(const Row& row) const { return string(row.name); }
  std::string_view symbol(const Row& row) const { return string(row.symbol); }
  // NULL: the row's is not among the launches.
  MakeLaunch launch(const Row& row) const {
    return row.launch < launch_count_ ? launches_[row.launch] : nullptr;
  }

  uint32_t arch_count() const { return header().arch_count; }
  std::string_view arch(uint32_t index) const;
  int find_arch(std::string_view name) const;  // -1: not in this build
  // NULL: the row's instance does not exist on that arch.
  const CodeObjectRow* object(const Row& row, int arch) const;
  std::string_view arch(const CodeObjectRow& object) const {
    return arch(static_cast<uint32_t>(&object - at<CodeObjectRow>(header().objects)) %
                arch_count());
  }
  // A serialised recipe: the part that the specs of many code objects share. object.recipe > 0.
  std::string_view recipe(const CodeObjectRow& object) const {
    return string(at<uint32_t>(header().recipes)[object.recipe - 1]);
  }
  // The digest of the sources that an object was compiled together with, in hex; "": alone.
  std::string_view group(const CodeObjectRow& object) const {
    return object.group ? string(object.group) : std::string_view();
  }
  std::string_view variant_set() const { return string(header().variant_set); }

  Range<Bucket> buckets(Kind kind, Dtype dtype) const;
  // The indices of the rows whose traits have this exact_key, in table order. Constant time.
  Range<uint32_t> rows(uint64_t exact_key) const;

 private:
  bool specs_are_known() const;
  bool hazards_are_known() const;
  bool index_is_sound() const;
  const TableHeader& header() const { return *at<TableHeader>(0); }
  std::string_view string(uint32_t offset) const { return at<char>(header().strings) + offset; }
  template <typename Record>
  const Record* at(uint32_t offset) const {
    return reinterpret_cast<const Record*>(static_cast<const unsigned char*>(blob_) + offset);
  }

  const void* blob_;
  const MakeLaunch* launches_;
  uint32_t launch_count_;
};

// The table of this build: //kernels:launch_table defines it, tests define their own.
const LaunchTable& launch_table();

}  // namespace AITER_ATTN_NAMESPACE::kernels
