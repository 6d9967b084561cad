// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "python/extension/caches.h"

#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "python/extension/gil.h"
#include "python/extension/given.h"
#include "python/extension/problem.h"
#include "python/extension/tensor.h"

namespace AITER_ATTN_NAMESPACE::python {
namespace {

using namespace pybind11::literals;

void TakeArgs(const Problem& problem, Given& numbers, Given& arrays, attn_kvcache_fwd_args& args) {
  args.min_seqlen_q = problem.min_seqlen_q;
  numbers.Take("splits", args.splits);
  numbers.Take("alibi_stride_batch", args.alibi_stride_batch);
  arrays.Take("q", args.q);
  arrays.Take("k", args.k);
  arrays.Take("v", args.v);
  arrays.Take("out", args.o);
  arrays.Take("lse", args.lse);
  arrays.Take("alibi_slopes", args.alibi_slopes);
  arrays.TakeWorkspace(args.workspace, args.workspace_size);
}

void TakeArgs(const Problem&, Given& numbers, Given& arrays, attn_append_kv_args& args) {
  numbers.Take("seqlen_new", args.seqlen_new);
  numbers.Take("rotary", args.rotary);
  numbers.Take("rotary_size", args.rotary_size);
  numbers.Take("rotary_length", args.rotary_length);
  arrays.Take("q", args.q);
  arrays.Take("k", args.k);
  arrays.Take("v", args.v);
  arrays.Take("k_new", args.k_new);
  arrays.Take("v_new", args.v_new);
  arrays.Take("rotary_cos", args.rotary_cos);
  arrays.Take("rotary_sin", args.rotary_sin);
}

// An args struct, and the problem and the cache that it points to.
template <typename Args>
class CacheCall {
 public:
  CacheCall(const Problem& problem, const py::dict& given_numbers, const py::dict& given_arrays)
      : problem_(problem) {
    args_.struct_size = sizeof args_;
    args_.problem = &problem_;
    args_.cache = &cache_;
    cache_.struct_size = sizeof cache_;
    Given numbers(given_numbers), arrays(given_arrays);
    numbers.Take("entries", cache_.entries);
    numbers.Take("page_size", cache_.page_size);
    numbers.Take("block_table_stride", cache_.block_table_stride);
    arrays.Take("cu_seqlens_q", problem_.cu_seqlens_q);
    arrays.Take("cu_seqlens_k", problem_.cu_seqlens_k);
    arrays.Take("seqlens_k", cache_.seqlens_k);
    arrays.Take("batch_index", cache_.batch_index);
    arrays.Take("block_table", cache_.block_table);
    arrays.Take("page_indptr", cache_.page_indptr);
    arrays.Take("page_indices", cache_.page_indices);
    TakeArgs(problem, numbers, arrays, args_);
    if (cache_.page_indptr != nullptr) {  // pages of one key: [pages, heads, head_size]
      args_.k.stride_batch = args_.k.stride_seq;
      args_.v.stride_batch = args_.v.stride_seq;
    }
    numbers.CheckAllTaken("number");
    arrays.CheckAllTaken("array");
  }

  CacheCall(const CacheCall&) = delete;
  CacheCall& operator=(const CacheCall&) = delete;

  // That the call has these arrays: what a plan depends on, although it reads none.
  void Announce(const std::vector<std::string>& names) {
    static int32_t number;
    static float lse;
    for (const std::string& name : names) {
      if (name == "seqlens_k") cache_.seqlens_k = &number;
      if (name == "page_indptr") cache_.page_indptr = &number;
      if constexpr (std::is_same_v<Args, attn_kvcache_fwd_args>) {
        if (name == "lse") args_.lse = &lse;
      }
    }
  }

  const Args* args() const { return &args_; }

 private:
  attn_problem problem_;
  attn_kvcache cache_{};
  Args args_{};
};

template <typename Args, attn_status (*kRun)(const Args*)>
void Run(const Problem& problem, const py::dict& numbers, const py::dict& arrays) {
  const CacheCall<Args> call(problem, numbers, arrays);
  Compute([&] { return kRun(call.args()); });
}

uint64_t WorkspaceSize(const Problem& problem, const py::dict& numbers, const py::dict& arrays) {
  const CacheCall<attn_kvcache_fwd_args> call(problem, numbers, arrays);
  uint64_t bytes = 0;
  CheckUnlocked([&] { return attn_kvcache_fwd_workspace_size(call.args(), &bytes); });
  return bytes;
}

template <typename Args, attn_status (*kPlan)(const Args*, const char*, uint32_t*, uint32_t*)>
std::vector<uint32_t> Plan(const Problem& problem, const py::dict& numbers,
                           const std::vector<std::string>& arrays,
                           const std::optional<std::string>& arch) {
  CacheCall<Args> call(problem, numbers, py::dict());
  call.Announce(arrays);
  const char* const name = arch ? arch->c_str() : nullptr;
  uint32_t count = 0;
  CheckUnlocked([&] { return kPlan(call.args(), name, nullptr, &count); });
  std::vector<uint32_t> kernels(count);
  CheckUnlocked([&] { return kPlan(call.args(), name, kernels.data(), &count); });
  return kernels;
}

template <typename Args, attn_status (*kExplain)(const Args*, const char*, const char**)>
std::string Explain(const Problem& problem, const py::dict& numbers,
                    const std::vector<std::string>& arrays,
                    const std::optional<std::string>& arch) {
  CacheCall<Args> call(problem, numbers, py::dict());
  call.Announce(arrays);
  const char* text = "";
  CheckUnlocked([&] { return kExplain(call.args(), arch ? arch->c_str() : nullptr, &text); });
  return text;
}

}  // namespace

void BindCaches(py::module_& module) {
  module.attr("ROTARY_HALVES") = static_cast<int>(ATTN_ROTARY_HALVES);
  module.attr("ROTARY_INTERLEAVED") = static_cast<int>(ATTN_ROTARY_INTERLEAVED);
  module.def("kvcache_fwd", &Run<attn_kvcache_fwd_args, attn_kvcache_fwd>, "problem"_a, "numbers"_a,
             "arrays"_a);
  module.def("kvcache_fwd_workspace_size", &WorkspaceSize, "problem"_a, "numbers"_a, "arrays"_a);
  module.def("append_kv", &Run<attn_append_kv_args, attn_append_kv>, "problem"_a, "numbers"_a,
             "arrays"_a);
  module.def("plan_kvcache_fwd", &Plan<attn_kvcache_fwd_args, attn_plan_kvcache_fwd>, "problem"_a,
             "numbers"_a, "arrays"_a, "arch"_a);
  module.def("plan_append_kv", &Plan<attn_append_kv_args, attn_plan_append_kv>, "problem"_a,
             "numbers"_a, "arrays"_a, "arch"_a);
  module.def("explain_kvcache_fwd", &Explain<attn_kvcache_fwd_args, attn_explain_kvcache_fwd>,
             "problem"_a, "numbers"_a, "arrays"_a, "arch"_a);
  module.def("explain_append_kv", &Explain<attn_append_kv_args, attn_explain_append_kv>,
             "problem"_a, "numbers"_a, "arrays"_a, "arch"_a);
}

}  // namespace AITER_ATTN_NAMESPACE::python
