// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The library's store: one for all kernels, of attention and of norms.
#pragma once

#include <cstdint>
#include <string>

#include "aiter/runtime/rtc/compilers.h"
#include "aiter/runtime/store/store.h"

namespace AITER_ATTN_NAMESPACE::runtime {

// AITER_ATTN_RTC: when kernels are compiled at run time.
inline constexpr char kRunTimeCompileVariable[] = "AITER_ATTN_RTC";
// TransformerEngine's: "1" is "0" of that, where AITER_ATTN_RTC is not set.
inline constexpr char kTeRunTimeCompileVariable[] = "NVTE_DISABLE_NVRTC";
enum class RunTimeCompile {
  kMissing,  // not set: those that are not built in
  kNever,    // "0"
  kAlways,   // "1": also those that are built in, where their source is
};

// Reads the variables. Throws Status::kInvalidArgument for any other value.
RunTimeCompile run_time_compile();
// The variable that has run_time_compile() say never, with its value, for messages.
const char* never_compiled();

// AITER_ATTN_ON_DEMAND: the providers of kernels that are neither built in nor in a pack, and whose
// source is not in the library; those whose source is there are AITER_ATTN_RTC's.
inline constexpr char kOnDemandVariable[] = "AITER_ATTN_ON_DEMAND";
// TransformerEngine's: "1" is "compile" and "0" is "cache", where AITER_ATTN_ON_DEMAND is not set.
inline constexpr char kTeOnDemandVariable[] = "NVTE_CK_JIT";
enum class OnDemand {
  kCompile,  // "compile", or not set: the caches, then the server, then the compile kit
  kCache,    // "cache": the machine's and the user's
  kOff,      // "off": none
};

// ck-jit's variable: "1" has each compile of the kit told on stderr, with its command and its time.
inline constexpr char kVerboseVariable[] = "CK_JIT_VERBOSE";

// Reads the variables. Throws Status::kInvalidArgument for any other value.
OnDemand on_demand();

// Its providers are in library_store.cc, in their order. Throws Status::kInvalidArgument for a
// wrong AITER_ATTN_RTC, _ON_DEMAND, _CACHE_DIR, _CACHE_MAX_SIZE, _COMPILE_KIT, _COMPILE_SECONDS,
// _MACHINE_CACHE, _PACK_PATH, _STORE, _STORE_SECONDS or _TRUST, _AMDCLANG or _KERNEL_SOURCES,
// NVTE_CK_JIT, NVTE_DISABLE_NVRTC or CK_JIT_CACHE_DIR, Status::kCorrupt where an embedded pack is
// damaged.
const Store& library_store();

// The folder of this user's cache, "" where there is none. Throws Status::kInvalidArgument for a
// wrong AITER_ATTN_CACHE_DIR.
std::string cache_folder();

// Names the folder that holds the cache, in the place of AITER_ATTN_CACHE_DIR; NULL: as before.
// Throws Status::kInvalidArgument for a relative path, and once the store is used.
void set_cache_folder(const char* folder);

// Those that the store compiles with.
Compilers& library_compilers();

// Bytes that a code object takes in the library's embedded packs; 0: it is in none.
uint64_t embedded_size(const Digest& key);

}  // namespace AITER_ATTN_NAMESPACE::runtime
