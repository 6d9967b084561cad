// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/source_kernels.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include "aiter/runtime/error.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

// Archs whose machine code a device of arch runs, the best first. Within a major compute
// capability (sm_90: 9.0), NVIDIA's devices run the code of all that are not newer; and, of those
// with a letter (sm_90a), that of their own capability alone.
std::vector<std::string> compatible_archs(const std::string& arch) {
  std::vector<std::string> archs = {arch};
  if (arch.compare(0, 3, "sm_") != 0) return archs;
  const auto capability = static_cast<int>(std::strtol(arch.c_str() + 3, nullptr, 10));
  archs.push_back(concat("sm_", capability, "a"));
  for (int older = capability - 1; older >= capability / 10 * 10; --older) {
    archs.push_back(concat("sm_", older));
  }
  return archs;
}

// A source, and its digest.
struct Source {
  const SourceFile* file;
  std::string digest;
};

}  // namespace

struct SourceKernels::State {
  explicit State(SourceKernelsOptions given)
      : options(std::move(given)), headers_digest(header_tree_digest(options.headers)) {
    for (const SourceFile& file : options.sources) {
      sources[file.name] = {&file, hex(sha256(file.text.data(), file.text.size()))};
    }
    for (const AheadOfTime& kernels : options.ahead_of_time) {
      recipes.emplace(kernels.arch, Recipe::parse(kernels.recipe));
    }
  }

  const Source& source(const std::string& name) const {
    const auto found = sources.find(name);
    if (found != sources.end()) return found->second;
    std::string known;
    for (const auto& [other, _] : sources) known += (known.empty() ? "" : ", ") + other;
    fail(Status::kInvalidArgument, "no kernel source '", name, "'; there are ", known);
  }

  // Kernels that were compiled ahead of time and run on arch.
  std::optional<CodeObjectSpec> built_in(const Source& source,
                                         const std::vector<std::string>& flags,
                                         const std::string& arch) const {
    if (options.run_time_compile == RunTimeCompile::kAlways) return std::nullopt;
    for (const std::string& compiled_for : compatible_archs(arch)) {
      const auto recipe = recipes.find(compiled_for);
      if (recipe == recipes.end()) continue;
      CodeObjectSpec spec = recipe->second.spec(source.digest, compiled_for, flags);
      if (options.is_built_in(spec.key())) return spec;
    }
    return std::nullopt;
  }

  // The advice, for a message, on building a kernel for arch in.
  std::string how_to_build_in(const std::string& arch) const {
    for (const std::string& known : compatible_archs(arch)) {
      if (concat(" ", options.build_archs, " ").find(" " + known + " ") == std::string::npos) {
        continue;
      }
      return concat("or build the library with ", options.build_flag, "=", known,
                    " and a set that ", "has the kernel, as ", options.build_list,
                    " is one: ", options.set_flag, "=NAME");
    }
    return concat("for kernels that are built in there are ", options.build_archs, " alone");
  }

  const SourceKernelsOptions options;
  const std::string headers_digest;
  std::map<std::string, Source> sources;  // by name
  std::map<std::string, Recipe> recipes;  // of kernels that are built in, by arch
};

SourceKernels::SourceKernels(SourceKernelsOptions options)
    : state_(std::make_unique<const State>(std::move(options))) {}

SourceKernels::~SourceKernels() = default;

SourceCodeObject SourceKernels::code_object(SourceKernel kernel, const std::string& arch) const {
  const SourceKernelsOptions& options = state_->options;
  std::sort(kernel.flags.begin(), kernel.flags.end());
  const Source& source = state_->source(kernel.source);
  if (std::optional<CodeObjectSpec> spec = state_->built_in(source, kernel.flags, arch)) {
    return {*std::move(spec), source.file, &options.headers};
  }
  if (options.run_time_compile == RunTimeCompile::kNever) {
    std::string list;
    for (const std::string& flag : kernel.flags) list += (list.empty() ? "" : " ") + flag;
    fail(Status::kUnsupported, kernel.source, " (", list, ") was not compiled for ", arch,
         " when this library was built, and ", never_compiled(), " forbids it now: unset it; ",
         state_->how_to_build_in(arch));
  }
  const Compiler& compiler = options.compilers->for_arch(arch);
  const Recipe recipe = {options.flags, state_->headers_digest, compiler.identity()};
  return {recipe.spec(source.digest, compiler.target(arch), kernel.flags), source.file,
          &options.headers};
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
