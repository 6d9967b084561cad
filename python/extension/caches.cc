// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "python/extension/caches.h"

#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/extension/call.h"
#include "python/extension/gil.h"
#include "python/extension/problem.h"

namespace AITER_ATTN_NAMESPACE::python {
namespace {

using namespace pybind11::literals;

// The numbers and the arrays of the append that comes first.
using Appended = std::optional<std::pair<py::dict, py::dict>>;

// Attention over a cache, and appending to it, with one problem.
class CacheCall : public Call<attn_kvcache_fwd_args> {
 public:
  CacheCall(const Problem& problem, const py::dict& numbers, const py::dict& arrays,
            const Appended& appended)
      : Call(problem), append_(problem) {
    Take(numbers, arrays);
    if (!appended) return;
    append_.Take(appended->first, appended->second);
    append_.args().problem = args().problem;
    args().append = &append_.args();
  }

  // That the call has these arrays: a plan depends on it, although it reads none.
  void Announce(const std::vector<std::string>& names) {
    static int32_t number;
    static float lse, sink;
    for (const std::string& name : names) {
      if (name == "seqlens_k") cache().seqlens_k = &number;
      if (name == "page_indptr") cache().page_indptr = &number;
      if (name == "lse") args().lse = &lse;
      if (name == "sink") args().sink = &sink;
    }
  }

 private:
  Call<attn_append_kv_args> append_;
};

void Run(const Problem& problem, const py::dict& numbers, const py::dict& arrays,
         const Appended& appended) {
  CacheCall call(problem, numbers, arrays, appended);
  Compute([&] { return attn_kvcache_fwd(&call.args()); });
}

uint64_t WorkspaceSize(const Problem& problem, const py::dict& numbers, const py::dict& arrays) {
  CacheCall call(problem, numbers, arrays, std::nullopt);
  uint64_t bytes = 0;
  CheckUnlocked([&] { return attn_kvcache_fwd_workspace_size(&call.args(), &bytes); });
  return bytes;
}

std::vector<uint32_t> Plan(const Problem& problem, const py::dict& numbers,
                           const std::vector<std::string>& arrays,
                           const std::optional<std::string>& arch, const Appended& appended) {
  CacheCall call(problem, numbers, py::dict(), appended);
  call.Announce(arrays);
  return PlanOf<attn_kvcache_fwd_args, attn_plan_kvcache_fwd>(call.args(), arch);
}

std::string Explain(const Problem& problem, const py::dict& numbers,
                    const std::vector<std::string>& arrays, const std::optional<std::string>& arch,
                    const Appended& appended) {
  CacheCall call(problem, numbers, py::dict(), appended);
  call.Announce(arrays);
  return ExplanationOf<attn_kvcache_fwd_args, attn_explain_kvcache_fwd>(call.args(), arch);
}

}  // namespace

void BindCaches(py::module_& module) {
  module.attr("ROTARY_HALVES") = static_cast<int>(ATTN_ROTARY_HALVES);
  module.attr("ROTARY_INTERLEAVED") = static_cast<int>(ATTN_ROTARY_INTERLEAVED);
  module.def("kvcache_fwd", &Run, "problem"_a, "numbers"_a, "arrays"_a, "appended"_a = py::none());
  module.def("kvcache_fwd_workspace_size", &WorkspaceSize, "problem"_a, "numbers"_a, "arrays"_a);
  module.def("plan_kvcache_fwd", &Plan, "problem"_a, "numbers"_a, "arrays"_a, "arch"_a,
             "appended"_a = py::none());
  module.def("explain_kvcache_fwd", &Explain, "problem"_a, "numbers"_a, "arrays"_a, "arch"_a,
             "appended"_a = py::none());
}

}  // namespace AITER_ATTN_NAMESPACE::python
