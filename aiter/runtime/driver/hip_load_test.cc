// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Code objects of a format that a HIP runtime is too old for are refused by name, and not loaded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "aiter/runtime/driver/driver.h"
#include "tests/support/runtime/error_of.h"
#include "tests/support/runtime/recorder.h"
#include "tests/support/runtime/tiny_elf.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using testing::Environment;
using ::testing::HasSubstr;
using testing::Recorder;

constexpr char kVersion[] = "AITER_RECORDING_HIP_VERSION";
constexpr size_t kAbiVersionOffset = 8;
constexpr unsigned char kAbiVersionOf5 = 3, kAbiVersionOf6 = 4;

std::vector<unsigned char> code_object(unsigned char abi_version) {
  std::vector<unsigned char> image = testing::tiny_code_object("kernel", "");
  image[kAbiVersionOffset] = abi_version;
  return image;
}

TEST(HipLoad, AnOldRuntimeIsToldFromTheObject) {
  Driver& driver = driver_for(10);  // DLDeviceType
  const std::vector<unsigned char> newer = code_object(kAbiVersionOf6);
  const Environment old(kVersion, "60140093");
  const Recorder recorder;
  const std::string text = testing::error_of([&] { driver.load(newer.data()); }).what();
  EXPECT_THAT(text, HasSubstr("is HIP 6.1, which does not load code objects of version 6: use "
                              "ROCm 6.2 or newer, or a build with "
                              "--//kernels:code_object_version=5"));
  EXPECT_EQ(recorder.order(), "");
  driver.load(code_object(kAbiVersionOf5).data());
  EXPECT_EQ(recorder.of(kRecordedLoad).size(), 1u);
}

TEST(HipLoad, ANewEnoughRuntimeGetsIt) {
  Driver& driver = driver_for(10);
  for (const char* version : {"60240091", "70051831"}) {
    const Environment now(kVersion, version);
    const Recorder recorder;
    driver.load(code_object(kAbiVersionOf6).data());
    EXPECT_EQ(recorder.of(kRecordedLoad).size(), 1u);
  }
}

TEST(HipLoad, ARuntimeThatDoesNotTellItsVersion) {
  Driver& driver = driver_for(10);
  const Environment fail("AITER_RECORDING_HIP_FAIL", "hipRuntimeGetVersion=1");
  const std::vector<unsigned char> newer = code_object(kAbiVersionOf6);
  EXPECT_THAT(testing::error_of([&] { driver.load(newer.data()); }).what(),
              HasSubstr("hipRuntimeGetVersion failed"));
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
