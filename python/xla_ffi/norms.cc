// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// XLA FFI handlers of LayerNorm and RMSNorm.
//
// Operands, in this order; those in brackets where the attributes say so
//   forward:  x gamma [beta] [residual] -> y rstd [mean] [sum]
//   backward: dy x gamma rstd [mean] [dh] -> dx dgamma [dbeta]
// beta, mean and dbeta are LayerNorm's. All are contiguous, and each has the shape and the dtype
// that follow from x and gamma.
#include <cstdint>

#include "aiter/attn.h"
#include "aiter/norm.h"
#include "python/xla_ffi/frame.h"

namespace AITER_ATTN_NAMESPACE::jax {
namespace {

// A call: its problem, and which shapes follow from that.
struct Call {
  Call(const ffi::AnyBuffer& x, const ffi::AnyBuffer& gamma, const Place& place, Frame& frame)
      : whole(x.dimensions().begin(), x.dimensions().end()),
        x_dtype(x.element_type()),
        weight_dtype(gamma.element_type()) {
    problem.struct_size = sizeof problem;
    problem.device_type = place.type;
    problem.device_id = place.ordinal;
    problem.stream = place.stream;
    by_row = whole;
    if (!whole.empty()) by_row.pop_back();
    problem.hidden = whole.empty() ? 0 : whole.back();
    problem.rows = 1;
    for (const int64_t size : by_row) problem.rows *= size;
    problem.x_dtype = problem.y_dtype = DtypeOf(x);
    problem.weight_dtype = DtypeOf(gamma);
    frame.Options(problem);
    frame.Attribute("has_residual", has_residual);
    frame.Check("gamma", gamma, weights(), weight_dtype);
  }

  bool is_layer() const { return problem.kind == ATTN_NORM_LAYER; }
  Shape weights() const { return {problem.hidden}; }
  attn_rows RowsOf(const ffi::AnyBuffer& buffer) const {
    return {buffer.untyped_data(), problem.hidden};
  }

  attn_norm_problem problem{};
  int32_t has_residual = 0;
  Shape whole;   // x's
  Shape by_row;  // without its last dimension
  ffi::DataType x_dtype, weight_dtype;
};

ffi::Error Forward(const Place& place, Frame frame) {
  attn_norm_fwd_args args{};
  args.struct_size = sizeof args;
  const ffi::AnyBuffer x = frame.Operand("x"), gamma = frame.Operand("gamma");
  const Call call(x, gamma, place, frame);
  constexpr ffi::DataType kFloat = ffi::DataType::F32;
  args.problem = &call.problem;
  args.x = call.RowsOf(x);
  args.gamma = gamma.untyped_data();
  if (call.is_layer()) {
    args.beta = frame.Operand("beta", call.weights(), call.weight_dtype).untyped_data();
  }
  if (call.has_residual != 0) {
    args.residual = call.RowsOf(frame.Operand("residual", call.whole, call.x_dtype));
  }
  args.y = call.RowsOf(frame.Result("y", call.whole, call.x_dtype));
  args.rstd = static_cast<float*>(frame.Result("rstd", call.by_row, kFloat).untyped_data());
  if (call.is_layer()) {
    args.mean = static_cast<float*>(frame.Result("mean", call.by_row, kFloat).untyped_data());
  }
  if (call.has_residual != 0) {
    args.sum = call.RowsOf(frame.Result("sum", call.whole, call.x_dtype));
  }
  if (ffi::Error error = frame.Finish(); error.failure()) return error;
  return ErrorOf(library.norm_fwd(&args));
}

ffi::Error Backward(const Place& place, Frame frame) {
  attn_norm_bwd_args args{};
  args.struct_size = sizeof args;
  const ffi::AnyBuffer dy = frame.Operand("dy"), x = frame.Operand("x"),
                       gamma = frame.Operand("gamma");
  const Call call(x, gamma, place, frame);
  constexpr ffi::DataType kFloat = ffi::DataType::F32;
  frame.Check("dy", dy, call.whole, call.x_dtype);
  args.problem = &call.problem;
  args.dy = call.RowsOf(dy);
  args.x = call.RowsOf(x);
  args.gamma = gamma.untyped_data();
  args.rstd = static_cast<const float*>(frame.Operand("rstd", call.by_row, kFloat).untyped_data());
  if (call.is_layer()) {
    args.mean =
        static_cast<const float*>(frame.Operand("mean", call.by_row, kFloat).untyped_data());
  }
  if (call.has_residual != 0) {
    args.dh = call.RowsOf(frame.Operand("dh", call.whole, call.x_dtype));
  }
  args.dx = call.RowsOf(frame.Result("dx", call.whole, call.x_dtype));
  args.dgamma = frame.Result("dgamma", call.weights(), call.weight_dtype).untyped_data();
  if (call.is_layer()) {
    args.dbeta = frame.Result("dbeta", call.weights(), call.weight_dtype).untyped_data();
  }
  if (ffi::Error error = frame.Finish(); error.failure()) return error;
  if (attn_status failed = library.norm_bwd_workspace_size(&args, &args.workspace_size)) {
    return ErrorOf(failed);
  }
  ffi::Error error = Workspace(place, args.workspace_size, args.workspace);
  return error.failure() ? error : ErrorOf(library.norm_bwd(&args));
}

}  // namespace

ATTN_JAX_HANDLERS(norm_fwd, Forward);
ATTN_JAX_HANDLERS(norm_bwd, Backward);

}  // namespace AITER_ATTN_NAMESPACE::jax
