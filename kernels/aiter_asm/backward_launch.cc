// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Arguments and grids of AITER's backward kernels. aiter/attention/passes/backward/asm.h says which
// problems they serve: strides, rows and tensors are within their 32 bits here.
#include <cstring>

#include "kernels/aiter_asm/backward_arguments.h"
#include "kernels/launch_table/launch_table.h"

namespace AITER_ATTN_NAMESPACE::kernels::aiter_asm {
namespace {

constexpr int64_t kElement = 2;  // bytes: fp16, bf16
constexpr float kLog2E = 1.4426950408889634f;

uint32_t bytes(int64_t elements) { return static_cast<uint32_t>(elements * kElement); }

void set_strides(const attn_tensor& t, uint32_t* row, uint32_t* head) {
  *row = bytes(t.stride_seq);
  *head = bytes(t.stride_head);
}

template <typename Arguments>
void set_common(const LaunchArgs& args, Arguments* made) {
  const attn_problem& p = args.problem;
  made->dq = args.dq_acc;
  made->dk = args.dk.data;
  made->dv = args.dv.data;
  made->q = args.q.data;
  made->k = args.k.data;
  made->v = args.v.data;
  made->do_ = args.dout.data;
  made->lse = args.lse;
  made->delta = args.delta;
  made->scale = p.softmax_scale;
  made->log2e = kLog2E;
  made->heads_q_per_head_k = p.heads_q / p.heads_k;
  made->head_size_qk = p.head_size_qk;
  set_strides(args.q, &made->stride_q, &made->head_stride_q);
  set_strides(args.k, &made->stride_k, &made->head_stride_k);
}

// Of the kernels that know strides of each tensor.
template <typename Arguments>
void set_other_strides(const LaunchArgs& args, Arguments* made) {
  set_strides(args.v, &made->stride_v, &made->head_stride_v);
  set_strides(args.dout, &made->stride_do, &made->head_stride_do);
  set_strides(args.dk, &made->stride_dk, &made->head_stride_dk);
  set_strides(args.dv, &made->stride_dv, &made->head_stride_dv);
}

template <typename Arguments>
void set_batch_strides(const LaunchArgs& args, Arguments* made) {
  made->batch_stride_q = bytes(args.q.stride_batch);
  made->batch_stride_k = bytes(args.k.stride_batch);
  made->batch_stride_v = bytes(args.v.stride_batch);
  made->batch_stride_do = bytes(args.dout.stride_batch);
  made->batch_stride_dk = bytes(args.dk.stride_batch);
  made->batch_stride_dv = bytes(args.dv.stride_batch);
}

template <typename Arguments>
void set_sequences(const attn_problem& p, Arguments* made) {
  made->seqstart_q = made->padded_seqstart_q = p.cu_seqlens_q;
  made->seqstart_k = made->padded_seqstart_k = p.cu_seqlens_k;
}

uint32_t lse_stride(int32_t rows) { return rows * static_cast<uint32_t>(sizeof(float)); }

void set_arguments(const LaunchArgs& args, uint32_t /*tile_k*/, BackwardGeneralArguments* made) {
  set_common(args, made);
  set_other_strides(args, made);
  set_batch_strides(args, made);
  const attn_problem& p = args.problem;
  made->seqlen_q = p.seqlen_q;
  made->seqlen_k = p.seqlen_k;
  made->heads_q = p.heads_q;
}

void set_arguments(const LaunchArgs& args, uint32_t /*tile_k*/, BackwardGroupArguments* made) {
  set_common(args, made);
  set_other_strides(args, made);
  set_sequences(args.problem, made);
  made->seqlen_k = args.problem.total_k;
  made->head_stride_lse = lse_stride(args.problem.total_q);
}

void set_arguments(const LaunchArgs& args, uint32_t tile_k, BackwardNativeArguments* made) {
  set_common(args, made);
  set_other_strides(args, made);
  const attn_problem& p = args.problem;
  const bool group = p.mode == ATTN_MODE_GROUP;
  if (group) {
    set_sequences(p, made);
  } else {
    set_batch_strides(args, made);
  }
  made->seqlen_q = group ? p.total_q : p.seqlen_q;
  made->seqlen_k = group ? p.total_k : p.seqlen_k;
  made->tile_stride_k = tile_k * bytes(args.k.stride_seq);
  made->heads_q = p.heads_q;
  made->head_size_v = p.head_size_v;
  made->head_stride_lse = lse_stride(group ? p.total_q : p.seqlen_q);
  made->max_seqlen_dq = p.seqlen_q;
}

// q and dout lie alike, and k, v, and with all query heads dk and dv.
void set_arguments(const LaunchArgs& args, uint32_t tile_k, BackwardPlainArguments* made) {
  set_common(args, made);
  made->batch_stride_q = bytes(args.q.stride_batch);
  made->batch_stride_k = bytes(args.k.stride_batch);
  made->stride_dk = bytes(args.dk.stride_seq);
  made->seqlen = args.problem.seqlen_q;
  made->tile_stride_k = tile_k * made->stride_k;
}

template <typename Arguments>
void backward_launch(uint32_t tile_k, uint32_t tiles_per_workgroup, const LaunchArgs& args,
                     Launch* launch) {
  static_assert(sizeof(Arguments) <= kMostKernargSize);
  const attn_problem& p = args.problem;
  Arguments made = {};
  set_arguments(args, tile_k, &made);
  const uint32_t rows = tile_k * tiles_per_workgroup;
  launch->grid[0] = (static_cast<uint32_t>(p.seqlen_k) + rows - 1) / rows;
  launch->grid[1] = p.heads_q;
  launch->grid[2] = p.batch;
  launch->dynamic_lds = 0;
  launch->kernarg_size = sizeof(made);
  std::memcpy(launch->kernarg, &made, sizeof(made));
}

}  // namespace

// The launch table names them.
// NOLINTBEGIN(misc-use-internal-linkage)
#define AITER_ASM_LAUNCH(name, Arguments, tile_k, tiles)     \
  void name(const LaunchArgs& args, Launch* launch) {        \
    backward_launch<Arguments>(tile_k, tiles, args, launch); \
  }
AITER_ASM_BACKWARD_LAUNCHES(AITER_ASM_LAUNCH)
#undef AITER_ASM_LAUNCH
// NOLINTEND(misc-use-internal-linkage)

}  // namespace AITER_ATTN_NAMESPACE::kernels::aiter_asm
