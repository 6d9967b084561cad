// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Every function of the C ABI, with each of its allocations failing in turn: it says so, and the
// next call is served.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>

#include "aiter/attn.h"
#include "kernels/code_object/embedded_pack.h"
#include "tests/support/attention/problems.h"
#include "tests/support/attention/test_launch_table.h"
#include "tests/support/runtime/failing_allocations.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using namespace testing;

// call returns whether it was served, else it must have run out of memory.
void expect_served_or_out_of_memory(const std::function<attn_status()>& call) {
  for (int64_t failing = 1;; ++failing) {
    bool reached = false;
    attn_status status = ATTN_OK;
    std::string message;
    {
      const FailingAllocation allocation(failing);
      status = call();
      reached = allocation.has_failed();
    }
    message = attn_last_error();
    if (status != ATTN_OK) {
      EXPECT_EQ(status, ATTN_ERROR_OUT_OF_MEMORY) << message;
      EXPECT_NE(message, "");
    }
    if (!reached) return;
    EXPECT_EQ(call(), ATTN_OK) << attn_last_error();
  }
}

class OutOfMemory : public ::testing::Test {
 protected:
  // The test's own table and pack, which are made at their first use.
  static void SetUpTestSuite() {
    kernels::launch_table();
    kernels::embedded_packs();
  }
  OutOfMemory() {
    on_gpu_.problem.device_type = ATTN_DEVICE_ROCM;
    fwd_ = on_gpu_.fwd();
    bwd_ = on_gpu_.bwd();
  }

  TestProblem on_gpu_{Shape{1, 2, 1, 8, 8, 64, 64}, ATTN_DTYPE_FP16};
  TestProblem on_cpu_{Shape{1, 2, 1, 8, 8, 64, 64}, ATTN_DTYPE_FP16};
  attn_fwd_args fwd_;
  attn_bwd_args bwd_;
};

// First of all, as the list is made once.
TEST_F(OutOfMemory, KernelsCannotBeCounted) {
  {
    const FailingAllocation allocation(1);
    EXPECT_EQ(attn_kernel_count(), 0u);
  }
  EXPECT_STREQ(attn_last_error(), "out of host memory");
  EXPECT_GT(attn_kernel_count(), 0u);
  EXPECT_STREQ(attn_last_error(), "");
}

TEST_F(OutOfMemory, OnTheCpu) {
  const attn_fwd_args fwd = on_cpu_.fwd();
  const attn_bwd_args bwd = on_cpu_.bwd();
  expect_served_or_out_of_memory([&] { return attn_fwd(&fwd); });
  expect_served_or_out_of_memory([&] { return attn_bwd(&bwd); });
}

TEST_F(OutOfMemory, WhilePlanning) {
  uint32_t kernels[8], count = 8;
  uint64_t bytes = 0;
  const char* text = nullptr;
  expect_served_or_out_of_memory([&] { return attn_bwd_workspace_size(&bwd_, &bytes); });
  expect_served_or_out_of_memory([&] {
    count = 8;
    return attn_plan_fwd(&fwd_, "gfx942", kernels, &count);
  });
  expect_served_or_out_of_memory([&] {
    count = 8;
    return attn_plan_bwd(&bwd_, "gfx950", kernels, &count);
  });
  // The text is whole where it is given.
  ASSERT_EQ(attn_explain_fwd(&fwd_, "gfx942", &text), ATTN_OK);
  const std::string whole = text;
  expect_served_or_out_of_memory([&] {
    const attn_status status = attn_explain_fwd(&fwd_, "gfx942", &text);
    EXPECT_TRUE(status != ATTN_OK || text == whole);
    return status;
  });
  expect_served_or_out_of_memory([&] { return attn_explain_bwd(&bwd_, "gfx950", &text); });
}

TEST_F(OutOfMemory, WhileListing) {
  attn_kernel_info_t info = {};
  info.struct_size = sizeof(info);
  expect_served_or_out_of_memory([&] { return attn_kernel_info(0, &info); });
  const std::string key = test_key("fwd_d64_fp16_batch_mask_psk", "gfx942");
  expect_served_or_out_of_memory([&] {
    void* data = nullptr;
    uint64_t size = 0;
    const attn_status status = attn_code_object(key.c_str(), &data, &size);
    attn_code_object_free(data);
    return status;
  });
  const char* text = nullptr;
  expect_served_or_out_of_memory([&] { return attn_driver_info(ATTN_DEVICE_CPU, &text); });
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::attention
