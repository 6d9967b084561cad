// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "tests/dispatch/differences.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>

#include "aiter/attention/problem/problem.h"

namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity {
namespace {

// Whether any score is computed.
bool computes(const attn_problem& p) { return query_rows(p) != 0 && key_rows(p) != 0; }

template <typename Call>
bool computes(const Call& call) {
  return computes(call.problem);
}

bool computes(const Cached& call) {
  const attn_problem& p = call.problem;
  const bool packed = is_group(p) && call.cache.page_size == 0;
  return query_rows(p) != 0 && p.seqlen_k != 0 && call.cache.entries != 0 &&
         (!packed || p.total_k != 0);
}

bool computes(const Appended& call) {
  const bool rotates = call.args.rotary != ATTN_ROTARY_NONE && call.problem.seqlen_q != 0;
  return call.args.seqlen_new != 0 || rotates;
}

// In the order in which upstream tries them.
constexpr std::pair<int32_t, int32_t> kBuckets[] = {{32, 32},   {64, 64},   {96, 128}, {128, 128},
                                                    {192, 128}, {192, 192}, {256, 256}};

Told told_of(const attn_problem& p) {
  const bool group = is_group(p);
  return {p.mask != ATTN_MASK_NONE,
          group ? p.total_q : p.seqlen_q,
          group ? p.total_k : p.seqlen_k,
          p.head_size_qk,
          p.head_size_v,
          p.head_size_qk,
          p.head_size_v};
}

void drop_unused_strides(attn_tensor* t, const Extents& e) {
  if (!t->data) return;
  if (e.heads <= 1) t->stride_head = e.head_size;
  if (e.seq <= 1) t->stride_seq = e.heads * e.head_size;
  if (e.batch <= 1) t->stride_batch = 0;
}

Extents cache_extents(const attn_problem& p, const attn_kvcache& c, int32_t head_size) {
  if (c.page_size > 0) return {c.entries, c.page_size, p.heads_k, head_size};
  if (is_group(p)) return key_extents(p, p.heads_k, head_size);
  return {c.entries, p.seqlen_k, p.heads_k, head_size};
}

void drop_unused_strides(Cached* call) {
  const attn_problem& p = call->problem;
  attn_kvcache_fwd_args& args = call->args;
  drop_unused_strides(&args.q, query_extents(p, p.head_size_qk));
  drop_unused_strides(&args.k, cache_extents(p, call->cache, p.head_size_qk));
  drop_unused_strides(&args.v, cache_extents(p, call->cache, p.head_size_v));
  drop_unused_strides(&args.o, query_extents(p, p.head_size_v));
}

void drop_unused_strides(Appended* call) {
  const attn_problem& p = call->problem;
  attn_append_kv_args& args = call->args;
  const auto added = [&](int32_t head_size) {
    return Extents{p.batch, args.seqlen_new, p.heads_k, head_size};
  };
  drop_unused_strides(&args.q, query_extents(p, p.head_size_qk));
  drop_unused_strides(&args.k, cache_extents(p, call->cache, p.head_size_qk));
  drop_unused_strides(&args.v, cache_extents(p, call->cache, p.head_size_v));
  drop_unused_strides(&args.k_new, added(p.head_size_qk));
  drop_unused_strides(&args.v_new, added(p.head_size_v));
}

template <typename Call>
void drop_unused_strides(Call* call) {
  const attn_problem& p = call->problem;
  auto* const args = &call->args;
  using Args = std::remove_pointer_t<decltype(args)>;
  Extents value = key_extents(p, p.heads_k, p.head_size_v);
  if constexpr (std::is_same_v<Args, attn_fwd_args>) {
    if (args->v_layout == ATTN_V_COLUMNS) value = {p.batch, p.head_size_v, p.heads_k, p.seqlen_k};
  }
  drop_unused_strides(&args->q, query_extents(p, p.head_size_qk));
  drop_unused_strides(&args->k, key_extents(p, p.heads_k, p.head_size_qk));
  drop_unused_strides(&args->v, value);
  drop_unused_strides(&args->o, query_extents(p, p.head_size_v));
  drop_unused_strides(&args->bias, score_extents(p));
  if constexpr (std::is_same_v<Args, attn_bwd_args>) {
    drop_unused_strides(&args->dout, query_extents(p, p.head_size_v));
    drop_unused_strides(&args->dq, query_extents(p, p.head_size_qk));
    drop_unused_strides(&args->dk, key_extents(p, p.heads_k, p.head_size_qk));
    drop_unused_strides(&args->dv, value);
    drop_unused_strides(&args->dbias, score_extents(p));
  }
}

// With heads_q == heads_k, dk and dv are the results themselves.
void take_over(Forward*) {}
void take_over(Cached*) {}
void take_over(Appended*) {}
void take_over(Backward* call) {
  if (call->problem.heads_q != call->problem.heads_k) return;
  call->dk = call->args.dk;
  call->dv = call->args.dv;
}

template <typename Call>
void without_unused_strides(Question<Call>* question, Answer* answer) {
  drop_unused_strides(&question->call);
  take_over(&question->call);
  *answer = ask(*question);
}

template <typename Call>
void without_wide_windows(Question<Call>* question, Answer* answer) {
  attn_problem& p = question->call.problem;
  const int32_t open = p.seqlen_q + p.seqlen_k;
  if (p.window_right >= open) p.window_right = -1;
  // A causal mask decides the form of ALiBi, and an open left side would make this one causal.
  const bool keeps_side = p.bias == ATTN_BIAS_ALIBI && p.window_right == 0;
  if (p.window_left >= open) p.window_left = keeps_side ? open : -1;
  *answer = ask(*question);
}

// Whether sequences of few queries keep their results: only a kernel knows on a GPU which they are.
bool leaves_out(const attn_problem& p, int32_t min_seqlen_q) {
  return min_seqlen_q > 0 && query_rows(p) != 0;
}

template <typename Call>
void without_scores(Question<Call>* question, Answer* answer) {
  if (computes(question->call)) return;
  *answer = {};
  answer->is_served = true;
}

void without_scores(Question<Forward>* question, Answer* answer) {
  const Forward& call = question->call;
  if (leaves_out(call.problem, call.args.min_seqlen_q)) return;
  without_scores<Forward>(question, answer);
}

void without_scores(Question<Cached>* question, Answer* answer) {
  const Cached& call = question->call;
  if (computes(call)) return;
  *answer = {};
  answer->is_served = !leaves_out(call.problem, call.args.min_seqlen_q);
}

void with_vectors(Question<Forward>* question, Answer* answer) {
  question->told.in_vectors = true;
  *answer = ask(*question);
}

// A size that fills no tile. Upstream's asynchronous kernels ask for a multiple of 8.
int32_t odd_size(int32_t head_size) { return head_size % 8 == 0 ? 8 : head_size; }

// Asks with lengths and head sizes that need padding, the fewest first, until upstream serves it.
template <typename Call>
void with_padding(Question<Call>* question, Answer* answer) {
  if (answer->is_served) return;
  for (int wanted = 0; wanted <= 4; ++wanted) {
    for (unsigned padded = 0; padded < 16; ++padded) {
      if (__builtin_popcount(padded) != wanted) continue;
      Question<Call> other = *question;
      Told& told = other.told;
      // It stays above the tiles of kernels for few queries.
      if (padded & 1) told.seqlen_q |= 1;
      // It stays among the lengths that kernels for few keys are for, or above.
      if (padded & 2) told.seqlen_k = std::max((told.seqlen_k - 1) | 1, 1);
      if (padded & 4) told.head_size_qk = odd_size(told.head_size_qk);
      if (padded & 8) told.head_size_v = odd_size(told.head_size_v);
      Answer found = ask(other);
      if (!found.is_served) continue;
      *question = other;
      *answer = std::move(found);
      return;
    }
  }
}

// Keys per tile, which an instance's name has: ..._b64x128x...
int32_t keys_in_tile(const std::string& name) {
  size_t tile = name.find("_b");
  while (!std::isdigit(static_cast<unsigned char>(name[tile + 2])))
    tile = name.find("_b", tile + 1);
  return std::stoi(name.substr(name.find('x', tile) + 1));
}

// The kernel ahead of dq_dk_dv knows the head size of v alone, the one behind it that of q and k.
void with_padding_of_each(Question<Backward>* question, Answer* answer) {
  if (answer->launches.size() < 2) return;
  const attn_problem& p = question->call.problem;
  Question<Backward> other = *question;
  other.told.head_size_qk = other.told.head_size_v = p.head_size_v;
  Answer found = ask(other);
  if (found.is_served) answer->launches[0] = found.launches[0];
  if (answer->launches.size() != 3) return;
  // More queries than the kernels are for that need none behind them, and as multiples of tiles as
  // before; where sums of dq are another tile's, with few keys, whose kernels have smaller tiles.
  other.told.head_size_qk = other.told.head_size_v = p.head_size_qk;
  other.told.seqlen_q += 1 << 16;
  for (const int32_t keys : {question->told.seqlen_k, 1}) {
    other.told.seqlen_k = keys;
    found = ask(other);
    if (!found.is_served) return;
    if (keys_in_tile(found.launches[2].name) != keys_in_tile(answer->launches[2].name)) continue;
    answer->launches[2] = found.launches[2];
    return;
  }
}

template <typename Call>
void with_larger_head_size(Question<Call>* question, Answer* answer) {
  if (answer->is_served) return;
  for (const auto& [qk, v] : kBuckets) {
    if (qk < question->told.bucket_qk || v < question->told.bucket_v) continue;
    Question<Call> other = *question;
    other.told.bucket_qk = qk;
    other.told.bucket_v = v;
    with_padding(&other, answer);
    if (!answer->is_served) continue;
    *question = other;
    return;
  }
}

void with_starts_of_queries(Question<Cached>* question, Answer* answer) {
  attn_problem& p = question->call.problem;
  if (!p.cu_seqlens_k) p.cu_seqlens_k = p.cu_seqlens_q;
  *answer = ask(*question);
}

void in_one_form(Question<Cached>* question, Answer* answer) {
  question->call.plain_form = true;
  *answer = ask(*question);
}

void without_small_pages(Question<Cached>* question, Answer* answer) {
  const attn_kvcache& cache = question->call.cache;
  if (!cache.block_table || answer->launches.empty()) return;
  if (cache.page_size % keys_in_tile(answer->launches[0].name) != 0) *answer = {};
}

void on_a_busy_gpu(Question<Cached>* question, Answer* answer) {
  if (!question->call.cache.page_indptr) return;
  question->call.busy = true;
  *answer = ask(*question);
}

void without_queries(Question<Appended>* question, Answer* answer) {
  Appended& call = question->call;
  if (call.args.rotary != ATTN_ROTARY_NONE || !computes(call)) return;
  call.problem.seqlen_q = question->told.seqlen_q = 0;
  call.problem.heads_q = call.problem.heads_k;
  *answer = ask(*question);
}

void without_pages_under_new_keys(Question<Appended>* question, Answer* answer) {
  const Appended& call = question->call;
  if (call.cache.page_size == 0 || answer->launches.empty()) return;
  const int32_t keys = std::min(call.args.seqlen_new, keys_in_tile(answer->launches[0].name));
  if (keys > call.cache.page_size + 1) *answer = {};
}

void with_sums(Question<Backward>* question, Answer* answer) {
  const attn_problem& p = question->call.problem;
  if (answer->launches.empty() || p.heads_q == p.heads_k) return;
  answer->sums = 2;
}

template <typename Call>
constexpr Difference<Call> kOfStrides = {
    "unused strides",
    "The stride of a dimension with one entry may be any number in the C ABI; upstream narrows it "
    "to 32 bits, and some kernels check bounds by it.",
    without_unused_strides<Call>};

template <typename Call>
constexpr Difference<Call> kOfAll[] = {
    kOfStrides<Call>,
    {"wide windows",
     "A window that reaches beyond all keys is an open one; upstream adds to it in 32 bits.",
     without_wide_windows<Call>},
    {"nothing to compute",
     "Without queries or without keys the results are filled; upstream launches a kernel for it. "
     "Over a cache min_seqlen_q is refused then.",
     [](Question<Call>* question, Answer* answer) { without_scores(question, answer); }},
};

template <typename Call>
constexpr Difference<Call> kOfForms[] = {
    {"a padded form",
     "Where only kernels with bounds checks are built, upstream refuses lengths and head sizes "
     "that need none; they serve these, too.",
     with_padding<Call>},
    {"a larger head size",
     "Upstream tries the least head size that fits, and gives up where that has no kernel; a "
     "kernel of a larger one serves the problem, too.",
     with_larger_head_size<Call>},
};

}  // namespace

Question<Forward> question_of(const Forward& call) { return {call, told_of(call.problem)}; }

Question<Backward> question_of(const Backward& call) { return {call, told_of(call.problem)}; }

Question<Cached> question_of(const Cached& call) { return {call, told_of(call.problem)}; }

Question<Appended> question_of(const Appended& call) { return {call, told_of(call.problem)}; }

template <>
const std::vector<Difference<Forward>>& differences() {
  static const auto* const all = [] {
    auto* list = new std::vector<Difference<Forward>>(std::begin(kOfAll<Forward>),
                                                      std::end(kOfAll<Forward>));
    list->push_back(
        {"vectors of a head",
         "Kernels with transposed loads copy 16 bytes at a time, as asynchronous ones do, for "
         "which alone upstream asks for head sizes in multiples of that.",
         with_vectors});
    list->insert(list->end(), std::begin(kOfForms<Forward>), std::end(kOfForms<Forward>));
    return list;
  }();
  return *all;
}

template <>
const std::vector<Difference<Backward>>& differences() {
  static const auto* const all = [] {
    auto* list = new std::vector<Difference<Backward>>(std::begin(kOfAll<Backward>),
                                                       std::end(kOfAll<Backward>));
    list->insert(list->end(), std::begin(kOfForms<Backward>), std::end(kOfForms<Backward>));
    list->push_back(
        {"padding of each kernel",
         "Where upstream refuses a pair of head sizes, as dq_dk_dv is built for both padded or "
         "neither, the kernels beside it check only bounds that the problem needs.",
         with_padding_of_each});
    list->push_back(
        {"sums over heads",
         "Upstream leaves dk and dv with a head for each query head; they are summed here.",
         with_sums});
    return list;
  }();
  return *all;
}

template <>
const std::vector<Difference<Cached>>& differences() {
  static const auto* const all = [] {
    auto* list =
        new std::vector<Difference<Cached>>(std::begin(kOfAll<Cached>), std::end(kOfAll<Cached>));
    list->push_back({"starts that are not read",
                     "In group mode upstream's kernels add the start of a sequence to k and v, "
                     "which in pages they do not use; without cu_seqlens_k it is that of queries.",
                     with_starts_of_queries});
    list->push_back({"one form",
                     "Of a split kernel one form is built, which serves any length of keys; "
                     "upstream has others for parts of equal length and for single queries.",
                     in_one_form});
    list->insert(list->end(), std::begin(kOfForms<Cached>), std::end(kOfForms<Cached>));
    list->push_back({"pages under a tile",
                     "Upstream's kernels find a tile of keys by one entry of the block table, and "
                     "read beyond smaller pages; they are refused.",
                     without_small_pages});
    list->push_back({"one tile of queries",
                     "Upstream has each kernel over listed keys twice, and takes one with fewer "
                     "queries in a tile where the other leaves compute units idle; here that "
                     "other one serves every call.",
                     on_a_busy_gpu});
    return list;
  }();
  return *all;
}

template <>
const std::vector<Difference<Appended>>& differences() {
  static const auto* const all = new std::vector<Difference<Appended>>{
      kOfStrides<Appended>,
      {"nothing to append",
       "Without new keys, and without queries to rotate, nothing is launched; upstream launches a "
       "kernel for it.",
       without_scores<Appended>},
      {"queries as they are",
       "Without rotary embedding no query is touched, and the C ABI takes none; upstream has "
       "workgroups for their tiles, and appends the same keys once for each head of a group.",
       without_queries},
      {"pages under the new keys",
       "Upstream's kernel writes a tile of new keys to two pages at most, and beyond the second "
       "one where pages are small; they are refused.",
       without_pages_under_new_keys},
  };
  return *all;
}

}  // namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity
