// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/kernel_list.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <tuple>

#include "aiter/attention/code_object.h"
#include "aiter/runtime/once.h"

namespace AITER_ATTN_NAMESPACE::attention {

KernelList::KernelList(const kernels::LaunchTable& table) : table_(table) {
  for (uint32_t row = 0; row < table.row_count(); ++row) {
    for (uint32_t arch = 0; arch < table.arch_count(); ++arch) {
      if (table.object(table.row(row), static_cast<int>(arch))) kernels_.push_back({row, arch});
    }
  }
  by_key_.resize(kernels_.size());
  std::iota(by_key_.begin(), by_key_.end(), 0);
  std::sort(by_key_.begin(), by_key_.end(), [this](uint32_t a, uint32_t b) {
    return digest(object(a).key) < digest(object(b).key);
  });
}

const kernels::CodeObjectRow& KernelList::object(uint32_t index) const {
  const Kernel& kernel = kernels_[index];
  return *table_.object(table_.row(kernel.row), static_cast<int>(kernel.arch));
}

uint32_t KernelList::index(uint32_t row, uint32_t arch) const {
  const auto found = std::lower_bound(kernels_.begin(), kernels_.end(), Kernel{row, arch},
                                      [](const Kernel& a, const Kernel& b) {
                                        return std::tie(a.row, a.arch) < std::tie(b.row, b.arch);
                                      });
  return static_cast<uint32_t>(found - kernels_.begin());
}

const kernels::CodeObjectRow* KernelList::find(const runtime::Digest& key) const {
  const auto found = std::lower_bound(by_key_.begin(), by_key_.end(), key,
                                      [this](uint32_t index, const runtime::Digest& wanted) {
                                        return digest(object(index).key) < wanted;
                                      });
  if (found == by_key_.end() || digest(object(*found).key) != key) return nullptr;
  return &object(*found);
}

const KernelList& kernel_list() {
  static runtime::Once<const KernelList> list;
  return list.get([] { return std::make_unique<const KernelList>(kernels::launch_table()); });
}

}  // namespace AITER_ATTN_NAMESPACE::attention
