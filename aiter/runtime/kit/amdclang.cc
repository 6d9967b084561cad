// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/kit/amdclang.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "aiter/runtime/environment.h"
#include "aiter/runtime/error.h"
#include "aiter/runtime/kit/device_compile.h"
#include "aiter/runtime/kit/kernel_sources.h"
#include "aiter/runtime/kit/own_spec.h"
#include "aiter/runtime/kit/work_folder.h"
#include "aiter/runtime/text.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

// Below a ROCm; the first that is there. All are the same program, or start it.
constexpr const char* kPrograms[] = {"/bin/amdclang++", "/lib/llvm/bin/amdclang++",
                                     "/llvm/bin/amdclang++", "/lib/llvm/bin/clang++",
                                     "/llvm/bin/clang++"};
// The id of a compilation unit is a hash of its path and its flags otherwise.
constexpr char kNoUnitId[] = "-fuse-cuid=none";

std::string name_of(const AmdClang& clang) {
  return concat("amdclang '", utf8(clang.program), "'");
}

bool begins(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

bool ends(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

std::string parent(const std::string& path) { return path.substr(0, path.rfind('/')); }

// Without links; the same path where there is no such file.
std::string resolved(const std::string& path) {
  char room[PATH_MAX];
  return ::realpath(path.c_str(), room) ? room : path;
}

std::string absolute(const char* variable_name) {
  std::string path = variable(variable_name);
  if (path.empty() || path[0] == '/') return path;
  fail(Status::kInvalidArgument, variable_name, " is '", utf8(path),
       "', but must be an absolute path: the working directory differs between processes");
}

// The ROCm that a compiler lies in.
std::string rocm_of(const std::string& program) {
  const std::string path = resolved(program);
  for (const std::string_view folder : {"/lib/llvm/bin", "/llvm/bin", "/bin"}) {
    const std::string place = parent(path);
    if (ends(place, folder)) return place.substr(0, place.size() - folder.size());
  }
  return "";
}

// Name, size and time of a file; nothing where there is none.
void tell_file(const std::string& path, const std::string& name, std::string& text) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  text += concat(name, " ", status.st_size, " ", status.st_mtim.tv_sec, ".", status.st_mtim.tv_nsec,
                 "\n");
}

// The same of all files in a folder, sorted by name, whose names begin with one of `starts` or end
// with one of `tails`.
void tell_files(const std::string& folder, const std::vector<std::string_view>& starts,
                const std::vector<std::string_view>& tails, std::string& text) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(folder.c_str()), ::closedir);
  if (!listing) return;
  while (const dirent* entry = ::readdir(listing.get())) {
    const std::string_view name = entry->d_name;
    const auto starts_name = [&](std::string_view start) { return begins(name, start); };
    const auto ends_name = [&](std::string_view tail) { return ends(name, tail); };
    if (std::any_of(starts.begin(), starts.end(), starts_name) ||
        std::any_of(tails.begin(), tails.end(), ends_name)) {
      names.emplace_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) tell_file(concat(folder, "/", name), name, text);
}

class Amd : public Provider {
 public:
  Amd(AmdClang clang, AmdClangOptions options)
      : clang_(std::move(clang)),
        options_(std::move(options)),
        toolchain_(runtime::identity(clang_)) {
    if (!options_.forbidden.empty()) return;
    if (options_.sources.empty()) {
      fail(Status::kUnsupported, "has not the kernels' sources: install the slim wheel, which has ",
           "them, or name the file in ", kKernelSourcesVariable);
    }
    sources_ = std::make_unique<const KernelSources>(options_.sources, options_.version);
  }

  std::string name() const override { return name_of(clang_); }
  bool may_have(const CodeObjectRef& ref) const override {
    return ref.spec && !ref.source && !ref.sha256 && ref.spec().toolchain == toolchain_;
  }
  std::string identity() const override {
    return concat(toolchain_, " ", options_.sources, " ", options_.limit.count());
  }
  std::optional<CodeObjectRef> own(const CodeObjectRef& ref) const override {
    if (!ref.spec || ref.source) return std::nullopt;
    CodeObjectSpec spec = own_spec(ref.spec(), toolchain_, {kNoUnitId});
    CodeObjectRef made = {spec.key(), {}, [spec] { return spec; }};
    made.name = ref.name;
    return made;
  }
  std::optional<Bytes> get(const CodeObjectRef& ref) override {
    if (!may_have(ref)) return std::nullopt;
    require_sources();
    const CodeObjectSpec spec = ref.spec();
    return compile(ref, spec, sources_->source(spec), sources_->headers(spec.headers));
  }
  Answer look(const CodeObjectRef& ref) override {
    if (!may_have(ref)) return {};
    require_sources();
    sources_->source(ref.spec());
    return {true, "compiles it at its first use", true};
  }

 private:
  void require_sources() const {
    if (!sources_) fail(Status::kUnsupported, options_.forbidden);
  }

  Bytes compile(const CodeObjectRef& ref, const CodeObjectSpec& spec, const Bytes& source,
                const std::vector<SourceFile>& headers) const {
    const WorkFolder work(options_.work_place);
    const std::string source_path = work.path() + "/kernel.cpp", tree = work.path() + "/headers";
    write_file(source_path, source.data(), source.size());
    write_tree(tree, headers);
    DeviceCompile compile;
    compile.arch = spec.arch;
    compile.temporary = work.path();
    compile.object = work.path() + "/kernel.hsaco";
    compile.limit = options_.limit;
    compile.tells_commands = options_.tells_commands;
    compile.remedy =
        concat("install ROCm's compiler again, or name another in ", kAmdClangVariable);
    compile.compiler = {clang_.program};
    if (!clang_.rocm.empty()) compile.compiler.push_back("--rocm-path=" + clang_.rocm);
    // The folder has another name each time.
    compile.compiler.push_back(concat("-ffile-prefix-map=", work.path(), "=."));
    for (std::string& flag : with_includes_below(tree, spec.flags)) {
      compile.compiler.push_back(std::move(flag));
    }
    for (const std::string& word : {concat("--offload-arch=", spec.arch), std::string("-c"),
                                    source_path, std::string("-o"), compile.object}) {
      compile.compiler.push_back(word);
    }
    return run_compile(ref, compile);
  }

  const AmdClang clang_;
  const AmdClangOptions options_;
  const std::string toolchain_;
  std::unique_ptr<const KernelSources> sources_;  // NULL where it must not compile
};

}  // namespace

AmdClang find_amdclang(const std::string& default_rocm) {
  const std::string program = absolute(kAmdClangVariable);
  const std::string named = absolute(kRocmPathVariable);
  if (!program.empty()) {
    if (::access(program.c_str(), X_OK) != 0) {
      fail(Status::kUnsupported, kAmdClangVariable, " is '", utf8(program),
           "', which cannot be run: ", std::strerror(errno),
           "; name ROCm's amdclang++, or unset it");
    }
    return {program, named.empty() ? rocm_of(program) : named};
  }
  const std::string rocm = named.empty() ? default_rocm : named;
  for (const char* const path : kPrograms) {
    if (::access((rocm + path).c_str(), X_OK) == 0) return {rocm + path, rocm};
  }
  if (named.empty()) return {};
  fail(Status::kUnsupported, kRocmPathVariable, " is '", utf8(rocm),
       "', which has no bin/amdclang++; install ROCm's compiler (its package is rocm-llvm), name ",
       "another in ", kAmdClangVariable, ", or unset it");
}

std::string identity(const AmdClang& clang) {
  const std::string program = resolved(clang.program);
  const std::string folder = parent(program);
  std::string text;
  tell_file(program, program.substr(folder.size() + 1), text);
  if (text.empty()) {
    fail(Status::kUnsupported, "'", utf8(clang.program), "' is no file: ", std::strerror(errno));
  }
  tell_files(folder, {"clang", "amdclang", "lld", "ld.lld"}, {".cfg"}, text);
  tell_files(folder + "/../lib", {"libLLVM", "libclang-cpp", "liblld"}, {}, text);
  if (!clang.rocm.empty()) {
    tell_files(clang.rocm + "/amdgcn/bitcode", {}, {".bc"}, text);
    tell_files(clang.rocm + "/include/hip", {"hip_version.h"}, {}, text);
    tell_files(clang.rocm + "/.info", {"version"}, {}, text);
  }
  return "amdclang " + hex(sha256(text.data(), text.size()));
}

std::unique_ptr<Provider> open_amdclang(const AmdClang& clang, AmdClangOptions options) {
  try {
    return std::make_unique<Amd>(clang, std::move(options));
  } catch (const Error&) {
    return refused_compiler(name_of(clang), std::current_exception());
  }
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
