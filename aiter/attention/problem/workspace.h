// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Scratch memory of kernels, which the caller lends: how its pieces lie.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "aiter/attention/problem/error.h"

namespace AITER_ATTN_NAMESPACE::attention {

inline constexpr uint64_t kWorkspaceAlignment = 256;

// In bytes; every piece starts at a multiple of kWorkspaceAlignment.
struct WorkspacePiece {
  uint64_t offset;
  uint64_t size;

  template <typename T>
  T* in(void* workspace) const {
    return reinterpret_cast<T*>(static_cast<char*>(workspace) + offset);
  }
};

// Pieces one after the other.
class WorkspaceLayout {
 public:
  // Of as many bytes as the product of the factors. Throws kInvalidArgument where the size does not
  // fit into 64 bits.
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

}  // namespace AITER_ATTN_NAMESPACE::attention
