// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// XLA FFI handlers of attention.
//
// Operands, in this order; those in brackets where the attributes say so, or q has three dimensions
//   forward:  q k v [cu_seqlens_q cu_seqlens_k] [rng_state] [bias | alibi_slopes] -> out lse
//   backward: dout q k v out lse [cu_seqlens_q cu_seqlens_k] [rng_state] [bias | alibi_slopes]
//             -> dq dk dv [dbias]
//   dropout mask: q k v [cu_seqlens_q cu_seqlens_k] rng_state -> kept
//   over a cache: q k v [block_table] [seqlens_k] [batch_index] [alibi_slopes] -> out lse
// rng_state is there with dropout. All are contiguous, and each has the shape and the dtype that
// follow from q, k and v. Attributes are the options of attn_problem (aiter/fields.h), and
// bias_grad and deterministic of attn_bwd_args; over a cache page_size of attn_kvcache, splits of
// its args, and has_lengths and has_entries for seqlens_k and batch_index; 0 where one is not
// there.
#include <algorithm>
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

Shape ShapeOf(const ffi::AnyBuffer& buffer) {
  return {buffer.dimensions().begin(), buffer.dimensions().end()};
}

// A call: its problem, and which shapes and dtypes follow from that.
class Call {
 public:
  // Among the options are seqlen_q and seqlen_k, the greatest ones in group mode.
  Call(const Place& place, Frame& frame) : frame_(frame) {
    problem.struct_size = sizeof problem;
    problem.device_type = place.type;
    problem.device_id = place.ordinal;
    problem.stream = place.stream;
    frame.Options(problem);
  }

  // The next three operands.
  void TakeQkv() {
    TakeSizes();
    frame_.Check("q", q_, OfQueries(problem.head_size_qk), dtype());
    frame_.Check("k", k_, OfKeys(problem.head_size_qk), dtype());
    frame_.Check("v", v_, OfKeys(problem.head_size_v), dtype());
  }

  // The same of a cache, and its arrays of numbers. k and v have entries of seqlen_k rows, or
  // pages.
  void TakeCached(attn_kvcache& cache) {
    TakeSizes();
    cache.struct_size = sizeof cache;
    frame_.Attribute("page_size", cache.page_size);
    cache.entries = SizeOf(k_, 3);
    const int64_t rows = cache.page_size > 0 ? cache.page_size : problem.seqlen_k;
    const auto shape = [&](int64_t size) {
      return Shape{cache.entries, rows, problem.heads_k, size};
    };
    frame_.Check("q", q_, OfQueries(problem.head_size_qk), dtype());
    frame_.Check("k", k_, shape(problem.head_size_qk), dtype());
    frame_.Check("v", v_, shape(problem.head_size_v), dtype());
    if (cache.page_size > 0) {
      const ffi::AnyBuffer table = frame_.Operand("block_table");
      cache.block_table_stride = SizeOf(table, 0);
      frame_.Check("block_table", table, {problem.batch, cache.block_table_stride},
                   ffi::DataType::S32);
      cache.block_table = static_cast<const int32_t*>(table.untyped_data());
    }
    int32_t has_lengths = 0, has_entries = 0;
    frame_.Attribute("has_lengths", has_lengths);
    frame_.Attribute("has_entries", has_entries);
    if (has_lengths != 0) cache.seqlens_k = TakeNumbers("seqlens_k");
    if (has_entries != 0) cache.batch_index = TakeNumbers("batch_index");
  }

  // Sequences, and the state of random numbers.
  void TakeOfProblem() {
    if (problem.mode == ATTN_MODE_GROUP) {
      const ffi::AnyBuffer starts = frame_.Operand("cu_seqlens_q");
      const Shape shape = ShapeOf(starts);
      problem.batch = shape.size() == 1 ? static_cast<int32_t>(shape[0]) - 1 : 0;
      const Shape wanted = {int64_t{problem.batch} + 1};
      frame_.Check("cu_seqlens_q", starts, wanted, ffi::DataType::S32);
      problem.cu_seqlens_q = static_cast<const int32_t*>(starts.untyped_data());
      problem.cu_seqlens_k = static_cast<const int32_t*>(
          frame_.Operand("cu_seqlens_k", wanted, ffi::DataType::S32).untyped_data());
    }
    // Its four words of 32 bits are seed and offset.
    if (problem.dropout_p > 0) {
      problem.rng_state = static_cast<uint64_t*>(
          frame_.Operand("rng_state", {4}, ffi::DataType::U32).untyped_data());
    }
  }

  // The operands behind those that every call has.
  template <typename Args>
  void TakeOptional(Args& args) {
    TakeOfProblem();
    if (problem.bias == ATTN_BIAS_ELEMENTWISE) {
      const ffi::AnyBuffer bias = frame_.Operand("bias");
      const Shape given = ShapeOf(bias);
      Shape wanted = OfScores();
      for (size_t i = 0; i + 1 < std::min(given.size(), wanted.size()); ++i) {
        if (given[i] == 1) wanted[i] = 1;
      }
      frame_.Check("bias", bias, wanted, dtype());
      args.bias = ScoresOf(bias);
    } else {
      TakeSlopes(args);
    }
  }

  template <typename Args>
  void TakeSlopes(Args& args) {
    if (problem.bias == ATTN_BIAS_ALIBI) {
      const ffi::AnyBuffer slopes = frame_.Operand("alibi_slopes");
      const bool by_batch = slopes.dimensions().size() == 2;
      frame_.Check("alibi_slopes", slopes,
                   by_batch ? Shape{problem.batch, problem.heads_q} : Shape{problem.heads_q},
                   ffi::DataType::F32);
      args.alibi_slopes = static_cast<const float*>(slopes.untyped_data());
      if (by_batch) args.alibi_stride_batch = problem.heads_q;
    }
  }

  template <typename Args>
  void SetQkv(Args& args) const {
    args.struct_size = sizeof args;
    args.problem = &problem;
    args.q = TensorOf(q_);
    args.k = TensorOf(k_);
    args.v = TensorOf(v_);
  }

  ffi::DataType dtype() const { return q_.element_type(); }
  Shape OfQueries(int64_t size) const {
    if (problem.mode == ATTN_MODE_GROUP) return {problem.total_q, problem.heads_q, size};
    return {problem.batch, problem.seqlen_q, problem.heads_q, size};
  }
  Shape OfKeys(int64_t size) const {
    if (problem.mode == ATTN_MODE_GROUP) return {problem.total_k, problem.heads_k, size};
    return {problem.batch, problem.seqlen_k, problem.heads_k, size};
  }
  Shape OfLse() const {
    if (problem.mode == ATTN_MODE_GROUP) return {problem.heads_q, problem.total_q};
    return {problem.batch, problem.heads_q, problem.seqlen_q};
  }
  Shape OfScores() const {
    Shape shape = OfLse();
    shape.push_back(problem.seqlen_k);
    return shape;
  }

  attn_problem problem{};

 private:
  static constexpr XLA_FFI_Buffer kNothing{};

  // Of a dimension, counted from the last; 0 where there is none.
  static int32_t SizeOf(const ffi::AnyBuffer& buffer, size_t from_last) {
    const auto dims = buffer.dimensions();
    return from_last < dims.size() ? static_cast<int32_t>(dims[dims.size() - 1 - from_last]) : 0;
  }

  void TakeSizes() {
    q_ = frame_.Operand("q");
    k_ = frame_.Operand("k");
    v_ = frame_.Operand("v");
    problem.mode = q_.dimensions().size() == 3 ? ATTN_MODE_GROUP : ATTN_MODE_BATCH;
    problem.dtype = DtypeOf(q_);
    problem.heads_q = SizeOf(q_, 1);
    problem.heads_k = SizeOf(k_, 1);
    problem.head_size_qk = SizeOf(q_, 0);
    problem.head_size_v = SizeOf(v_, 0);
    if (problem.mode == ATTN_MODE_GROUP) {
      problem.total_q = SizeOf(q_, 2);
      problem.total_k = SizeOf(k_, 2);
    } else {
      problem.batch = SizeOf(q_, 3);
    }
  }

  // A number for each sequence.
  const int32_t* TakeNumbers(const char* name) {
    const ffi::AnyBuffer numbers = frame_.Operand(name, {problem.batch}, ffi::DataType::S32);
    return static_cast<const int32_t*>(numbers.untyped_data());
  }

  Frame& frame_;
  ffi::AnyBuffer q_{&kNothing}, k_{&kNothing}, v_{&kNothing};
};

ffi::Error Forward(const Place& place, Frame frame) {
  Call call(place, frame);
  call.TakeQkv();
  attn_fwd_args args{};
  call.SetQkv(args);
  call.TakeOptional(args);
  args.o = TensorOf(frame.Result("out", call.OfQueries(call.problem.head_size_v), call.dtype()));
  args.lse =
      static_cast<float*>(frame.Result("lse", call.OfLse(), ffi::DataType::F32).untyped_data());
  if (ffi::Error error = frame.Finish(); error.failure()) return error;
  return ErrorOf(library.fwd(&args));
}

ffi::Error Backward(const Place& place, Frame frame) {
  Call call(place, frame);
  const ffi::AnyBuffer dout = frame.Operand("dout");
  call.TakeQkv();
  attn_bwd_args args{};
  call.SetQkv(args);
  const attn_problem& problem = call.problem;
  const Shape of_out = call.OfQueries(problem.head_size_v);
  frame.Check("dout", dout, of_out, call.dtype());
  args.dout = TensorOf(dout);
  args.o = TensorOf(frame.Operand("out", of_out, call.dtype()));
  args.lse = static_cast<const float*>(
      frame.Operand("lse", call.OfLse(), ffi::DataType::F32).untyped_data());
  frame.Attribute("bias_grad", args.bias_grad);
  frame.Attribute("deterministic", args.deterministic);
  call.TakeOptional(args);
  args.dq = TensorOf(frame.Result("dq", call.OfQueries(problem.head_size_qk), call.dtype()));
  args.dk = TensorOf(frame.Result("dk", call.OfKeys(problem.head_size_qk), call.dtype()));
  args.dv = TensorOf(frame.Result("dv", call.OfKeys(problem.head_size_v), call.dtype()));
  if (args.bias_grad != 0) {
    args.dbias = ScoresOf(frame.Result("dbias", call.OfScores(), call.dtype()));
  }
  if (ffi::Error error = frame.Finish(); error.failure()) return error;
  if (attn_status failed = library.bwd_workspace_size(&args, &args.workspace_size)) {
    return ErrorOf(failed);
  }
  ffi::Error error = Workspace(place, args.workspace_size, args.workspace);
  return error.failure() ? error : ErrorOf(library.bwd(&args));
}

ffi::Error DropoutMask(const Place& place, Frame frame) {
  Call call(place, frame);
  call.TakeQkv();
  call.TakeOfProblem();
  attn_dropout_mask_args args{};
  args.struct_size = sizeof args;
  args.problem = &call.problem;
  args.kept = static_cast<uint8_t*>(
      frame.Result("kept", call.OfScores(), ffi::DataType::U8).untyped_data());
  if (ffi::Error error = frame.Finish(); error.failure()) return error;
  return ErrorOf(library.dropout_mask(&args));
}

ffi::Error OverCache(const Place& place, Frame frame) {
  Call call(place, frame);
  attn_kvcache cache{};
  call.TakeCached(cache);
  attn_kvcache_fwd_args args{};
  call.SetQkv(args);
  args.cache = &cache;
  frame.Attribute("splits", args.splits);
  call.TakeSlopes(args);
  args.o = TensorOf(frame.Result("out", call.OfQueries(call.problem.head_size_v), call.dtype()));
  args.lse =
      static_cast<float*>(frame.Result("lse", call.OfLse(), ffi::DataType::F32).untyped_data());
  if (ffi::Error error = frame.Finish(); error.failure()) return error;
  if (attn_status failed = library.kvcache_fwd_workspace_size(&args, &args.workspace_size)) {
    return ErrorOf(failed);
  }
  ffi::Error error = Workspace(place, args.workspace_size, args.workspace);
  return error.failure() ? error : ErrorOf(library.kvcache_fwd(&args));
}

}  // namespace

ATTN_JAX_HANDLERS(fwd, Forward);
ATTN_JAX_HANDLERS(bwd, Backward);
ATTN_JAX_HANDLERS(dropout_mask, DropoutMask);
ATTN_JAX_HANDLERS(kvcache_fwd, OverCache);

}  // namespace AITER_ATTN_NAMESPACE::jax
