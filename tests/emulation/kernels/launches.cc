// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The launch table for Python (launches.py): which instances there are, and the kernel arguments
// and grids that CK's own host code makes for a problem.
#include "aiter/attn.h"
#include "aiter/launch_table.h"

using aiter_attn::BwdBuffers;
using aiter_attn::Instance;
using aiter_attn::KernelLaunch;

extern "C" {

struct LaunchesInstance {
  const char* name;
  const char* symbol;
  int32_t kind;  // aiter_attn::Kind
  int32_t dtype;
  int32_t head_size;
  int32_t group_mode;
  int32_t mask;
  int32_t tile_seqlen_q;
  int32_t tile_seqlen_k;
  int32_t block_size;
};

__attribute__((visibility("default"))) uint32_t launches_count() {
  return aiter_attn::launch_table().instance_count;
}

__attribute__((visibility("default"))) void launches_instance(uint32_t index,
                                                              LaunchesInstance* out) {
  const Instance& row = aiter_attn::launch_table().instances[index];
  *out = {row.name,
          row.symbol,
          static_cast<int32_t>(row.traits.kind),
          static_cast<int32_t>(row.traits.dtype),
          row.traits.head_size_qk,
          row.traits.group_mode,
          row.traits.mask,
          row.tile_seqlen_q,
          row.tile_seqlen_k,
          static_cast<int32_t>(row.block_size)};
}

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
