// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "python/extension/norms.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "aiter/norm.h"
#include "python/extension/errors.h"
#include "python/extension/gil.h"
#include "python/extension/tensor.h"

namespace AITER_ATTN_NAMESPACE::python {
namespace {

using namespace pybind11::literals;

void Set(int32_t& field, const py::handle& value) { field = py::cast<int32_t>(value); }
void Set(int64_t& field, const py::handle& value) { field = py::cast<int64_t>(value); }
void Set(float& field, const py::handle& value) { field = py::cast<float>(value); }

void Set(attn_rows& field, const Tensor& array) { field = array.AsRows(); }
template <typename Element>
void Set(Element*& field, const Tensor& array) {
  field = static_cast<Element*>(array.data());
}

// Takes what a dict has of the name, if anything.
template <typename Field>
void TakeNumber(const py::dict& given, const char* name, Field& field) {
  if (given.contains(name)) Set(field, py::object(given[name]));
}
template <typename Field>
void TakeArray(const py::dict& given, const char* name, Field& field) {
  if (given.contains(name)) Set(field, py::cast<const Tensor&>(py::object(given[name])));
}

attn_norm_problem NormProblem(const py::dict& numbers) {
  attn_norm_problem p{};
  p.struct_size = sizeof p;
  p.device_type = ATTN_DEVICE_CPU;
  TakeNumber(numbers, "kind", p.kind);
  TakeNumber(numbers, "rows", p.rows);
  TakeNumber(numbers, "hidden", p.hidden);
  TakeNumber(numbers, "x_dtype", p.x_dtype);
  TakeNumber(numbers, "weight_dtype", p.weight_dtype);
  TakeNumber(numbers, "y_dtype", p.y_dtype);
  TakeNumber(numbers, "zero_centred", p.zero_centred);
  TakeNumber(numbers, "epsilon", p.epsilon);
  return p;
}

attn_softmax_problem SoftmaxProblem(const py::dict& numbers) {
  attn_softmax_problem p{};
  p.struct_size = sizeof p;
  p.device_type = ATTN_DEVICE_CPU;
  TakeNumber(numbers, "mask_kind", p.mask_kind);
  TakeNumber(numbers, "rows", p.rows);
  TakeNumber(numbers, "columns", p.columns);
  TakeNumber(numbers, "queries", p.queries);
  TakeNumber(numbers, "mask_repeat", p.mask_repeat);
  TakeNumber(numbers, "dtype", p.dtype);
  TakeNumber(numbers, "scale", p.scale);
  return p;
}

template <typename Args, typename Problem>
Args MakeArgs(const Problem& problem) {
  Args args{};
  args.struct_size = sizeof args;
  args.problem = &problem;
  return args;
}

template <typename Args>
void Run(attn_status (*run)(const Args*), const Args& args) {
  const Interruptible interruptible;
  const attn_status status = WithoutGil([&] { return run(&args); });
  interruptible.Check();
  if (status != ATTN_OK) Raise(status);
}

void NormForward(const py::dict& numbers, const py::dict& arrays) {
  const attn_norm_problem problem = NormProblem(numbers);
  auto args = MakeArgs<attn_norm_fwd_args>(problem);
  TakeArray(arrays, "x", args.x);
  TakeArray(arrays, "y", args.y);
  TakeArray(arrays, "residual", args.residual);
  TakeArray(arrays, "sum", args.sum);
  TakeArray(arrays, "gamma", args.gamma);
  TakeArray(arrays, "beta", args.beta);
  TakeArray(arrays, "mean", args.mean);
  TakeArray(arrays, "rstd", args.rstd);
  Run(attn_norm_fwd, args);
}

void NormBackward(const py::dict& numbers, const py::dict& arrays) {
  const attn_norm_problem problem = NormProblem(numbers);
  auto args = MakeArgs<attn_norm_bwd_args>(problem);
  TakeArray(arrays, "x", args.x);
  TakeArray(arrays, "dy", args.dy);
  TakeArray(arrays, "dx", args.dx);
  TakeArray(arrays, "dh", args.dh);
  TakeArray(arrays, "gamma", args.gamma);
  TakeArray(arrays, "mean", args.mean);
  TakeArray(arrays, "rstd", args.rstd);
  TakeArray(arrays, "dgamma", args.dgamma);
  TakeArray(arrays, "dbeta", args.dbeta);
  Run(attn_norm_bwd, args);
}

void SoftmaxForward(const py::dict& numbers, const py::dict& arrays) {
  const attn_softmax_problem problem = SoftmaxProblem(numbers);
  auto args = MakeArgs<attn_softmax_fwd_args>(problem);
  TakeArray(arrays, "x", args.x);
  TakeArray(arrays, "y", args.y);
  TakeArray(arrays, "mask", args.mask);
  Run(attn_softmax_fwd, args);
}

void SoftmaxBackward(const py::dict& numbers, const py::dict& arrays) {
  const attn_softmax_problem problem = SoftmaxProblem(numbers);
  auto args = MakeArgs<attn_softmax_bwd_args>(problem);
  TakeArray(arrays, "y", args.y);
  TakeArray(arrays, "dy", args.dy);
  TakeArray(arrays, "dx", args.dx);
  Run(attn_softmax_bwd, args);
}

}  // namespace

void BindNorms(py::module_& module) {
  module.attr("NORM_LAYER") = static_cast<int>(ATTN_NORM_LAYER);
  module.attr("NORM_RMS") = static_cast<int>(ATTN_NORM_RMS);
  module.attr("SOFTMAX_MASK_NONE") = static_cast<int>(ATTN_SOFTMAX_MASK_NONE);
  module.attr("SOFTMAX_MASK_EXPLICIT") = static_cast<int>(ATTN_SOFTMAX_MASK_EXPLICIT);
  module.attr("SOFTMAX_MASK_CAUSAL") = static_cast<int>(ATTN_SOFTMAX_MASK_CAUSAL);
  module.def("norm_fwd", &NormForward, "numbers"_a, "arrays"_a);
  module.def("norm_bwd", &NormBackward, "numbers"_a, "arrays"_a);
  module.def("softmax_fwd", &SoftmaxForward, "numbers"_a, "arrays"_a);
  module.def("softmax_bwd", &SoftmaxBackward, "numbers"_a, "arrays"_a);
}

}  // namespace AITER_ATTN_NAMESPACE::python
