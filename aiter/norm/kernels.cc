// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/norm/kernels.h"

#include <memory>
#include <string>
#include <vector>

#include "aiter/runtime/once.h"
#include "kernels/norm/ahead_of_time.h"
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

runtime::SourceKernelsOptions options_of(const kernels::AheadOfTimeKernels& built_in) {
  runtime::SourceKernelsOptions options;
  options.sources = texts(kernels::row_sources());
  options.headers = texts(kernels::row_headers());
  options.flags = {"-std=c++17"};
  for (size_t i = 0; i < built_in.recipe_count; ++i) {
    const kernels::AheadOfTimeRecipe& recipe = built_in.recipes[i];
    options.ahead_of_time.push_back({std::string(recipe.arch), std::string(recipe.text)});
  }
  options.build_flag = built_in.build_flag;
  options.build_archs = built_in.build_archs;
  options.build_list = built_in.build_list;
  options.set_flag = built_in.set_flag;
  return options;
}

const runtime::SourceKernels& norm_kernels() {
  static runtime::Once<const runtime::SourceKernels> kernels;
  return kernels.get([] {
    runtime::SourceKernelsOptions options = options_of(kernels::row_kernels());
    options.is_built_in = [](const runtime::Digest& key) {
      return runtime::embedded_size(key) > 0;
    };
    options.run_time_compile = runtime::run_time_compile();
    options.compilers = &runtime::library_compilers();
    return std::make_unique<const runtime::SourceKernels>(std::move(options));
  });
}

}  // namespace AITER_ATTN_NAMESPACE::norm
