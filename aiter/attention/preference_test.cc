// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The environment's preference among providers of kernels, which is read once: a program for each
// value. Arguments: the status of a call, and a part of its explanation or error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "aiter/attn.h"
#include "tests/support/attention/problems.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using ::testing::HasSubstr;
using testing::make_problem;
using testing::Shape;

int expected_status;
std::string expected_text;

std::string explained(attn_status* status, int32_t kernels) {
  attn_problem p = make_problem(Shape{1, 4, 4, 256, 256, 64, 64}, ATTN_DTYPE_FP16);
  p.device_type = ATTN_DEVICE_ROCM;
  p.kernels = kernels;
  float lse = 0;
  attn_fwd_args args = {};
  args.struct_size = sizeof(args);
  args.problem = &p;
  args.lse = &lse;
  const char* text = nullptr;
  *status = attn_explain_fwd(&args, "gfx942", &text);
  return text ? text : attn_last_error();
}

TEST(PreferenceTest, TheEnvironmentStandsInForTheDefault) {
  attn_status status;
  EXPECT_THAT(explained(&status, ATTN_KERNELS_DEFAULT), HasSubstr(expected_text));
  EXPECT_EQ(status, expected_status);
}

TEST(PreferenceTest, TheProcessComesFirst) {
  ASSERT_EQ(attn_set_kernels("ck"), ATTN_OK);
  attn_status status;
  const std::string text = explained(&status, ATTN_KERNELS_DEFAULT);
  EXPECT_THAT(text, HasSubstr("kernels ck (the call: default; attn_set_kernels: ck; "));
  EXPECT_EQ(status, ATTN_OK);
  ASSERT_EQ(attn_set_kernels(nullptr), ATTN_OK);
}

TEST(PreferenceTest, TheCallComesFirstOfAll) {
  ASSERT_EQ(attn_set_kernels("asm"), ATTN_OK);
  attn_status status;
  EXPECT_THAT(explained(&status, ATTN_KERNELS_FASTEST),
              HasSubstr("kernels fastest (the call: fastest; attn_set_kernels: asm; "));
  EXPECT_EQ(status, ATTN_OK);
  ASSERT_EQ(attn_set_kernels(nullptr), ATTN_OK);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::attention

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc != 3) return 2;
  AITER_ATTN_NAMESPACE::attention::expected_status = std::atoi(argv[1]);
  AITER_ATTN_NAMESPACE::attention::expected_text = argv[2];
  return RUN_ALL_TESTS();
}
