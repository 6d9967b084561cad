// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// ROCm's own clang, which every ROCm for developers has, as a compiler of kernels whose sources and
// headers the library brings (kernel_sources.h).
//
// Its objects have keys of their own: own_spec.h.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "aiter/runtime/store/store.h"

namespace AITER_ATTN_NAMESPACE::runtime {

inline constexpr char kAmdClangVariable[] = "AITER_ATTN_AMDCLANG";
inline constexpr char kRocmPathVariable[] = "ROCM_PATH";

// A clang, and the ROCm that it is of: absolute paths. No program: there is none.
struct AmdClang {
  std::string program;
  std::string rocm;
};

// The program that AITER_ATTN_AMDCLANG names, with the ROCm that ROCM_PATH names or that it lies
// in; else that of ROCM_PATH; else that of /opt/rocm, of which alone it is no error to be missing.
// Throws Status::kInvalidArgument where a variable's path is relative, and Status::kUnsupported
// where it has no clang.
AmdClang find_amdclang(const std::string& default_rocm = "/opt/rocm");

// `toolchain` of specs: over name, size and time of each file that can change an object: the
// compiler's programs, libraries and settings, the device libraries, and the versions of HIP and of
// ROCm. Headers of the machine's C++ library are not in it. Throws Status::kUnsupported where the
// program is not to be found.
std::string identity(const AmdClang& clang);

struct AmdClangOptions {
  // The library's version, and the pack of the kernels' sources.
  std::string version, sources;
  // Why it must not compile; it still says its objects' keys then, for those that are kept. "": it
  // may.
  std::string forbidden;
  // Where the files of a compile lie meanwhile: work_folder.h.
  std::string work_place;
  std::chrono::seconds limit = std::chrono::seconds(600);
  bool tells_commands = false;
};

// The provider of its objects, by their own keys. It compiles at each get(): a CacheProvider goes
// before it. One that cannot be used is a provider that says why.
std::unique_ptr<Provider> open_amdclang(const AmdClang& clang, AmdClangOptions options);

}  // namespace AITER_ATTN_NAMESPACE::runtime
