// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// XLA FFI handlers of attention.
//
// Operands, in this order; those in brackets where the attributes say so, or q has three dimensions
//   forward:  q k v [cu_seqlens_q cu_seqlens_k] [rng_state] [bias | alibi_slopes] -> out lse
//   backward: dout q k v out lse [cu_seqlens_q cu_seqlens_k] [rng_state] [bias | alibi_slopes]
//             -> dq dk dv [dbias]
//   dropout mask: q k v [cu_seqlens_q cu_seqlens_k] rng_state -> kept
// rng_state is there with dropout. All are contiguous. Attributes are those of attn_problem and of
// the args structs, by their names.
#include <cstdint>

#include "aiter/attn.h"
#include "python/xla_ffi/frame.h"

namespace AITER_ATTN_NAMESPACE::jax {
namespace {

// [batch, seqlen, heads, head size], or without batch.
attn_tensor TensorOf(const ffi::AnyBuffer& buffer) {
  const auto dims = buffer.dimensions();
  attn_tensor tensor{buffer.untyped_data(), 0, 0, 0};
  if (dims.size() < 3) return tensor;
  const size_t last = dims.size() - 1;
  tensor.stride_head = dims[last];
  tensor.stride_seq = tensor.stride_head * dims[last - 1];
  if (dims.size() == 4) tensor.stride_batch = tensor.stride_seq * dims[1];
  return tensor;
}

// [batch, heads, queries, keys], or without batch: repeated along each dimension of size 1.
attn_tensor ScoresOf(const ffi::AnyBuffer& buffer) {
  const auto dims = buffer.dimensions();
  attn_tensor tensor{buffer.untyped_data(), 0, 0, 0};
  if (dims.size() < 3) return tensor;
  const size_t last = dims.size() - 1;
  int64_t stride = dims[last];
  int64_t* const strides[] = {&tensor.stride_seq, &tensor.stride_head, &tensor.stride_batch};
  for (size_t i = 0; i < last; ++i) {
    const int64_t size = dims[last - 1 - i];
    *strides[i] = size == 1 ? 0 : stride;
    stride *= size;
  }
  return tensor;
}

// The problem of q, k and v; seqlen_q and seqlen_k are attributes, the greatest ones in group mode.
attn_problem ProblemOf(const ffi::AnyBuffer& q, const ffi::AnyBuffer& k, const ffi::AnyBuffer& v,
                       const Place& place, Frame& frame) {
  attn_problem p{};
  p.struct_size = sizeof p;
  p.device_type = place.type;
  p.device_id = place.ordinal;
  p.stream = place.stream;
  p.dtype = DtypeOf(q);
  const auto of_q = q.dimensions(), of_k = k.dimensions(), of_v = v.dimensions();
  const size_t rank = of_q.size();
  const auto size = [](const auto& dims, size_t from_last) {
    return from_last < dims.size() ? static_cast<int32_t>(dims[dims.size() - 1 - from_last]) : 0;
  };
  p.mode = rank == 3 ? ATTN_MODE_GROUP : ATTN_MODE_BATCH;
  p.heads_q = size(of_q, 1);
  p.heads_k = size(of_k, 1);
  p.head_size_qk = size(of_q, 0);
  p.head_size_v = size(of_v, 0);
  if (p.mode == ATTN_MODE_GROUP) {
    p.total_q = size(of_q, 2);
    p.total_k = size(of_k, 2);
  } else {
    p.batch = size(of_q, 3);
  }
  frame.Attribute("seqlen_q", p.seqlen_q);
  frame.Attribute("seqlen_k", p.seqlen_k);
  frame.Attribute("softmax_scale", p.softmax_scale);
  frame.Attribute("mask", p.mask);
  frame.Attribute("window_left", p.window_left);
  frame.Attribute("window_right", p.window_right);
  frame.Attribute("bias", p.bias);
  frame.Attribute("logits_soft_cap", p.logits_soft_cap);
  frame.Attribute("dropout_p", p.dropout_p);
  return p;
}

// Sequences, and the state of random numbers.
void TakeOfProblem(Frame& frame, attn_problem& p) {
  if (p.mode == ATTN_MODE_GROUP) {
    const ffi::AnyBuffer starts_q = frame.Operand(), starts_k = frame.Operand();
    p.cu_seqlens_q = static_cast<const int32_t*>(starts_q.untyped_data());
    p.cu_seqlens_k = static_cast<const int32_t*>(starts_k.untyped_data());
    const auto entries = starts_q.dimensions();
    p.batch = entries.size() == 1 ? static_cast<int32_t>(entries[0]) - 1 : -1;
  }
  // Its four words of 32 bits are seed and offset.
  if (p.dropout_p > 0) p.rng_state = static_cast<uint64_t*>(frame.Operand().untyped_data());
}

// The operands behind those that every call has.
template <typename Args>
void TakeOptional(Frame& frame, attn_problem& p, Args& args) {
  TakeOfProblem(frame, p);
  if (p.bias == ATTN_BIAS_ELEMENTWISE) {
    args.bias = ScoresOf(frame.Operand());
  } else if (p.bias == ATTN_BIAS_ALIBI) {
    const ffi::AnyBuffer slopes = frame.Operand();
    args.alibi_slopes = static_cast<const float*>(slopes.untyped_data());
    if (slopes.dimensions().size() == 2) args.alibi_stride_batch = slopes.dimensions()[1];
  }
}

ffi::Error Forward(const Place& place, Frame frame) {
  attn_fwd_args args{};
  args.struct_size = sizeof args;
  const ffi::AnyBuffer q = frame.Operand(), k = frame.Operand(), v = frame.Operand();
  attn_problem problem = ProblemOf(q, k, v, place, frame);
  args.problem = &problem;
  args.q = TensorOf(q);
  args.k = TensorOf(k);
  args.v = TensorOf(v);
  TakeOptional(frame, problem, args);
  args.o = TensorOf(frame.Result());
  args.lse = static_cast<float*>(frame.Result().untyped_data());
  if (frame.error().failure()) return frame.error();
  return ErrorOf(library.fwd(&args));
}

ffi::Error Backward(const Place& place, Frame frame) {
  attn_bwd_args args{};
  args.struct_size = sizeof args;
  args.dout = TensorOf(frame.Operand());
  const ffi::AnyBuffer q = frame.Operand(), k = frame.Operand(), v = frame.Operand();
  attn_problem problem = ProblemOf(q, k, v, place, frame);
  args.problem = &problem;
  args.q = TensorOf(q);
  args.k = TensorOf(k);
  args.v = TensorOf(v);
  args.o = TensorOf(frame.Operand());
  args.lse = static_cast<const float*>(frame.Operand().untyped_data());
  frame.Attribute("bias_grad", args.bias_grad);
  frame.Attribute("deterministic", args.deterministic);
  TakeOptional(frame, problem, args);
  args.dq = TensorOf(frame.Result());
  args.dk = TensorOf(frame.Result());
  args.dv = TensorOf(frame.Result());
  if (args.bias_grad != 0) args.dbias = ScoresOf(frame.Result());
  if (frame.error().failure()) return frame.error();
  if (attn_status failed = library.bwd_workspace_size(&args, &args.workspace_size)) {
    return ErrorOf(failed);
  }
  ffi::Error error = Workspace(place, args.workspace_size, args.workspace);
  return error.failure() ? error : ErrorOf(library.bwd(&args));
}

ffi::Error DropoutMask(const Place& place, Frame frame) {
  const ffi::AnyBuffer q = frame.Operand(), k = frame.Operand(), v = frame.Operand();
  attn_problem problem = ProblemOf(q, k, v, place, frame);
  TakeOfProblem(frame, problem);
  attn_dropout_mask_args args{};
  args.struct_size = sizeof args;
  args.problem = &problem;
  args.kept = static_cast<uint8_t*>(frame.Result().untyped_data());
  if (frame.error().failure()) return frame.error();
  return ErrorOf(library.dropout_mask(&args));
}

}  // namespace

ATTN_JAX_HANDLERS(fwd, Forward);
ATTN_JAX_HANDLERS(bwd, Backward);
ATTN_JAX_HANDLERS(dropout_mask, DropoutMask);

}  // namespace AITER_ATTN_NAMESPACE::jax
