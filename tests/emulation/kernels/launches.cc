// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The launch table for Python (launches.py): which instances there are, and the kernel arguments
// and grids that CK's own host code makes for a problem.
#include "tests/emulation/kernels/launches.h"

#include "aiter/attn.h"
#include "aiter/launch_table.h"

using aiter_attn::BwdBuffers;
using aiter_attn::Instance;
using aiter_attn::KernelLaunch;
using aiter_attn::Traits;

namespace {

constexpr const char* kKinds[] = {"fwd", "bwd_dot_do_o", "bwd_dq_dk_dv", "bwd_convert_dq",
                                  "sum_heads"};
constexpr const char* kDtypes[] = {"", "fp16", "bf16"};
constexpr const char* kBiases[] = {"none", "elementwise", "alibi"};

}  // namespace

uint32_t launches_count() { return aiter_attn::launch_table().instance_count; }

void launches_instance(uint32_t index, LaunchesInstance* out) {
  const Instance& row = aiter_attn::launch_table().instances[index];
  const Traits& traits = row.traits;
  *out = {row.name,
          kKinds[static_cast<int>(traits.kind)],
          kDtypes[traits.dtype],
          kBiases[static_cast<int>(traits.bias)],
          traits.head_size_qk,
          traits.head_size_v,
          row.tile_seqlen_q,
          row.tile_seqlen_k,
          static_cast<int32_t>(row.block_size),
          traits.group_mode,
          traits.mask,
          traits.bias_grad,
          traits.lse,
          traits.dropout,
          traits.logits_soft_cap,
          traits.skip_min_seqlen_q,
          traits.deterministic,
          traits.pad_seqlen_q,
          traits.pad_seqlen_k,
          traits.pad_head_size_qk,
          traits.pad_head_size_v,
          false};
}

extern "C" {

__attribute__((visibility("default"))) void launches_make_fwd(uint32_t index,
                                                              const attn_fwd_args* args,
                                                              KernelLaunch* out) {
  aiter_attn::launch_table().instances[index].make_fwd(*args, out);
}

__attribute__((visibility("default"))) void launches_make_bwd(uint32_t index,
                                                              const attn_bwd_args* args,
                                                              const BwdBuffers* buffers,
                                                              KernelLaunch* out) {
  aiter_attn::launch_table().instances[index].make_bwd(*args, *buffers, out);
}

}  // extern "C"
