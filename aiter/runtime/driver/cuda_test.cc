// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// On a stand-in for the CUDA driver: tests/support/runtime/recording_cuda.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "aiter/runtime/driver/driver.h"
#include "aiter/runtime/error.h"
#include "tests/support/runtime/error_of.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kFail[] = "AITER_RECORDING_CUDA_FAIL";

class Cuda : public ::testing::Test {
 protected:
  ~Cuda() override { unsetenv(kFail); }

  Driver& cuda_ = driver_for(2);
};

TEST(DriverFor, AnotherDeviceTypeNamesThoseThatHaveOne) {
  EXPECT_THAT(error_of([] { driver_for(8); }).what(),
              HasSubstr("device type 8 has no driver; there are: CUDA (2), HIP (10)"));
}

// A context takes memory of the device, and a device that others hold may have none.
TEST_F(Cuda, WhatADeviceIsIsKnownWithoutAContext) {
  setenv(kFail, "cuDevicePrimaryCtxRetain=2", 1);
  EXPECT_THAT(cuda_.describe(), HasSubstr(": 0 sm_90"));
  EXPECT_EQ(cuda_.arch(0), "sm_90");
  EXPECT_EQ(cuda_.limits(0).multiprocessors, 132u);
  EXPECT_EQ(error_of([&] { cuda_.enter(0); }).status(), Status::kOutOfMemory);
  unsetenv(kFail);
  const DeviceScope device(cuda_, 0);
}

TEST_F(Cuda, AGridThatIsTooGreatIsRefused) {
  const DeviceScope device(cuda_, 0);
  const std::pair<int, uint32_t> most[] = {{0, 0x7fffffff}, {1, 65535}, {2, 65535}};
  for (const auto& [axis, limit] : most) {
    KernelLaunch launch = {};
    for (uint32_t& extent : launch.grid) extent = 1;
    launch.grid[axis] = limit + 1;
    const Error error = error_of([&] { cuda_.launch(nullptr, "kernel", launch, nullptr); });
    EXPECT_EQ(error.status(), Status::kInvalidArgument);
    EXPECT_THAT(
        error.what(),
        AllOf(HasSubstr("kernel needs a grid of " + std::to_string(limit + 1)),
              HasSubstr("more than the " + std::to_string(limit)), HasSubstr("smaller batches")));
    launch.grid[axis] = limit;  // the runtime's own refusal: there is no such function
    setenv(kFail, "cuLaunchKernelEx=400", 1);
    EXPECT_EQ(error_of([&] { cuda_.launch(nullptr, "kernel", launch, nullptr); }).status(),
              Status::kDriver);
    unsetenv(kFail);
  }
}

TEST_F(Cuda, CodeOfANewerCudaHasANextStep) {
  const DeviceScope device(cuda_, 0);
  for (const char* error : {"200", "209", "218", "222"}) {
    setenv(kFail, (std::string("cuModuleLoadData=") + error).c_str(), 1);
    EXPECT_THAT(error_of([&] { cuda_.load("code"); }).what(),
                AllOf(HasSubstr(error), HasSubstr("the driver is of CUDA 13.0"),
                      HasSubstr("AITER_ATTN_NVRTC_LIBRARY"), HasSubstr("AITER_ATTN_RTC=1")));
  }
  setenv(kFail, "cuModuleLoadData=2", 1);
  EXPECT_THAT(error_of([&] { cuda_.load("code"); }).what(), Not(HasSubstr("NVRTC")));
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
