// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "python/extension/norms.h"

#include <pybind11/stl.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "aiter/fields.h"
#include "aiter/norm.h"
#include "python/extension/gil.h"
#include "python/extension/given.h"
#include "python/extension/torch_calls.h"

namespace AITER_ATTN_NAMESPACE::python {
namespace {

using namespace pybind11::literals;

// In host memory, if no place is given.
template <typename Problem, typename Args>
struct Call {
  Call(const py::dict& numbers, const py::dict& arrays) {
    problem.struct_size = sizeof problem;
    problem.device_type = ATTN_DEVICE_CPU;
    args.struct_size = sizeof args;
    args.problem = &problem;
    TakeNumbers(numbers, problem, args);
    TakeArrays(arrays, args);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  Problem problem{};
  Args args{};
};

template <typename Problem, typename Args, attn_status (*kRun)(const Args*)>
void Run(const py::dict& numbers, const py::dict& arrays) {
  const Call<Problem, Args> call(numbers, arrays);
  Compute([&] { return kRun(&call.args); });
}

// A call whose problem and strides are known, and whose arrays are others each time.
template <typename Problem, typename Args, attn_status (*kRun)(const Args*)>
class Prepared final : public PreparedRows {
 public:
  // names: of the arrays, in the order in which Run() gets their addresses.
  Prepared(const py::dict& numbers, const py::dict& arrays, const std::vector<std::string>& names,
           const py::sequence& made, size_t results, int index, const py::dict& functions)
      : PreparedRows(made, results, index, functions), call_(numbers, arrays) {
    const auto* const start = reinterpret_cast<const char*>(&call_.args);
    for (const std::string& name : names) {
      const void* place = nullptr;
      fields::for_each_field<Args>([&](auto kind, std::string_view field, auto member) {
        constexpr fields::Kind kKind = decltype(kind)::value;
        if (name != field) return;
        if constexpr (kKind == Kind::kRows) {
          place = static_cast<const void*>(&(call_.args.*member).data);
        } else if constexpr (kKind == Kind::kArray || kKind == Kind::kWorkspace) {
          place = static_cast<const void*>(&(call_.args.*member));
        }
      });
      if (place == nullptr) throw py::type_error("no array of this call is named \"" + name + '"');
      offsets_.push_back(static_cast<size_t>(static_cast<const char*>(place) - start));
    }
  }

 private:
  // A workspace is aligned to 256 bytes.
  void Run(const std::vector<uintptr_t>& addresses, uintptr_t stream) const override {
    if (addresses.size() != offsets_.size()) {
      throw py::value_error("as many addresses as names: " + std::to_string(offsets_.size()));
    }
    // Several threads may run it at the same time.
    Args args = call_.args;
    Problem problem = call_.problem;
    problem.stream = reinterpret_cast<void*>(stream);  // NOLINT(performance-no-int-to-ptr)
    args.problem = &problem;
    for (size_t i = 0; i < addresses.size(); ++i) {
      std::memcpy(reinterpret_cast<char*>(&args) + offsets_[i], &addresses[i], sizeof addresses[i]);
    }
    if (problem.device_type == ATTN_DEVICE_CPU) {
      Compute([&] { return kRun(&args); });
    } else {  // queued at once: there is nothing to interrupt
      CheckUnlocked([&] { return kRun(&args); });
    }
  }

  const Call<Problem, Args> call_;
  std::vector<size_t> offsets_;  // of the addresses in Args
};

template <typename Problem, typename Args, attn_status (*kRun)(const Args*)>
void BindPrepared(py::module_& module, const char* name) {
  using Class = Prepared<Problem, Args, kRun>;
  py::class_<Class, PreparedRows, std::shared_ptr<Class>>(module, name)
      .def(py::init<const py::dict&, const py::dict&, const std::vector<std::string>&,
                    const py::sequence&, size_t, int, const py::dict&>(),
           "numbers"_a, "arrays"_a, "names"_a, "made"_a, "results"_a, "index"_a, "functions"_a);
}

uint64_t NormBackwardWorkspaceSize(const py::dict& numbers, const py::dict& arrays) {
  const Call<attn_norm_problem, attn_norm_bwd_args> call(numbers, arrays);
  uint64_t bytes = 0;
  Compute([&] { return attn_norm_bwd_workspace_size(&call.args, &bytes); });
  return bytes;
}

// The options of a problem by their names, each a 0 of its type.
template <typename Problem>
py::dict OptionsOf() {
  py::dict options;
  fields::for_each_field<Problem>([&](auto kind, const char* name, auto member) {
    if constexpr (decltype(kind)::value == fields::Kind::kOption) {
      options[name] = py::cast(Problem{}.*member);
    }
  });
  return options;
}

}  // namespace

void BindNorms(py::module_& module) {
  module.attr("NORM_LAYER") = static_cast<int>(ATTN_NORM_LAYER);
  module.attr("NORM_RMS") = static_cast<int>(ATTN_NORM_RMS);
  module.attr("NORM_SCALES_ROWS") = static_cast<int>(ATTN_NORM_SCALES_ROWS);
  module.attr("NORM_SCALES_BLOCKS") = static_cast<int>(ATTN_NORM_SCALES_BLOCKS);
  module.attr("FP8_DTYPES") = py::dict("float8_e4m3fn"_a = static_cast<int>(ATTN_DTYPE_FP8_E4M3),
                                       "float8_e5m2"_a = static_cast<int>(ATTN_DTYPE_FP8_E5M2));
  module.attr("NORM_OPTIONS") = OptionsOf<attn_norm_problem>();
  module.attr("SOFTMAX_OPTIONS") = OptionsOf<attn_softmax_problem>();
  module.attr("SOFTMAX_MASK_NONE") = static_cast<int>(ATTN_SOFTMAX_MASK_NONE);
  module.attr("SOFTMAX_MASK_EXPLICIT") = static_cast<int>(ATTN_SOFTMAX_MASK_EXPLICIT);
  module.attr("SOFTMAX_MASK_CAUSAL") = static_cast<int>(ATTN_SOFTMAX_MASK_CAUSAL);
  BindTorchCalls(module);  // the classes of which those below are
  BindPrepared<attn_norm_problem, attn_norm_fwd_args, attn_norm_fwd>(module, "PreparedNorm");
  BindPrepared<attn_norm_problem, attn_norm_bwd_args, attn_norm_bwd>(module,
                                                                     "PreparedNormBackward");
  BindPrepared<attn_softmax_problem, attn_softmax_fwd_args, attn_softmax_fwd>(module,
                                                                              "PreparedSoftmax");
  BindPrepared<attn_softmax_problem, attn_softmax_bwd_args, attn_softmax_bwd>(
      module, "PreparedSoftmaxBackward");
  module.def("norm_fwd", &Run<attn_norm_problem, attn_norm_fwd_args, attn_norm_fwd>, "numbers"_a,
             "arrays"_a);
  module.def("norm_bwd", &Run<attn_norm_problem, attn_norm_bwd_args, attn_norm_bwd>, "numbers"_a,
             "arrays"_a);
  module.def("norm_bwd_workspace_size", &NormBackwardWorkspaceSize, "numbers"_a, "arrays"_a);
  module.def("softmax_fwd", &Run<attn_softmax_problem, attn_softmax_fwd_args, attn_softmax_fwd>,
             "numbers"_a, "arrays"_a);
  module.def("softmax_bwd", &Run<attn_softmax_problem, attn_softmax_bwd_args, attn_softmax_bwd>,
             "numbers"_a, "arrays"_a);
}

}  // namespace AITER_ATTN_NAMESPACE::python
