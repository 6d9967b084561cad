// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/kit/device_compile.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "aiter/runtime/error.h"
#include "aiter/runtime/kit/process.h"
#include "aiter/runtime/store/coming.h"
#include "aiter/runtime/store/failure.h"
#include "aiter/runtime/store/file.h"
#include "aiter/runtime/store/kernel_metadata.h"
#include "aiter/runtime/text.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

// Of the output of a failed compile, in a message.
constexpr size_t kMostSaid = 2000;

// By the beginning of an ELF file: its magic, and its machine.
bool is_of_amdgpu(const Bytes& object) {
  constexpr unsigned char kMagic[] = {0x7f, 'E', 'L', 'F'};
  constexpr size_t kMachineAt = 18;
  constexpr unsigned char kMachine[] = {224, 0};
  return object.size() > kMachineAt + sizeof(kMachine) &&
         std::equal(std::begin(kMagic), std::end(kMagic), object.begin()) &&
         std::equal(std::begin(kMachine), std::end(kMachine), object.begin() + kMachineAt);
}

std::optional<Bytes> read(const std::string& path) {
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

// A compiler that cannot be used.
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

Bytes run_compile(const CodeObjectRef& ref, const DeviceCompile& compile) {
  const std::string place =
      compile.folder.empty() ? "" : concat("in '", utf8(compile.folder), "': ");
  const std::string line = place + utf8(shell_form(compile.compiler));
  Command command;
  command.arguments = compile.launcher;
  command.arguments.insert(command.arguments.end(), compile.compiler.begin(),
                           compile.compiler.end());
  command.environment = {"LC_ALL=C", "PATH=/usr/bin:/bin", "TMPDIR=" + compile.temporary};
  command.limit = compile.limit;
  if (compile.launcher.empty()) command.address_space = kCompileAddressSpace;
  const auto started = std::chrono::steady_clock::now();
  const std::string kernel = kernel_for(ref, compile.arch);
  if (compile.tells_commands) tell(concat(kernel, ": ", line));
  command.takes_long = [&] { tell(compiling(ref, compile.arch, compile.limit.count())); };
  const Outcome outcome = run(command);
  const auto refuse = [&](const auto&... why) {
    throw CannotMake(concat("code object ", hex(ref.key), " does not compile: ", why..., "; ", line,
                            outcome.log.empty() ? "" : "\n", utf8(outcome.log.substr(0, kMostSaid)),
                            outcome.log.size() > kMostSaid || outcome.log_is_cut ? "..." : ""),
                     outcome.log);
  };
  switch (outcome.end) {
    case Outcome::End::kTimedOut:
      refuse("it was stopped after ", compile.limit.count(), " s; raise ", kKitSecondsVariable);
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
  std::optional<Bytes> written = read(compile.object);
  if (!written) refuse("its compiler wrote no object of up to ", kMostObjectBytes, " bytes");
  const Bytes object = std::move(written).value_or(Bytes());
  if (const std::string why = unfit(ref, object); !why.empty()) {
    refuse("its compiler's output ", why, "; ", compile.remedy);
  }
  if (compile.tells_commands) {
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - started;
    tell(concat(kernel, ": compiled in ", std::lround(taken.count() * 1000), " ms"));
  }
  return object;
}

std::string unfit(const CodeObjectRef& ref, const Bytes& object) {
  const Digest digest = sha256(object.data(), object.size());
  if (ref.sha256 && digest != *ref.sha256) {
    return concat("has sha256 ", hex(digest), " instead of ", hex(*ref.sha256));
  }
  if (!ref.sha256 && !is_of_amdgpu(object)) return "is no ELF file for AMD GPUs";
  return misfit(ref, object);
}

std::string kernel_for(const CodeObjectRef& ref, const std::string& arch) {
  return concat(ref.name ? ref.name() : "a kernel", " for ", utf8(arch));
}

std::string compiling(const CodeObjectRef& ref, const std::string& arch, int64_t limit) {
  const Coming& coming = thread_coming();
  const int more = coming.count ? coming.count(coming.context, ref.key) : 0;
  return concat("compiling ", kernel_for(ref, arch),
                more ? concat(", then ", more, more == 1 ? " more kernel" : " more kernels") : "",
                limit ? concat(", at most ", limit, more ? " s each" : " s") : "");
}

void tell(const std::string& text) {
  std::fputs(concat("aiter-attn: ", text, "\n").c_str(), stderr);
}

void write_file(const std::string& path, const void* data, size_t size) {
  const File file(path, O_WRONLY | O_CREAT | O_EXCL);
  if (!file || !write_all(file.get(), data, size)) {
    fail(Status::kUnsupported, "cannot write '", utf8(path), "': ", std::strerror(errno));
  }
}

void write_tree(const std::string& folder, const std::vector<SourceFile>& headers) {
  const auto make = [](const std::string& path) {
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
      fail(Status::kUnsupported, "cannot make '", utf8(path), "': ", std::strerror(errno));
    }
  };
  make(folder);
  for (const SourceFile& header : headers) {
    for (size_t at = header.name.find('/'); at != header.name.npos;
         at = header.name.find('/', at + 1)) {
      make(concat(folder, "/", header.name.substr(0, at)));
    }
    write_file(concat(folder, "/", header.name), header.text.data(), header.text.size());
  }
}

std::unique_ptr<Provider> refused_compiler(std::string name, std::exception_ptr why) {
  return std::make_unique<Refused>(std::move(name), std::move(why));
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
