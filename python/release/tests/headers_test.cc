// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The headers of a release under --//aiter:namespace=te, as they lie: each in a folder of its own,
// where no other header of the library is found. Those of C are in attn_header.c, norm_header.c.
#include <gtest/gtest.h>

// A whole header has its own copy of attn.h: two of them go together, in any order.
#include "python/release/tests/te/attn_hpp/attn.hpp"
#include "python/release/tests/te/norm_h/norm.h"

extern "C" {
const char* attn_symbol(void);
const char* norm_symbol(void);
}

namespace {

TEST(Headers, NameTheSymbolsOfTheirNamespace) {
  EXPECT_STREQ(attn_symbol(), "te_attn_fwd");
  EXPECT_STREQ(norm_symbol(), "te_attn_softmax_fwd");
}

TEST(Headers, ServeCxx) {
  attn_problem problem =
      te::attn::batch_problem(ATTN_DTYPE_BF16, te::attn::Sizes{1, 2, 2, 4, 4, 64});
  te::attn::causal(&problem);
  EXPECT_EQ(problem.struct_size, sizeof(attn_problem));
  EXPECT_EQ(te::attn::fwd_args(&problem).problem, &problem);
  const attn_norm_problem norm =
      te::attn::norm_problem(ATTN_NORM_RMS, ATTN_DTYPE_BF16, 8, 64, 1e-5f);
  EXPECT_EQ(te::attn::norm_fwd_args(&norm).problem, &norm);
}

}  // namespace
