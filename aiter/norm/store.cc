// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/norm/store.h"

#include <dlfcn.h>

#include <memory>
#include <string>
#include <utility>
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

// Where this library lies in a Python installation, pip's compilers lie two folders up.
std::vector<std::string> site_packages() {
  Dl_info info = {};
  if (!dladdr(reinterpret_cast<const void*>(&norm_kernels), &info) || !info.dli_fname) return {};
  std::string folder = info.dli_fname;
  for (int up = 0; up < 2; ++up) {
    const size_t slash = folder.rfind('/');
    if (slash == std::string::npos) return {};
    folder.resize(slash);
  }
  return {folder};
}

runtime::SourceKernelsOptions options() {
  runtime::SourceKernelsOptions options = options_of(kernels::row_kernels());
  options.run_time_compile = runtime::run_time_compile();
  options.cache.folder = runtime::user_cache_folder();
  options.cache.max_size = runtime::cache_max_size();
  options.open_compiler = [](const std::string& arch) {
    return runtime::open_compiler(arch, site_packages());
  };
  return options;
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
  options.pack = built_in.pack.data;
  options.pack_size = built_in.pack.size;
  options.build_flag = built_in.build_flag;
  options.build_archs = built_in.build_archs;
  options.build_list = built_in.build_list;
  return options;
}

runtime::SourceKernels& norm_kernels() {
  static runtime::Once<runtime::SourceKernels> kernels;
  return kernels.get([] { return std::make_unique<runtime::SourceKernels>(options()); });
}

}  // namespace AITER_ATTN_NAMESPACE::norm
