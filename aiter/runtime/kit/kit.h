// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The compile kit: the clang that a library's kernels were compiled with, its headers and device
// libraries, and the kernels' sources. It makes a code object as the library's build does, so that
// the object has the same key and the same bytes.
//
// A kit is a folder with the tree that a compile runs in: everything is where the flags of a spec
// (spec.h) say, whose paths are those from the tree's root. Beside that it has
//
//   kit             text, a line each: "aiter-attn-compile-kit 1"; "version V", of the library;
//                   "toolchain ID"; "arch A" and "headers DIGEST", one or more; "end"
//   launch          runs the compiler in a folder and with bounds (kernels/compile_kit/launch.c)
//   sources.attnpack  a pack (pack_file.h) of the kernels' sources, by their digests
//   external/llvm/bin/clang++
//
// The command follows from the spec alone: the compiler; the spec's flags; --offload-arch, the
// source and the output. Where the library knows the object's digest, the object is held against
// it, and nothing about the kit has to be believed but that it is safe to run. Where it knows none,
// as of the plain compile of a kernel that was built in a compile group, the kit is believed as a
// compiler of the machine is: its source alone is proven, by the spec.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "aiter/runtime/kit/device_compile.h"
#include "aiter/runtime/store/store.h"

namespace AITER_ATTN_NAMESPACE::runtime {

inline constexpr char kKitVariable[] = "AITER_ATTN_COMPILE_KIT";

struct KitOptions {
  // The library's version, which the kit must have, too.
  std::string version;
  // Where the files of a compile lie meanwhile: work_folder.h.
  std::string work_place;
  // For one compile.
  std::chrono::seconds limit = std::chrono::seconds(600);
  // Whether each is told on stderr: its command when it starts, its time when it has ended.
  bool tells_commands = false;
};

// The provider of a kit in a folder. It compiles at each get(): a CacheProvider goes before it. A
// kit that cannot be used is a provider that says why.
std::unique_ptr<Provider> open_kit(const std::string& folder, KitOptions options);

// The provider of a kit that must not be used, for this reason.
std::unique_ptr<Provider> forbidden_kit(const std::string& folder, const std::string& reason);

// The folder in AITER_ATTN_COMPILE_KIT, or else the first of `installed` that has a kit; "": none.
// Throws Status::kInvalidArgument where the variable's path is relative.
std::string find_kit(const std::vector<std::string>& installed);

// AITER_ATTN_COMPILE_SECONDS, or 600. Throws Status::kInvalidArgument where it is no whole number
// of seconds from 1 to 86400.
std::chrono::seconds kit_limit();

}  // namespace AITER_ATTN_NAMESPACE::runtime
