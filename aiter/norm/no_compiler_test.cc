// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Norms on a GPU where there is no compiler: what is said, and that the CPU serves all the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aiter/norm.h"

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(NoCompiler, TheNextStepIsNamed) {
  alignas(16) float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8] = {}, gamma[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  attn_norm_problem p = {};
  p.struct_size = sizeof(p);
  p.kind = ATTN_NORM_RMS;
  p.device_type = ATTN_DEVICE_CUDA;
  p.rows = 1;
  p.hidden = 8;
  p.x_dtype = p.weight_dtype = p.y_dtype = ATTN_DTYPE_FP32;
  attn_norm_fwd_args args = {};
  args.struct_size = sizeof(args);
  args.problem = &p;
  args.x = {x, 8};
  args.y = {y, 8};
  args.gamma = gamma;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(attn_norm_fwd(&args), ATTN_ERROR_DRIVER);
    EXPECT_THAT(attn_last_error(),
                AllOf(HasSubstr("/nowhere/libnvrtc.so"), HasSubstr("AITER_ATTN_NVRTC_LIBRARY")));
  }
  p.device_type = ATTN_DEVICE_CPU;
  EXPECT_EQ(attn_norm_fwd(&args), ATTN_OK);
  EXPECT_GT(y[7], 0);
}

}  // namespace
