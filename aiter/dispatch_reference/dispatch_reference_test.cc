// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Over a grid of problems: where CK's own dispatcher picks an instance, so does ours, and the same;
// where it picks none although every form is built, neither do we.
#include <string>

#include "aiter/dispatch.h"
#include "aiter/dispatch_reference/ck_dispatch.h"
#include "aiter/error.h"
#include "aiter/testing/testing.h"

namespace aiter_attn::dispatch_reference {
namespace {

constexpr int32_t kHeadSizes[][2] = {{32, 32},   {64, 64},   {128, 128}, {256, 256}, {40, 40},
                                     {72, 72},   {96, 96},   {96, 128},  {192, 128}, {160, 160},
                                     {192, 192}, {100, 100}, {36, 36},   {64, 128},  {128, 64},
                                     {8, 8},     {1, 1},     {64, 8},    {300, 64},  {256, 257}};
constexpr int32_t kLengths[] = {0, 1, 16, 32, 48, 64, 96, 100, 128, 192, 256, 1000, 1024};
constexpr int kMostReported = 10;

// Calls check for every problem of the grid.
template <typename Check>
void for_each_problem(Check&& check) {
  for (bool bf16 : {false, true}) {
    for (bool group : {false, true}) {
      for (bool mask : {false, true}) {
        for (bool lse : {false, true}) {
          for (const auto& [qk, v] : kHeadSizes) {
            for (int32_t seqlen_q : kLengths) {
              for (int32_t seqlen_k : kLengths) {
                check(CkProblem{bf16, group, mask, lse, qk, v, seqlen_q, seqlen_k});
              }
            }
          }
        }
      }
    }
  }
}

Request request_of(const CkProblem& p) {
  return {p.bf16 ? ATTN_DTYPE_BF16 : ATTN_DTYPE_FP16,
          p.group_mode ? Mode::kGroup : Mode::kBatch,
          p.head_size_qk,
          p.head_size_v,
          p.seqlen_q,
          p.seqlen_k,
          p.mask,
          p.lse,
          false,
          "gfx942"};
}

std::string describe(const CkProblem& p) {
  return concat(p.bf16 ? "bf16" : "fp16", p.group_mode ? " group" : " batch", p.mask ? " mask" : "",
                p.lse ? " lse" : "", " d", p.head_size_qk, "/", p.head_size_v, " ", p.seqlen_q,
                " x ", p.seqlen_k);
}

bool same(const Instance& ours, const CkInstance& ck) {
  const Traits& t = ours.traits;
  return (t.dtype == ATTN_DTYPE_BF16) == ck.bf16 && t.group_mode == ck.group_mode &&
         t.mask == ck.mask && t.lse == ck.lse && t.head_size_qk == ck.head_size_qk &&
         t.head_size_v == ck.head_size_v && t.pad_seqlen_q == ck.pad_seqlen_q &&
         t.pad_seqlen_k == ck.pad_seqlen_k && t.pad_head_size_qk == ck.pad_head_size_qk &&
         t.pad_head_size_v == ck.pad_head_size_v;
}

// How often CK and we picked, and what differed.
struct Tally {
  int picked_by_ck = 0;
  int picked_by_us_only = 0;
  int reported = 0;

  void report(const CkProblem& p, const std::string& what) {
    if (reported++ < kMostReported)
      testing::report_failure(__FILE__, __LINE__, describe(p) + ": " + what);
  }
};

TEST(forward) {
  Tally tally;
  for_each_problem([&](const CkProblem& p) {
    const CkInstance ck = ck_forward(p);
    tally.picked_by_ck += ck.picked;
    const Instance* ours = nullptr;
    try {
      ours = select_fwd(launch_table(), request_of(p)).fwd;
    } catch (const Error&) {
      if (ck.picked) tally.report(p, "CK picks an instance, we refuse");
      return;
    }
    tally.picked_by_us_only += !ck.picked;
    if (ck.picked && !same(*ours, ck)) tally.report(p, concat("we pick ", ours->name));
  });
  EXPECT_EQ(tally.reported, 0);
  EXPECT_EQ(tally.picked_by_us_only, 0);
  EXPECT(tally.picked_by_ck > 10000);
}

TEST(backward) {
  Tally tally;
  for_each_problem([&](const CkProblem& p) {
    if (p.lse) return;
    const CkBackward ck = ck_backward(p);
    const bool picked = ck.dq_dk_dv.picked;
    tally.picked_by_ck += picked;
    BwdPlan plan = {};
    try {
      plan = select_bwd(launch_table(), request_of(p));
    } catch (const Error&) {
      if (picked) tally.report(p, "CK picks instances, we refuse");
      return;
    }
    tally.picked_by_us_only += !picked;
    if (!picked) return;
    if (!same(*plan.dot_do_o, ck.dot_do_o))
      tally.report(p, concat("we pick ", plan.dot_do_o->name));
    if (!same(*plan.dq_dk_dv, ck.dq_dk_dv))
      tally.report(p, concat("we pick ", plan.dq_dk_dv->name));
    if (!same(*plan.convert_dq, ck.convert_dq)) {
      tally.report(p, concat("we pick ", plan.convert_dq->name));
    }
  });
  EXPECT_EQ(tally.reported, 0);
  EXPECT_EQ(tally.picked_by_us_only, 0);
  EXPECT(tally.picked_by_ck > 10000);
}

}  // namespace
}  // namespace aiter_attn::dispatch_reference
