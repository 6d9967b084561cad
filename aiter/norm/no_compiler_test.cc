// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Norms on a GPU where the environment names no cache or no compiler that there can be: the
// messages, and that the CPU serves all the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "aiter/norm.h"

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class NoCompiler : public ::testing::Test {
 protected:
  NoCompiler() {
    problem_.struct_size = sizeof(problem_);
    problem_.kind = ATTN_NORM_RMS;
    problem_.device_type = ATTN_DEVICE_CUDA;
    problem_.rows = 1;
    problem_.hidden = 8;
    problem_.x_dtype = problem_.weight_dtype = problem_.y_dtype = ATTN_DTYPE_FP32;
    args_.struct_size = sizeof(args_);
    args_.problem = &problem_;
    args_.x = {x_, 8};
    args_.y = {y_, 8};
    args_.gamma = gamma_;
  }

  alignas(16) float x_[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  alignas(16) float gamma_[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  alignas(16) float y_[8] = {};
  attn_norm_problem problem_ = {};
  attn_norm_fwd_args args_ = {};
};

// First: when the settings are right, they are read once.
TEST_F(NoCompiler, AWrongSettingIsNamed) {
  const struct {
    const char *variable, *value, *message;
  } settings[] = {
      {"AITER_ATTN_RTC", "yes", "AITER_ATTN_RTC is 'yes'; it may be 0"},
      {"AITER_ATTN_CACHE_DIR", "here", "AITER_ATTN_CACHE_DIR is 'here', but must be an absolute"},
      {"AITER_ATTN_CACHE_MAX_SIZE", "1", "AITER_ATTN_CACHE_MAX_SIZE is '1'; it may be a whole"},
  };
  for (const auto& setting : settings) {
    setenv(setting.variable, setting.value, 1);
    EXPECT_EQ(attn_norm_fwd(&args_), ATTN_ERROR_INVALID_ARGUMENT);
    EXPECT_THAT(attn_last_error(), HasSubstr(setting.message));
    unsetenv(setting.variable);
  }
}

TEST_F(NoCompiler, TheNextStepIsNamed) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(attn_norm_fwd(&args_), ATTN_ERROR_DRIVER);
    EXPECT_THAT(attn_last_error(),
                AllOf(HasSubstr("/nowhere/libnvrtc.so"), HasSubstr("AITER_ATTN_NVRTC_LIBRARY")));
  }
  problem_.device_type = ATTN_DEVICE_CPU;
  EXPECT_EQ(attn_norm_fwd(&args_), ATTN_OK);
  EXPECT_GT(y_[7], 0);
}

}  // namespace
