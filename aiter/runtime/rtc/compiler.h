// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Compilers that run inside the process: NVRTC and hipRTC. Nothing here is theirs: another one is
// another implementation.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "aiter/runtime/error.h"
#include "aiter/runtime/store/store.h"

namespace AITER_ATTN_NAMESPACE::runtime {

// The compiler refused a source: the source or the flags are wrong, and trying again is in vain.
class CompileError : public Error {
 public:
  // The message has the log's beginning.
  CompileError(const std::string& message, std::string log);
  // The compiler's log, as UTF-8.
  const std::string& log() const { return log_; }

 private:
  std::string log_;
};

// Every member may throw Status::kDriver or Status::kOutOfMemory, and may be called from several
// threads at a time.
class Compiler {
 public:
  virtual ~Compiler() = default;

  // One line: name, version, file.
  virtual std::string describe() const = 0;
  // All of the compiler that can change its output: `toolchain` of a CodeObjectSpec. Printable
  // ASCII.
  virtual std::string identity() const = 0;
  // The compiler's target for a device of arch: "sm_90" or "gfx942" where the compiler knows it;
  // "compute_90" (PTX, which the driver finishes) where the device is newer than the compiler.
  // Throws Status::kUnsupported where the device is older than any that the compiler knows.
  virtual std::string target(const std::string& arch) const = 0;
  // A code object: a cubin or a HIP code object, or PTX that ends in a NUL. `flags` are all flags
  // but that of the target. Throws CompileError with the log.
  virtual Bytes compile(const SourceFile& source, const std::vector<SourceFile>& headers,
                        const std::vector<std::string>& flags, const std::string& target) const = 0;
};

// Environment variables: the compilers' files.
inline constexpr char kNvrtcLibraryVariable[] = "AITER_ATTN_NVRTC_LIBRARY";
inline constexpr char kHipRtcLibraryVariable[] = "AITER_ATTN_HIPRTC_LIBRARY";

// Opens NVRTC 12 or 13: the file that AITER_ATTN_NVRTC_LIBRARY names; else the one that the process
// has loaded; else the one that pip installed (nvidia/*/lib) below one of `folders`, which are
// site-packages; else the system's. Throws Status::kDriver with the reason and the next step.
std::unique_ptr<Compiler> open_nvrtc(const std::vector<std::string>& folders);

// Opens the hipRTC of ROCm 6 or 7: the file that AITER_ATTN_HIPRTC_LIBRARY names; else the one that
// the process has loaded; else the one beside the HIP runtime that the process has loaded; else the
// one that pip installed (_rocm_sdk_core/lib) below one of `folders`; else the one in /opt/rocm;
// else the system's. Throws as open_nvrtc does.
std::unique_ptr<Compiler> open_hiprtc(const std::vector<std::string>& folders);

// Opens the compiler for devices of arch: NVRTC for sm_*, hipRTC for gfx*.
std::unique_ptr<Compiler> open_compiler(const std::string& arch,
                                        const std::vector<std::string>& folders);

}  // namespace AITER_ATTN_NAMESPACE::runtime
