// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The kernels' sources, for the library to compile.
#pragma once

#include <cstddef>
#include <string_view>

namespace AITER_ATTN_NAMESPACE::kernels {

struct RowSource {
  std::string_view name;  // as #include has it
  std::string_view text;
};

struct RowSources {
  const RowSource* files;
  size_t count;
  const RowSource* begin() const { return files; }
  const RowSource* end() const { return files + count; }
};

RowSources row_sources();  // .cpp
RowSources row_headers();  // what they include

}  // namespace AITER_ATTN_NAMESPACE::kernels
