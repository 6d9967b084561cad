// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "aiter/attention/passes/append/append.h"
#include "aiter/attention/problem/checks.h"
#include "aiter/attention/problem/validate.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

// Upstream's kernels rotate eight elements of a head at a time.
constexpr int32_t kRotaryUnit = 16;
// Bytes of the tables that a kernel loads at a time.
constexpr uintptr_t kTableAlignment = 16;

void validate_no_rotary(const Problem& p) {
  const char* const none = "rotary is 0 (none): leave it zero, or set rotary";
  require_unset("q.data", p.q.data, none);
  require_unset("rotary_size", p.rotary_size, none);
  require_unset("rotary_length", p.rotary_length, none);
  require_unset("rotary_cos", p.rotary_cos, none);
  require_unset("rotary_sin", p.rotary_sin, none);
}

void validate_table(const char* field, const void* table, const Problem& p) {
  const uintptr_t alignment =
      p.device_type == ATTN_DEVICE_CPU ? dtype_size(p.dtype) : kTableAlignment;
  if (!table) {
    refuse(field, "NULL", "rotary embedding needs a table of ", p.rotary_length, " rows of ",
           p.rotary_size / 2, " numbers in the memory of the device");
  }
  require_aligned(field, table, alignment);
}

void validate_rotary(const Problem& p, Pointers pointers) {
  if (p.rotary_size < kRotaryUnit || p.rotary_size % kRotaryUnit != 0 ||
      p.rotary_size > p.head_size_qk) {
    refuse("rotary_size", p.rotary_size, "must be a multiple of ", kRotaryUnit, " from ",
           kRotaryUnit, " to the head size, ", p.head_size_qk);
  }
  if (p.rotary_length < p.seqlen_k) {
    refuse("rotary_length", p.rotary_length, "must be at least ", p.seqlen_k,
           ", the room of a sequence");
  }
  if (p.device_type != ATTN_DEVICE_CPU &&
      int64_t{p.rotary_length} * (p.rotary_size / 2) > kMaxInt32) {
    refuse("rotary_length", p.rotary_length, "a GPU kernel addresses ",
           kMaxInt32 / (p.rotary_size / 2), " rows of ", p.rotary_size / 2,
           " numbers: pass those that the cache has room for");
  }
  if (pointers == Pointers::kIgnored) return;
  validate_table("rotary_cos", p.rotary_cos, p);
  validate_table("rotary_sin", p.rotary_sin, p);
}

// New keys and queries are rotated by their positions, of which queries may have the greater ones.
void validate_rotated_tokens(const Problem& p) {
  const int32_t queries = p.mask == ATTN_MASK_NONE ? std::min(p.seqlen_q, 1) : p.seqlen_q;
  for (int32_t b = 0; b < p.batch; ++b) {
    const int64_t tokens = int64_t{p.cache.seqlens_k[b]} + std::max(p.seqlen_new, queries);
    if (tokens <= p.rotary_length) continue;
    refuse({"rotary_length", b}, p.rotary_length, "tokens up to ", tokens, " are rotated: the ",
           p.cache.seqlens_k[b], " of sequence ", b,
           ", and its new keys or, with a mask, its queries if they are more");
  }
}

// An entry or a page that is written, and the array that names it.
struct Place {
  int32_t entry;
  int64_t index;  // in batch_index or block_table
  int64_t sequence;

  bool operator<(const Place& other) const {
    return std::pair(entry, index) < std::pair(other.entry, other.index);
  }
};

std::vector<Place> written(const Problem& p) {
  const attn_kvcache& c = p.cache;
  std::vector<Place> places;
  for (int64_t b = 0; b < p.batch; ++b) {
    if (!in_pages(p)) {
      places.push_back({c.batch_index[b], b, b});
      continue;
    }
    const int64_t first = c.seqlens_k[b] / c.page_size;
    const int64_t last = (int64_t{c.seqlens_k[b]} + p.seqlen_new - 1) / c.page_size;
    for (int64_t j = first; j <= last; ++j) {
      const int64_t index = b * c.block_table_stride + j;
      places.push_back({c.block_table[index], index, b});
    }
  }
  return places;
}

void validate_append_mode(const Problem& p) {
  if (!is_group(p)) return;
  refuse("mode", p.mode, "appending takes sequences of equal numbers of new keys: it must be ",
         "ATTN_MODE_BATCH (", static_cast<int>(ATTN_MODE_BATCH), ")");
}

void validate_append(const Problem& p, Pointers pointers) {
  if (p.seqlen_new < 0 || p.seqlen_new > p.seqlen_k) {
    refuse("seqlen_new", p.seqlen_new, "must be from 0 to seqlen_k, ", p.seqlen_k,
           ", the room of a sequence");
  }
  if (in_pages(p) && in_page_list(p)) {
    fail(Status::kInvalidArgument, Field("block_table"),
         " is not given, but appending to pages finds them ",
         "by it: pass block_table and block_table_stride, and no page_indptr");
  }
  require_one_of("rotary", p.rotary,
                 {{ATTN_ROTARY_NONE, "none"},
                  {ATTN_ROTARY_HALVES, "halves"},
                  {ATTN_ROTARY_INTERLEAVED, "interleaved"}});
  has_rotary(p) ? validate_rotary(p, pointers) : validate_no_rotary(p);
  if (pointers == Pointers::kRequired && p.batch > 0 && !p.cache.seqlens_k) {
    refuse("seqlens_k", "NULL", "appending needs the ", p.batch,
           " lengths before it, in the memory of the device");
  }
}

void validate_appended_places(const Problem& p, Pointers pointers) {
  if (pointers == Pointers::kIgnored || p.device_type != ATTN_DEVICE_CPU) return;
  if (has_rotary(p)) validate_rotated_tokens(p);
  if (p.seqlen_new == 0) return;
  if (!in_pages(p) && !p.cache.batch_index) return;  // each has its own
  const char* const array = in_pages(p) ? "block_table" : "batch_index";
  std::vector<Place> places = written(p);
  std::sort(places.begin(), places.end());
  for (size_t i = 1; i < places.size(); ++i) {
    const Place &one = places[i - 1], &other = places[i];
    if (one.entry != other.entry) continue;
    refuse({concat(array, "[", other.index, "]"), other.sequence}, other.entry, "is that of ",
           array, "[", one.index, "], too: what is appended must have ",
           in_pages(p) ? "pages" : "entries", " of its own");
  }
}

}  // namespace

Problem read(const attn_append_kv_args* given, Pointers pointers) {
  Problem p = read_problem(given, append_pass());
  validate_append_mode(p);  // before all that depends on it
  validate_problem(&p, pointers);
  refuse_fp8(p);
  // Attention's alone.
  p.bias = ATTN_BIAS_NONE;
  p.logits_soft_cap = p.dropout_p = 0;
  validate_append(p, pointers);
  validate_places(p);
  validate_arrays(&p, pointers);
  validate_appended_places(p, pointers);
  make_canonical(&p);
  return p;
}

}  // namespace AITER_ATTN_NAMESPACE::attention
