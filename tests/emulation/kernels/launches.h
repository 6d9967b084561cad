// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// What launches.py reads of a library of kernel arguments. Such a library also makes them, by
// launches_make_fwd and launches_make_bwd (launches.cc: as the product does) or by
// launches_make_direct (../sample).
#pragma once

#include <cstdint>

struct LaunchesInstance {
  const char* name;
  const char* kind;   // "fwd", "bwd_dq_dk_dv", ...
  const char* dtype;  // "fp16", "bf16"
  const char* bias;   // "none", "elementwise", "alibi"
  int32_t head_size_qk;
  int32_t head_size_v;
  int32_t tile_seqlen_q;
  int32_t tile_seqlen_k;
  int32_t block_size;
  bool group_mode;
  bool mask;
  bool bias_grad;
  bool lse;
  bool dropout;
  bool logits_soft_cap;
  bool skip_min_seqlen_q;
  bool deterministic;
  bool pad_seqlen_q;
  bool pad_seqlen_k;
  bool pad_head_size_qk;
  bool pad_head_size_v;
  bool paged_kv;
};

extern "C" {
__attribute__((visibility("default"))) uint32_t launches_count();
__attribute__((visibility("default"))) void launches_instance(uint32_t index,
                                                              LaunchesInstance* out);
}
