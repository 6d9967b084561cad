// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "tests/dispatch/problems.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "aiter/attention/problem/problem.h"
#include "kernels/archs/archs.h"

namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity {
namespace {

constexpr int64_t kRoom = int64_t{1} << 33;
constexpr int64_t kElementRoom = sizeof(float);  // of the widest dtype

// On, beside and between the sizes that upstream's tiles have; 257 and more fit none.
constexpr int32_t kHeadSizes[][2] = {
    {64, 64},   {128, 128}, {32, 32},  {256, 256}, {192, 128}, {96, 96},   {160, 160},
    {192, 192}, {40, 40},   {72, 72},  {100, 100}, {36, 36},   {96, 128},  {64, 128},
    {128, 64},  {64, 8},    {72, 128}, {8, 8},     {1, 1},     {200, 256}, {300, 64}};
constexpr int32_t kTiles[] = {16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 640, 1024};
// Elements of a tensor of queries, and of scores, at most: they may be filled.
constexpr int64_t kMostElements = 1 << 16;
constexpr int64_t kMostScores = 1 << 18;

class Draw {
 public:
  explicit Draw(std::mt19937* random) : random_(random) {}

  // From least to most.
  int32_t number(int32_t least, int32_t most) {
    return least + static_cast<int32_t>((*random_)() % static_cast<uint32_t>(most - least + 1));
  }
  bool one_in(int32_t n) { return number(1, n) == 1; }
  template <typename T>
  T of(std::initializer_list<T> values) {
    return values.begin()[number(0, static_cast<int32_t>(values.size()) - 1)];
  }
  int32_t length() {
    if (one_in(40)) return 0;
    if (one_in(3)) return number(1, 700);
    const int32_t tile = kTiles[number(0, static_cast<int32_t>(std::size(kTiles)) - 1)];
    return tile + of({0, 0, 0, 0, -1, 1});
  }

 private:
  std::mt19937* random_;
};

attn_problem random_problem(Draw* draw, bool backward) {
  attn_problem p = {};
  p.struct_size = sizeof(p);
  p.device_type = ATTN_DEVICE_ROCM;
  p.dtype = draw->of({ATTN_DTYPE_FP16, ATTN_DTYPE_BF16});
  const auto& sizes =
      kHeadSizes[draw->one_in(2) ? draw->number(0, 1) : draw->number(0, std::size(kHeadSizes) - 1)];
  p.head_size_qk = sizes[0];
  p.head_size_v = sizes[1];
  p.heads_k = draw->of({1, 1, 2, 3, 4});
  p.heads_q = p.heads_k * draw->of({1, 1, 2, 4});
  p.batch = draw->of({1, 1, 2, 3, 5});
  p.seqlen_q = draw->length();
  p.seqlen_k = draw->one_in(4) ? p.seqlen_q : draw->length();
  while (int64_t{p.batch} * p.seqlen_q * p.heads_q * p.head_size_qk > kMostElements &&
         p.batch > 1) {
    --p.batch;
  }
  if (int64_t{p.seqlen_q} * p.heads_q * p.head_size_qk > 4 * kMostElements) {
    p.heads_q = p.heads_k = 1;
  }
  p.softmax_scale = 0.125f * static_cast<float>(draw->number(1, 16));
  p.mode = draw->of({ATTN_MODE_BATCH, ATTN_MODE_GROUP});
  p.window_left = p.window_right = -1;
  if (!draw->one_in(3)) {
    p.mask = draw->of({ATTN_MASK_TOP_LEFT, ATTN_MASK_BOTTOM_RIGHT});
    p.window_right = 0;  // causal
    if (draw->one_in(2)) {
      p.window_left = draw->of({-1, 0, draw->number(1, 300), p.seqlen_q + p.seqlen_k});
      p.window_right = draw->of({-1, 0, draw->number(1, 300), p.seqlen_q + p.seqlen_k + 7});
    }
  }
  if (draw->one_in(2)) p.bias = draw->of({ATTN_BIAS_ELEMENTWISE, ATTN_BIAS_ALIBI});
  if (!backward && draw->one_in(5)) p.logits_soft_cap = 30;
  if (draw->one_in(3)) {
    p.dropout_p = 0.01f * static_cast<float>(draw->number(1, 99));
    p.dropout_seed = draw->number(0, 1 << 30);
    p.dropout_offset = draw->number(0, 1 << 30);
  }
  return p;
}

void add_group(attn_problem* p, Draw* draw, AddressSpace* addresses) {
  if (p->mode != ATTN_MODE_GROUP) return;
  // One sequence has the greatest length, the others have what is left.
  p->total_q = draw->number(p->seqlen_q, p->batch * p->seqlen_q);
  p->total_k = draw->number(p->seqlen_k, p->batch * p->seqlen_k);
  p->cu_seqlens_q = static_cast<int32_t*>(addresses->take(4 * (p->batch + 1)));
  p->cu_seqlens_k = static_cast<int32_t*>(addresses->take(4 * (p->batch + 1)));
}

// Used rows of sequences, by their numbers or by sums, for those sides where kernels take sums: in
// batch mode no others are.
struct SumsOf {
  bool queries, keys;
};

void add_padding(attn_problem* p, SumsOf sums, Draw* draw, AddressSpace* addresses) {
  if (!has_scores(*p)) return;
  const auto add = [&](const int32_t** in_numbers, const int32_t** in_sums, bool may_sum) {
    if (!draw->one_in(4)) return;
    const bool by_sums = may_sum && (!is_group(*p) || draw->one_in(2));
    if (!by_sums && !is_group(*p)) return;
    *(by_sums ? in_sums : in_numbers) = static_cast<int32_t*>(addresses->take(4 * (p->batch + 1)));
  };
  add(&p->seqused_q, &p->cu_seqused_q, sums.queries);
  add(&p->seqused_k, &p->cu_seqused_k, sums.keys);
}

// Numbers, or where they will be.
void add_rng_state(attn_problem* p, Draw* draw, AddressSpace* addresses) {
  if (p->dropout_p == 0 || draw->one_in(2)) return;
  p->dropout_seed = p->dropout_offset = 0;
  p->rng_state = static_cast<uint64_t*>(addresses->take(16));
}

attn_tensor random_tensor(const Extents& e, Draw* draw, AddressSpace* addresses) {
  attn_tensor t = {};
  // Two of three heads' widths stay unused, as where q, k and v are parts of one row.
  const int64_t width = e.head_size * draw->of({1, 1, 1, 3});
  if (draw->one_in(3)) {
    t.stride_seq = width;
    t.stride_head = e.seq * width;
  } else {
    t.stride_head = width;
    t.stride_seq = e.heads * width;
  }
  t.stride_batch = e.seq * e.heads * width;
  t.data = addresses->take(kElementRoom * e.batch * t.stride_batch);
  return t;
}

// A bias may be repeated over batch entries and heads.
attn_tensor random_scores(const Extents& e, bool repeats, Draw* draw, AddressSpace* addresses) {
  attn_tensor t = {};
  const int64_t row = (e.head_size + 7) / 8 * 8;
  t.stride_seq = row;
  t.stride_head = e.seq * row;
  t.stride_batch = e.heads * t.stride_head;
  t.data = addresses->take(kElementRoom * e.batch * t.stride_batch);
  if (repeats && draw->one_in(2)) t.stride_batch = 0;
  if (repeats && draw->one_in(2)) t.stride_head = 0;
  return t;
}

template <typename Args>
void add_bias(const attn_problem& p, Args* args, Draw* draw, AddressSpace* addresses) {
  if (p.bias == ATTN_BIAS_ELEMENTWISE) {
    args->bias = random_scores(score_extents(p), true, draw, addresses);
  } else if (p.bias == ATTN_BIAS_ALIBI) {
    args->alibi_slopes = static_cast<float*>(addresses->take(4 * p.batch * p.heads_q));
    args->alibi_stride_batch = draw->of({0, p.heads_q});
  }
}

// That of the arch that the recording HIP has.
attn_dtype fp8_of_device() {
  const char* const arch = std::getenv("AITER_RECORDING_HIP_ARCHS");
  const kernels::ArchFacts* const facts = kernels::find_arch(arch ? arch : "");
  if (!facts) throw std::runtime_error("AITER_RECORDING_HIP_ARCHS names no arch");
  return facts->fp8 == kernels::ArchFp8::kE4m3 ? ATTN_DTYPE_FP8_E4M3 : ATTN_DTYPE_FP8_E4M3_FNUZ;
}

// Most of such calls have no more than kernels serve. Scales are powers of two, which upstream's
// program multiplies in another order. By columns a v has an o of fp8, in batch mode alone.
void turn_to_fp8(Forward* call, Draw* draw) {
  attn_problem& p = call->problem;
  p.dtype = fp8_of_device();
  if (!draw->one_in(8)) p.dropout_p = 0, p.dropout_seed = p.dropout_offset = 0;
  if (!draw->one_in(4)) p.logits_soft_cap = 0;
  attn_fwd_args& args = call->args;
  args.o_dtype = draw->of({ATTN_DTYPE_BF16, ATTN_DTYPE_BF16, ATTN_DTYPE_FP32});
  args.descale_q = draw->of({0.5f, 1.0f, 4.0f});
  args.descale_k = draw->of({0.25f, 1.0f, 2.0f});
  args.descale_v = draw->of({0.125f, 1.0f, 8.0f});
  if (is_group(p) || draw->one_in(2)) return;
  args.o_dtype = 0;
  args.scale_o = draw->of({0.5f, 1.0f, 32.0f});
  args.v_layout = ATTN_V_COLUMNS;
}

const char* name_of_dtype(int32_t dtype) {
  if (is_fp8(dtype)) return "fp8";
  return dtype == ATTN_DTYPE_FP32 ? "fp32" : dtype == ATTN_DTYPE_BF16 ? "bf16" : "fp16";
}

void describe_problem(const attn_problem& p, std::ostream& out) {
  out << name_of_dtype(p.dtype) << (p.mode == ATTN_MODE_GROUP ? " group" : " batch") << " "
      << p.batch << " x heads " << p.heads_q << "/" << p.heads_k << " d" << p.head_size_qk << "/"
      << p.head_size_v << ", queries " << p.seqlen_q << " (" << p.total_q << "), keys "
      << p.seqlen_k << " (" << p.total_k << "), mask " << p.mask << " (" << p.window_left << ", "
      << p.window_right << "), bias " << p.bias << ", cap " << p.logits_soft_cap << ", dropout "
      << p.dropout_p;
}

int32_t* take_numbers(int64_t count, AddressSpace* addresses) {
  return static_cast<int32_t*>(addresses->take(4 * count));
}

// The room of a sequence becomes that of whole pages.
void add_pages(attn_problem* p, attn_kvcache* cache, AddressSpace* addresses, Draw* draw) {
  cache->block_table_stride = (p->seqlen_k + cache->page_size - 1) / cache->page_size;
  p->seqlen_k = static_cast<int32_t>(cache->block_table_stride) * cache->page_size;
  cache->block_table = take_numbers(p->batch * cache->block_table_stride, addresses);
  cache->entries = p->batch * static_cast<int32_t>(cache->block_table_stride) + draw->number(0, 3);
}

void add_entries(const attn_problem& p, attn_kvcache* cache, AddressSpace* addresses, Draw* draw) {
  cache->entries = is_group(p) ? p.batch : p.batch + draw->number(0, 2);
  if (!is_group(p) && draw->one_in(2)) cache->batch_index = take_numbers(p.batch, addresses);
}

enum class Keys { kInPlace, kInPages, kListed };

Cached random_cached(std::mt19937* random, AddressSpace* addresses, Keys where, bool one_split) {
  const bool pages = where != Keys::kInPlace;
  const bool listed = where == Keys::kListed;
  Draw draw(random);
  addresses->clear();
  Cached call = {random_problem(&draw, /*backward=*/false)};
  attn_problem& p = call.problem;
  p.dropout_p = 0;
  p.dropout_seed = p.dropout_offset = 0;
  if (p.bias == ATTN_BIAS_ELEMENTWISE) p.bias = ATTN_BIAS_NONE;
  // Decoding asks for one query.
  if (draw.one_in(3)) p.seqlen_q = 1;
  // No other mode has kernels over listed keys.
  if (listed && !draw.one_in(8)) p.mode = ATTN_MODE_GROUP;
  const bool group = is_group(p);
  attn_kvcache& cache = call.cache;
  cache.struct_size = sizeof(cache);
  if (listed) {
    cache.page_size = 1;
    // Sequences may share keys.
    cache.entries = draw.number(0, p.batch * p.seqlen_k + 1);
    cache.page_indptr = take_numbers(p.batch + 1, addresses);
    cache.page_indices = take_numbers(p.batch * p.seqlen_k, addresses);
  } else if (pages) {
    cache.page_size = draw.of({16, 32, 64, 128, 128, 256});
    add_pages(&p, &cache, addresses, &draw);
  } else {
    add_entries(p, &cache, addresses, &draw);
  }
  add_group(&p, &draw, addresses);
  if (pages && group && draw.one_in(2)) {
    p.total_k = 0;
    p.cu_seqlens_k = nullptr;
  }
  const bool needs_lengths = pages && !listed && group && !p.cu_seqlens_k;
  const bool may_have_lengths = pages || !group;
  if (needs_lengths || (may_have_lengths && draw.one_in(listed ? 16 : 2))) {
    cache.seqlens_k = take_numbers(p.batch, addresses);
  }

  attn_kvcache_fwd_args& args = call.args;
  args.struct_size = sizeof(args);
  args.splits = one_split ? draw.of({0, 1}) : draw.of({2, 3, 4, 7, 8});
  call.splits = args.splits;
  const auto keys = [&](int32_t head_size) {
    if (pages) return Extents{cache.entries, cache.page_size, p.heads_k, head_size};
    if (group) return key_extents(p, p.heads_k, head_size);
    return Extents{cache.entries, p.seqlen_k, p.heads_k, head_size};
  };
  args.q = random_tensor(query_extents(p, p.head_size_qk), &draw, addresses);
  args.k = random_tensor(keys(p.head_size_qk), &draw, addresses);
  args.v = random_tensor(keys(p.head_size_v), &draw, addresses);
  args.o = random_tensor(query_extents(p, p.head_size_v), &draw, addresses);
  if (!draw.one_in(3)) {
    args.lse = static_cast<float*>(addresses->take(4 * query_rows(p) * p.heads_q));
  }
  if (p.bias == ATTN_BIAS_ALIBI) {
    args.alibi_slopes = static_cast<float*>(addresses->take(4 * p.batch * p.heads_q));
    args.alibi_stride_batch = draw.of({0, p.heads_q});
  }
  if (pages && group && args.splits <= 1 && draw.one_in(listed ? 16 : 4)) {
    args.min_seqlen_q = draw.number(1, 200);
  }
  return call;
}

}  // namespace

AddressSpace::AddressSpace() {
  void* base = mmap(nullptr, kRoom, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) throw std::runtime_error("no addresses are left");
  base_ = static_cast<char*>(base);
}

void* AddressSpace::take(int64_t bytes) {
  char* const at = base_ + used_;
  used_ += (bytes + 255) / 256 * 256;
  if (used_ > kRoom) throw std::runtime_error("a problem needs too many addresses");
  return at;
}

Forward random_forward(std::mt19937* random, AddressSpace* addresses) {
  Draw draw(random);
  addresses->clear();
  Forward call = {random_problem(&draw, /*backward=*/false), {}};
  attn_problem& p = call.problem;
  attn_fwd_args& args = call.args;
  if (draw.one_in(4)) turn_to_fp8(&call, &draw);
  add_group(&p, &draw, addresses);
  add_rng_state(&p, &draw, addresses);
  args.struct_size = sizeof(args);
  Extents value = key_extents(p, p.heads_k, p.head_size_v);
  if (args.v_layout == ATTN_V_COLUMNS) value = {p.batch, p.head_size_v, p.heads_k, p.seqlen_k};
  args.q = random_tensor(query_extents(p, p.head_size_qk), &draw, addresses);
  args.k = random_tensor(key_extents(p, p.heads_k, p.head_size_qk), &draw, addresses);
  args.v = random_tensor(value, &draw, addresses);
  args.o = random_tensor(query_extents(p, p.head_size_v), &draw, addresses);
  // Kernels of fp8 write none.
  if (is_fp8(p.dtype) ? draw.one_in(8) : !draw.one_in(3)) {
    args.lse = static_cast<float*>(addresses->take(4 * query_rows(p) * p.heads_q));
  }
  add_bias(p, &args, &draw, addresses);
  if (is_group(p) && draw.one_in(5)) args.min_seqlen_q = draw.number(1, 200);
  // In batch mode upstream takes kernels for padded queries that do not check their bounds.
  add_padding(&p, {is_group(p), true}, &draw, addresses);
  return call;
}

Backward random_backward(std::mt19937* random, AddressSpace* addresses) {
  Draw draw(random);
  addresses->clear();
  Backward call = {random_problem(&draw, /*backward=*/true), {}};
  attn_problem& p = call.problem;
  // The gradient of every score is filled.
  if (p.batch * p.heads_q * int64_t{p.seqlen_q} * p.seqlen_k > kMostScores) p.batch = 1;
  add_group(&p, &draw, addresses);
  add_rng_state(&p, &draw, addresses);
  attn_bwd_args& args = call.args;
  args.struct_size = sizeof(args);
  const Extents query = query_extents(p, p.head_size_qk);
  const Extents key = key_extents(p, p.heads_k, p.head_size_qk);
  const Extents value = key_extents(p, p.heads_k, p.head_size_v);
  const Extents out = query_extents(p, p.head_size_v);
  for (const auto& [tensor, extents] : {std::pair(&args.q, query),
                                        {&args.k, key},
                                        {&args.v, value},
                                        {&args.o, out},
                                        {&args.dout, out},
                                        {&args.dq, query},
                                        {&args.dk, key},
                                        {&args.dv, value}}) {
    *tensor = random_tensor(extents, &draw, addresses);
  }
  args.lse = static_cast<float*>(addresses->take(4 * query_rows(p) * p.heads_q));
  add_bias(p, &args, &draw, addresses);
  if (p.bias == ATTN_BIAS_ELEMENTWISE && draw.one_in(2)) {
    args.bias_grad = 1;
    args.dbias = random_scores(score_extents(p), false, &draw, addresses);
  }
  args.deterministic = draw.one_in(3);
  if (is_group(p) && !args.bias_grad) {
    add_padding(&p, {true, p.heads_q == p.heads_k}, &draw, addresses);
  }
  return call;
}

Cached random_split(std::mt19937* random, AddressSpace* addresses) {
  const bool pages = (*random)() % 2 == 0;
  return random_cached(random, addresses, pages ? Keys::kInPages : Keys::kInPlace,
                       /*one_split=*/!pages && (*random)() % 4 == 0);
}

Cached random_paged(std::mt19937* random, AddressSpace* addresses) {
  return random_cached(random, addresses, Keys::kInPages, /*one_split=*/true);
}

Cached random_listed(std::mt19937* random, AddressSpace* addresses) {
  return random_cached(random, addresses, Keys::kListed, /*one_split=*/(*random)() % 16 != 0);
}

Appended random_appended(std::mt19937* random, AddressSpace* addresses) {
  Draw draw(random);
  addresses->clear();
  Appended call = {random_problem(&draw, /*backward=*/false)};
  attn_problem& p = call.problem;
  p.mode = ATTN_MODE_BATCH;
  if (draw.one_in(3)) p.seqlen_q = 1;
  attn_kvcache& cache = call.cache;
  cache.struct_size = sizeof(cache);
  if (draw.one_in(2)) {
    // A tile of 64 new keys fits two pages of 63.
    cache.page_size = draw.of({16, 32, 62, 63, 64, 128, 256});
    add_pages(&p, &cache, addresses, &draw);
  } else {
    add_entries(p, &cache, addresses, &draw);
  }
  cache.seqlens_k = take_numbers(p.batch, addresses);

  attn_append_kv_args& args = call.args;
  args.struct_size = sizeof(args);
  args.seqlen_new = std::min(p.seqlen_k, draw.of({0, 1, 1, p.seqlen_q, draw.number(1, 130)}));
  const auto keys = [&](int32_t head_size) {
    const int32_t rows = cache.page_size > 0 ? cache.page_size : p.seqlen_k;
    return Extents{cache.entries, rows, p.heads_k, head_size};
  };
  const auto added = [&](int32_t head_size) {
    return Extents{p.batch, args.seqlen_new, p.heads_k, head_size};
  };
  args.k = random_tensor(keys(p.head_size_qk), &draw, addresses);
  args.v = random_tensor(keys(p.head_size_v), &draw, addresses);
  args.k_new = random_tensor(added(p.head_size_qk), &draw, addresses);
  args.v_new = random_tensor(added(p.head_size_v), &draw, addresses);
  const int32_t most_units = p.head_size_qk / 16;
  if (most_units == 0 || draw.one_in(3)) return call;
  args.rotary = draw.of({ATTN_ROTARY_HALVES, ATTN_ROTARY_INTERLEAVED});
  args.rotary_size = 16 * draw.number(1, most_units);
  args.rotary_length = p.seqlen_k + p.seqlen_q;
  const int64_t table = int64_t{args.rotary_length} * args.rotary_size;
  args.rotary_cos = addresses->take(table);
  args.rotary_sin = addresses->take(table);
  args.q = random_tensor(query_extents(p, p.head_size_qk), &draw, addresses);
  return call;
}

std::string describe(const Forward& call) {
  std::ostringstream out;
  describe_problem(call.problem, out);
  out << (call.args.lse ? ", lse" : "") << ", least queries " << call.args.min_seqlen_q;
  if (is_fp8(call.problem.dtype)) {
    out << ", o of " << (call.args.o_dtype ? name_of_dtype(call.args.o_dtype) : "fp8");
  }
  return out.str();
}

std::string describe(const Backward& call) {
  std::ostringstream out;
  describe_problem(call.problem, out);
  out << (call.args.bias_grad ? ", bias_grad" : "")
      << (call.args.deterministic ? ", deterministic" : "");
  return out.str();
}

std::string describe(const Cached& call) {
  std::ostringstream out;
  describe_problem(call.problem, out);
  out << (call.args.lse ? ", lse" : "") << ", least queries " << call.args.min_seqlen_q
      << ", splits " << call.args.splits << ", page size " << call.cache.page_size
      << (call.cache.seqlens_k ? ", lengths" : "") << (call.cache.batch_index ? ", entries" : "");
  return out.str();
}

std::string describe(const Appended& call) {
  std::ostringstream out;
  describe_problem(call.problem, out);
  out << ", new keys " << call.args.seqlen_new << ", rotary " << call.args.rotary << " of "
      << call.args.rotary_size << ", page size " << call.cache.page_size
      << (call.cache.batch_index ? ", entries" : "");
  return out.str();
}

}  // namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity
