// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A GPU runtime's shared library, found by the dynamic linker, and what drivers say alike.
#pragma once

#include <string>
#include <vector>

namespace AITER_ATTN_NAMESPACE::runtime {

struct RuntimeLibrary {
  void* handle;
  std::string path;  // as text
};

// What is looked for, in words that messages are made of.
struct RuntimeLibrarySearch {
  const char* variable;              // of the environment: names the file instead
  const char* name;                  // "HIP runtime"
  std::vector<const char*> sonames;  // newest first
  const char* wrong_variable;        // the next step where the named file cannot be loaded
  const char* absent;                // where there is none; the variable's name follows
};

// The file that the variable names; else what the process has loaded already; else the first that
// the dynamic linker finds. Throws Status::kDriver.
RuntimeLibrary open_runtime_library(const RuntimeLibrarySearch& search);

// Throws Status::kDriver, with `needs`, where the library lacks it.
void* symbol_of(const RuntimeLibrary& library, const char* symbol, const char* needs);

// What others say, for our messages.
std::string foreign(const char* text);

// Throws Status::kInvalidArgument where a caller's device_id is not one of `count`.
void require_device(int device, int count);

}  // namespace AITER_ATTN_NAMESPACE::runtime
