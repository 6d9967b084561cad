// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The kernels of the build by the C ABI's index: the launch table's rows in order, and of each the
// archs that it exists on.
#pragma once

#include <cstdint>
#include <vector>

#include "aiter/runtime/store/digest.h"
#include "kernels/launch_table/launch_table.h"

namespace AITER_ATTN_NAMESPACE::attention {

// Where a kernel is in the launch table.
struct Kernel {
  uint32_t row;
  uint32_t arch;
};

class KernelList {
 public:
  explicit KernelList(const kernels::LaunchTable& table);

  uint32_t size() const { return static_cast<uint32_t>(kernels_.size()); }
  const Kernel& operator[](uint32_t index) const { return kernels_[index]; }
  const kernels::CodeObjectRow& object(uint32_t index) const;
  // The index of a kernel that exists.
  uint32_t index(uint32_t row, uint32_t arch) const;
  // The code object of a key; NULL: no kernel has it.
  const kernels::CodeObjectRow* find(const runtime::Digest& key) const;

 private:
  const kernels::LaunchTable& table_;
  std::vector<Kernel> kernels_;
  std::vector<uint32_t> by_key_;  // indices, sorted by the kernels' keys
};

// That of launch_table().
const KernelList& kernel_list();

}  // namespace AITER_ATTN_NAMESPACE::attention
