// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/problem/workspace.h"

#include "aiter/attention/problem/error.h"

namespace AITER_ATTN_NAMESPACE::attention {

WorkspacePiece WorkspaceLayout::add(std::initializer_list<int64_t> factors) {
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

}  // namespace AITER_ATTN_NAMESPACE::attention
