// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/norm/source_options.h"

#include <string>
#include <vector>

#include "kernels/norm/sources.h"

namespace AITER_ATTN_NAMESPACE::norm {
namespace {

std::vector<runtime::SourceFile> texts(kernels::RowSources sources) {
  std::vector<runtime::SourceFile> files;
  for (const kernels::RowSource& source : sources) {
    files.push_back({std::string(source.name), std::string(source.text)});
  }
  return files;
}

}  // namespace

runtime::SourceKernelsOptions source_options(const kernels::AheadOfTimeKernels& built_in) {
  runtime::SourceKernelsOptions options;
  options.sources = texts(kernels::row_sources());
  options.headers = texts(kernels::row_headers());
  options.flags = {"-std=c++17"};
  for (size_t i = 0; i < built_in.recipe_count; ++i) {
    const kernels::AheadOfTimeRecipe& recipe = built_in.recipes[i];
    options.ahead_of_time.push_back({std::string(recipe.arch), std::string(recipe.text)});
  }
  options.pack = built_in.pack.data;
  options.pack_size = built_in.pack.size;
  options.build_flag = built_in.build_flag;
  return options;
}

}  // namespace AITER_ATTN_NAMESPACE::norm
