// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The backward pass's scratch memory: which pieces, how large, and where.
#pragma once

#include <cstdint>

#include "aiter/attention/problem.h"
#include "aiter/attn.h"

namespace AITER_ATTN_NAMESPACE::attention {

inline constexpr uint64_t kWorkspaceAlignment = 256;

// Offsets and sizes in bytes; every piece starts at a multiple of kWorkspaceAlignment.
struct BwdWorkspace {
  struct Piece {
    uint64_t offset;
    uint64_t size;
  };
  Piece delta;   // fp32 [batch, heads_q, seqlen_q] or [heads_q, total_q]
  Piece dq_acc;  // fp32 [dq_splits, batch, seqlen_q, heads_q, head_size_qk] or [..., total_q, ...]
  Piece dk;      // dtype, heads_q heads; empty where heads_q == heads_k
  Piece dv;
  uint64_t size;
};

// Throws kInvalidArgument where a size does not fit into 64 bits.
BwdWorkspace bwd_workspace(const Problem& problem);

}  // namespace AITER_ATTN_NAMESPACE::attention
