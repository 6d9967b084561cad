// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/kit/kit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <optional>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "aiter/runtime/environment.h"
#include "aiter/runtime/error.h"
#include "aiter/runtime/kit/device_compile.h"
#include "aiter/runtime/kit/work_folder.h"
#include "aiter/runtime/store/file.h"
#include "aiter/runtime/store/pack_file.h"
#include "aiter/runtime/text.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

constexpr char kDistribution[] = "aiter-attn-compile-kit";
constexpr char kFirstLine[] = "aiter-attn-compile-kit 1";
constexpr char kCompiler[] = "external/llvm/bin/clang++";
constexpr char kCompilerFile[] = "/external/llvm/bin/clang++";
constexpr off_t kMostDescription = 1 << 20;
constexpr long kMostSeconds = 86400;

std::string name_of(const std::string& folder) {
  return concat("the compile kit '", utf8(folder), "'");
}

struct Description {
  std::string toolchain;
  std::set<std::string> archs, headers;
};

std::string install_again(const std::string& version) {
  return concat("install ", kDistribution, "==", version, " again");
}

std::string read_text(const std::string& path, const std::string& version) {
  const File file(path, O_RDONLY, File::Links::kFollowed);
  if (!file) {
    fail(Status::kUnsupported, "has no '", utf8(path), "': ", std::strerror(errno), "; ",
         install_again(version), ", or name a kit's folder in ", kKitVariable);
  }
  struct stat status;
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_size > kMostDescription) {
    fail(Status::kCorrupt, "'", utf8(path), "' is no kit's description; ", install_again(version));
  }
  std::string text(static_cast<size_t>(status.st_size), '\0');
  if (!read_all(file.get(), text.data(), text.size())) {
    fail(Status::kCorrupt, "'", utf8(path), "' cannot be read; ", install_again(version));
  }
  return text;
}

Description describe(const std::string& folder, const std::string& version) {
  const std::string path = folder + "/kit";
  std::istringstream lines(read_text(path, version));
  std::string line;
  if (!std::getline(lines, line) || line != kFirstLine) {
    fail(Status::kUnsupported, "'", utf8(path), "' begins with '", utf8(line.substr(0, 80)),
         "', but this library reads '", kFirstLine, "'; install ", kDistribution, "==", version);
  }
  Description made;
  std::string made_with;
  bool is_whole = false;
  while (!is_whole && std::getline(lines, line)) {
    const size_t space = line.find(' ');
    const std::string name = line.substr(0, space);
    const std::string value = space == line.npos ? "" : line.substr(space + 1);
    if (name == "version") made_with = value;
    if (name == "toolchain") made.toolchain = value;
    if (name == "arch") made.archs.insert(value);
    if (name == "headers") made.headers.insert(value);
    is_whole = line == "end";
  }
  if (!is_whole) {
    fail(Status::kCorrupt, "'", utf8(path), "' is cut off; ", install_again(version));
  }
  if (made_with != version) {
    fail(Status::kUnsupported, "was made with aiter-attn ", utf8(made_with), ", but this is ",
         version, "; install ", kDistribution, "==", version);
  }
  return made;
}

class Kit : public Provider {
 public:
  Kit(std::string folder, KitOptions options)
      : folder_(std::move(folder)),
        options_(std::move(options)),
        description_(describe(folder_, options_.version)),
        sources_(open_pack_file(folder_ + "/sources.attnpack", options_.version)) {}

  std::string name() const override { return name_of(folder_); }
  bool may_have(const CodeObjectRef& ref) const override { return ref.spec && !ref.source; }
  // Another kit has other files; one that was mended, newer ones.
  std::string identity() const override {
    std::string text = concat(folder_, "\n", options_.limit.count(), "\n");
    for (const char* name : {"/kit", "/launch", "/sources.attnpack", kCompilerFile}) {
      struct stat status = {};
      static_cast<void>(::stat((folder_ + name).c_str(), &status));
      text += concat(status.st_dev, " ", status.st_ino, " ", status.st_size, " ",
                     status.st_mtim.tv_sec, " ", status.st_mtim.tv_nsec, "\n");
    }
    return hex(sha256(text.data(), text.size()));
  }
  std::optional<Bytes> get(const CodeObjectRef& ref) override {
    if (!may_have(ref)) return std::nullopt;
    const CodeObjectSpec spec = ref.spec();
    return compile(ref, spec, source_of(spec));
  }
  Answer look(const CodeObjectRef& ref) override {
    if (!may_have(ref)) return {};
    source_of(ref.spec());
    return {true, "compiles it at its first use", true};
  }

 private:
  // Throws Status::kUnsupported, or kCorrupt, where this kit cannot make the object.
  Bytes source_of(const CodeObjectSpec& spec) {
    if (!spec.group.empty()) {
      fail(Status::kUnsupported, "compiles single kernels, but this object was compiled together ",
           "with others, which may give other bytes");
    }
    if (spec.toolchain != description_.toolchain) {
      fail(Status::kUnsupported, "has the toolchain ", utf8(description_.toolchain),
           ", but the kernel is made with ", spec.toolchain, "; ", of_this_build());
    }
    if (!description_.archs.count(spec.arch)) {
      std::string archs;
      for (const std::string& arch : description_.archs) archs += " " + utf8(arch);
      fail(Status::kUnsupported, "is for", archs, ", and not for ", spec.arch, "; ",
           of_this_build());
    }
    if (!description_.headers.count(spec.headers)) {
      fail(Status::kUnsupported, "has not the headers ", spec.headers, " of the kernel; ",
           of_this_build());
    }
    const std::optional<Digest> digest = parse_hex(spec.source);
    std::optional<Bytes> source;
    if (digest) source = sources_->get({*digest, digest});
    if (!source) {
      fail(Status::kUnsupported, "has not the kernel's source, ", spec.source, "; ",
           of_this_build());
    }
    return *std::move(source);
  }

  static const char* of_this_build() { return "install the kit of this library's build"; }

  Bytes compile(const CodeObjectRef& ref, const CodeObjectSpec& spec, const Bytes& source) const {
    const WorkFolder work(options_.work_place);
    const std::string source_path = work.path() + "/kernel.cpp";
    DeviceCompile compile;
    compile.object = work.path() + "/kernel.hsaco";
    write_file(source_path, source.data(), source.size());
    compile.compiler = {kCompiler};
    compile.compiler.insert(compile.compiler.end(), spec.flags.begin(), spec.flags.end());
    for (const std::string& word : {concat("--offload-arch=", spec.arch), std::string("-c"),
                                    source_path, std::string("-o"), compile.object}) {
      compile.compiler.push_back(word);
    }
    compile.arch = spec.arch;
    compile.folder = folder_;
    compile.launcher = {folder_ + "/launch", concat(::getpid()), folder_,
                        concat(kCompileAddressSpace)};
    compile.temporary = work.path();
    compile.limit = options_.limit;
    compile.remedy = install_again(options_.version);
    compile.tells_commands = options_.tells_commands;
    return run_compile(ref, compile);
  }

  const std::string folder_;
  const KitOptions options_;
  const Description description_;
  const std::unique_ptr<Provider> sources_;
};

}  // namespace

std::unique_ptr<Provider> open_kit(const std::string& folder, KitOptions options) {
  try {
    return std::make_unique<Kit>(folder, std::move(options));
  } catch (const Error&) {
    return refused_compiler(name_of(folder), std::current_exception());
  }
}

std::unique_ptr<Provider> forbidden_kit(const std::string& folder, const std::string& reason) {
  return refused_compiler(name_of(folder),
                          std::make_exception_ptr(Error(Status::kUnsupported, reason)));
}

std::string find_kit(const std::vector<std::string>& installed) {
  if (std::string named = variable(kKitVariable); !named.empty()) {
    if (named[0] == '/') return named;
    fail(Status::kInvalidArgument, kKitVariable, " is '", utf8(named),
         "', but must be an absolute path: the working directory differs between processes");
  }
  for (const std::string& folder : installed) {
    if (::access((folder + "/kit").c_str(), F_OK) == 0) return folder;
  }
  return "";
}

std::chrono::seconds kit_limit() {
  const std::string text = variable(kKitSecondsVariable);
  if (text.empty()) return KitOptions().limit;
  long seconds = 0;
  if (text.size() <= 5 && text.find_first_not_of("0123456789") == text.npos) {
    seconds = std::stol(text);
  }
  if (seconds < 1 || seconds > kMostSeconds) {
    fail(Status::kInvalidArgument, kKitSecondsVariable, " is '", utf8(text),
         "', but must be a whole number of seconds from 1 to ", kMostSeconds);
  }
  return std::chrono::seconds(seconds);
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
