// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The C ABI called with structs of any content, whose pointers alone are right: each tensor lies in
// memory of exactly the bytes that its extents and strides reach. An accepted call is computed on
// the CPU, or planned for a GPU.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "aiter/attn.h"
#include "tests/support/attention/fuzzed_structs.h"

namespace {

// Tensors that reach further have no memory here: such a problem is planned, not computed.
constexpr int64_t kMostBytes = 1 << 16;

void check(attn_status status) { AITER_ATTN_NAMESPACE::testing::require_answer(status); }

class Caller : private AITER_ATTN_NAMESPACE::testing::FuzzedStructs {
 public:
  Caller(const uint8_t* data, size_t size) : FuzzedStructs(data, size) {}

  void call() {
    fill_problem();
    switch (input().ConsumeIntegralInRange(0, 2)) {
      case 0:
        forward();
        break;
      case 1:
        backward();
        break;
      default:
        over_cache();
    }
    kernels();
  }

 private:
  const int32_t* offsets(int32_t batch, int32_t seqlen, int32_t* total) {
    if (rarely()) return nullptr;
    if (batch < 0 || batch > 8) {
      computable_ = false;
      return nullptr;
    }
    auto* cu = static_cast<int32_t*>(tensor_memory((batch + 1) * sizeof(int32_t)));
    cu[0] = rarely() ? input().ConsumeIntegral<int32_t>() : 0;
    for (int32_t i = 0; i < batch; ++i) {
      const int64_t length = input().ConsumeIntegralInRange(0, std::clamp(seqlen, 0, 9));
      cu[i + 1] =
          rarely() ? input().ConsumeIntegral<int32_t>() : static_cast<int32_t>(cu[i] + length);
    }
    if (!rarely()) *total = cu[batch];
    return cu;
  }

  // Rows of each sequence that are used, of a problem in four.
  const int32_t* used(int32_t batch, int32_t seqlen) {
    if (input().ConsumeIntegralInRange(0, 3) != 0 || batch < 0 || batch > 8) return nullptr;
    auto* rows = static_cast<int32_t*>(tensor_memory(batch * sizeof(int32_t)));
    for (int32_t i = 0; i < batch; ++i) {
      rows[i] = rarely() ? input().ConsumeIntegral<int32_t>()
                         : input().ConsumeIntegralInRange(0, std::clamp(seqlen, 0, 4));
    }
    return rows;
  }

  const int32_t* used_sums(int32_t batch, int32_t seqlen) {
    if (input().ConsumeIntegralInRange(0, 3) != 0 || batch < 0 || batch > 8) return nullptr;
    int32_t total;
    return offsets(batch, std::min(seqlen, 4), &total);
  }

  void fill_problem() {
    attn_problem& p = problem_;
    p.struct_size = sizeof(p);
    p.mode = number(1, 2);
    p.device_type = rarely() ? ATTN_DEVICE_ROCM : number(1, 1);
    p.device_id = number(0, 0);
    p.dtype = number(1, 6);
    p.batch = number(0, 3);
    p.heads_k = number(1, 3);
    const bool shared = p.heads_k > 0 && p.heads_k < 9 && !rarely();
    p.heads_q = shared ? p.heads_k * input().ConsumeIntegralInRange(1, 2) : number(1, 6);
    p.head_size_qk = number(1, 17);
    p.head_size_v = number(1, 17);
    p.seqlen_q = number(0, 9);
    p.seqlen_k = number(0, 9);
    if (p.mode == ATTN_MODE_GROUP) {
      p.total_q = number(0, 20);
      p.total_k = number(0, 20);
      p.cu_seqlens_q = offsets(p.batch, p.seqlen_q, &p.total_q);
      p.cu_seqlens_k = offsets(p.batch, p.seqlen_k, &p.total_k);
    }
    p.seqused_q = used(p.batch, p.seqlen_q);
    p.seqused_k = used(p.batch, p.seqlen_k);
    if (!p.seqused_q || rarely()) p.cu_seqused_q = used_sums(p.batch, p.seqlen_q);
    if (!p.seqused_k || rarely()) p.cu_seqused_k = used_sums(p.batch, p.seqlen_k);
    p.softmax_scale = rarely() ? input().ConsumeFloatingPoint<float>() : 0.25f;
    p.mask = number(0, 2);
    const bool open = p.mask == ATTN_MASK_NONE && !rarely();
    p.window_left = open ? -1 : number(-1, 10);
    p.window_right = open ? -1 : number(-1, 10);
    if (!input().ConsumeBool()) return;
    p.bias = number(0, 2);
    p.logits_soft_cap = rarely() ? input().ConsumeFloatingPoint<float>() : 1.5f;
    p.dropout_p = rarely() ? input().ConsumeFloatingPoint<float>() : 0.25f;
    p.reserved = static_cast<uint32_t>(number(0, 0));
    p.dropout_seed = input().ConsumeIntegral<uint64_t>();
    p.dropout_offset = input().ConsumeIntegral<uint64_t>();
    if (input().ConsumeBool()) {
      auto* const state = static_cast<uint64_t*>(memory(2 * sizeof(uint64_t)));
      state[0] = p.dropout_seed, state[1] = p.dropout_offset;
      p.rng_state = state;
      if (!rarely()) p.dropout_seed = p.dropout_offset = 0;
    }
  }

  // Of a forward or a backward pass.
  template <typename Args>
  void fill_bias(Args* args) {
    if (problem_.bias == ATTN_BIAS_ELEMENTWISE || rarely()) args->bias = query(problem_.seqlen_k);
    fill_slopes(args);
  }

  // One float for every query head; NULL where that is many.
  float* of_heads() {
    const int64_t bytes = int64_t{std::max(problem_.heads_q, 0)} * 4;
    if (bytes > kMostBytes) {
      computable_ = false;
      return nullptr;
    }
    return static_cast<float*>(tensor_memory(bytes));
  }

  template <typename Args>
  void fill_slopes(Args* args) {
    const attn_problem& p = problem_;
    if (rarely()) args->sink = of_heads();
    if (p.bias != ATTN_BIAS_ALIBI && !rarely()) return;
    args->alibi_stride_batch = number(0, 6);
    const __int128 floats =
        args->alibi_stride_batch * std::max<__int128>(p.batch, 1) + std::max(p.heads_q, 0);
    if (floats < 0 || floats * 4 > kMostBytes) {
      computable_ = false;
    } else if (!rarely()) {
      args->alibi_slopes = static_cast<float*>(tensor_memory(static_cast<int64_t>(floats) * 4));
    }
  }

  // One byte for every score; NULL where that is many.
  uint8_t* kept() {
    const attn_problem& p = problem_;
    const __int128 rows =
        p.mode == ATTN_MODE_GROUP ? __int128{p.total_q} : __int128{p.batch} * p.seqlen_q;
    const __int128 bytes =
        std::max<__int128>(rows, 0) * std::max(p.heads_q, 0) * std::max(p.seqlen_k, 0);
    if (bytes > kMostBytes) {
      computable_ = false;
      return nullptr;
    }
    return static_cast<uint8_t*>(tensor_memory(static_cast<int64_t>(bytes)));
  }

  // Of the query's or the key's side: [batch, rows_per_entry, ...] or [total, ...].
  attn_tensor tensor(int32_t rows_per_entry, int32_t total, int32_t heads, int32_t size) {
    const bool group = problem_.mode == ATTN_MODE_GROUP;
    return tensor_of(group ? 1 : problem_.batch, group ? total : rows_per_entry, heads, size);
  }

  // A tensor of a row-major [batch, seq, heads, size], or with other strides; data where its reach
  // is small.
  attn_tensor tensor_of(int32_t batch, int32_t seq, int32_t heads, int32_t size) {
    const __int128 extents[] = {batch, seq, heads};
    attn_tensor t = {};
    int64_t* const strides[] = {&t.stride_batch, &t.stride_seq, &t.stride_head};
    __int128 dense = size;
    for (int i = 2; i >= 0; --i) {
      *strides[i] = static_cast<int64_t>(dense);
      dense *= std::max<__int128>(extents[i], 1);
      if (rarely()) *strides[i] = number(-100, 200);
      if (rarely()) *strides[i] = input().ConsumeIntegral<int64_t>();
    }
    __int128 least = 0, most = size;
    bool empty = size <= 0;
    for (int i = 0; i < 3; ++i) {
      empty |= extents[i] <= 0;
      const __int128 reach = *strides[i] * (extents[i] - 1);
      (reach < 0 ? least : most) += reach;
    }
    // Enough for a bias of fp8, which is fp32.
    const int64_t element = problem_.dtype >= ATTN_DTYPE_FP32 ? 4 : 2;
    if (empty) {
      if (rarely()) t.data = memory(0);
    } else if ((most - least) * element > kMostBytes) {
      computable_ = false;
    } else if (!rarely()) {
      auto* first =
          static_cast<unsigned char*>(tensor_memory(static_cast<int64_t>(most - least) * element));
      t.data = first - static_cast<int64_t>(least) * element + (rarely() ? 1 : 0);
    }
    return t;
  }

  attn_tensor query(int32_t size) {
    return tensor(problem_.seqlen_q, problem_.total_q, problem_.heads_q, size);
  }
  attn_tensor key(int32_t size) {
    return tensor(problem_.seqlen_k, problem_.total_k, problem_.heads_k, size);
  }
  float* lse() {
    const attn_problem& p = problem_;
    const __int128 rows =
        p.mode == ATTN_MODE_GROUP ? __int128{p.total_q} : __int128{p.batch} * p.seqlen_q;
    const __int128 bytes = std::max<__int128>(rows, 0) * std::max(p.heads_q, 0) * sizeof(float);
    if (rarely()) return nullptr;
    if (bytes > kMostBytes) {
      computable_ = false;
      return nullptr;
    }
    return static_cast<float*>(tensor_memory(static_cast<int64_t>(bytes)));
  }

  template <typename Args, typename Plan, typename Explain>
  void plan(const Args* args, Plan plan, Explain explain) {
    static constexpr const char* kArchs[] = {"gfx942", "gfx950", "gfx90a", "", nullptr};
    const char* const arch = input().PickValueInArray(kArchs);
    uint32_t kernels[6];
    uint32_t count = input().ConsumeIntegralInRange<uint32_t>(0, 6);
    check(plan(args, arch, input().ConsumeBool() ? kernels : nullptr, &count));
    const char* text = nullptr;
    check(explain(args, arch, &text));
    if (text && std::strlen(text) == 0) std::abort();
  }

  const attn_problem* sent_problem() { return rarely() ? nullptr : sent(problem_); }

  void forward() {
    const attn_problem& p = problem_;
    attn_fwd_args args = {sizeof(args), static_cast<uint32_t>(number(0, 0)), nullptr};
    args.q = query(p.head_size_qk);
    args.k = key(p.head_size_qk);
    args.v = key(p.head_size_v);
    args.o = query(p.head_size_v);
    args.lse = lse();
    fill_bias(&args);
    args.min_seqlen_q = p.mode == ATTN_MODE_GROUP ? number(0, 5) : number(0, 0);
    if (p.dtype > ATTN_DTYPE_FP32 && !rarely()) {
      for (float* scale : {&args.descale_q, &args.descale_k, &args.descale_v, &args.scale_o}) {
        *scale = rarely() ? input().ConsumeFloatingPoint<float>() : 2.0f;
      }
    }
    if (input().ConsumeBool()) {
      args.v_layout = number(0, 1);
      // [batch][head_size_v][heads_k][seqlen_k]
      args.v = tensor(p.head_size_v, p.total_k, p.heads_k, p.seqlen_k);
    }
    if (rarely()) args.o_dtype = number(0, 6);
    args.problem = sent_problem();
    const attn_fwd_args* const given = sent(args);
    plan(given, attn_plan_fwd, attn_explain_fwd);
    if (computable_) check(attn_fwd(given));
    attn_dropout_mask_args mask = {sizeof(mask), 0, sent_problem(), kept()};
    const attn_dropout_mask_args* const given_mask = sent(mask);
    if (computable_) check(attn_dropout_mask(given_mask));
  }

  void backward() {
    const attn_problem& p = problem_;
    attn_bwd_args args = {sizeof(args), static_cast<uint32_t>(number(0, 0)), nullptr};
    args.q = query(p.head_size_qk);
    args.k = key(p.head_size_qk);
    args.v = key(p.head_size_v);
    args.o = query(p.head_size_v);
    args.dout = query(p.head_size_v);
    args.lse = lse();
    args.dq = query(p.head_size_qk);
    args.dk = key(p.head_size_qk);
    args.dv = key(p.head_size_v);
    fill_bias(&args);
    args.bias_grad = p.bias == ATTN_BIAS_ELEMENTWISE ? number(0, 1) : number(0, 0);
    if (args.bias_grad != 0) {
      // With room for every score: a struct that is cut short knows of no sums.
      args.dbias = query(p.seqlen_k);
      args.dbias_sums = number(0, 7);
    }
    args.deterministic = number(0, 1);
    args.problem = sent_problem();
    const attn_bwd_args* const given = sent(args);
    plan(given, attn_plan_bwd, attn_explain_bwd);
    uint64_t bytes = 0;
    check(attn_bwd_workspace_size(given, &bytes));
    if (computable_) check(attn_bwd(given));
  }

  // Numbers in memory that nothing else has; NULL where they are many.
  const int32_t* numbers(__int128 count, int32_t least, int32_t most) {
    if (rarely()) return nullptr;
    if (count < 0 || count > 64) {
      computable_ = false;
      return nullptr;
    }
    auto* all = static_cast<int32_t*>(memory(static_cast<int64_t>(count) * 4));
    for (int64_t i = 0; i < count; ++i) all[i] = number(least, most);
    return all;
  }

  // Where the keys of the problem are; its lengths may become others.
  void fill_cache(attn_kvcache* c) {
    attn_problem& p = problem_;
    const bool group = p.mode == ATTN_MODE_GROUP;
    c->entries = number(0, 6);
    c->reserved = static_cast<uint32_t>(number(0, 0));
    const auto most_page = static_cast<int32_t>(std::clamp<int64_t>(c->entries - int64_t{1}, 0, 8));
    switch (input().ConsumeIntegralInRange(0, 2)) {
      case 0:
        if (group && !rarely()) {
          c->entries = p.batch;
          return;
        }
        if (input().ConsumeBool()) c->batch_index = numbers(p.batch, 0, most_page);
        break;
      case 1:
        c->page_size = number(1, 4);
        c->block_table_stride = number(0, 3);
        if (!rarely()) {
          p.seqlen_k = static_cast<int32_t>(c->block_table_stride * std::clamp(c->page_size, 0, 9));
        }
        c->block_table = numbers(__int128{p.batch} * c->block_table_stride, 0, most_page);
        break;
      default: {
        c->page_size = number(1, 1);
        int32_t total = 0;
        c->page_indptr = offsets(p.batch, p.seqlen_k, &total);
        if (c->page_indptr) c->page_indices = numbers(c->page_indptr[p.batch], 0, most_page);
      }
    }
    if (input().ConsumeBool()) {
      c->seqlens_k = numbers(p.batch, 0, std::clamp(p.seqlen_k, 0, 9));
      if (group && !rarely()) p.total_k = 0, p.cu_seqlens_k = nullptr;
    }
  }

  void over_cache() {
    const attn_problem& p = problem_;
    attn_kvcache cache = {sizeof(cache)};
    fill_cache(&cache);
    const bool pages = cache.page_size > 0;
    const auto key = [&](int32_t size) {
      if (pages) return tensor_of(cache.entries, cache.page_size, p.heads_k, size);
      if (p.mode == ATTN_MODE_GROUP) return this->key(size);
      return tensor_of(cache.entries, p.seqlen_k, p.heads_k, size);
    };
    attn_kvcache_fwd_args args = {sizeof(args), number(0, 9)};
    args.q = query(p.head_size_qk);
    args.k = key(p.head_size_qk);
    args.v = key(p.head_size_v);
    args.o = query(p.head_size_v);
    args.lse = lse();
    fill_slopes(&args);
    args.min_seqlen_q = p.mode == ATTN_MODE_GROUP && pages ? number(0, 5) : number(0, 0);
    args.reserved = static_cast<uint32_t>(number(0, 0));
    args.problem = sent_problem();
    args.cache = rarely() ? nullptr : sent(cache);
    const attn_kvcache_fwd_args* const given = sent(args);
    plan(given, attn_plan_kvcache_fwd, attn_explain_kvcache_fwd);
    uint64_t bytes = 0;
    check(attn_kvcache_fwd_workspace_size(given, &bytes));
    if (computable_) check(attn_kvcache_fwd(given));
  }

  void kernels() {
    attn_kernel_info_t info = {};
    info.struct_size = sizeof(info);
    check(attn_kernel_info(static_cast<uint32_t>(number(0, 60)), sent(info)));
    if (!rarely()) return;
    check(attn_kernel_info(static_cast<uint32_t>(number(0, 60)), &info));
    const std::string other = input().ConsumeRandomLengthString(70);
    void* data = nullptr;
    uint64_t size = 0;
    check(attn_code_object(input().ConsumeBool() ? info.key : other.c_str(), &data, &size));
    attn_code_object_free(data);
    uint32_t is_there = 0;
    check(attn_fetch_code_object(input().ConsumeBool() ? info.key : other.c_str(), &is_there));
  }

  attn_problem problem_ = {};
  bool computable_ = true;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Caller(data, size).call();
  return 0;
}
