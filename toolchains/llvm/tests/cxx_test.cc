// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Features that host C++ of this project relies on: C++17, exceptions across shared objects,
// threads, embedded data, and a binary that needs nothing but glibc.
#include <dlfcn.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "toolchains/llvm/tests/throws.h"

extern "C" const unsigned char embedded_begin[];
extern "C" const unsigned char embedded_end[];

namespace {

int failures = 0;

void Check(bool ok, const char* what) {
  std::printf("%s: %s\n", ok ? "ok" : "FAILED", what);
  failures += ok ? 0 : 1;
}

void Exceptions() {
  std::string message;
  try {
    ThrowOutOfRange(7);
  } catch (const std::out_of_range& e) {
    message = e.what();
  }
  Check(message == "7 is out of range", "an exception crosses a library");
}

void Threads() {
  std::atomic<int> sum{0};
  std::vector<std::thread> threads;
  for (int i = 1; i <= 4; ++i) threads.emplace_back([&sum, i] { sum += i; });
  for (std::thread& t : threads) t.join();
  Check(sum == 10, "threads run");
}

void EmbeddedData() {
  const std::string_view data(reinterpret_cast<const char*>(embedded_begin),
                              static_cast<size_t>(embedded_end - embedded_begin));
  Check(data == "embedded\n", ".incbin embeds a file");
}

void Dates() {
  Check(std::string_view(__DATE__ __TIME__) == "redactedredacted", "no date of the build");
  Check(__FILE__[0] != '/', "__FILE__ is relative");
}

// libstdc++ and libgcc are in the binary: the process has loaded no shared one.
void Libraries() {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  bool shared = false;
  while (std::getline(maps, line)) {
    shared |= line.find("libstdc++") != std::string::npos;
    shared |= line.find("libgcc_s") != std::string::npos;
  }
  Check(!shared, "libstdc++ and libgcc are linked statically");
  Check(dlsym(RTLD_DEFAULT, "pthread_create") != nullptr, "glibc is linked dynamically");
}

}  // namespace

int main() {
  Exceptions();
  Threads();
  EmbeddedData();
  Dates();
  Libraries();
  const std::optional<double> root = std::sqrt(2.0);
  Check(std::fabs(*root * *root - 2.0) < 1e-12, "libm");
  return failures == 0 ? 0 : 1;
}
