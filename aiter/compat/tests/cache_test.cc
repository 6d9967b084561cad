// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Calls over key-value caches by AITER's interface launch what the same calls of the C ABI launch:
// random structs, against the recording HIP; and the refusals, which name AITER's fields.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mha_fwd.h>

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "aiter/attn.h"
#include "aiter/compat/tests/cached_call.h"
#include "aiter/compat/tests/recorded.h"

namespace AITER_ATTN_NAMESPACE::compat {
namespace {

using consumer::prefill;
using consumer::prefill_args;
using consumer::splitkv;
using consumer::splitkv_args;
using consumer::Tensor;
using testing::Recorder;
using ::testing::StartsWith;
using Call = consumer::CachedCall;
using Layout = ck_tile::BlockAttentionKVCacheMemoryLayoutEnum;
using Table = ck_tile::BlockAttentionKVCacheLookupTableEnum;

constexpr int kCalls = 600;  // of each function
constexpr int32_t kPages = 12;
void* const kStream = reinterpret_cast<void*>(0x5000);

class Draw {
 public:
  explicit Draw(uint32_t seed) : random_(seed) {}

  Call call(bool prefill) {
    Call c;
    c.stream = kStream;
    c.dtype = once_in(8) ? "bf16" : "fp16";
    c.group = prefill ? !once_in(6) : once_in(2);
    c.batch = number(1, 3);
    c.heads_k = number(1, 2);
    c.heads_q = c.heads_k * number(1, 3);
    c.size = once_in(2) ? 64 : 128;
    if (prefill && !once_in(4)) c.size = 128;
    c.rows = c.longest = number(1, 140);
    if (c.group) {
      c.longest = number(1, c.rows);
      c.starts_q = numbers(c.batch + 1);
    }
    c.by_list = prefill && !once_in(3);
    if (c.by_list) {
      c.page_size = 1;
    } else if (prefill || once_in(2)) {
      c.page_size = once_in(8) ? 48 : 128;
    }
    if (prefill) c.entries = kPages;
    c.lse = once_in(2);
    c.splits = prefill ? 1 : number(1, 9);
    c.mask = number(0, 3);
    if (c.mask != 0) c.left = once_in(2) ? -1 : 17, c.right = number(-1, 9);
    if (once_in(8)) c.cap = 30;
    if (once_in(8)) c.slopes = floats(c.heads_q);
    if (once_in(8)) c.sink = floats(c.heads_q);
    c.q = tensor(c.group ? 1 : c.batch, c.rows, c.heads_q, c.size);
    c.o = tensor(c.group ? 1 : c.batch, c.rows, c.heads_q, c.size);
    c.lse_data = floats(c.batch * c.heads_q * c.rows);
    if (c.page_size != 0) {
      c.k = tensor(kPages, c.page_size, c.heads_k, c.size);
      c.v = tensor(kPages, c.page_size, c.heads_k, c.size);
      c.pages = numbers(c.by_list ? 1000 : c.batch * c.width);
      if (c.by_list) c.starts_k = numbers(c.batch + 1);
      if (!c.by_list && (prefill || once_in(2))) c.lengths = numbers(c.batch);
      if (!prefill && c.group && !c.lengths) c.starts_k = numbers(c.batch + 1);
      return c;
    }
    c.k = tensor(c.group ? 1 : c.batch, c.keys, c.heads_k, c.size);
    c.v = tensor(c.group ? 1 : c.batch, c.keys, c.heads_k, c.size);
    if (c.group) {
      c.starts_k = numbers(c.batch + 1);
    } else {
      if (once_in(2)) c.lengths = numbers(c.batch);
      if (once_in(2)) c.index = numbers(c.batch);
    }
    if (!c.index) c.entries = c.batch;
    return c;
  }

 private:
  int number(int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random_);
  }
  bool once_in(int n) { return number(1, n) == 1; }
  const int32_t* numbers(int count) {
    return static_cast<const int32_t*>(memory_.take(4 * size_t(count)));
  }
  float* floats(int count) { return static_cast<float*>(memory_.take(4 * size_t(count))); }
  Tensor tensor(int batch, int rows, int heads, int size) {
    const int room = 8 * number(0, 1);
    const int32_t head = size + room, row = heads * head;
    return {memory_.take(2 * size_t(batch) * rows * row), rows * row, row, head};
  }

  std::mt19937 random_;
  Memory memory_;
};

attn_tensor tensor(const Tensor& t) { return {t.data, t.batch, t.row, t.head}; }

attn_status by_c_abi(const Call& c) {
  attn_problem p = {};
  p.struct_size = sizeof(p);
  p.mode = c.group ? ATTN_MODE_GROUP : ATTN_MODE_BATCH;
  p.device_type = ATTN_DEVICE_ROCM;
  p.stream = c.stream;
  p.dtype = std::string(c.dtype) == "fp16" ? ATTN_DTYPE_FP16 : ATTN_DTYPE_BF16;
  p.batch = c.batch;
  p.heads_q = c.heads_q;
  p.heads_k = c.heads_k;
  p.head_size_qk = p.head_size_v = c.size;
  p.seqlen_q = c.longest;
  p.seqlen_k = c.page_size > 1 ? c.width * c.page_size : c.keys;
  if (c.group) p.total_q = c.rows;
  p.cu_seqlens_q = c.starts_q;
  if (!c.by_list) p.cu_seqlens_k = c.starts_k;
  if (c.group && c.page_size == 0) p.total_k = c.keys;
  p.softmax_scale = c.scale;
  p.mask = c.mask == 3 ? ATTN_MASK_BOTTOM_RIGHT : c.mask;
  p.window_left = c.left;
  p.window_right = c.right;
  p.bias = c.slopes ? ATTN_BIAS_ALIBI : ATTN_BIAS_NONE;
  p.logits_soft_cap = c.cap;
  attn_kvcache cache = {};
  cache.struct_size = sizeof(cache);
  cache.entries = c.entries;
  cache.seqlens_k = c.lengths;
  cache.batch_index = c.index;
  cache.page_size = c.page_size;
  if (c.by_list) {
    cache.page_indptr = c.starts_k;
    cache.page_indices = c.pages;
  } else if (c.page_size != 0) {
    cache.block_table = c.pages;
    cache.block_table_stride = c.width;
  }
  attn_kvcache_fwd_args args = {};
  args.struct_size = sizeof(args);
  args.splits = c.splits;
  args.problem = &p;
  args.cache = &cache;
  args.q = tensor(c.q);
  args.k = tensor(c.k);
  args.v = tensor(c.v);
  args.o = tensor(c.o);
  args.lse = c.lse ? c.lse_data : nullptr;
  args.alibi_slopes = c.slopes;
  args.sink = c.sink;
  const attn_status status = attn_kvcache_fwd_workspace_size(&args, &args.workspace_size);
  if (status != ATTN_OK) return status;
  const PoolMemory scratch(args.workspace_size);
  args.workspace = scratch.data();
  return attn_kvcache_fwd(&args);
}

// Random calls by both interfaces: the same launches, or both refuse.
template <typename ByAiter>
void compare(bool prefill, const ByAiter& by_aiter) {
  int served[2] = {}, launches = 0;  // in place or by a list, and by a block table
  for (int seed = 0; seed < kCalls; ++seed) {
    SCOPED_TRACE(seed);
    Draw draw(seed);
    const Call call = draw.call(prefill);
    const Recorder recorder;
    const attn_status status = by_c_abi(call);
    const std::string reason = attn_last_error();
    const std::vector<std::string> wanted = texts_of(recorder);
    const Recorder again;
    ::testing::internal::CaptureStderr();
    const float answer = by_aiter(call);
    const std::string message = ::testing::internal::GetCapturedStderr();
    ASSERT_EQ(answer, status == ATTN_OK ? 0.0f : -1.0f) << message << reason;
    ASSERT_EQ(message.empty(), status == ATTN_OK) << message;
    ASSERT_TRUE(texts_of(again) == wanted);
    ASSERT_EQ(again.living(), 0u);
    served[call.page_size > 1] += status == ATTN_OK;
    launches += static_cast<int>(wanted.size());
  }
  EXPECT_GT(served[0], 50);
  EXPECT_GT(served[1], 50);
  EXPECT_GT(launches, kCalls / 4);
}

TEST(CacheTest, SplitkvLaunchesWhatTheCAbiDoes) {
  compare(false, [](const Call& c) { return splitkv(c, splitkv_args(c)); });
}

TEST(CacheTest, BatchPrefillLaunchesWhatTheCAbiDoes) {
  compare(true, [](const Call& c) { return prefill(c, prefill_args(c)); });
}

template <typename Args>
struct Bad {
  std::function<void(Args*, Call*)> edit;
  const char* text;
};

// A call in a block table's pages, which is served until `edit` has changed it.
template <typename Args>
void expect_refused(const std::vector<Bad<Args>>& all, const char* function, bool group,
                    Args (*make)(const Call&),
                    const std::function<float(const Call&, const Args&)>& call) {
  for (const Bad<Args>& bad : all) {
    Memory memory;
    Call c;
    c.group = group;
    c.page_size = 128;
    const auto numbers = [&memory] { return static_cast<const int32_t*>(memory.take(1 << 10)); };
    c.pages = numbers();
    c.lengths = numbers();
    if (group) c.starts_q = numbers();
    for (Tensor* t : {&c.q, &c.k, &c.v, &c.o}) {
      *t = {memory.take(1 << 20), 4 * 128 * 40, 4 * 128, 128};
    }
    for (Tensor* t : {&c.k, &c.v}) *t = {t->data, 2 * 128 * 128, 2 * 128, 128};
    c.lse_data = static_cast<float*>(memory.take(1 << 12));
    c.lse = false;
    const Recorder served;
    ASSERT_EQ(call(c, make(c)), 0);
    ASSERT_NE(served.order(), "");
    Args args = make(c);
    bad.edit(&args, &c);
    const Recorder refused;
    ::testing::internal::CaptureStderr();
    const float answer = call(c, args);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                StartsWith(function + (": " + std::string(bad.text))));
    EXPECT_EQ(answer, -1) << bad.text;
    EXPECT_EQ(refused.order(), "") << bad.text;
  }
}

template <typename Args>
std::vector<Bad<Args>> common() {
  return {
      {[](Args*, Call* c) { c->dtype = "fp8bf16"; }, "q_dtype_str is fp8bf16, but must be fp16"},
      {[](Args* a, Call*) { a->mask_type = 2; }, "mask_type is 2, but must be the function's"},
      {[](Args* a, Call*) { a->scale_p = 2; }, "scale_p is 2, but must be 1"},
      {[](Args* a, Call*) { a->scale_o = 0; }, "scale_o is 0, but must be 1"},
      {[](Args* a, Call*) { a->scale_s = 0; }, "scale_s is 0"},
      {[](Args* a, Call*) { a->sink_size = 4; }, "sink_size is 4, but must be 0"},
      {[](Args* a, Call*) { a->q_ptr = nullptr; }, "q_ptr is NULL"},
      {[](Args* a, Call*) { a->max_seqlen_q = -1; }, "max_seqlen_q is -1"},
      {[](Args* a, Call*) { a->page_block_size = 0; }, "page_block_size is 0, but must be"},
      {[](Args* a, Call*) { a->batch_stride_block_table = -1; }, "batch_stride_block_table is -1"},
      {[](Args* a, Call*) { a->batch_stride_block_table = 1 << 30; },
       "batch_stride_block_table is 1073741824, but times page_block_size"},
      {[](Args* a, Call* c) {
         c->lse = true;
         a->lse_ptr = nullptr;
       },
       "lse_ptr is NULL, but has_lse needs one"},
      {[](Args*, Call* c) {
         static const float slope = 1;
         c->slopes = &slope;
       },
       "bias_ptr is NULL, but bias_type 2 (ALiBi) needs slopes"},
  };
}

TEST(CacheTest, SplitkvRefuses) {
  using Args = fmha_fwd_splitkv_args;
  static const int32_t numbers[4] = {};
  const std::function<float(const Call&, const Args&)> call = splitkv;
  std::vector<Bad<Args>> all = common<Args>();
  const std::vector<Bad<Args>> more = {
      {[](Args* a, Call*) { a->num_splits = 0; }, "num_splits is 0, but must be at least 1"},
      {[](Args* a, Call*) { a->num_splits = 129; }, "num_splits is 129"},
      {[](Args* a, Call*) { a->is_gappy = true; }, "is_gappy is true, but must be false"},
      {[](Args* a, Call*) { a->cache_batch_idx = numbers; }, "cache_batch_idx is set, but pages"},
      {[](Args* a, Call*) { a->seqstart_q_ptr = numbers; }, "seqstart_q_ptr is 0x"},
      {[](Args* a, Call*) {
         a->seqlen_k_ptr = nullptr;
         a->seqlen_k = 300;
       },
       "seqlen_k is 300, but must be the room of a row of block_table_ptr, 512"},
  };
  all.insert(all.end(), more.begin(), more.end());
  expect_refused<Args>(all, "aiter::mha_fwd_splitkv", false, splitkv_args, call);
}

TEST(CacheTest, BatchPrefillRefuses) {
  using Args = fmha_batch_prefill_args;
  const std::function<float(const Call&, const Args&)> call = [](const Call& c, const Args& args) {
    return prefill(c, args);
  };
  std::vector<Bad<Args>> all = common<Args>();
  const std::vector<Bad<Args>> more = {
      {[](Args* a, Call*) { a->kv_memory_layout = Layout::VECTORIZED_LAYOUT; },
       "kv_memory_layout is 0, but must be LINEAR_LAYOUT"},
      {[](Args* a, Call*) { a->kv_lookup_table = static_cast<Table>(2); },
       "kv_lookup_table is 2, but must be"},
      {[](Args* a, Call*) { a->kv_lookup_table = Table::SGLANG_PAGE_TABLE_1D; },
       "page_block_size is 128, but must be 1 with SGLANG_PAGE_TABLE_1D"},
      {[](Args* a, Call*) { a->seqlen_k_ptr = nullptr; }, "seqlen_k_ptr is NULL"},
      {[](Args* a, Call*) { a->num_total_pages = -1; }, "num_total_pages is -1"},
      {[](Args* a, Call*) { a->p_drop = 0.5f; }, "p_drop is 0.5, but must be 0"},
      {[](Args* a, Call*) { a->s_randval = true; }, "s_randval is true, but must be false"},
      {[](Args* a, Call*) { a->kv_page_indices = nullptr; }, "kv_page_indices is NULL"},
  };
  all.insert(all.end(), more.begin(), more.end());
  expect_refused<Args>(all, "aiter::mha_batch_prefill", true, prefill_args, call);

  Call without_lse;
  without_lse.lse = false;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(prefill(without_lse, prefill_args(without_lse), quant_scale_enum::pertensor), -1);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              StartsWith("aiter::mha_batch_prefill: qscale_type is 1, but must be no_scale"));
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::compat
