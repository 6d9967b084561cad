// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// attn_append_kv, its plan, its explanation, and attention that appends first, with problems,
// caches and tables that are mostly valid: each call answers, and touches no memory but the given.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "aiter/attn.h"
#include "tests/support/attention/fuzzed_structs.h"

namespace {

using namespace AITER_ATTN_NAMESPACE;

constexpr int64_t kMostBytes = 1 << 20;

class Caller : testing::FuzzedStructs {
 public:
  Caller(const uint8_t* data, size_t size) : FuzzedStructs(data, size) {}

  void call() {
    set_problem();
    set_cache();
    attn_append_kv_args args = {};
    args.struct_size = sizeof(args);
    args.reserved = static_cast<uint32_t>(number(0, 0));
    args.seqlen_new = seqlen_new_;
    const attn_problem& p = problem_;
    const attn_kvcache& c = cache_;
    const int32_t rows = c.page_size > 0 ? c.page_size : p.seqlen_k;
    args.k = tensor(c.entries, rows, p.heads_k, p.head_size_qk);
    args.v = tensor(c.entries, rows, p.heads_k, p.head_size_v);
    args.k_new = tensor(p.batch, seqlen_new_, p.heads_k, p.head_size_qk);
    args.v_new = tensor(p.batch, seqlen_new_, p.heads_k, p.head_size_v);
    args.rotary = number(0, 2);
    if (args.rotary != ATTN_ROTARY_NONE || rarely()) {
      args.q = tensor(p.batch, p.seqlen_q, p.heads_q, p.head_size_qk);
      args.rotary_size = static_cast<int32_t>(int64_t{number(1, 2)} * 16);
      args.rotary_length =
          static_cast<int32_t>(number<int64_t>(p.seqlen_k, int64_t{p.seqlen_k} + 9));
      args.rotary_cos = table(args);
      args.rotary_sin = table(args);
    }
    args.problem = rarely() ? nullptr : sent(problem_);
    args.cache = rarely() ? nullptr : sent(cache_);
    const attn_append_kv_args* const given = sent(args);
    static constexpr const char* kArchs[] = {"gfx942", "gfx90a", "", nullptr};
    const char* const arch = input().PickValueInArray(kArchs);
    uint32_t kernel = 0, count = input().ConsumeIntegralInRange<uint32_t>(0, 2);
    testing::require_answer(
        attn_plan_append_kv(given, arch, count == 0 ? nullptr : &kernel, &count));
    const char* text = nullptr;
    testing::require_answer(attn_explain_append_kv(given, arch, &text));
    if (text && std::strlen(text) == 0) std::abort();
    if (computable_) testing::require_answer(attn_append_kv(given));
    attend(args, given);
  }

 private:
  // By a call that appends first.
  void attend(const attn_append_kv_args& args, const attn_append_kv_args* append) {
    const attn_problem& p = problem_;
    attn_kvcache cache = cache_;
    cache.seqlens_k = numbers(p.batch, p.seqlen_k);
    attn_kvcache_fwd_args attention = {};
    attention.struct_size = sizeof(attention);
    attention.problem = args.problem;
    attention.cache = sent(cache);
    attention.q = args.q.data ? args.q : tensor(p.batch, p.seqlen_q, p.heads_q, p.head_size_qk);
    attention.k = args.k;
    attention.v = args.v;
    attention.o = tensor(p.batch, p.seqlen_q, p.heads_q, p.head_size_v);
    attention.append = append;
    if (computable_) testing::require_answer(attn_kvcache_fwd(sent(attention)));
  }

  void set_problem() {
    attn_problem& p = problem_;
    p.struct_size = sizeof(p);
    p.mode = rarely() ? number(1, 2) : ATTN_MODE_BATCH;
    // Arrays on a GPU are not read: there is none, or no kernel is launched on it.
    p.device_type = rarely() ? ATTN_DEVICE_ROCM : ATTN_DEVICE_CPU;
    p.dtype = number(1, 3);
    p.batch = number(0, 3);
    p.heads_k = number(1, 2);
    p.heads_q = rarely() ? number(1, 4) : p.heads_k;
    p.head_size_qk = number(30, 40);
    p.head_size_v = number(1, 17);
    p.seqlen_q = number(0, 5);
    p.seqlen_k = number(0, 12);
    p.softmax_scale = 0.25f;
    p.mask = number(0, 2);
    p.window_left = p.window_right = -1;
    seqlen_new_ = number(0, std::max(p.seqlen_k, 0));
  }

  void set_cache() {
    attn_kvcache& c = cache_;
    const attn_problem& p = problem_;
    c.struct_size = sizeof(c);
    c.entries = number(3, 9);
    c.reserved = static_cast<uint32_t>(number(0, 0));
    c.seqlens_k = numbers(p.batch, int64_t{p.seqlen_k} - std::min(seqlen_new_, p.seqlen_k));
    if (input().ConsumeBool()) {
      if (input().ConsumeBool()) c.batch_index = numbers(p.batch, int64_t{c.entries} - 1);
      return;
    }
    c.page_size = number(1, 6);
    if (c.page_size > 0) c.block_table_stride = p.seqlen_k / c.page_size;
    if (!rarely()) problem_.seqlen_k = static_cast<int32_t>(c.block_table_stride * c.page_size);
    if (rarely()) c.block_table_stride = number<int64_t>(0, 4);
    const __int128 places = __int128{c.block_table_stride} * p.batch;
    if (places * 4 > kMostBytes) computable_ = false;
    c.block_table = numbers(static_cast<int64_t>(std::min<__int128>(places, kMostBytes / 4)),
                            int64_t{c.entries} - 1);
    if (rarely()) c.page_indptr = c.page_indices = numbers(p.batch + int64_t{1}, c.entries);
  }

  // Of exactly that many, mostly up to `most`.
  const int32_t* numbers(int64_t count, int64_t most) {
    if (rarely()) return nullptr;
    count = std::max<int64_t>(count, 0);
    if (count > kMostBytes / 4) {
      computable_ = false;
      return nullptr;
    }
    const auto top =
        static_cast<int32_t>(std::clamp<int64_t>(most, 0, std::numeric_limits<int32_t>::max()));
    auto* const all = static_cast<int32_t*>(memory(count * 4));
    for (int64_t i = 0; i < std::min<int64_t>(count, 64); ++i) all[i] = number(0, top);
    return all;
  }

  const void* table(const attn_append_kv_args& args) {
    const int64_t count = int64_t{args.rotary_length} * (args.rotary_size / 2);
    if (rarely() || count < 0) return nullptr;
    if (count > kMostBytes / 4) {
      computable_ = false;
      return nullptr;
    }
    return memory(count * (problem_.dtype == ATTN_DTYPE_FP32 ? 4 : 2));
  }

  attn_tensor tensor(int32_t batch, int32_t rows, int32_t heads, int32_t size) {
    attn_tensor t = {};
    t.stride_head = size;
    t.stride_seq = int64_t{size} * heads;
    const __int128 whole = __int128{t.stride_seq} * rows;
    if (size < 0 || heads < 0 || rows < 0 || batch < 0) return t;
    t.stride_batch = static_cast<int64_t>(whole);
    const __int128 bytes = whole * batch * (problem_.dtype == ATTN_DTYPE_FP32 ? 4 : 2);
    if (whole > kMostBytes || bytes > kMostBytes) {
      computable_ = false;
      return t;
    }
    if (!rarely()) t.data = tensor_memory(static_cast<int64_t>(bytes));
    return t;
  }

  attn_problem problem_ = {};
  attn_kvcache cache_ = {};
  int32_t seqlen_new_ = 0;
  bool computable_ = true;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Caller(data, size).call();
  return 0;
}
