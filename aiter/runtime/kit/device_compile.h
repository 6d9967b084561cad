// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// One compile of a kernel by a program of others: the part that all such compilers share.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "aiter/runtime/store/store.h"

namespace AITER_ATTN_NAMESPACE::runtime {

// The environment variable with the most seconds of a compile.
inline constexpr char kKitSecondsVariable[] = "AITER_ATTN_COMPILE_SECONDS";

// For each process of a compile. The largest kernels take a seventh of it.
inline constexpr uint64_t kCompileAddressSpace = uint64_t{8} << 30;

struct DeviceCompile {
  std::string arch;
  // The command of the compiler, which messages show.
  std::vector<std::string> compiler;
  // The folder that it runs in, for messages; "": it is the same in any.
  std::string folder;
  // Words before that command, of a program that bounds it and takes it to its folder; none: it is
  // run as it is, with bounds that this process sets.
  std::vector<std::string> launcher;
  // For its temporary files.
  std::string temporary;
  // The path that it writes the object to.
  std::string object;
  std::chrono::seconds limit;
  // The next step where it makes something else.
  std::string remedy;
  // Whether its command and its time are told on stderr.
  bool tells_commands = false;
};

// The object, which has the digest of `ref`, or, where it has none, is an ELF file for AMD GPUs
// with the kernel of `ref`. Tells on stderr after a second that it compiles. Throws CannotMake
// (failure.h) with the command and the compiler's output where there is no such object,
// Status::kInterrupted, and what run() throws.
Bytes run_compile(const CodeObjectRef& ref, const DeviceCompile& compile);

// The reason why a compiler's output is not the object of `ref`, for a message: it has another
// digest, or, where none is known, is no ELF file for AMD GPUs, or has not the kernel. "": it is.
std::string unfit(const CodeObjectRef& ref, const Bytes& object);

// A kernel, for people.
std::string kernel_for(const CodeObjectRef& ref, const std::string& arch);

// A line that the calling thread compiles it, and how many kernels of its call are to be compiled
// after it. `limit`: of each, in seconds; 0: there is none.
std::string compiling(const CodeObjectRef& ref, const std::string& arch, int64_t limit);

// Writes a line to stderr.
void tell(const std::string& text);

// Throws Status::kUnsupported where the file is there already, or cannot be written.
void write_file(const std::string& path, const void* data, size_t size);

// Writes headers below a folder, which is made where it is missing. Throws as write_file() does.
void write_tree(const std::string& folder, const std::vector<SourceFile>& headers);

// A compiler that cannot be used, for this reason.
std::unique_ptr<Provider> refused_compiler(std::string name, std::exception_ptr why);

}  // namespace AITER_ATTN_NAMESPACE::runtime
