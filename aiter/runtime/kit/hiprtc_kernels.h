// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The machine's hipRTC, which every ROCm has, as a compiler of kernels whose sources and headers
// the library brings (kernel_sources.h): with those of C++, C and HIP that hipRTC lacks
// (kernels/hiprtc).
//
// It compiles in this process, which nothing bounds or stops: an interrupt is heeded before it and
// behind it. Its objects have keys of their own: own_spec.h.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "aiter/runtime/rtc/compilers.h"
#include "aiter/runtime/store/store.h"

namespace AITER_ATTN_NAMESPACE::runtime {

struct HipRtcOptions {
  // The library's version, and the pack of the kernels' sources.
  std::string version, sources;
  // The tree of the headers that hipRTC lacks, and the folders of system headers in it.
  std::string tree;
  std::vector<std::string> folders;
  // Why it must not compile; it still says its objects' keys then, for those that are kept. "": it
  // may.
  std::string forbidden;
  // Where the files of a compile lie meanwhile: work_folder.h.
  std::string work_place;
  bool tells_commands = false;
  // One that could not be opened is not looked for again for so long: whoever lists kernels asks
  // for each.
  std::chrono::milliseconds missing_life = std::chrono::seconds(1);
};

// The provider of its objects, by their own keys. hipRTC is opened when it is first asked for one.
// It compiles at each get(): a CacheProvider goes before it. One that cannot be used is a provider
// that says why. `compilers` must outlive it.
std::unique_ptr<Provider> open_hiprtc_kernels(Compilers& compilers, HipRtcOptions options);

}  // namespace AITER_ATTN_NAMESPACE::runtime
