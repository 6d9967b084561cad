// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/kit/hiprtc_kernels.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <functional>
#include <iterator>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "aiter/runtime/error.h"
#include "aiter/runtime/interrupt.h"
#include "aiter/runtime/kit/device_compile.h"
#include "aiter/runtime/kit/kernel_sources.h"
#include "aiter/runtime/kit/own_spec.h"
#include "aiter/runtime/kit/work_folder.h"
#include "aiter/runtime/store/failure.h"
#include "aiter/runtime/text.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

// hipRTC's own header has these names, of which a kernel takes those of the C++ library and of HIP.
// The prelude undoes it.
constexpr const char* kRenamed[] = {"-Dstd=hiprtc_std", "-Ddim3=hiprtc_dim3",
                                    "-Dint64_t=hiprtc_int64_t", "-Duint64_t=hiprtc_uint64_t"};
constexpr char kPrelude[] = "#include \"hiprtc_prelude.h\"\n#line 1\n";
constexpr char kSourceName[] = "kernel.cpp";

// hipRTC knows no other language and no other pass.
constexpr std::string_view kDriversWords[] = {"-x", "hip", "-fPIC", "--cuda-device-only",
                                              "--no-gpu-bundle-output"};

CodeObjectSpec hiprtc_spec(const CodeObjectSpec& spec, std::string toolchain) {
  CodeObjectSpec made =
      own_spec(spec, std::move(toolchain), {std::begin(kRenamed), std::end(kRenamed)});
  const auto is_drivers = [](const std::string& flag) {
    return std::find(std::begin(kDriversWords), std::end(kDriversWords), flag) !=
           std::end(kDriversWords);
  };
  made.flags.erase(std::remove_if(made.flags.begin(), made.flags.end(), is_drivers),
                   made.flags.end());
  return made;
}

// Calls a function after a second, unless it is destroyed before.
class TakesLong {
 public:
  explicit TakesLong(std::function<void()> tell)
      : thread_([this, tell = std::move(tell)] {
          std::unique_lock<std::mutex> lock(mutex_);
          if (!ended_.wait_for(lock, std::chrono::seconds(1), [this] { return is_over_; })) tell();
        }) {}
  ~TakesLong() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      is_over_ = true;
    }
    ended_.notify_one();
    thread_.join();
  }
  TakesLong(const TakesLong&) = delete;
  TakesLong& operator=(const TakesLong&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_over_ = false;
  std::thread thread_;
};

class HipRtcKernels : public Provider {
 public:
  HipRtcKernels(Compilers& compilers, HipRtcOptions options)
      : compilers_(compilers), options_(std::move(options)) {
    if (!options_.forbidden.empty()) return;
    sources_ = std::make_unique<const KernelSources>(options_.sources, options_.version);
  }

  std::string name() const override { return "hipRTC"; }
  bool may_have(const CodeObjectRef& ref) const override {
    if (!ref.spec || ref.source || ref.sha256) return false;
    const Compiler* const compiler = opened_;
    return compiler && ref.spec().toolchain == toolchain(*compiler);
  }
  std::string identity() const override {
    const Compiler* const compiler = opened_;
    return compiler ? concat(toolchain(*compiler), " ", options_.sources) : "";
  }
  std::optional<CodeObjectRef> own(const CodeObjectRef& ref) const override {
    if (!ref.spec || ref.source) return std::nullopt;
    const CodeObjectSpec build = ref.spec();
    const Compiler& compiler = opened(build.arch);
    CodeObjectSpec spec = hiprtc_spec(build, toolchain(compiler));
    CodeObjectRef made = {spec.key(), {}, [spec] { return spec; }};
    made.name = ref.name;
    return made;
  }
  std::optional<Bytes> get(const CodeObjectRef& ref) override {
    if (!may_have(ref)) return std::nullopt;
    require_sources();
    check_interrupt();
    Bytes object = compile(ref, ref.spec());
    check_interrupt();
    return object;
  }
  Answer look(const CodeObjectRef& ref) override {
    if (!may_have(ref)) return {};
    require_sources();
    sources_->source(ref.spec());
    return {true, concat("by ", opened_.load()->describe(), " compiles it at its first use"), true};
  }

 private:
  const Compiler& opened(const std::string& arch) const {
    if (const Compiler* const compiler = opened_) return *compiler;
    // It is not waited for: a child that was forked while it was held goes on without it.
    const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (lock && missing_ && std::chrono::steady_clock::now() < missing_until_) {
      std::rethrow_exception(missing_);
    }
    try {
      opened_ = &compilers_.for_arch(arch);
    } catch (const Error&) {
      if (lock) {
        missing_ = std::current_exception();
        missing_until_ = std::chrono::steady_clock::now() + options_.missing_life;
      }
      throw;
    }
    return *opened_;
  }
  std::string toolchain(const Compiler& compiler) const {
    return concat(compiler.identity(), " headers ", options_.tree);
  }
  void require_sources() const {
    if (!sources_) fail(Status::kUnsupported, options_.forbidden);
  }

  Bytes compile(const CodeObjectRef& ref, const CodeObjectSpec& spec) const {
    const Compiler& compiler = *opened_;
    const Bytes source = sources_->source(spec);
    const WorkFolder work(options_.work_place);
    const std::string tree = work.path() + "/headers", system = work.path() + "/hiprtc";
    write_tree(tree, sources_->headers(spec.headers));
    write_tree(system, sources_->headers(options_.tree));
    // The folder has another name each time.
    std::vector<std::string> flags = {concat("-ffile-prefix-map=", work.path(), "=.")};
    for (std::string& flag : with_includes_below(tree, spec.flags)) {
      flags.push_back(std::move(flag));
    }
    flags.push_back(kIncludeFlag + system);
    for (const std::string& folder : options_.folders) {
      flags.insert(flags.end(), {"-isystem", concat(system, "/", folder)});
    }
    const auto started = std::chrono::steady_clock::now();
    const Bytes object =
        compile(ref, compiler, {kSourceName, kPrelude + std::string(source.begin(), source.end())},
                flags, spec.arch);
    if (const std::string why = unfit(ref, object); !why.empty()) {
      throw CannotMake(concat("code object ", hex(ref.key), ": the output of ", compiler.describe(),
                              " ", why, "; name another hipRTC in ", kHipRtcLibraryVariable),
                       "");
    }
    if (options_.tells_commands) {
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - started;
      tell(concat(kernel_for(ref, spec.arch), ": compiled by ", compiler.describe(), " in ",
                  std::lround(taken.count() * 1000), " ms"));
    }
    return object;
  }
  static Bytes compile(const CodeObjectRef& ref, const Compiler& compiler, const SourceFile& source,
                       const std::vector<std::string>& flags, const std::string& arch) {
    const TakesLong takes_long([line = compiling(ref, arch, 0)] { tell(line); });
    try {
      return compiler.compile(source, {}, flags, compiler.target(arch));
    } catch (const CompileError& error) {
      throw CannotMake(concat("code object ", hex(ref.key), ": ", error.what()), error.log());
    }
  }

  Compilers& compilers_;
  const HipRtcOptions options_;
  mutable std::atomic<const Compiler*> opened_{nullptr};
  // Guards the two behind it.
  mutable std::mutex mutex_;
  mutable std::exception_ptr missing_;
  mutable std::chrono::steady_clock::time_point missing_until_;
  std::unique_ptr<const KernelSources> sources_;  // NULL where it must not compile
};

}  // namespace

std::unique_ptr<Provider> open_hiprtc_kernels(Compilers& compilers, HipRtcOptions options) {
  try {
    return std::make_unique<HipRtcKernels>(compilers, std::move(options));
  } catch (const Error&) {
    return refused_compiler("hipRTC", std::current_exception());
  }
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
