// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/driver/library.h"

#include <dlfcn.h>

#include <cstdlib>

#include "aiter/runtime/error.h"
#include "aiter/runtime/text.h"

namespace AITER_ATTN_NAMESPACE::runtime {

std::string foreign(const char* text) { return text ? utf8(text) : "no text"; }

RuntimeLibrary open_runtime_library(const RuntimeLibrarySearch& search) {
  constexpr int kFlags = RTLD_NOW | RTLD_LOCAL;
  const char* path = std::getenv(search.variable);
  if (path && *path) {
    if (void* handle = dlopen(path, kFlags)) return {handle, utf8(path)};
    fail(Status::kDriver, "cannot load the ", search.name, " '", utf8(path), "' that ",
         search.variable, " names: ", foreign(dlerror()), "; ", search.wrong_variable);
  }
  // A second runtime beside the one that a framework brought along would know nothing of its
  // memory and streams.
  for (const char* soname : search.sonames) {
    if (void* handle = dlopen(soname, kFlags | RTLD_NOLOAD)) return {handle, soname};
  }
  std::string reasons;
  for (const char* soname : search.sonames) {
    if (void* handle = dlopen(soname, kFlags)) return {handle, soname};
    reasons += (reasons.empty() ? "" : "; ") + foreign(dlerror());
  }
  fail(Status::kDriver, "no ", search.name, " on this machine (", reasons, "); ", search.absent,
       search.variable);
}

void* symbol_of(const RuntimeLibrary& library, const char* symbol, const char* needs) {
  if (void* found = dlsym(library.handle, symbol)) return found;
  fail(Status::kDriver, library.path, " has no ", symbol, ": ", needs);
}

void require_device(int device, int count) {
  if (device >= 0 && device < count) return;
  fail(Status::kInvalidArgument, "device_id is ", device, ", but this machine has ", count,
       " GPU(s): pass 0 to ", count - 1);
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
