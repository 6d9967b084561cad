// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Over a grid of problems: where upstream's dispatcher picks an instance, so does ours, and the
// same; where it picks none although every form is built, neither do we. Argument: the launch
// table.
#include <gtest/gtest.h>

#include <string>

#include "aiter/attention/dispatch_reference/problems.h"

namespace AITER_ATTN_NAMESPACE::attention::dispatch_reference {
namespace {

constexpr int kMostReported = 10;
std::string table_path;

const kernels::LaunchTable& table() {
  static const kernels::LaunchTable table = read_table(table_path);
  return table;
}

std::string describe(const UpstreamProblem& p) {
  return std::string(p.bf16 ? "bf16" : "fp16") + (p.group_mode ? " group" : " batch") +
         (p.mask ? " mask" : "") + (p.lse ? " lse" : "") + " d" + std::to_string(p.head_size_qk) +
         "/" + std::to_string(p.head_size_v) + " " + std::to_string(p.seqlen_q) + " x " +
         std::to_string(p.seqlen_k);
}

bool same(const kernels::Row& ours, const UpstreamInstance& theirs) {
  const kernels::Traits& t = ours.traits;
  return (t.dtype == kernels::Dtype::kBf16) == theirs.bf16 && t.group_mode == theirs.group_mode &&
         t.mask == theirs.mask && t.lse == theirs.lse && t.head_size_qk == theirs.head_size_qk &&
         t.head_size_v == theirs.head_size_v && t.pad_seqlen_q == theirs.pad_seqlen_q &&
         t.pad_seqlen_k == theirs.pad_seqlen_k && t.pad_head_size_qk == theirs.pad_head_size_qk &&
         t.pad_head_size_v == theirs.pad_head_size_v;
}

// How often upstream and we picked, and what differed.
struct Tally {
  int picked_by_upstream = 0;
  int picked_by_us_only = 0;
  int different = 0;

  void compare(const UpstreamProblem& p, const Plan& ours,
               const std::vector<UpstreamInstance>& theirs) {
    const bool picked = theirs[0].picked;
    picked_by_upstream += picked;
    picked_by_us_only += ours.is_complete() && !picked;
    if (!picked) return;
    if (!ours.is_complete()) return report(p, "upstream picks an instance, we refuse");
    for (size_t i = 0; i < theirs.size(); ++i) {
      const kernels::Row& row = *ours.steps[i].row;
      if (!same(row, theirs[i])) report(p, "we pick " + std::string(table().name(row)));
    }
  }

 private:
  void report(const UpstreamProblem& p, const std::string& what) {
    if (different++ < kMostReported) ADD_FAILURE() << describe(p) << ": " << what;
  }
};

TEST(DispatchReferenceTest, Forward) {
  Tally tally;
  for (const UpstreamProblem& p : all_problems()) {
    tally.compare(p, dispatch(table(), request_of(p, Direction::kForward)), {upstream_forward(p)});
  }
  EXPECT_EQ(tally.different, 0);
  EXPECT_EQ(tally.picked_by_us_only, 0);
  EXPECT_GT(tally.picked_by_upstream, 10000);
}

TEST(DispatchReferenceTest, Backward) {
  Tally tally;
  for (const UpstreamProblem& p : all_problems()) {
    if (p.lse) continue;
    const UpstreamBackward theirs = upstream_backward(p);
    tally.compare(p, dispatch(table(), request_of(p, Direction::kBackward)),
                  {theirs.dot_do_o, theirs.dq_dk_dv, theirs.convert_dq});
  }
  EXPECT_EQ(tally.different, 0);
  EXPECT_EQ(tally.picked_by_us_only, 0);
  EXPECT_GT(tally.picked_by_upstream, 10000);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::attention::dispatch_reference

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc != 2) return 2;
  AITER_ATTN_NAMESPACE::attention::dispatch_reference::table_path = argv[1];
  return RUN_ALL_TESTS();
}
