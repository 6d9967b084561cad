// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Kernels that exist as source, and were compiled when the library was built: how their keys are
// computed from a source and its flags. Their code objects are in an embedded pack.
#pragma once

#include <cstddef>
#include <string_view>

namespace AITER_ATTN_NAMESPACE::kernels {

// The part that the compiles for an arch share: a serialised recipe of code_object/spec.py.
struct AheadOfTimeRecipe {
  std::string_view arch;
  std::string_view text;
};

struct AheadOfTimeKernels {
  const AheadOfTimeRecipe* recipes;
  size_t recipe_count;
  std::string_view build_flag;   // that says what is compiled: "--//kernels/norm/...:archs"
  std::string_view build_archs;  // that it takes: "gfx942 sm_90"
  std::string_view build_list;   // the file that says which kernels
  std::string_view set_flag;     // that chooses such a file
};

}  // namespace AITER_ATTN_NAMESPACE::kernels
