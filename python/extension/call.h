// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A call of attention: the structs of the C ABI, filled of Python's numbers and arrays.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "aiter/attn.h"
#include "python/extension/gil.h"
#include "python/extension/given.h"
#include "python/extension/problem.h"

namespace AITER_ATTN_NAMESPACE::python {

// An args struct, and the structs that it points to.
template <typename Args>
class Call {
 public:
  explicit Call(const Problem& problem) : problem_(problem.problem), args_(problem.ArgsOf<Args>()) {
    args_.problem = &problem_;
    if constexpr (kOverCache) {
      cache_.struct_size = sizeof cache_;
      args_.cache = &cache_;
    }
  }

  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void Take(const py::dict& numbers, const py::dict& arrays) {
    TakeNumbers(numbers, args_, cache_);
    Take(arrays);
  }

  void Take(const py::dict& arrays) {
    if constexpr (kOverCache) {
      TakeArrays(arrays, args_, problem_, cache_);
      if (cache_.page_indptr != nullptr) {  // pages of one key: [pages, heads, head_size]
        args_.k.stride_batch = args_.k.stride_seq;
        args_.v.stride_batch = args_.v.stride_seq;
      }
    } else if constexpr (std::is_same_v<Args, attn_dropout_mask_args>) {
      attn_fwd_args of_forward{};  // its arrays may be there, and do not matter
      TakeArrays(arrays, args_, problem_, of_forward);
    } else {
      TakeArrays(arrays, args_, problem_);
    }
    if constexpr (std::is_same_v<Args, attn_fwd_args>) {
      if (args_.v_layout == ATTN_V_COLUMNS) args_.v = At(arrays, "v").AsColumns();
    }
    if constexpr (std::is_same_v<Args, attn_fwd_args> || std::is_same_v<Args, attn_bwd_args>) {
      if (args_.alibi_slopes == nullptr) return;
      const Tensor& slopes = At(arrays, "alibi_slopes");
      args_.alibi_stride_batch = slopes.shape().size() == 2 ? slopes.strides()[0] : 0;
    }
  }

  Args& args() { return args_; }
  attn_kvcache& cache() { return cache_; }

 private:
  static constexpr bool kOverCache =
      std::is_same_v<Args, attn_kvcache_fwd_args> || std::is_same_v<Args, attn_append_kv_args>;

  static const Tensor& At(const py::dict& arrays, const char* name) {
    return py::cast<const Tensor&>(arrays[name]);
  }

  attn_problem problem_;
  attn_kvcache cache_{};
  Args args_;
};

template <typename Args, attn_status (*kPlan)(const Args*, const char*, uint32_t*, uint32_t*)>
std::vector<uint32_t> PlanOf(const Args& args, const std::optional<std::string>& arch) {
  const char* const name = arch ? arch->c_str() : nullptr;
  uint32_t count = 0;
  CheckUnlocked([&] { return kPlan(&args, name, nullptr, &count); });
  std::vector<uint32_t> kernels(count);
  CheckUnlocked([&] { return kPlan(&args, name, kernels.data(), &count); });
  return kernels;
}

template <typename Args, attn_status (*kExplain)(const Args*, const char*, const char**)>
std::string ExplanationOf(const Args& args, const std::optional<std::string>& arch) {
  const char* text = "";
  CheckUnlocked([&] { return kExplain(&args, arch ? arch->c_str() : nullptr, &text); });
  return text;
}

}  // namespace AITER_ATTN_NAMESPACE::python
