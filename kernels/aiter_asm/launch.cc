// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Arguments and grids of AITER's forward kernels. aiter/attention/passes/forward/asm.h says which
// problems they serve: strides, rows and tensors are within their 32 bits here.
#include <cstring>

#include "kernels/aiter_asm/forward_arguments.h"
#include "kernels/launch_table/launch_table.h"

namespace AITER_ATTN_NAMESPACE::kernels::aiter_asm {
namespace {

constexpr int64_t kElement = 2;  // bytes: bf16
constexpr int32_t kLongForOption5 = 16384;

// The last three are dimensions of the grid.
struct Shape {
  uint32_t tile_q, tiles_per_workgroup;
  bool causal;
  int tiles, heads_q, batch;
};

uint32_t bytes(int64_t elements) { return static_cast<uint32_t>(elements * kElement); }

// The mapping of workgroups to tiles and heads. With a mask 5 maps to rows that do not exist where
// heads are no multiple of 8.
uint32_t option_of(const Shape& shape, const attn_problem& p) {
  return shape.causal && (p.heads_q % 8 != 0 || p.seqlen_q > kLongForOption5) ? 3 : 5;
}

void forward_launch(const Shape& shape, const LaunchArgs& args, Launch* launch) {
  const attn_problem& p = args.problem;
  const bool group = p.mode == ATTN_MODE_GROUP;
  static_assert(sizeof(ForwardArguments) <= kMostKernargSize);
  ForwardArguments made = {};
  made.o = args.o.data;
  made.q = args.q.data;
  made.k = args.k.data;
  made.v = args.v.data;
  made.lse = args.lse;
  made.scale = p.softmax_scale;
  made.seqlen_q = group ? p.total_q : p.seqlen_q;
  made.seqlen_k = group ? p.total_k : p.seqlen_k;
  made.tile_stride_q = shape.tile_q * bytes(args.q.stride_seq);
  made.heads_q = p.heads_q;
  made.heads_q_per_head_k = p.heads_q / p.heads_k;
  made.option = option_of(shape, p);
  made.store_lse = args.lse != nullptr;
  made.head_size_qk = p.head_size_qk;
  made.head_size_v = p.head_size_v;
  made.head_stride_lse = 4 * made.seqlen_q;
  const auto set = [group](const attn_tensor& t, uint32_t* row, uint32_t* head, uint32_t* batch) {
    *row = bytes(t.stride_seq);
    *head = bytes(t.stride_head);
    *batch = group ? 0 : bytes(t.stride_batch);
  };
  set(args.q, &made.stride_q, &made.head_stride_q, &made.batch_stride_q);
  set(args.k, &made.stride_k, &made.head_stride_k, &made.batch_stride_k);
  set(args.v, &made.stride_v, &made.head_stride_v, &made.batch_stride_v);
  set(args.o, &made.stride_o, &made.head_stride_o, &made.batch_stride_o);
  if (group) {
    made.padded_seqstart_q = p.cu_seqlens_q;
    made.padded_seqstart_k = p.cu_seqlens_k;
    made.seqstart_q = p.cu_seqused_q ? p.cu_seqused_q : p.cu_seqlens_q;
    made.seqstart_k = p.cu_seqused_k ? p.cu_seqused_k : p.cu_seqlens_k;
  }
  const uint32_t rows = shape.tile_q * shape.tiles_per_workgroup;
  launch->grid[shape.tiles] = (static_cast<uint32_t>(p.seqlen_q) + rows - 1) / rows;
  launch->grid[shape.heads_q] = p.heads_q;
  launch->grid[shape.batch] = p.batch;
  launch->dynamic_lds = 0;
  launch->kernarg_size = sizeof(made);
  std::memcpy(launch->kernarg, &made, sizeof(made));
}

}  // namespace

// The launch table names them.
// NOLINTBEGIN(misc-use-internal-linkage)
#define AITER_ASM_LAUNCH(name, ...) \
  void name(const LaunchArgs& args, Launch* launch) { forward_launch({__VA_ARGS__}, args, launch); }
AITER_ASM_FORWARD_LAUNCHES(AITER_ASM_LAUNCH)
#undef AITER_ASM_LAUNCH
// NOLINTEND(misc-use-internal-linkage)

}  // namespace AITER_ATTN_NAMESPACE::kernels::aiter_asm
