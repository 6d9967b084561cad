// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "python/extension/caches.h"

#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "python/extension/call.h"
#include "python/extension/gil.h"
#include "python/extension/problem.h"

namespace AITER_ATTN_NAMESPACE::python {
namespace {

using namespace pybind11::literals;

// That a call has these arrays: a plan depends on it, although it reads none.
template <typename Args>
void Announce(Call<Args>& call, const std::vector<std::string>& names) {
  static int32_t number;
  static float lse;
  for (const std::string& name : names) {
    if (name == "seqlens_k") call.cache().seqlens_k = &number;
    if (name == "page_indptr") call.cache().page_indptr = &number;
    if constexpr (std::is_same_v<Args, attn_kvcache_fwd_args>) {
      if (name == "lse") call.args().lse = &lse;
    }
  }
}

template <typename Args, attn_status (*kRun)(const Args*)>
void Run(const Problem& problem, const py::dict& numbers, const py::dict& arrays) {
  Call<Args> call(problem);
  call.Take(numbers, arrays);
  Compute([&] { return kRun(&call.args()); });
}

uint64_t WorkspaceSize(const Problem& problem, const py::dict& numbers, const py::dict& arrays) {
  Call<attn_kvcache_fwd_args> call(problem);
  call.Take(numbers, arrays);
  uint64_t bytes = 0;
  CheckUnlocked([&] { return attn_kvcache_fwd_workspace_size(&call.args(), &bytes); });
  return bytes;
}

template <typename Args, attn_status (*kPlan)(const Args*, const char*, uint32_t*, uint32_t*)>
std::vector<uint32_t> Plan(const Problem& problem, const py::dict& numbers,
                           const std::vector<std::string>& arrays,
                           const std::optional<std::string>& arch) {
  Call<Args> call(problem);
  call.Take(numbers, py::dict());
  Announce(call, arrays);
  return PlanOf<Args, kPlan>(call.args(), arch);
}

template <typename Args, attn_status (*kExplain)(const Args*, const char*, const char**)>
std::string Explain(const Problem& problem, const py::dict& numbers,
                    const std::vector<std::string>& arrays,
                    const std::optional<std::string>& arch) {
  Call<Args> call(problem);
  call.Take(numbers, py::dict());
  Announce(call, arrays);
  return ExplanationOf<Args, kExplain>(call.args(), arch);
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
