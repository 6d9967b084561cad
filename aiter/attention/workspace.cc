// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/workspace.h"

#include <initializer_list>

#include "aiter/attention/error.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

class Layout {
 public:
  WorkspacePiece add(std::initializer_list<int64_t> factors) {
    uint64_t bytes = 1;
    bool overflow = false;
    for (int64_t factor : factors) {
      overflow |= __builtin_mul_overflow(bytes, static_cast<uint64_t>(factor), &bytes);
    }
    const uint64_t offset = size_;
    const uint64_t padding =
        (kWorkspaceAlignment - bytes % kWorkspaceAlignment) % kWorkspaceAlignment;
    overflow |= __builtin_add_overflow(bytes, padding, &bytes);
    overflow |= __builtin_add_overflow(size_, bytes, &size_);
    if (overflow) {
      fail(Status::kInvalidArgument,
           "the workspace of this problem exceeds 2^64 bytes: pass smaller batches");
    }
    return {offset, bytes - padding};
  }
  uint64_t size() const { return size_; }

 private:
  uint64_t size_ = 0;
};

}  // namespace

DbiasSum dbias_sum(const Problem& p) {
  const Extents all = score_extents(p);
  DbiasSum sum = {{}, dbias_extents(p), 1};
  int64_t step = p.seqlen_k;
  const auto place = [&](int64_t* stride, attn_dbias_sum what, bool summed, int64_t extent) {
    if (sums_dbias(p, what) != summed) return;
    *stride = step;
    step *= extent;
    if (summed) sum.group *= extent;
  };
  for (const bool summed : {true, false}) {
    place(&sum.dscores.stride_head, ATTN_DBIAS_SUM_HEADS, summed, all.heads);
    place(&sum.dscores.stride_seq, ATTN_DBIAS_SUM_QUERIES, summed, all.seq);
    place(&sum.dscores.stride_batch, ATTN_DBIAS_SUM_BATCH, summed, all.batch);
  }
  return sum;
}

BwdWorkspace bwd_workspace(const Problem& p) {
  constexpr int64_t kFloat = sizeof(float);
  const int64_t queries = query_rows(p);
  const int64_t keys = key_rows(p);
  const int64_t element = static_cast<int64_t>(dtype_size(p.dtype));
  const int64_t expanded = p.heads_q == p.heads_k ? 0 : p.heads_q;

  Layout layout;
  BwdWorkspace w = {};
  // Without queries or without keys nothing is computed: the gradients are zero.
  if (!has_scores(p)) return w;
  w.delta = layout.add({queries, p.heads_q, kFloat});
  w.dq_acc = layout.add({p.most_parts, queries, p.heads_q, p.head_size_qk, kFloat});
  w.dk = layout.add({keys, expanded, p.head_size_qk, element});
  w.dv = layout.add({keys, expanded, p.head_size_v, element});
  w.dscores = layout.add({p.dbias_sums ? queries : 0, p.heads_q, p.seqlen_k, element});
  w.size = layout.size();
  return w;
}

WorkspacePiece fwd_workspace(const Problem& p) {
  return Layout().add({p.most_parts, query_rows(p), p.heads_q, int64_t{sizeof(float)}});
}

KvcacheWorkspace kvcache_workspace(const Problem& p, int64_t splits) {
  constexpr int64_t kFloat = sizeof(float);
  const int64_t queries = query_rows(p);
  Layout layout;
  KvcacheWorkspace w = {};
  w.lse_acc = layout.add({splits, queries, p.heads_q, kFloat});
  w.o_acc = layout.add({splits, queries, p.heads_q, p.head_size_v, kFloat});
  w.size = layout.size();
  return w;
}

uint64_t workspace_size(const Problem& p) {
  switch (p.direction) {
    case Direction::kForward:
      return fwd_workspace(p).size;
    case Direction::kBackward:
      return bwd_workspace(p).size;
    case Direction::kKvcacheForward:
      return kvcache_workspace(p, p.most_parts).size;
    default:
      return 0;
  }
}

}  // namespace AITER_ATTN_NAMESPACE::attention
