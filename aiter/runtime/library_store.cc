// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/library_store.h"

#include <dlfcn.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aiter/runtime/environment.h"
#include "aiter/runtime/error.h"
#include "aiter/runtime/once.h"
#include "aiter/runtime/rtc/compiling.h"
#include "aiter/runtime/store/cache.h"
#include "aiter/runtime/store/pack.h"
#include "aiter/runtime/text.h"
#include "kernels/code_object/embedded_pack.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

// Both sides of the format, which know nothing of each other.
static_assert(sizeof(PackEntry) == sizeof(kernels::EmbeddedPackEntry));

using Providers = std::vector<std::unique_ptr<Provider>>;

// The packs that the library was linked with.
class EmbeddedPacks {
 public:
  EmbeddedPacks() {
    for (const kernels::EmbeddedPack& pack : kernels::embedded_packs()) {
      packs_.push_back(std::make_unique<PackProvider>("the library", pack.data, pack.size));
    }
  }
  std::optional<Bytes> get(const CodeObjectRef& ref) const {
    for (const auto& pack : packs_) {
      if (std::optional<Bytes> bytes = pack->get(ref)) return bytes;
    }
    return std::nullopt;
  }
  uint64_t size_of(const Digest& key) const {
    for (const auto& pack : packs_) {
      if (const uint64_t size = pack->size_of(key)) return size;
    }
    return 0;
  }

 private:
  std::vector<std::unique_ptr<PackProvider>> packs_;
};

const EmbeddedPacks& embedded_packs() {
  static Once<const EmbeddedPacks> packs;
  return packs.get([] { return std::make_unique<const EmbeddedPacks>(); });
}

class Embedded : public Provider {
 public:
  std::string name() const override { return "the library"; }
  std::optional<Bytes> get(const CodeObjectRef& ref) override { return packs_.get(ref); }

 private:
  const EmbeddedPacks& packs_ = embedded_packs();
};

// Objects that the compilers make, kept in this user's cache.
std::unique_ptr<Provider> compiled() {
  CacheOptions options;
  options.folder = user_cache_folder();
  options.max_size = cache_max_size();
  return std::make_unique<CacheProvider>(std::move(options),
                                         std::make_unique<CompilingProvider>(library_compilers()));
}

// All providers, the first that is asked first.
Providers providers(RunTimeCompile when) {
  Providers list;
  if (when == RunTimeCompile::kAlways) list.push_back(compiled());
  list.push_back(std::make_unique<Embedded>());
  if (when == RunTimeCompile::kMissing) list.push_back(compiled());
  return list;
}

// Where this library lies in a Python installation, pip's compilers lie two folders up.
std::vector<std::string> site_packages() {
  Dl_info info = {};
  if (!dladdr(reinterpret_cast<const void*>(&library_store), &info) || !info.dli_fname) return {};
  std::string folder = info.dli_fname;
  for (int up = 0; up < 2; ++up) {
    const size_t slash = folder.rfind('/');
    if (slash == std::string::npos) return {};
    folder.resize(slash);
  }
  return {folder};
}

}  // namespace

RunTimeCompile run_time_compile() {
  const std::string text = variable(kRunTimeCompileVariable);
  if (text.empty()) return RunTimeCompile::kMissing;
  if (text == "0") return RunTimeCompile::kNever;
  if (text == "1") return RunTimeCompile::kAlways;
  fail(
      Status::kInvalidArgument, kRunTimeCompileVariable, " is '", utf8(text), "'; it may be 0 ",
      "(kernels are not compiled at run time), 1 (all are), or not set (those that were not built ",
      "in are)");
}

const Store& library_store() {
  static Once<const Store> store;
  return store.get([] { return std::make_unique<const Store>(providers(run_time_compile())); });
}

Compilers& library_compilers() {
  static Once<Compilers> compilers;
  return compilers.get([] {
    return std::make_unique<Compilers>(
        [](const std::string& arch) { return open_compiler(arch, site_packages()); });
  });
}

uint64_t embedded_size(const Digest& key) { return embedded_packs().size_of(key); }

}  // namespace AITER_ATTN_NAMESPACE::runtime
