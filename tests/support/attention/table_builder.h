// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Launch tables made by hand, in memory. The builds' own are written by
// kernels/launch_table/table.py.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/launch_table/launch_table.h"

namespace AITER_ATTN_NAMESPACE::testing {

class TableBuilder {
 public:
  explicit TableBuilder(std::vector<std::string> archs) : archs_(std::move(archs)) {}
  // For CodeObjectRow::recipe.
  uint32_t add_recipe(const std::string& text);
  // Rows of a kind must follow each other. objects are by arch; one without a key: not on that
  // arch. Of row, name and launch are filled in.
  void add(const std::string& name, kernels::Row row, kernels::MakeLaunch launch,
           const std::vector<kernels::CodeObjectRow>& objects);
  // The table lives as long as the builder, to which nothing is added any more.
  kernels::LaunchTable build(const std::string& variant_set);
  // Of the table that was built.
  std::string bytes() const {
    return {reinterpret_cast<const char*>(blob_.data()), blob_.size() * sizeof(uint64_t)};
  }

 private:
  uint32_t keep(const std::string& text);

  std::vector<std::string> archs_;
  std::vector<kernels::Row> rows_;
  std::vector<kernels::CodeObjectRow> objects_;
  std::vector<kernels::MakeLaunch> launches_;
  std::vector<uint32_t> recipes_;
  std::string strings_;
  std::vector<uint64_t> blob_;
};

}  // namespace AITER_ATTN_NAMESPACE::testing
