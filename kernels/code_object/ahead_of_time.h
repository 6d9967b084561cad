// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Kernels that exist as source, and were compiled when the library was built: their code objects,
// and how their keys are computed from a source and its flags.
#pragma once

#include <cstddef>
#include <string_view>

#include "kernels/code_object/embedded_pack.h"

namespace AITER_ATTN_NAMESPACE::kernels {

// What the compiles for an arch have in common: a serialised recipe of code_object/spec.py.
struct AheadOfTimeRecipe {
  std::string_view arch;
  std::string_view text;
};

struct AheadOfTimeKernels {
  const AheadOfTimeRecipe* recipes;
  size_t recipe_count;
  EmbeddedPack pack;             // data is NULL: there are none
  std::string_view build_flag;   // that says what is compiled: "--//kernels/norm/...:archs"
  std::string_view build_archs;  // that it takes: "gfx942 sm_90"
  std::string_view build_list;   // the file that says which kernels
};

}  // namespace AITER_ATTN_NAMESPACE::kernels
