// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/rtc/source_kernels.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "aiter/runtime/environment.h"
#include "aiter/runtime/error.h"
#include "aiter/runtime/store/cache.h"
#include "aiter/runtime/store/pack.h"
#include "aiter/runtime/text.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

constexpr char kSwitch[] = "AITER_ATTN_RTC";

// Archs whose machine code a device of arch runs, the best first. Within a major compute
// capability (sm_90: 9.0), NVIDIA's devices run the code of all that are not newer.
std::vector<std::string> compatible_archs(const std::string& arch) {
  std::vector<std::string> archs = {arch};
  if (arch.compare(0, 3, "sm_") != 0) return archs;
  const auto capability = static_cast<int>(std::strtol(arch.c_str() + 3, nullptr, 10));
  for (int older = capability - 1; older >= capability / 10 * 10; --older) {
    archs.push_back(concat("sm_", older));
  }
  return archs;
}

// "sm_90" -> "sm"; "gfx942" -> "gfx"; "compute_90" -> "sm": who compiles for it.
std::string vendor(const std::string& arch) {
  return arch.compare(0, 3, "gfx") == 0 ? "gfx" : "sm";
}

// The compilers of a process, each opened when it is first needed.
class Compilers {
 public:
  explicit Compilers(SourceKernelsOptions::OpenCompiler open) : open_(std::move(open)) {}

  const Compiler& for_arch(const std::string& arch) {
    Slot& slot = vendor(arch) == "gfx" ? amd_ : nvidia_;
    const std::lock_guard<std::mutex> lock(slot.mutex);
    if (!slot.compiler) slot.compiler = open_(arch);
    return *slot.compiler;
  }

 private:
  struct Slot {
    std::mutex mutex;
    std::unique_ptr<const Compiler> compiler;
  };

  const SourceKernelsOptions::OpenCompiler open_;
  Slot amd_, nvidia_;
};

// The sources, by name and by digest.
class Sources {
 public:
  Sources(std::vector<SourceFile> sources, std::vector<SourceFile> headers)
      : headers_(std::move(headers)), headers_digest_(digest_of_headers(headers_)) {
    for (SourceFile& source : sources) {
      std::string digest = hex(sha256(source.text.data(), source.text.size()));
      digests_[source.name] = digest;
      by_digest_[std::move(digest)] = std::move(source);
    }
  }

  const std::string& digest(const std::string& name) const {
    const auto found = digests_.find(name);
    if (found != digests_.end()) return found->second;
    std::string known;
    for (const auto& [other, _] : digests_) known += (known.empty() ? "" : ", ") + other;
    fail(Status::kInvalidArgument, "no kernel source '", name, "'; there are ", known);
  }
  const SourceFile* find(const std::string& digest) const {
    const auto found = by_digest_.find(digest);
    return found == by_digest_.end() ? nullptr : &found->second;
  }
  const std::vector<SourceFile>& headers() const { return headers_; }
  const std::string& headers_digest() const { return headers_digest_; }

 private:
  const std::vector<SourceFile> headers_;
  const std::string headers_digest_;
  std::map<std::string, std::string> digests_;
  std::map<std::string, SourceFile> by_digest_;
};

// Makes code objects of specs whose source and compiler it has.
class CompilingProvider : public Provider {
 public:
  CompilingProvider(Compilers& compilers, const Sources& sources)
      : compilers_(compilers), sources_(sources) {}

  std::string name() const override { return "the run-time compiler"; }

  std::optional<Bytes> get(const CodeObjectRef& ref) override {
    if (!ref.spec || ref.spec->headers != sources_.headers_digest()) return std::nullopt;
    const SourceFile* source = sources_.find(ref.spec->source);
    if (!source) return std::nullopt;
    const Compiler& compiler = compilers_.for_arch(ref.spec->arch);
    if (ref.spec->toolchain != compiler.identity()) return std::nullopt;
    return compiler.compile(*source, sources_.headers(), ref.spec->flags, ref.spec->arch);
  }

 private:
  Compilers& compilers_;
  const Sources& sources_;
};

}  // namespace

RunTimeCompile run_time_compile() {
  const std::string text = variable(kSwitch);
  if (text.empty()) return RunTimeCompile::kMissing;
  if (text == "0") return RunTimeCompile::kNever;
  if (text == "1") return RunTimeCompile::kAlways;
  fail(Status::kInvalidArgument, kSwitch, " is '", utf8(text), "'; it may be 0 (kernels are not ",
       "compiled at run time), 1 (all are), or not set (those that were not built in are)");
}

struct SourceKernels::State {
  explicit State(SourceKernelsOptions options)
      : flags(std::move(options.flags)),
        build_flag(std::move(options.build_flag)),
        build_archs(std::move(options.build_archs)),
        build_list(std::move(options.build_list)),
        when(options.run_time_compile),
        sources(std::move(options.sources), std::move(options.headers)),
        compilers(std::move(options.open_compiler)) {
    std::vector<std::unique_ptr<Provider>> providers;
    if (options.pack && when != RunTimeCompile::kAlways) {
      auto built_in =
          std::make_unique<PackProvider>("the library", options.pack, options.pack_size);
      pack = built_in.get();
      providers.push_back(std::move(built_in));
      for (const AheadOfTime& kernels : options.ahead_of_time) {
        recipes.emplace(kernels.arch, Recipe::parse(kernels.recipe));
      }
    }
    if (when != RunTimeCompile::kNever) {
      providers.push_back(std::make_unique<CacheProvider>(
          std::move(options.cache), std::make_unique<CompilingProvider>(compilers, sources)));
    }
    store = std::make_unique<const Store>(std::move(providers));
  }

  // What was compiled ahead of time and runs on arch.
  std::optional<CodeObjectSpec> built_in(const SourceKernel& kernel,
                                         const std::string& arch) const {
    for (const std::string& compiled_for : compatible_archs(arch)) {
      const auto recipe = recipes.find(compiled_for);
      if (recipe == recipes.end()) continue;
      CodeObjectSpec spec =
          recipe->second.spec(sources.digest(kernel.source), compiled_for, kernel.flags);
      if (pack->find(spec.key())) return spec;
    }
    return std::nullopt;
  }

  const std::vector<std::string> flags;
  // How a kernel for arch could be built in.
  std::string how_to_build_in(const std::string& arch) const {
    for (const std::string& known : compatible_archs(arch)) {
      if (concat(" ", build_archs, " ").find(" " + known + " ") == std::string::npos) continue;
      return concat("or, where ", build_list, " has the kernel with these flags (its head says ",
                    "how it is made), build the library with ", build_flag, "=", known);
    }
    return concat("for kernels that are built in there are ", build_archs, " alone");
  }

  const std::string build_flag, build_archs, build_list;
  const RunTimeCompile when;
  const Sources sources;
  Compilers compilers;
  const PackProvider* pack = nullptr;
  std::map<std::string, Recipe> recipes;  // of pack, by arch
  std::unique_ptr<const Store> store;
};

SourceKernels::SourceKernels(SourceKernelsOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}

SourceKernels::~SourceKernels() = default;

CodeObjectSpec SourceKernels::spec(SourceKernel kernel, const std::string& arch) {
  std::sort(kernel.flags.begin(), kernel.flags.end());
  if (std::optional<CodeObjectSpec> spec = state_->built_in(kernel, arch)) return *spec;
  const std::string& source = state_->sources.digest(kernel.source);
  if (state_->when == RunTimeCompile::kNever) {
    std::string list;
    for (const std::string& flag : kernel.flags) list += " " + flag;
    fail(Status::kUnsupported, kernel.source, " (", list.empty() ? "" : list.substr(1),
         ") was not compiled for ", arch, " when this library was built, and ", kSwitch,
         "=0 forbids it now: unset it; ", state_->how_to_build_in(arch));
  }
  const Compiler& compiler = state_->compilers.for_arch(arch);
  const Recipe recipe = {state_->flags, state_->sources.headers_digest(), compiler.identity()};
  return recipe.spec(source, compiler.target(arch), kernel.flags);
}

const Store& SourceKernels::store() const { return *state_->store; }

}  // namespace AITER_ATTN_NAMESPACE::runtime
