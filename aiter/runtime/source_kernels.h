// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Kernels that exist as source: compiled with the library, or when they are first used. Both ways
// they are specs with keys, found through one store.
//
//   SourceKernels kernels(options);
//   const SourceCodeObject object = kernels.code_object({"softmax.cpp", {"-DX=1024"}}, "sm_90");
//   loader.function(driver, device, object.ref(), "softmax_forward");
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "aiter/runtime/library_store.h"
#include "aiter/runtime/rtc/compilers.h"
#include "aiter/runtime/store/store.h"

namespace AITER_ATTN_NAMESPACE::runtime {

// The recipe of one arch's kernels that were compiled ahead of time.
struct AheadOfTime {
  std::string arch;    // "sm_80", "gfx942"
  std::string recipe;  // serialised, without the flags of the single kernel: see Recipe
};

struct SourceKernelsOptions {
  std::vector<SourceFile> sources;
  std::vector<SourceFile> headers;  // all that the sources include
  std::vector<std::string> flags;   // of each compile, ahead of the kernel's own: "-std=c++17"

  std::vector<AheadOfTime> ahead_of_time;
  // Whether the library has a code object built in.
  std::function<bool(const Digest& key)> is_built_in;

  // The build's settings for kernels compiled ahead of time, for messages.
  std::string build_flag;   // "--//kernels/..."
  std::string build_archs;  // that it takes: "gfx942 sm_90"
  std::string build_list;   // the file that says which kernels
  std::string set_flag;     // that chooses such a file

  RunTimeCompile run_time_compile = RunTimeCompile::kMissing;
  Compilers* compilers = nullptr;  // they outlive this
};

// A kernel: one of the sources, and flags that make it a certain kernel: "-DROW_HIDDEN=1024". They
// may come in any order.
struct SourceKernel {
  std::string source;
  std::vector<std::string> flags;
};

// A kernel's source and the spec of its code object. It is valid as long as the SourceKernels.
struct SourceCodeObject {
  CodeObjectSpec spec;
  const SourceFile* source;
  const std::vector<SourceFile>* headers;

  // It is valid as long as this.
  CodeObjectRef ref() const {
    return {spec.key(), {}, [this] { return spec; }, source, headers};
  }
};

// Every member may be called from several threads.
class SourceKernels {
 public:
  explicit SourceKernels(SourceKernelsOptions options);
  ~SourceKernels();

  // The source and spec of the kernel's code object for devices of arch. One that was compiled
  // ahead of time comes first, also for an older arch whose machine code the device runs. Throws
  // Status::kUnsupported, naming the build flag if it can help, where it was not and may not be
  // compiled now; what opening the compiler throws; Status::kInvalidArgument for an unknown source.
  // Hashes some hundred bytes: remember it.
  SourceCodeObject code_object(SourceKernel kernel, const std::string& arch) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace AITER_ATTN_NAMESPACE::runtime
