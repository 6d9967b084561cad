// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// What CK's kernels take beyond this library's C ABI. launches.py has the same structs.
#pragma once

#include <cstdint>

#include "aiter/attn.h"
#include "aiter/launch_table.h"

using aiter_attn::KernelLaunch;

// All strides are in elements.
struct Features {
  // Elementwise: [heads_q][rows][keys] of the problem's type. ALiBi: float slopes [batch][heads_q].
  const void* bias;
  void* dbias;  // as an elementwise bias
  int64_t bias_stride_batch;
  int64_t bias_stride_head;
  int64_t bias_stride_seq;  // ALiBi: between batches
  float logits_soft_cap;
  float p_drop;
  uint64_t drop_seed;
  uint64_t drop_offset;
  int64_t min_seqlen_q;
  int64_t dq_acc_stride_split;  // deterministic: between the partial sums of dq_acc
  // Split keys: float partial results [splits][batch][heads_q][rows](head_size_v), contiguous.
  int64_t splits;
  float* o_acc;
  float* lse_acc;
  // Paged keys and values: [page][page_size] in place of [batch][seqlen].
  const int32_t* block_table;  // [batch][block_table_stride]
  int64_t block_table_stride;
  int64_t page_size;
  const int32_t* seqlens_k;  // [batch]
};

struct DirectArgs {
  attn_fwd_args fwd;  // forward kinds
  attn_bwd_args bwd;  // backward kinds
  aiter_attn::BwdBuffers buffers;
  Features features;
};
