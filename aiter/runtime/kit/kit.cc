// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/kit/kit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "aiter/runtime/environment.h"
#include "aiter/runtime/error.h"
#include "aiter/runtime/kit/process.h"
#include "aiter/runtime/kit/work_folder.h"
#include "aiter/runtime/store/coming.h"
#include "aiter/runtime/store/failure.h"
#include "aiter/runtime/store/file.h"
#include "aiter/runtime/store/pack_file.h"
#include "aiter/runtime/text.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

constexpr char kDistribution[] = "aiter-attn-compile-kit";
constexpr char kFirstLine[] = "aiter-attn-compile-kit 1";
constexpr char kCompiler[] = "external/llvm/bin/clang++";
constexpr char kCompilerFile[] = "/external/llvm/bin/clang++";
// Of a kit's description, and of what a failed compile says in a message.
constexpr off_t kMostDescription = 1 << 20;
constexpr size_t kMostSaid = 2000;
// For each process of a compile. The largest kernels take a seventh of it.
constexpr uint64_t kAddressSpace = uint64_t{8} << 30;
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

// By the beginning of an ELF file: its magic, and its machine.
bool is_of_amdgpu(const Bytes& object) {
  constexpr unsigned char kMagic[] = {0x7f, 'E', 'L', 'F'};
  constexpr size_t kMachineAt = 18;
  constexpr unsigned char kMachine[] = {224, 0};
  return object.size() > kMachineAt + sizeof(kMachine) &&
         std::equal(std::begin(kMagic), std::end(kMagic), object.begin()) &&
         std::equal(std::begin(kMachine), std::end(kMachine), object.begin() + kMachineAt);
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
    const std::string object_path = work.path() + "/kernel.hsaco";
    write(source_path, source);
    std::vector<std::string> compiler = {kCompiler};
    compiler.insert(compiler.end(), spec.flags.begin(), spec.flags.end());
    for (const std::string& word : {concat("--offload-arch=", spec.arch), std::string("-c"),
                                    source_path, std::string("-o"), object_path}) {
      compiler.push_back(word);
    }
    Command command;
    command.arguments = {folder_ + "/launch", concat(::getpid()), folder_, concat(kAddressSpace)};
    command.arguments.insert(command.arguments.end(), compiler.begin(), compiler.end());
    command.environment = {"LC_ALL=C", "PATH=/usr/bin:/bin", "TMPDIR=" + work.path()};
    command.limit = options_.limit;
    const auto started = std::chrono::steady_clock::now();
    const std::string kernel = concat(ref.name ? ref.name() : "a kernel", " for ", utf8(spec.arch));
    if (options_.tells_commands) {
      tell(concat(kernel, ": in '", utf8(folder_), "': ", utf8(shell_form(compiler))));
    }
    command.takes_long = [&] {
      const Coming& coming = thread_coming();
      const int more = coming.count ? coming.count(coming.context, ref.key) : 0;
      tell(concat("compiling ", kernel,
                  more ? concat(", then ", more, more == 1 ? " more kernel" : " more kernels") : "",
                  ", at most ", options_.limit.count(), more ? " s each" : " s"));
    };
    const Outcome outcome = run(command);
    const auto refuse = [&](const auto&... why) {
      throw CannotMake(
          concat("code object ", hex(ref.key), " does not compile: ", why..., "; in '",
                 utf8(folder_), "': ", utf8(shell_form(compiler)), outcome.log.empty() ? "" : "\n",
                 utf8(outcome.log.substr(0, kMostSaid)),
                 outcome.log.size() > kMostSaid || outcome.log_is_cut ? "..." : ""),
          outcome.log);
    };
    switch (outcome.end) {
      case Outcome::End::kTimedOut:
        refuse("it was stopped after ", options_.limit.count(), " s; raise ", kKitSecondsVariable);
        break;
      case Outcome::End::kSignal:
        refuse("its compiler was ended by signal ", outcome.status);
        break;
      case Outcome::End::kExited:
        if (outcome.status != 0) refuse("its compiler's exit status is ", outcome.status);
        break;
      case Outcome::End::kUnknown:
        break;  // its output tells
    }
    std::optional<Bytes> read_object = read(object_path);
    if (!read_object) refuse("its compiler wrote no object of up to ", kMostObjectBytes, " bytes");
    const Bytes object = std::move(read_object).value_or(Bytes());
    const Digest digest = sha256(object.data(), object.size());
    if (ref.sha256 && digest != *ref.sha256) {
      refuse("its compiler made an object with sha256 ", hex(digest), " instead of ",
             hex(*ref.sha256), "; ", install_again(options_.version));
    }
    if (!ref.sha256 && !is_of_amdgpu(object)) {
      refuse("its compiler's output is no ELF file for AMD GPUs; ",
             install_again(options_.version));
    }
    if (options_.tells_commands) {
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - started;
      tell(concat(kernel, ": compiled in ", std::lround(taken.count() * 1000), " ms"));
    }
    return object;
  }

  static void tell(const std::string& text) {
    std::fputs(concat("aiter-attn: ", text, "\n").c_str(), stderr);
  }

  static void write(const std::string& path, const Bytes& bytes) {
    const File file(path, O_WRONLY | O_CREAT | O_EXCL);
    if (!file || !write_all(file.get(), bytes.data(), bytes.size())) {
      fail(Status::kUnsupported, "cannot write '", utf8(path), "': ", std::strerror(errno));
    }
  }

  static std::optional<Bytes> read(const std::string& path) {
    const File file(path, O_RDONLY);
    struct stat status;
    if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
        static_cast<uint64_t>(status.st_size) > kMostObjectBytes) {
      return std::nullopt;
    }
    Bytes bytes(static_cast<size_t>(status.st_size));
    if (!read_all(file.get(), bytes.data(), bytes.size())) return std::nullopt;
    return bytes;
  }

  const std::string folder_;
  const KitOptions options_;
  const Description description_;
  const std::unique_ptr<Provider> sources_;
};

// A kit that cannot be used.
class Refused : public Provider {
 public:
  Refused(std::string name, std::exception_ptr why)
      : name_(std::move(name)), why_(std::move(why)) {}
  std::string name() const override { return name_; }
  bool may_have(const CodeObjectRef& ref) const override { return ref.spec && !ref.source; }
  std::optional<Bytes> get(const CodeObjectRef& ref) override {
    if (may_have(ref)) std::rethrow_exception(why_);
    return std::nullopt;
  }
  Answer look(const CodeObjectRef& ref) override {
    get(ref);
    return {};
  }

 private:
  const std::string name_;
  const std::exception_ptr why_;
};

}  // namespace

std::unique_ptr<Provider> open_kit(const std::string& folder, KitOptions options) {
  try {
    return std::make_unique<Kit>(folder, std::move(options));
  } catch (const Error&) {
    return std::make_unique<Refused>(name_of(folder), std::current_exception());
  }
}

std::unique_ptr<Provider> forbidden_kit(const std::string& folder, const std::string& reason) {
  return std::make_unique<Refused>(name_of(folder),
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
