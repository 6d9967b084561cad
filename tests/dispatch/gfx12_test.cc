// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Calls for gfx1201, on a HIP that records and the kernels of core: the features that Composable
// Kernel or AITER lack there are refused by name with the next step, and an explanation says that
// nothing has executed the kernels. Argument: the launch table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <string>

#include "tests/dispatch/problems.h"
#include "tests/dispatch/table.h"

namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity {
namespace {

using ::testing::HasSubstr;

constexpr const char* kArch = "gfx1201";

class Gfx12 : public ::testing::Test {
 protected:
  // A call of core's: causal, with lse, of head size 128.
  Forward forward() {
    Forward call = random_forward(&random_, &addresses_);
    while (call.problem.dtype != ATTN_DTYPE_BF16 || call.problem.mode != ATTN_MODE_BATCH ||
           call.problem.bias != ATTN_BIAS_NONE || call.problem.dropout_p != 0 ||
           call.problem.logits_soft_cap != 0 || !call.args.lse ||
           call.problem.head_size_qk != 128 || call.problem.head_size_v != 128 ||
           call.args.min_seqlen_q != 0 || call.problem.seqlen_k == 0) {
      addresses_.clear();
      call = random_forward(&random_, &addresses_);
    }
    return call;
  }

  template <typename Args>
  static std::string explained(attn_status (*explain)(const Args*, const char*, const char**),
                               const Args& args, attn_status want) {
    const char* text = nullptr;
    EXPECT_EQ(explain(&args, kArch, &text), want) << attn_last_error();
    return want == ATTN_OK ? text : attn_last_error();
  }

  std::mt19937 random_{7};
  AddressSpace addresses_;
};

TEST_F(Gfx12, AnExplanationSaysThatNothingHasExecutedIt) {
  Forward call = forward();
  call.args.problem = &call.problem;
  EXPECT_EQ(attn_fwd(&call.args), ATTN_OK) << attn_last_error();
  const std::string text = explained(attn_explain_fwd, call.args, ATTN_OK);
  EXPECT_THAT(text, HasSubstr("kernels for gfx1201 are built and not executed"));
  EXPECT_THAT(text, HasSubstr("_w16x16x16_"));
}

TEST_F(Gfx12, AnotherSetIsNamedThatHasAFeatureThere) {
  Forward call = forward();
  call.args.problem = &call.problem;
  call.problem.logits_soft_cap = 30;
  EXPECT_EQ(attn_fwd(&call.args), ATTN_ERROR_UNSUPPORTED);
  EXPECT_THAT(attn_last_error(), HasSubstr("on gfx1201"));
  EXPECT_THAT(attn_last_error(), HasSubstr("build with --//kernels:variants=inference"));
}

TEST_F(Gfx12, ListedKeysAreRefused) {
  Cached call = random_listed(&random_, &addresses_);
  call.args.problem = &call.problem;
  call.args.cache = &call.cache;
  while (call.problem.bias != ATTN_BIAS_NONE || call.problem.seqlen_k == 0 ||
         call.args.min_seqlen_q != 0) {
    addresses_.clear();
    call = random_listed(&random_, &addresses_);
    call.args.problem = &call.problem;
    call.args.cache = &call.cache;
  }
  const std::string text = explained(attn_explain_kvcache_fwd, call.args, ATTN_ERROR_UNSUPPORTED);
  EXPECT_THAT(text, HasSubstr("no fwd_batch_prefill kernel in this build"));
  EXPECT_THAT(text, HasSubstr("serves it on gfx1201, which Composable Kernel has no such kernel "
                              "for: use a GPU of gfx90a, gfx942, gfx950, or change the call"));
}

TEST_F(Gfx12, AitersAssemblyIsRefused) {
  Forward call = forward();
  call.args.problem = &call.problem;
  call.problem.dtype = ATTN_DTYPE_BF16;
  call.problem.kernels = ATTN_KERNELS_ASM;
  const std::string text = explained(attn_explain_fwd, call.args, ATTN_ERROR_UNSUPPORTED);
  EXPECT_THAT(text, HasSubstr("on gfx1201"));
  EXPECT_THAT(text, HasSubstr("With kernels = fastest and rounding = 0 Composable Kernel's may"));
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc != 2) {
    std::fprintf(stderr, "give a launch table\n");
    return 2;
  }
  AITER_ATTN_NAMESPACE::attention::dispatch_parity::read_table(argv[1]);
  return RUN_ALL_TESTS();
}
