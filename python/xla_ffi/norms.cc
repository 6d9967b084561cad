// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// XLA FFI handlers of LayerNorm and RMSNorm.
//
// Operands, in this order; those in brackets where the attributes say so
//   forward:  x gamma [beta] [residual] -> y rstd [mean] [sum]
//   backward: dy x gamma rstd [mean] [dh] -> dx dgamma [dbeta]
// beta, mean and dbeta are LayerNorm's. All are contiguous.
#include <cstdint>

#include "aiter/attn.h"
#include "aiter/norm.h"
#include "python/xla_ffi/frame.h"

namespace AITER_ATTN_NAMESPACE::jax {
namespace {

attn_norm_problem ProblemOf(const ffi::AnyBuffer& x, const ffi::AnyBuffer& gamma,
                            const Place& place, Frame& frame) {
  attn_norm_problem p{};
  p.struct_size = sizeof p;
  p.device_type = place.type;
  p.device_id = place.ordinal;
  p.stream = place.stream;
  const auto dims = x.dimensions();
  p.hidden = dims.size() == 0 ? 0 : dims[dims.size() - 1];
  p.rows = 1;
  for (size_t i = 0; i + 1 < dims.size(); ++i) p.rows *= dims[i];
  p.x_dtype = p.y_dtype = DtypeOf(x);
  p.weight_dtype = DtypeOf(gamma);
  frame.Attribute("kind", p.kind);
  frame.Attribute("zero_centred", p.zero_centred);
  frame.Attribute("epsilon", p.epsilon);
  return p;
}

attn_rows RowsOf(const ffi::AnyBuffer& buffer, const attn_norm_problem& problem) {
  return {buffer.untyped_data(), problem.hidden};
}

ffi::Error Forward(const Place& place, Frame frame) {
  attn_norm_fwd_args args{};
  args.struct_size = sizeof args;
  const ffi::AnyBuffer x = frame.Operand(), gamma = frame.Operand();
  const attn_norm_problem problem = ProblemOf(x, gamma, place, frame);
  int32_t has_residual = 0;
  frame.Attribute("has_residual", has_residual);
  const bool is_layer = problem.kind == ATTN_NORM_LAYER;
  args.problem = &problem;
  args.x = RowsOf(x, problem);
  args.gamma = gamma.untyped_data();
  if (is_layer) args.beta = frame.Operand().untyped_data();
  if (has_residual != 0) args.residual = RowsOf(frame.Operand(), problem);
  args.y = RowsOf(frame.Result(), problem);
  args.rstd = static_cast<float*>(frame.Result().untyped_data());
  if (is_layer) args.mean = static_cast<float*>(frame.Result().untyped_data());
  if (has_residual != 0) args.sum = RowsOf(frame.Result(), problem);
  if (frame.error().failure()) return frame.error();
  return ErrorOf(library.norm_fwd(&args));
}

ffi::Error Backward(const Place& place, Frame frame) {
  attn_norm_bwd_args args{};
  args.struct_size = sizeof args;
  const ffi::AnyBuffer dy = frame.Operand(), x = frame.Operand(), gamma = frame.Operand();
  const attn_norm_problem problem = ProblemOf(x, gamma, place, frame);
  int32_t has_residual = 0;
  frame.Attribute("has_residual", has_residual);
  const bool is_layer = problem.kind == ATTN_NORM_LAYER;
  args.problem = &problem;
  args.dy = RowsOf(dy, problem);
  args.x = RowsOf(x, problem);
  args.gamma = gamma.untyped_data();
  args.rstd = static_cast<const float*>(frame.Operand().untyped_data());
  if (is_layer) args.mean = static_cast<const float*>(frame.Operand().untyped_data());
  if (has_residual != 0) args.dh = RowsOf(frame.Operand(), problem);
  args.dx = RowsOf(frame.Result(), problem);
  args.dgamma = frame.Result().untyped_data();
  if (is_layer) args.dbeta = frame.Result().untyped_data();
  if (frame.error().failure()) return frame.error();
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
