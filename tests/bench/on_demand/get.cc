// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// get KIT SPEC CACHE: asks for the code object of a spec as the library does, the user's cache
// first and then the kit. Prints the milliseconds of that, and the sha256 of what it got.
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "aiter/runtime/kit/kit.h"
#include "aiter/runtime/store/cache.h"

using namespace AITER_ATTN_NAMESPACE::runtime;

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: get KIT SPEC CACHE\n");
    return 2;
  }
  try {
    std::ifstream file(argv[2], std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const CodeObjectSpec spec = CodeObjectSpec::parse(text);
    const auto start = std::chrono::steady_clock::now();
    CacheOptions cache;
    cache.folder = std::string(argv[3]) + "/code-objects";
    KitOptions kit;
    kit.version = AITER_ATTN_VERSION;
    kit.work_place = std::string(argv[3]) + "/compiling";
    CacheProvider provider(cache, open_kit(argv[1], kit));
    const std::optional<Bytes> object = provider.get({spec.key(), {}, [&spec] { return spec; }});
    const std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - start;
    if (!object) {
      std::fprintf(stderr, "the kit has nothing to say about it\n");
      return 1;
    }
    std::printf("%.3f %s\n", taken.count(), hex(sha256(object->data(), object->size())).c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
