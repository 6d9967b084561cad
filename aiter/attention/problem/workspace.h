// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Scratch memory of kernels, which the caller lends: how its pieces lie.
#pragma once

#include <cstdint>
#include <initializer_list>

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
  WorkspacePiece add(std::initializer_list<int64_t> factors);
  uint64_t size() const { return size_; }

 private:
  uint64_t size_ = 0;
};

}  // namespace AITER_ATTN_NAMESPACE::attention
