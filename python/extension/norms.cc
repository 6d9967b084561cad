// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "python/extension/norms.h"

#include <cstdint>

#include "aiter/norm.h"
#include "python/extension/gil.h"
#include "python/extension/given.h"

namespace AITER_ATTN_NAMESPACE::python {
namespace {

using namespace pybind11::literals;

// Where a call runs: in host memory, if nothing is given.
template <typename Problem>
void TakePlace(Given& given, Problem& p) {
  p.device_type = ATTN_DEVICE_CPU;
  given.Take("device_type", p.device_type);
  given.Take("device_id", p.device_id);
  uint64_t stream = 0;
  given.Take("stream", stream);
  p.stream = reinterpret_cast<void*>(stream);  // NOLINT(performance-no-int-to-ptr)
}

attn_norm_problem NormProblem(const py::dict& numbers) {
  attn_norm_problem p{};
  p.struct_size = sizeof p;
  Given given(numbers);
  TakePlace(given, p);
  given.Take("kind", p.kind);
  given.Take("rows", p.rows);
  given.Take("hidden", p.hidden);
  given.Take("x_dtype", p.x_dtype);
  given.Take("weight_dtype", p.weight_dtype);
  given.Take("y_dtype", p.y_dtype);
  given.Take("zero_centred", p.zero_centred);
  given.Take("epsilon", p.epsilon);
  given.CheckAllTaken("number");
  return p;
}

attn_softmax_problem SoftmaxProblem(const py::dict& numbers) {
  attn_softmax_problem p{};
  p.struct_size = sizeof p;
  Given given(numbers);
  TakePlace(given, p);
  given.Take("mask_kind", p.mask_kind);
  given.Take("rows", p.rows);
  given.Take("columns", p.columns);
  given.Take("queries", p.queries);
  given.Take("mask_repeat", p.mask_repeat);
  given.Take("dtype", p.dtype);
  given.Take("scale", p.scale);
  given.CheckAllTaken("number");
  return p;
}

template <typename Args, typename Problem>
Args MakeArgs(const Problem& problem) {
  Args args{};
  args.struct_size = sizeof args;
  args.problem = &problem;
  return args;
}

void NormForward(const py::dict& numbers, const py::dict& arrays) {
  const attn_norm_problem problem = NormProblem(numbers);
  auto args = MakeArgs<attn_norm_fwd_args>(problem);
  Given given(arrays);
  given.Take("x", args.x);
  given.Take("y", args.y);
  given.Take("residual", args.residual);
  given.Take("sum", args.sum);
  given.Take("gamma", args.gamma);
  given.Take("beta", args.beta);
  given.Take("mean", args.mean);
  given.Take("rstd", args.rstd);
  given.Take("scale", args.scale);
  given.Take("amax", args.amax);
  given.Take("barrier", args.barrier);
  given.CheckAllTaken("array");
  Compute([&] { return attn_norm_fwd(&args); });
}

attn_norm_bwd_args NormBackwardArgs(const attn_norm_problem& problem, const py::dict& arrays) {
  auto args = MakeArgs<attn_norm_bwd_args>(problem);
  Given given(arrays);
  given.Take("x", args.x);
  given.Take("dy", args.dy);
  given.Take("dx", args.dx);
  given.Take("dh", args.dh);
  given.Take("gamma", args.gamma);
  given.Take("mean", args.mean);
  given.Take("rstd", args.rstd);
  given.Take("dgamma", args.dgamma);
  given.Take("dbeta", args.dbeta);
  given.TakeWorkspace(args.workspace, args.workspace_size);
  given.CheckAllTaken("array");
  return args;
}

void NormBackward(const py::dict& numbers, const py::dict& arrays) {
  const attn_norm_problem problem = NormProblem(numbers);
  const attn_norm_bwd_args args = NormBackwardArgs(problem, arrays);
  Compute([&] { return attn_norm_bwd(&args); });
}

uint64_t NormBackwardWorkspaceSize(const py::dict& numbers, const py::dict& arrays) {
  const attn_norm_problem problem = NormProblem(numbers);
  const attn_norm_bwd_args args = NormBackwardArgs(problem, arrays);
  uint64_t bytes = 0;
  Compute([&] { return attn_norm_bwd_workspace_size(&args, &bytes); });
  return bytes;
}

void SoftmaxForward(const py::dict& numbers, const py::dict& arrays) {
  const attn_softmax_problem problem = SoftmaxProblem(numbers);
  auto args = MakeArgs<attn_softmax_fwd_args>(problem);
  Given given(arrays);
  given.Take("x", args.x);
  given.Take("y", args.y);
  given.Take("mask", args.mask);
  given.Take("barrier", args.barrier);
  given.CheckAllTaken("array");
  Compute([&] { return attn_softmax_fwd(&args); });
}

void SoftmaxBackward(const py::dict& numbers, const py::dict& arrays) {
  const attn_softmax_problem problem = SoftmaxProblem(numbers);
  auto args = MakeArgs<attn_softmax_bwd_args>(problem);
  Given given(arrays);
  given.Take("y", args.y);
  given.Take("dy", args.dy);
  given.Take("dx", args.dx);
  given.Take("barrier", args.barrier);
  given.CheckAllTaken("array");
  Compute([&] { return attn_softmax_bwd(&args); });
}

}  // namespace

void BindNorms(py::module_& module) {
  module.attr("NORM_LAYER") = static_cast<int>(ATTN_NORM_LAYER);
  module.attr("NORM_RMS") = static_cast<int>(ATTN_NORM_RMS);
  module.attr("FP8_DTYPES") = py::dict("float8_e4m3fn"_a = static_cast<int>(ATTN_DTYPE_FP8_E4M3),
                                       "float8_e5m2"_a = static_cast<int>(ATTN_DTYPE_FP8_E5M2));
  module.attr("SOFTMAX_MASK_NONE") = static_cast<int>(ATTN_SOFTMAX_MASK_NONE);
  module.attr("SOFTMAX_MASK_EXPLICIT") = static_cast<int>(ATTN_SOFTMAX_MASK_EXPLICIT);
  module.attr("SOFTMAX_MASK_CAUSAL") = static_cast<int>(ATTN_SOFTMAX_MASK_CAUSAL);
  module.def("norm_fwd", &NormForward, "numbers"_a, "arrays"_a);
  module.def("norm_bwd", &NormBackward, "numbers"_a, "arrays"_a);
  module.def("norm_bwd_workspace_size", &NormBackwardWorkspaceSize, "numbers"_a, "arrays"_a);
  module.def("softmax_fwd", &SoftmaxForward, "numbers"_a, "arrays"_a);
  module.def("softmax_bwd", &SoftmaxBackward, "numbers"_a, "arrays"_a);
}

}  // namespace AITER_ATTN_NAMESPACE::python
