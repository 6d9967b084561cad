// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The launch table: what dispatch knows about every kernel instance of this build. The rows are
// generated
// (//kernels:launch_table) from the selected code objects; this header is the contract between
// kernels/ and aiter/.
#pragma once

#include <cstddef>
#include <cstdint>

#include "aiter/attn.h"

namespace aiter_attn {

enum class Kind : uint8_t {
  kFwd,
  kBwdDotDoO,     // delta = rowsum(dout * o)
  kBwdDqDkDv,     // dq_acc, dk, dv
  kBwdConvertDq,  // dq_acc (fp32) -> dq
  kSumHeads,      // dk, dv: sum over a group of query heads (GQA, MQA)
};

enum class Bias : uint8_t { kNone, kElementwise, kAlibi };

// CK's compile-time choices. A field that a kind does not have is at its zero value.
struct Traits {
  Kind kind;
  attn_dtype dtype;
  uint16_t head_size_qk;  // the instance serves head sizes <= these (see pad_d, pad_dv)
  uint16_t head_size_v;
  bool group_mode;
  bool mask;
  Bias bias;
  bool bias_grad;
  bool lse;
  bool dropout;
  bool logits_soft_cap;
  bool skip_min_seqlen_q;
  bool deterministic;
  // Whether the instance checks bounds along a dimension. Without it the dimension must be a
  // multiple of its tile.
  bool pad_seqlen_q;
  bool pad_seqlen_k;
  bool pad_head_size_qk;
  bool pad_head_size_v;
};

// A kernel's launch as CK's host code computes it.
struct KernelLaunch {
  uint32_t grid[3];  // in workgroups
  uint32_t kernarg_size;
  alignas(16) unsigned char kernarg[1024];
};

// The buffers of one backward pass that are not the caller's own tensors.
struct BwdBuffers {
  float* delta;   // [batch, heads_q, seqlen_q] or [heads_q, total_q], contiguous
  float* dq_acc;  // [batch, seqlen_q, heads_q, head_size_qk] or [total_q, ...], contiguous, zeroed
  attn_tensor
      dk;  // heads_q heads: the caller's dk where heads_q == heads_k, else part of the workspace
  attn_tensor dv;
};

using MakeFwdLaunch = void (*)(const attn_fwd_args&, KernelLaunch*);
using MakeBwdLaunch = void (*)(const attn_bwd_args&, const BwdBuffers&, KernelLaunch*);

struct CodeObject {
  const char* arch;
  const char* key;              // 64 hex digits
  const char* sha256;           // 64 hex digits: digest of the unpacked bytes
  uint64_t size;                // unpacked
  const unsigned char* packed;  // one zstd frame
  uint64_t packed_size;
};

struct Instance {
  const char* name;
  const char* symbol;
  Traits traits;
  uint16_t tile_seqlen_q;  // M0: what seqlen_q must be a multiple of without padding
  uint16_t tile_seqlen_k;  // N0
  uint16_t tile_head_size_qk;
  uint16_t tile_head_size_v;
  uint16_t
      head_size_alignment;  // padded head sizes must be a multiple of this (vector width); 1: any
  uint32_t block_size;      // work-items per workgroup
  MakeFwdLaunch make_fwd;   // kFwd
  MakeBwdLaunch make_bwd;   // the kBwd kinds; kSumHeads has neither
  const CodeObject* code_objects;
  uint32_t code_object_count;  // one per arch
};

struct LaunchTable {
  const Instance* instances;  // in the order CK's own dispatcher tries them
  uint32_t instance_count;
  const char* const* archs;  // the archs of this build, sorted
  uint32_t arch_count;
  const char* variant_set;  // --//kernels:variants
};

const LaunchTable& launch_table();

}  // namespace aiter_attn
