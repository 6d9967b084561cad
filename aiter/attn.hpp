// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The C ABI (aiter/attn.h, aiter/norm.h) for C++17: failures are exceptions, args are built by
// name. Header only; its declarations lie in NAMESPACE::attn, where NAMESPACE is the build setting
// //aiter:namespace.
//
//   namespace attn = aiter::attn;
//   attn_problem problem =
//       attn::batch_problem(ATTN_DTYPE_BF16, {batch, heads, heads, seqlen, seqlen, 128});
//   attn::on_rocm(&problem, device, stream);
//   attn::causal(&problem);
//   attn_fwd_args args = attn::fwd_args(&problem);
//   args.q = attn::contiguous(q, seqlen, heads, 128);  // so are k, v and o
//   attn::fwd(args);
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "aiter/attn.h"
#include "aiter/norm.h"

namespace AITER_ATTN_NAMESPACE::attn {

class Error : public std::runtime_error {
 public:
  // Of the thread's last call.
  explicit Error(attn_status status)
      : std::runtime_error(attn_last_error()),
        status_(status),
        field_(attn_last_error_field()),
        index_(attn_last_error_index()) {}
  attn_status status() const noexcept { return status_; }
  // attn_last_error_field and attn_last_error_index.
  const std::string& field() const noexcept { return field_; }
  int64_t index() const noexcept { return index_; }

 private:
  attn_status status_;
  std::string field_;
  int64_t index_;
};

// Throws Error with the thread's message unless status is ATTN_OK.
inline void check(attn_status status) {
  if (status != ATTN_OK) throw Error(status);
}

struct Sizes {
  int32_t batch;
  int32_t heads_q;
  int32_t heads_k;
  int32_t seqlen_q;  // group mode: the greatest length
  int32_t seqlen_k;
  int32_t head_size_qk;
  int32_t head_size_v = 0;  // 0: as head_size_qk
};

// Equal lengths, on the CPU, without a mask, softmax_scale = 1/sqrt(head_size_qk).
inline attn_problem batch_problem(attn_dtype dtype, const Sizes& sizes) {
  attn_problem p = {};
  p.struct_size = sizeof(p);
  p.mode = ATTN_MODE_BATCH;
  p.device_type = ATTN_DEVICE_CPU;
  p.dtype = dtype;
  p.batch = sizes.batch;
  p.heads_q = sizes.heads_q;
  p.heads_k = sizes.heads_k;
  p.head_size_qk = sizes.head_size_qk;
  p.head_size_v = sizes.head_size_v ? sizes.head_size_v : sizes.head_size_qk;
  p.seqlen_q = sizes.seqlen_q;
  p.seqlen_k = sizes.seqlen_k;
  p.softmax_scale = 1 / std::sqrt(static_cast<float>(sizes.head_size_qk));
  p.mask = ATTN_MASK_NONE;
  p.window_left = -1;
  p.window_right = -1;
  return p;
}

// Lengths by cu_seqlens [batch + 1], in the memory of the problem's device.
inline attn_problem group_problem(attn_dtype dtype, const Sizes& sizes, const int32_t* cu_seqlens_q,
                                  int32_t total_q, const int32_t* cu_seqlens_k, int32_t total_k) {
  attn_problem p = batch_problem(dtype, sizes);
  p.mode = ATTN_MODE_GROUP;
  p.cu_seqlens_q = cu_seqlens_q;
  p.cu_seqlens_k = cu_seqlens_k;
  p.total_q = total_q;
  p.total_k = total_k;
  return p;
}

// Also of norms and of softmax.
template <typename Problem>
void on_rocm(Problem* problem, int32_t device_id, void* stream) {
  problem->device_type = ATTN_DEVICE_ROCM;
  problem->device_id = device_id;
  problem->stream = stream;
}

inline void windowed(attn_problem* problem, attn_mask mask, int32_t left, int32_t right) {
  problem->mask = mask;
  problem->window_left = left;
  problem->window_right = right;
}

// The last query sees the last key.
inline void causal(attn_problem* problem) { windowed(problem, ATTN_MASK_BOTTOM_RIGHT, -1, 0); }

// Weights are dropped with this probability: the same ones wherever seed and offset are the same.
inline void dropped(attn_problem* problem, float probability, uint64_t seed, uint64_t offset) {
  problem->dropout_p = probability;
  problem->dropout_seed = seed;
  problem->dropout_offset = offset;
}

// As above, but with state: {seed, offset} in the memory of the device, read when the call
// computes.
inline void dropped(attn_problem* problem, float probability, const uint64_t* state) {
  problem->dropout_p = probability;
  problem->rng_state = state;
}

// [batch, seqlen, heads, head_size] or, in group mode, [total, heads, head_size].
inline attn_tensor contiguous(void* data, int64_t seqlen, int64_t heads, int64_t head_size) {
  return {data, seqlen * heads * head_size, heads * head_size, head_size};
}

// For reading: the library does not write to tensors that are inputs.
inline attn_tensor contiguous(const void* data, int64_t seqlen, int64_t heads, int64_t head_size) {
  return contiguous(const_cast<void*>(data), seqlen, heads, head_size);
}

// Args refer to the problem, which must live as long as they are used.
inline attn_fwd_args fwd_args(const attn_problem* problem) {
  attn_fwd_args args = {};
  args.struct_size = sizeof(args);
  args.problem = problem;
  return args;
}

inline attn_bwd_args bwd_args(const attn_problem* problem) {
  attn_bwd_args args = {};
  args.struct_size = sizeof(args);
  args.problem = problem;
  return args;
}

// v by columns: [batch, heads, head_size, seqlen], keys contiguous.
inline attn_tensor contiguous_columns(const void* data, int64_t seqlen, int64_t heads,
                                      int64_t head_size) {
  return {const_cast<void*>(data), heads * head_size * seqlen, seqlen, head_size * seqlen};
}

// fp8: the factors by which elements of q, k and v become numbers, and results are stored.
inline void scaled(attn_fwd_args* args, float descale_q, float descale_k, float descale_v,
                   float scale_o) {
  args->descale_q = descale_q;
  args->descale_k = descale_k;
  args->descale_v = descale_v;
  args->scale_o = scale_o;
}

// The same for an o of bf16 or fp32, which holds the result itself.
inline void scaled(attn_fwd_args* args, float descale_q, float descale_k, float descale_v,
                   attn_dtype o_dtype) {
  scaled(args, descale_q, descale_k, descale_v, 0.0f);
  args->o_dtype = o_dtype;
}

// fp8 in batch mode, as kernels take it for an o of fp8: v is contiguous_columns, or has such
// strides.
inline void by_columns(attn_fwd_args* args, const attn_tensor& v) {
  args->v = v;
  args->v_layout = ATTN_V_COLUMNS;
}

// One more score of every query of a head, of a key whose value is 0: fp32 [heads_q].
inline void with_sink(attn_fwd_args* args, const float* sink) { args->sink = sink; }
inline void with_sink(attn_kvcache_fwd_args* args, const float* sink) { args->sink = sink; }
// The sink that forward got, and memory for its gradient: fp32 [heads_q], NULL: not wanted.
inline void with_sink(attn_bwd_args* args, const float* sink, float* dsink) {
  args->sink = sink;
  args->dsink = dsink;
}

// dbias is wanted, summed over the dimensions of `sums`: attn_dbias_sum, or'ed. 0: of every score.
inline void with_dbias(attn_bwd_args* args, const attn_tensor& dbias, int32_t sums = 0) {
  args->dbias = dbias;
  args->bias_grad = 1;
  args->dbias_sums = sums;
}

// A cache of `entries` sequences, each with the room seqlen_k of the problem. seqlens_k [batch] are
// the keys in use; batch_index [batch] says which entry is whose, NULL: that of the same number.
inline attn_kvcache cache_in_place(int32_t entries, const int32_t* seqlens_k,
                                   const int32_t* batch_index = nullptr) {
  attn_kvcache cache = {};
  cache.struct_size = sizeof(cache);
  cache.entries = entries;
  cache.seqlens_k = seqlens_k;
  cache.batch_index = batch_index;
  return cache;
}

// A cache of `pages` pages; block_table is [batch, pages_each].
inline attn_kvcache cache_in_pages(int32_t pages, int32_t page_size, const int32_t* block_table,
                                   int64_t pages_each, const int32_t* seqlens_k) {
  attn_kvcache cache = cache_in_place(pages, seqlens_k);
  cache.page_size = page_size;
  cache.block_table = block_table;
  cache.block_table_stride = pages_each;
  return cache;
}

// A cache of `pages` keys: key j of sequence b is page_indices[page_indptr[b] + j].
inline attn_kvcache cache_in_page_list(int32_t pages, const int32_t* page_indptr,
                                       const int32_t* page_indices) {
  attn_kvcache cache = cache_in_place(pages, nullptr);
  cache.page_size = 1;
  cache.page_indptr = page_indptr;
  cache.page_indices = page_indices;
  return cache;
}

// The args point to the problem and to the cache: both must live as long.
inline attn_kvcache_fwd_args kvcache_fwd_args(const attn_problem* problem,
                                              const attn_kvcache* cache) {
  attn_kvcache_fwd_args args = {};
  args.struct_size = sizeof(args);
  args.problem = problem;
  args.cache = cache;
  return args;
}

// Of seqlen_new new keys and values for each sequence.
inline attn_append_kv_args append_kv_args(const attn_problem* problem, const attn_kvcache* cache,
                                          int32_t seqlen_new) {
  attn_append_kv_args args = {};
  args.struct_size = sizeof(args);
  args.problem = problem;
  args.cache = cache;
  args.seqlen_new = seqlen_new;
  return args;
}

// The first `size` elements of q and of new keys are rotated; the tables are [length, size / 2].
inline void rotated(attn_append_kv_args* args, attn_rotary kind, int32_t size, const void* cos,
                    const void* sin, int32_t length) {
  args->rotary = kind;
  args->rotary_size = size;
  args->rotary_cos = cos;
  args->rotary_sin = sin;
  args->rotary_length = length;
}

// In its scope this thread's calls on the CPU end with an Error, ATTN_ERROR_INTERRUPTED, once
// should_stop() is true. It is called about every 20 ms, and must not throw nor call this library.
class Interruptible {
 public:
  explicit Interruptible(std::function<bool()> should_stop) : should_stop_(std::move(should_stop)) {
    attn_set_interrupt(
        [](void* self) -> int { return static_cast<Interruptible*>(self)->should_stop_(); }, this);
  }
  ~Interruptible() { attn_set_interrupt(nullptr, nullptr); }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  std::function<bool()> should_stop_;
};

inline void fwd(const attn_fwd_args& args) { check(attn_fwd(&args)); }

inline uint64_t fwd_workspace_size(const attn_fwd_args& args) {
  uint64_t bytes = 0;
  check(attn_fwd_workspace_size(&args, &bytes));
  return bytes;
}

// 1 where dropout keeps a weight; kept is as attn_dropout_mask_args says.
inline void dropout_mask(const attn_problem& problem, uint8_t* kept) {
  attn_dropout_mask_args args = {};
  args.struct_size = sizeof(args);
  args.problem = &problem;
  args.kept = kept;
  check(attn_dropout_mask(&args));
}
inline void bwd(const attn_bwd_args& args) { check(attn_bwd(&args)); }

inline uint64_t bwd_workspace_size(const attn_bwd_args& args) {
  uint64_t bytes = 0;
  check(attn_bwd_workspace_size(&args, &bytes));
  return bytes;
}

inline void append_kv(const attn_append_kv_args& args) { check(attn_append_kv(&args)); }

inline void kvcache_fwd(const attn_kvcache_fwd_args& args) { check(attn_kvcache_fwd(&args)); }

inline uint64_t kvcache_fwd_workspace_size(const attn_kvcache_fwd_args& args) {
  uint64_t bytes = 0;
  check(attn_kvcache_fwd_workspace_size(&args, &bytes));
  return bytes;
}

// Indices for kernel_info, in the order of the launches. arch: "gfx942"; NULL is the device's own.
inline std::vector<uint32_t> plan_fwd(const attn_fwd_args& args, const char* arch = nullptr) {
  uint32_t count = 0;
  check(attn_plan_fwd(&args, arch, nullptr, &count));
  std::vector<uint32_t> kernels(count);
  check(attn_plan_fwd(&args, arch, kernels.data(), &count));
  return kernels;
}

inline std::vector<uint32_t> plan_bwd(const attn_bwd_args& args, const char* arch = nullptr) {
  uint32_t count = 0;
  check(attn_plan_bwd(&args, arch, nullptr, &count));
  std::vector<uint32_t> kernels(count);
  check(attn_plan_bwd(&args, arch, kernels.data(), &count));
  return kernels;
}

inline std::vector<uint32_t> plan_kvcache_fwd(const attn_kvcache_fwd_args& args,
                                              const char* arch = nullptr) {
  uint32_t count = 0;
  check(attn_plan_kvcache_fwd(&args, arch, nullptr, &count));
  std::vector<uint32_t> kernels(count);
  check(attn_plan_kvcache_fwd(&args, arch, kernels.data(), &count));
  return kernels;
}

inline std::vector<uint32_t> plan_append_kv(const attn_append_kv_args& args,
                                            const char* arch = nullptr) {
  uint32_t count = 0;
  check(attn_plan_append_kv(&args, arch, nullptr, &count));
  std::vector<uint32_t> kernels(count);
  check(attn_plan_append_kv(&args, arch, kernels.data(), &count));
  return kernels;
}

inline std::string explain_fwd(const attn_fwd_args& args, const char* arch = nullptr) {
  const char* text = nullptr;
  check(attn_explain_fwd(&args, arch, &text));
  return text;
}

inline std::string explain_bwd(const attn_bwd_args& args, const char* arch = nullptr) {
  const char* text = nullptr;
  check(attn_explain_bwd(&args, arch, &text));
  return text;
}

inline std::string explain_kvcache_fwd(const attn_kvcache_fwd_args& args,
                                       const char* arch = nullptr) {
  const char* text = nullptr;
  check(attn_explain_kvcache_fwd(&args, arch, &text));
  return text;
}

inline std::string explain_append_kv(const attn_append_kv_args& args, const char* arch = nullptr) {
  const char* text = nullptr;
  check(attn_explain_append_kv(&args, arch, &text));
  return text;
}

inline attn_kernel_info_t kernel_info(uint32_t index) {
  attn_kernel_info_t info = {};
  info.struct_size = sizeof(info);
  check(attn_kernel_info(index, &info));
  return info;
}

// The bytes of a code object.
inline std::string code_object(const char* key) {
  void* data = nullptr;
  uint64_t size = 0;
  check(attn_code_object(key, &data, &size));
  std::string bytes(static_cast<const char*>(data), size);
  attn_code_object_free(data);
  return bytes;
}

// Rows of norms and of softmax, one after the other.
inline attn_rows contiguous_rows(void* data, int64_t columns) { return {data, columns}; }

// For reading.
inline attn_rows contiguous_rows(const void* data, int64_t columns) {
  return contiguous_rows(const_cast<void*>(data), columns);
}

// On the CPU, all of one type.
inline attn_norm_problem norm_problem(attn_norm_kind kind, attn_dtype dtype, int64_t rows,
                                      int64_t hidden, float epsilon) {
  attn_norm_problem p = {};
  p.struct_size = sizeof(p);
  p.kind = kind;
  p.device_type = ATTN_DEVICE_CPU;
  p.rows = rows;
  p.hidden = hidden;
  p.x_dtype = p.weight_dtype = p.y_dtype = dtype;
  p.epsilon = epsilon;
  return p;
}

// On the CPU, without a mask.
inline attn_softmax_problem softmax_problem(attn_dtype dtype, int64_t rows, int64_t columns,
                                            float scale = 1) {
  attn_softmax_problem p = {};
  p.struct_size = sizeof(p);
  p.device_type = ATTN_DEVICE_CPU;
  p.rows = rows;
  p.columns = columns;
  p.queries = 1;
  p.dtype = dtype;
  p.scale = scale;
  return p;
}

// Matrices of `queries` rows.
inline void causal(attn_softmax_problem* problem, int64_t queries) {
  problem->mask_kind = ATTN_SOFTMAX_MASK_CAUSAL;
  problem->queries = queries;
}

// By attn_softmax_fwd_args::mask, of which `repeat` matrices share one.
inline void masked(attn_softmax_problem* problem, int64_t queries, int64_t repeat) {
  problem->mask_kind = ATTN_SOFTMAX_MASK_EXPLICIT;
  problem->queries = queries;
  problem->mask_repeat = repeat;
}

inline attn_norm_fwd_args norm_fwd_args(const attn_norm_problem* problem) {
  attn_norm_fwd_args args = {};
  args.struct_size = sizeof(args);
  args.problem = problem;
  return args;
}

inline attn_norm_bwd_args norm_bwd_args(const attn_norm_problem* problem) {
  attn_norm_bwd_args args = {};
  args.struct_size = sizeof(args);
  args.problem = problem;
  return args;
}

inline attn_softmax_fwd_args softmax_fwd_args(const attn_softmax_problem* problem) {
  attn_softmax_fwd_args args = {};
  args.struct_size = sizeof(args);
  args.problem = problem;
  return args;
}

inline attn_softmax_bwd_args softmax_bwd_args(const attn_softmax_problem* problem) {
  attn_softmax_bwd_args args = {};
  args.struct_size = sizeof(args);
  args.problem = problem;
  return args;
}

inline void norm_fwd(const attn_norm_fwd_args& args) { check(attn_norm_fwd(&args)); }

inline void norm_bwd(const attn_norm_bwd_args& args) { check(attn_norm_bwd(&args)); }

inline uint64_t norm_bwd_workspace_size(const attn_norm_bwd_args& args) {
  uint64_t bytes = 0;
  check(attn_norm_bwd_workspace_size(&args, &bytes));
  return bytes;
}

inline void softmax_fwd(const attn_softmax_fwd_args& args) { check(attn_softmax_fwd(&args)); }

inline void softmax_bwd(const attn_softmax_bwd_args& args) { check(attn_softmax_bwd(&args)); }

inline std::string driver_info(attn_device_type type) {
  const char* text = nullptr;
  check(attn_driver_info(type, &text));
  return text;
}

}  // namespace AITER_ATTN_NAMESPACE::attn
