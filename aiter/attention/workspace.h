// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Scratch memory of kernels, which the caller lends: which pieces, how large, and where.
#pragma once

#include <cstdint>

#include "aiter/attention/problem.h"
#include "aiter/attn.h"

namespace AITER_ATTN_NAMESPACE::attention {

inline constexpr uint64_t kWorkspaceAlignment = 256;

// In bytes; every piece starts at a multiple of kWorkspaceAlignment.
struct WorkspacePiece {
  uint64_t offset;
  uint64_t size;
};

struct BwdWorkspace {
  WorkspacePiece delta;  // fp32 [batch, heads_q, seqlen_q] or [heads_q, total_q]
  // fp32 [most_parts, batch, seqlen_q, heads_q, head_size_qk] or [most_parts, total_q, ...]
  WorkspacePiece dq_acc;
  WorkspacePiece dk;  // dtype, heads_q heads; empty where heads_q == heads_k
  WorkspacePiece dv;
  WorkspacePiece dscores;  // dtype, as DbiasSum has it; empty where dbias is not summed
  uint64_t size;
};

// How the gradient of every score lies in the workspace until it is summed: contiguous, first what
// dbias keeps of batch, queries and heads, in this order, then what it is summed over, then keys.
struct DbiasSum {
  attn_tensor dscores;  // without data
  Extents kept;         // of dbias
  int64_t group;        // scores that make one of dbias
};
DbiasSum dbias_sum(const Problem& problem);

// Of keys in parts: fp32 [batch, heads_q, splits, seqlen_q] or [heads_q, splits, total_q], and
// o_acc with head_size_v. Empty where there are 0.
struct KvcacheWorkspace {
  WorkspacePiece lse_acc;
  WorkspacePiece o_acc;
  uint64_t size;
};

// Throw kInvalidArgument where a size does not fit into 64 bits. That of forward is an lse.
WorkspacePiece fwd_workspace(const Problem& problem);
BwdWorkspace bwd_workspace(const Problem& problem);
KvcacheWorkspace kvcache_workspace(const Problem& problem, int64_t splits);

// Of the problem's direction, for as many parts as kernels keep apart at most.
uint64_t workspace_size(const Problem& problem);

}  // namespace AITER_ATTN_NAMESPACE::attention
