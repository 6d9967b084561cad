// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/library_store.h"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aiter/runtime/environment.h"
#include "aiter/runtime/error.h"
#include "aiter/runtime/kit/amdclang.h"
#include "aiter/runtime/kit/hiprtc_kernels.h"
#include "aiter/runtime/kit/kernel_sources.h"
#include "aiter/runtime/kit/kit.h"
#include "aiter/runtime/once.h"
#include "aiter/runtime/remote/remote.h"
#include "aiter/runtime/rtc/compiling.h"
#include "aiter/runtime/store/cache.h"
#include "aiter/runtime/store/machine_cache.h"
#include "aiter/runtime/store/pack.h"
#include "aiter/runtime/store/pack_file.h"
#include "aiter/runtime/text.h"
#include "kernels/code_object/embedded_pack.h"
#include "kernels/hiprtc/hiprtc_headers.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

// Both sides of the format, which know nothing of each other.
static_assert(sizeof(PackEntry) == sizeof(kernels::EmbeddedPackEntry));

// Of a Python installation: where wheels of packs put them.
constexpr char kPacksFolder[] = "/aiter_attn_kernels";
constexpr char kKitFolder[] = "/aiter_attn_compile_kit";
constexpr char kKernelSourcesFile[] = "/aiter_attn/kernel_sources.attnpack";
// Of the folder that has the cache.
constexpr char kWorkFolder[] = "compiling";

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
  Answer look(const CodeObjectRef& ref) override {
    return packs_.size_of(ref.key) ? Answer{true, "has it"} : Answer{};
  }

 private:
  const EmbeddedPacks& packs_ = embedded_packs();
};

// The folder that set_cache_folder() named; NULL: none. It is never freed.
std::atomic<const std::string*> named_cache_folder{nullptr};
std::atomic<bool> store_is_used{false};

CacheOptions cache_options() {
  CacheOptions options;
  options.folder = cache_folder();
  options.max_size = cache_max_size();
  return options;
}

// The end of a message about what is excluded by AITER_ATTN_ON_DEMAND, or else by NVTE_CK_JIT.
std::string forbidden() {
  std::string name = kOnDemandVariable;
  if (variable(kOnDemandVariable).empty()) name = kTeOnDemandVariable;
  return concat("as ", name, " is '", utf8(variable(name.c_str())), "': unset it");
}

// Another provider, of kernels alone whose source is in the library.
class OfSources : public Provider {
 public:
  explicit OfSources(std::unique_ptr<Provider> provider) : provider_(std::move(provider)) {}
  std::string name() const override { return provider_->name(); }
  bool may_have(const CodeObjectRef& ref) const override {
    return ref.source && provider_->may_have(ref);
  }
  std::optional<Bytes> get(const CodeObjectRef& ref) override {
    require(ref);
    return provider_->get(ref);
  }
  Answer look(const CodeObjectRef& ref) override {
    require(ref);
    return provider_->look(ref);
  }

 private:
  static void require(const CodeObjectRef& ref) {
    if (ref.source) return;
    fail(Status::kUnsupported, "must not be asked, ", forbidden());
  }

  const std::unique_ptr<Provider> provider_;
};

// The cache of the machine, where one is named.
Providers machine_caches() {
  Providers list;
  std::string folder = machine_cache_folder();
  if (folder.empty()) return list;
  list.push_back(std::make_unique<MachineCacheProvider>(std::move(folder)));
  if (on_demand() == OnDemand::kOff) list[0] = std::make_unique<OfSources>(std::move(list[0]));
  return list;
}

// This user's cache, and the objects that the compilers make, which are kept there.
std::unique_ptr<Provider> cache(RunTimeCompile when) {
  CacheOptions options = cache_options();
  std::unique_ptr<Provider> maker;
  if (when != RunTimeCompile::kNever) {
    maker = std::make_unique<CompilingProvider>(library_compilers());
  }
  auto made = std::make_unique<CacheProvider>(std::move(options), std::move(maker));
  if (on_demand() == OnDemand::kOff) return std::make_unique<OfSources>(std::move(made));
  return made;
}

// Where this library lies in a Python installation, pip's compilers and packs lie two folders up.
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

// The folders of packs that are installed beside this library.
std::vector<std::string> installed_packs() {
  std::vector<std::string> folders;
  for (const std::string& site : site_packages()) {
    const std::string folder = site + kPacksFolder;
    if (::access(folder.c_str(), F_OK) == 0) folders.push_back(folder);
  }
  return folders;
}

// The folder that compiles work in, beside that of the cache; "": there is none.
std::string work_place() {
  const std::string cache = cache_folder();
  const std::string place = cache.substr(0, cache.rfind('/') + 1);
  return place.empty() ? "" : place + kWorkFolder;
}

// A compiler of attention's kernels, whose objects the user's cache keeps.
std::unique_ptr<Provider> kept(std::unique_ptr<Provider> compiler, std::chrono::seconds limit) {
  CacheOptions cache = cache_options();
  // Another process that compiles the same kernel is waited for: it takes as long as this one.
  cache.patience = limit;
  cache.name = compiler->name();
  return std::make_unique<CacheProvider>(std::move(cache), std::move(compiler));
}

// The compile kit that is named, or that is installed beside this library.
Providers kits() {
  std::vector<std::string> installed = site_packages();
  for (std::string& folder : installed) folder += kKitFolder;
  const std::string folder = find_kit(installed);
  Providers list;
  if (folder.empty()) return list;
  if (on_demand() != OnDemand::kCompile) {
    list.push_back(forbidden_kit(folder, "must not compile, " + forbidden()));
    return list;
  }
  KitOptions options;
  options.version = AITER_ATTN_VERSION;
  options.limit = kit_limit();
  options.tells_commands = variable(kVerboseVariable) == "1";
  options.work_place = work_place();
  list.push_back(kept(open_kit(folder, options), options.limit));
  return list;
}

// The sources of kernels, for compilers of the machine; "": there are none.
std::string kernel_sources() {
  std::vector<std::string> installed = site_packages();
  for (std::string& path : installed) path += kKernelSourcesFile;
  return find_kernel_sources(installed);
}

// ROCm's clang, that is named or installed. One that is not named is no matter without sources for
// it: the library has all of its kernels then.
Providers amdclangs() {
  AmdClangOptions options;
  options.sources = kernel_sources();
  Providers list;
  if (options.sources.empty() && variable(kAmdClangVariable).empty()) return list;
  AmdClang clang;
  try {
    clang = find_amdclang();
  } catch (const Error& error) {
    if (error.status() == Status::kInvalidArgument) throw;
    std::string named = variable(kAmdClangVariable);
    if (named.empty()) named = variable(kRocmPathVariable);
    list.push_back(
        refused_compiler(concat("amdclang '", utf8(named), "'"), std::current_exception()));
    return list;
  }
  if (clang.program.empty()) return list;
  if (on_demand() != OnDemand::kCompile) {
    options.forbidden = "must not compile, " + forbidden();
    list.push_back(open_amdclang(clang, std::move(options)));
    return list;
  }
  options.version = AITER_ATTN_VERSION;
  options.limit = kit_limit();
  options.tells_commands = variable(kVerboseVariable) == "1";
  options.work_place = work_place();
  const std::chrono::seconds limit = options.limit;
  list.push_back(kept(open_amdclang(clang, std::move(options)), limit));
  return list;
}

// The machine's hipRTC, where there are sources for it.
Providers hiprtcs(RunTimeCompile when) {
  Providers list;
  HipRtcOptions options;
  options.sources = kernel_sources();
  if (options.sources.empty()) return list;
  options.tree = kernels::kHipRtcHeaders;
  options.folders.assign(std::begin(kernels::kHipRtcFolders), std::end(kernels::kHipRtcFolders));
  if (on_demand() != OnDemand::kCompile) {
    options.forbidden = "must not compile, " + forbidden();
  } else if (when == RunTimeCompile::kNever) {
    options.forbidden = concat("must not compile, by ", never_compiled(), ": unset it");
  }
  if (!options.forbidden.empty()) {
    list.push_back(open_hiprtc_kernels(library_compilers(), std::move(options)));
    return list;
  }
  options.version = AITER_ATTN_VERSION;
  options.tells_commands = variable(kVerboseVariable) == "1";
  options.work_place = work_place();
  list.push_back(kept(open_hiprtc_kernels(library_compilers(), std::move(options)), kit_limit()));
  return list;
}

// The server that is named, whose objects the user's cache keeps.
Providers stores(const std::vector<PublicKey>& trusted) {
  Providers list;
  RemoteOptions options;
  options.url = named_store();
  if (options.url.empty()) return list;
  options.limits.whole = store_limit();
  options.trusted = trusted;
  if (on_demand() != OnDemand::kCompile) {
    options.forbidden = "must not be asked, " + forbidden();
    list.push_back(std::make_unique<RemoteProvider>(std::move(options)));
    return list;
  }
  options.open = [] { return open_curl("aiter-attn/" AITER_ATTN_VERSION); };
  CacheOptions cache = cache_options();
  // Another process that fetches the same kernel is waited for: it takes as long as this one.
  cache.patience = options.limits.whole;
  auto store = std::make_unique<RemoteProvider>(std::move(options));
  cache.name = store->name();
  list.push_back(std::make_unique<CacheProvider>(std::move(cache), std::move(store)));
  return list;
}

void append(Providers& list, Providers more) {
  std::move(more.begin(), more.end(), std::back_inserter(list));
}

// All providers, the first that is asked first. A new one is a class, and a line here.
Providers providers(RunTimeCompile when) {
  Providers list;
  if (when == RunTimeCompile::kAlways) {
    append(list, machine_caches());
    list.push_back(cache(when));
  }
  list.push_back(std::make_unique<Embedded>());
  const std::vector<PublicKey> trusted = trusted_keys();
  append(list, pack_files(installed_packs(), AITER_ATTN_VERSION, trusted));
  append(list, pack_files(named_pack_places(), AITER_ATTN_VERSION, trusted));
  if (when != RunTimeCompile::kAlways) append(list, machine_caches());
  append(list, stores(trusted));
  if (when != RunTimeCompile::kAlways) list.push_back(cache(when));
  append(list, kits());
  append(list, amdclangs());
  append(list, hiprtcs(when));
  return list;
}

}  // namespace

RunTimeCompile run_time_compile() {
  const std::string text = variable(kRunTimeCompileVariable);
  if (text.empty()) {
    const std::string other = variable(kTeRunTimeCompileVariable);
    if (other.empty() || other == "0") return RunTimeCompile::kMissing;
    if (other == "1") return RunTimeCompile::kNever;
    fail(Status::kInvalidArgument, kTeRunTimeCompileVariable, " is '", utf8(other),
         "'; it may be 1 (", kRunTimeCompileVariable, "=0), 0, or not set (0)");
  }
  if (text == "0") return RunTimeCompile::kNever;
  if (text == "1") return RunTimeCompile::kAlways;
  fail(
      Status::kInvalidArgument, kRunTimeCompileVariable, " is '", utf8(text), "'; it may be 0 ",
      "(kernels are not compiled at run time), 1 (all are), or not set (those that were not built ",
      "in are)");
}

const char* never_compiled() {
  const bool is_others =
      variable(kRunTimeCompileVariable).empty() && variable(kTeRunTimeCompileVariable) == "1";
  return is_others ? "NVTE_DISABLE_NVRTC=1" : "AITER_ATTN_RTC=0";
}

OnDemand on_demand() {
  const std::string text = variable(kOnDemandVariable);
  if (text.empty()) {
    const std::string other = variable(kTeOnDemandVariable);
    if (other.empty() || other == "1") return OnDemand::kCompile;
    if (other == "0") return OnDemand::kCache;
    fail(Status::kInvalidArgument, kTeOnDemandVariable, " is '", utf8(other), "'; it may be 1 (",
         kOnDemandVariable, "=compile), 0 (", kOnDemandVariable, "=cache), or not set (1)");
  }
  if (text == "compile") return OnDemand::kCompile;
  if (text == "cache") return OnDemand::kCache;
  if (text == "off") return OnDemand::kOff;
  fail(Status::kInvalidArgument, kOnDemandVariable, " is '", utf8(text), "'; it may be compile ",
       "(kernels that are neither built in nor in a pack are taken from the cache, or compiled by ",
       "the compile kit), cache (none is compiled), off (nor taken from the cache), or not set ",
       "(compile)");
}

std::string cache_folder() {
  const std::string* const named = named_cache_folder;
  return named ? *named + "/code-objects" : user_cache_folder();
}

void set_cache_folder(const char* folder) {
  if (folder && folder[0] != '/') {
    fail(Status::kInvalidArgument, Field("folder"), " is '", utf8(folder),
         "', but must be an absolute path: the working directory differs between processes");
  }
  if (store_is_used) {
    fail(Status::kInvalidArgument, "this process has looked for kernels already, in '",
         utf8(cache_folder()), "': name the cache before the first call, or in ", kCacheVariable,
         " before the process starts");
  }
  named_cache_folder = folder ? new std::string(folder) : nullptr;
}

const Store& library_store() {
  static Once<const Store> store;
  return store.get([] {
    auto made = std::make_unique<const Store>(providers(run_time_compile()));
    store_is_used = true;  // a call that failed before may name another folder
    return made;
  });
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
