// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// On a stand-in for a driver of CUDA 12.2, which captures no early start into a graph.
#include <gtest/gtest.h>

#include "aiter/runtime/driver/driver.h"
#include "tests/support/runtime/recorder.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

TEST(OldCuda, KernelsStartWhenTheWorkAheadHasEnded) {
  Driver& cuda = driver_for(2);
  const DeviceScope device(cuda, 0);
  const Function kernel = cuda.function(cuda.load("cubin code"), "kernel");
  const testing::Recorder recorder("AITER_ATTN_CUDA_LIBRARY");
  KernelLaunch launch = {{1, 1, 1}, {32, 1, 1}, 0};
  launch.waits_itself = true;
  cuda.launch(kernel, "kernel", launch, nullptr);
  ASSERT_EQ(recorder.of(kRecordedLaunch).size(), 1u);
  EXPECT_EQ(recorder.of(kRecordedLaunch)[0].waits_itself, 0u);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
