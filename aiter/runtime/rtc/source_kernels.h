// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Kernels that exist as source: compiled with the library, or when they are first used. Both ways
// they are specs with keys, found through one store.
//
//   SourceKernels kernels(options);
//   const CodeObjectSpec spec = kernels.spec({"softmax.cpp", {"-DROW_HIDDEN=1024", ...}}, "sm_90");
//   Loader loader(driver, kernels.store());
//   loader.function(device, {spec.key(), {}, &spec}, "softmax_forward");
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "aiter/runtime/rtc/compiler.h"
#include "aiter/runtime/store/cache.h"
#include "aiter/runtime/store/store.h"

namespace AITER_ATTN_NAMESPACE::runtime {

// AITER_ATTN_RTC: when kernels are compiled at run time.
enum class RunTimeCompile {
  kMissing,  // not set: those that were not compiled ahead of time
  kNever,    // "0"
  kAlways,   // "1": what was compiled ahead of time is not used
};

// Reads the variable. Throws Status::kInvalidArgument for any other value.
RunTimeCompile run_time_compile();

// Kernels of one arch that were compiled ahead of time: how, and where they are.
struct AheadOfTime {
  std::string arch;    // "sm_80", "gfx942"
  std::string recipe;  // serialised, without the flags of the single kernel: see Recipe
};

struct SourceKernelsOptions {
  std::vector<SourceFile> sources;
  std::vector<SourceFile> headers;  // all that the sources include
  std::vector<std::string> flags;   // of each compile, ahead of the kernel's own: "-std=c++17"

  std::vector<AheadOfTime> ahead_of_time;
  // Their bytes, in memory that outlives this; NULL: none.
  const unsigned char* pack = nullptr;
  uint64_t pack_size = 0;

  // How kernels are compiled ahead of time, for messages.
  std::string build_flag;   // "--//kernels/..."
  std::string build_archs;  // that it takes: "gfx942 sm_90"
  std::string build_list;   // the file that says which kernels

  RunTimeCompile run_time_compile = RunTimeCompile::kMissing;
  CacheOptions cache;  // folder: user_cache_folder(); max_size: cache_max_size()
  // For devices of an arch, called at the first use; runtime::open_compiler with folders.
  using OpenCompiler = std::function<std::unique_ptr<Compiler>(const std::string& arch)>;
  OpenCompiler open_compiler;
};

// A kernel: one of the sources, and flags that make it a certain kernel: "-DROW_HIDDEN=1024". They
// may come in any order.
struct SourceKernel {
  std::string source;
  std::vector<std::string> flags;
};

// Every member may be called from several threads.
class SourceKernels {
 public:
  explicit SourceKernels(SourceKernelsOptions options);
  ~SourceKernels();

  // How the kernel's code object for devices of arch is made. What was compiled ahead of time comes
  // first, also for an older arch whose machine code the device runs. Throws Status::kUnsupported,
  // naming the build flag if it can help, where it was not and may not be compiled now; what
  // opening the compiler throws; Status::kInvalidArgument for an unknown source. Hashes some
  // hundred bytes: remember it.
  CodeObjectSpec spec(SourceKernel kernel, const std::string& arch);

  // Finds or makes the bytes of spec()s. Where a kernel does not compile, the message has the
  // compiler's log, and it is not tried again. Threads and processes that want the same kernel wait
  // for one of them; nobody waits for another kernel.
  const Store& store() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace AITER_ATTN_NAMESPACE::runtime
