// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include "aiter/testing/testing.h"

namespace aiter_attn::testing {
namespace {

int failures = 0;

std::vector<std::pair<const char*, Test>>& tests() {
  static std::vector<std::pair<const char*, Test>> all;
  return all;
}

}  // namespace

bool add_test(const char* name, Test test) {
  tests().emplace_back(name, test);
  return true;
}

void report_failure(const char* file, int line, const std::string& message) {
  ++failures;
  std::fprintf(stderr, "%s:%d: %s\n", file, line, message.c_str());
}

}  // namespace aiter_attn::testing

int main(int argc, char** argv) {
  using namespace aiter_attn::testing;
  int ran = 0, failed = 0;
  for (const auto& [name, test] : tests()) {
    if (argc > 1 && !std::strstr(name, argv[1])) continue;
    const int before = failures;
    try {
      test();
    } catch (const std::exception& error) {
      report_failure(name, 0, std::string("threw ") + error.what());
    }
    ++ran;
    failed += failures != before;
    std::fprintf(stderr, "%s %s\n", failures == before ? "ok    " : "FAILED", name);
  }
  std::fprintf(stderr, "%d test(s), %d failed\n", ran, failed);
  return ran == 0 || failed != 0;
}
