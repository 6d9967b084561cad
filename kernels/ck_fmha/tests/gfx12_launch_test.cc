// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The launch code of `smoke` for gfx12: it makes as many bytes of arguments as the compiled kernels
// take, and workgroups are of waves of 32.
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/launch_table/launch_table.h"

namespace AITER_ATTN_NAMESPACE::kernels {
namespace {

TEST(Gfx12, ArgumentsAndWorkgroupsAreThoseOfTheCompiledKernels) {
  const LaunchTable& table = launch_table();
  ASSERT_EQ(table.arch_count(), 2u);
  EXPECT_EQ(table.arch(0), "gfx1200");
  EXPECT_EQ(table.arch(1), "gfx1201");
  std::set<Kind> kinds;
  for (uint32_t i = 0; i < table.row_count(); ++i) {
    const Row& row = table.row(i);
    kinds.insert(row.traits.kind);
    LaunchArgs args = {};
    args.problem.batch = 2;
    args.problem.heads_q = args.problem.heads_k = 3;
    args.problem.head_size_qk = args.problem.head_size_v = 64;
    args.problem.seqlen_q = args.problem.seqlen_k = 200;
    std::vector<unsigned char> kernarg(kMostKernargSize);
    Launch made = {};
    made.kernarg = kernarg.data();
    made.work_items = table.object(row, 0)->block[0];
    table.launch(row)(args, &made);
    EXPECT_EQ(made.kernarg_size, row.kernarg_size) << table.name(row);
    EXPECT_GT(row.kernarg_size, 0u) << table.name(row);
    EXPECT_GT(made.grid[0] * made.grid[1] * made.grid[2], 0u) << table.name(row);
    for (int arch = 0; arch < 2; ++arch) {
      const bool has_waves = row.traits.kind == Kind::kFwd || row.traits.kind == Kind::kBwdDqDkDv;
      const uint32_t block = table.object(row, arch)->block[0];
      // The other two are of as many work-items on every arch.
      EXPECT_EQ(block, has_waves                             ? 4u * 32
                       : row.traits.kind == Kind::kBwdDotDoO ? 64u
                                                             : 256u)
          << table.name(row);
    }
  }
  EXPECT_EQ(kinds,
            (std::set<Kind>{Kind::kFwd, Kind::kBwdDotDoO, Kind::kBwdDqDkDv, Kind::kBwdConvertDq}));
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::kernels
