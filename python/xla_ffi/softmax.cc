// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// XLA FFI handlers of softmax over the last dimension.
//
// Operands, in this order; the one in brackets where the attribute mask_kind says so
//   forward:  x [mask] -> y
//   backward: y dy -> dx
// x is [..., queries, columns], mask [masks, queries, columns]. All are contiguous.
#include <algorithm>
#include <cstdint>

#include "aiter/attn.h"
#include "aiter/norm.h"
#include "python/xla_ffi/frame.h"

namespace AITER_ATTN_NAMESPACE::jax {
namespace {

// A call: its problem, and the shape of its matrices.
struct Call {
  Call(const ffi::AnyBuffer& x, const Place& place, Frame& frame)
      : shape(x.dimensions().begin(), x.dimensions().end()), dtype(x.element_type()) {
    problem.struct_size = sizeof problem;
    problem.device_type = place.type;
    problem.device_id = place.ordinal;
    problem.stream = place.stream;
    problem.dtype = DtypeOf(x);
    problem.rows = 1;
    for (size_t i = 0; i + 1 < shape.size(); ++i) problem.rows *= shape[i];
    problem.columns = shape.empty() ? 0 : shape.back();
    problem.queries = shape.size() < 2 ? 1 : std::max<int64_t>(1, shape[shape.size() - 2]);
    frame.Options(problem);
  }

  attn_rows RowsOf(const ffi::AnyBuffer& buffer) const {
    return {buffer.untyped_data(), problem.columns};
  }

  attn_softmax_problem problem{};
  Shape shape;
  ffi::DataType dtype;
};

ffi::Error Forward(const Place& place, Frame frame) {
  attn_softmax_fwd_args args{};
  args.struct_size = sizeof args;
  const ffi::AnyBuffer x = frame.Operand("x");
  Call call(x, place, frame);
  if (call.problem.mask_kind == ATTN_SOFTMAX_MASK_EXPLICIT) {
    const ffi::AnyBuffer mask = frame.Operand("mask");
    const int64_t matrices = call.problem.rows / call.problem.queries;
    int64_t masks = mask.dimensions().size() == 0 ? 1 : mask.dimensions().front();
    if (masks <= 0 || matrices % masks != 0) masks = 1;
    frame.Check("mask", mask, {masks, call.problem.queries, call.problem.columns},
                ffi::DataType::U8);
    call.problem.mask_repeat = std::max<int64_t>(1, matrices / masks);
    args.mask = static_cast<const uint8_t*>(mask.untyped_data());
  }
  args.problem = &call.problem;
  args.x = call.RowsOf(x);
  args.y = call.RowsOf(frame.Result("y", call.shape, call.dtype));
  if (ffi::Error error = frame.Finish(); error.failure()) return error;
  return ErrorOf(library.softmax_fwd(&args));
}

ffi::Error Backward(const Place& place, Frame frame) {
  attn_softmax_bwd_args args{};
  args.struct_size = sizeof args;
  const ffi::AnyBuffer y = frame.Operand("y");
  const Call call(y, place, frame);
  args.problem = &call.problem;
  args.y = call.RowsOf(y);
  args.dy = call.RowsOf(frame.Operand("dy", call.shape, call.dtype));
  args.dx = call.RowsOf(frame.Result("dx", call.shape, call.dtype));
  if (ffi::Error error = frame.Finish(); error.failure()) return error;
  return ErrorOf(library.softmax_bwd(&args));
}

}  // namespace

ATTN_JAX_HANDLERS(softmax_fwd, Forward);
ATTN_JAX_HANDLERS(softmax_bwd, Backward);

}  // namespace AITER_ATTN_NAMESPACE::jax
