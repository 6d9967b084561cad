// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// HIP runtimes by their versions, of stand-ins: tests/support/runtime.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "aiter/runtime/driver/driver.h"
#include "aiter/runtime/error.h"
#include "aiter/runtime/hip_versions.h"
#include "tests/support/runtime/forked_child.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kRocm = 10;  // DLDeviceType

// describe() of the driver, or an error's text, in a process that has loaded this library.
std::string described_with(const char* library) {
  std::array<int, 2> ends = {};
  if (pipe(ends.data()) != 0) return "no pipe";
  testing::in_forked_child([&] {
    if (dlopen(library, RTLD_NOW | RTLD_LOCAL) == nullptr) return 1;
    std::string answer;
    try {
      answer = driver_for(kRocm).describe();
    } catch (const Error& error) {
      answer = error.what();
    }
    return write(ends[1], answer.data(), answer.size()) < 0 ? 1 : 0;
  });
  close(ends[1]);
  std::array<char, 4096> text = {};
  const ssize_t size = read(ends[0], text.data(), text.size());
  close(ends[0]);
  return {text.data(), size < 0 ? 0 : static_cast<size_t>(size)};
}

TEST(HipVersions, TheNewestIsLookedForFirst) {
  EXPECT_THAT(hip_sonames("libx"), ElementsAre("libx.so.8", "libx.so.7", "libx.so.6"));
  EXPECT_EQ(hip_versions(), "8, 7 or 6");
}

TEST(HipVersions, OneThatTheProcessHasLoadedIsTaken) {
  const std::string library = std::getenv("FAKE_HIP_8");
  EXPECT_THAT(described_with(library.c_str()),
              AllOf(HasSubstr("HIP ("), HasSubstr("libamdhip64.so.8"), HasSubstr("0 gfx942")));
}

TEST(HipVersions, OneThatLacksAFunctionIsRefusedByIt) {
  EXPECT_THAT(described_with(std::getenv("FAKE_HIP_NAME")),
              AllOf(HasSubstr("has no hipGetErrorName: this library needs the HIP runtime of ROCm"),
                    HasSubstr("8, 7 or 6")));
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
