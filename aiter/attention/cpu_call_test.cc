// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Calls on the CPU through the C ABI: the sizes that they take, and the way to stop them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "aiter/attn.h"
#include "tests/support/attention/cache_problems.h"
#include "tests/support/attention/problems.h"
#include "tests/support/runtime/forked_child.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using namespace testing;
using ::testing::HasSubstr;

void expect_refused(attn_status actual, attn_status expected, const std::string& part) {
  EXPECT_EQ(actual, expected);
  EXPECT_THAT(attn_last_error(), HasSubstr(part));
}

TEST(CpuCallTest, ResultsDoNotDependOnLseBeingWanted) {
  TestProblem problem(Shape{2, 4, 2, 5, 6, 8, 8}, ATTN_DTYPE_BF16);
  attn_fwd_args args = problem.fwd();
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  const double with = problem.o.get(1, 4, 3, 7);
  problem.o.fill(0);
  args.lse = nullptr;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  EXPECT_EQ(problem.o.get(1, 4, 3, 7), with);
  uint64_t bytes = 1;
  const attn_bwd_args bwd = problem.bwd();
  EXPECT_EQ(attn_bwd_workspace_size(&bwd, &bytes), ATTN_OK);
  EXPECT_EQ(bytes, 0u);
  EXPECT_EQ(attn_bwd(&bwd), ATTN_OK);
}

// While a call computes, the caller's arrays change. They were checked, and are not read again.
class ArraysOfOthers {
 public:
  explicit ArraysOfOthers(std::vector<std::vector<int32_t>*> arrays) : arrays_(std::move(arrays)) {
    attn_set_interrupt(
        [](void* self) -> int { return static_cast<ArraysOfOthers*>(self)->change(); }, this);
  }
  ~ArraysOfOthers() {
    attn_set_interrupt(nullptr, nullptr);
    EXPECT_TRUE(changed_) << "the call was too short";
  }
  ArraysOfOthers(const ArraysOfOthers&) = delete;

 private:
  int change() {
    changed_ = true;
    for (std::vector<int32_t>* array : arrays_) {
      std::fill(array->begin(), array->end(), std::numeric_limits<int32_t>::max());
    }
    return 0;
  }

  std::vector<std::vector<int32_t>*> arrays_;
  bool changed_ = false;
};

TEST(CpuCallTest, LengthsAreReadBeforeTheCallComputes) {
  const Shape shape = {0, 32, 8, 0, 0, 64, 64};
  const std::vector<int32_t> starts = {0, 400, 1000, 1400};
  TestProblem expected(shape, ATTN_DTYPE_FP16, 1, starts, starts);
  attn_fwd_args args = expected.fwd();
  ASSERT_EQ(attn_fwd(&args), ATTN_OK) << attn_last_error();
  TestProblem problem(shape, ATTN_DTYPE_FP16, 1, starts, starts);
  args = problem.fwd();
  {
    const ArraysOfOthers others({&problem.cu_seqlens_q, &problem.cu_seqlens_k});
    ASSERT_EQ(attn_fwd(&args), ATTN_OK) << attn_last_error();
  }
  EXPECT_EQ(problem.lse, expected.lse);
}

TEST(CpuCallTest, PagesAreReadBeforeTheCallComputes) {
  for (const Storage storage : {Storage::kInPlace, Storage::kPages, Storage::kPageList}) {
    CacheShape shape;
    shape.shape = {0, 32, 8, 400, 0, 64, 64};
    shape.lengths = {400, 602, 512};
    shape.storage = storage;
    CacheProblem expected(shape, ATTN_DTYPE_FP16);
    attn_kvcache_fwd_args args = expected.args();
    ASSERT_EQ(attn_kvcache_fwd(&args), ATTN_OK) << attn_last_error();
    CacheProblem problem(shape, ATTN_DTYPE_FP16);
    args = problem.args();
    {
      const ArraysOfOthers others({&problem.lengths, &problem.batch_index, &problem.block_table,
                                   &problem.page_indptr, &problem.page_indices});
      ASSERT_EQ(attn_kvcache_fwd(&args), ATTN_OK) << attn_last_error();
    }
    EXPECT_EQ(problem.lse, expected.lse);
  }
}

// Of no size by one dimension, and the greatest by another.
TEST(CpuCallTest, WhatHasNoEntriesTakesNoTime) {
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  for (const Shape& shape : {Shape{kMost, 1, 1, 0, 0, 8, 8}, Shape{kMost, kMost, kMost, 0, 0, 8, 8},
                             Shape{1, kMost, kMost, 0, 0, 8, 8}}) {
    attn_problem p = make_problem(shape, ATTN_DTYPE_FP16);
    attn_fwd_args fwd = {};
    fwd.struct_size = sizeof(fwd);
    fwd.problem = &p;
    EXPECT_EQ(attn_fwd(&fwd), ATTN_OK) << attn_last_error();
    attn_bwd_args bwd = {};
    bwd.struct_size = sizeof(bwd);
    bwd.problem = &p;
    EXPECT_EQ(attn_bwd(&bwd), ATTN_OK) << attn_last_error();
    // Keys that no query reads: forward has nothing to write.
    uint16_t key[8] = {};
    p.seqlen_k = 5;
    fwd.k = fwd.v = {key, 0, 0, 0};
    EXPECT_EQ(attn_fwd(&fwd), ATTN_OK) << attn_last_error();
  }
  // One query among empty sequences, as many as make 2 * 10^10 heads of them.
  std::vector<int32_t> lengths(100001, 1);
  lengths[0] = 0;
  constexpr int32_t kHeads = 200000;
  uint16_t row[1] = {};
  std::vector<uint16_t> o(kHeads);
  attn_problem p = make_problem(Shape{100000, kHeads, kHeads, 1, 1, 1, 1}, ATTN_DTYPE_FP16);
  p.mode = ATTN_MODE_GROUP;
  p.total_q = p.total_k = 1;
  p.cu_seqlens_q = p.cu_seqlens_k = lengths.data();
  attn_fwd_args fwd = {};
  fwd.struct_size = sizeof(fwd);
  fwd.problem = &p;
  fwd.q = fwd.k = fwd.v = {row, 0, 0, 0};
  fwd.o = {o.data(), 0, kHeads, 1};
  EXPECT_EQ(attn_fwd(&fwd), ATTN_OK) << attn_last_error();
}

TEST(CpuCallTest, GradientsOfKeysWithoutQueriesAreZero) {
  TestProblem problem(Shape{2, 4, 2, 0, 5, 8, 8}, ATTN_DTYPE_FP32);
  problem.dk.fill(7);
  problem.dv.fill(7);
  const attn_bwd_args args = problem.bwd();
  EXPECT_EQ(attn_bwd(&args), ATTN_OK) << attn_last_error();
  for (int b = 0; b < 2; ++b) {
    for (int j = 0; j < 5; ++j) {
      EXPECT_EQ(problem.dk.get(b, j, 1, 7), 0);
      EXPECT_EQ(problem.dv.get(b, j, 1, 7), 0);
    }
  }
}

// Rows that nothing reads before they are refused.
attn_tensor broadcast_at(int n) { return {reinterpret_cast<void*>(uintptr_t(n) << 40), 0, 0, 0}; }

TEST(CpuCallTest, WhatNoMachineHasTheMemoryForIsRefusedByItsSizes) {
  attn_problem p = make_problem(Shape{1, 1, 1, 1, 1 << 30, 1 << 30, 8}, ATTN_DTYPE_FP16);
  attn_fwd_args fwd = {};
  fwd.struct_size = sizeof(fwd);
  fwd.problem = &p;
  fwd.q = broadcast_at(1), fwd.k = broadcast_at(2), fwd.v = broadcast_at(3);
  fwd.o = broadcast_at(4);
  expect_refused(attn_fwd(&fwd), ATTN_ERROR_OUT_OF_MEMORY,
                 "1073741824 keys (seqlen_k) of head_size_qk 1073741824 and head_size_v 8 take ");
  EXPECT_THAT(attn_last_error(), HasSubstr("but this machine has "));
  // More than vectors and 64-bit sizes can say.
  p.seqlen_k = p.head_size_qk = p.head_size_v = std::numeric_limits<int32_t>::max();
  expect_refused(attn_fwd(&fwd), ATTN_ERROR_OUT_OF_MEMORY, "2147483647 keys (seqlen_k)");
}

// Not under tsan, which ends the process where it gets no memory itself.
#if !__has_feature(thread_sanitizer)
TEST(CpuCallTest, WhatTheSystemDoesNotGiveIsRefusedByItsSizes) {
  TestProblem problem(Shape{1, 1, 1, 1, 1, 64, 64}, ATTN_DTYPE_FP16);
  problem.problem.seqlen_k = 1 << 21;  // 2 GiB of doubles
  attn_fwd_args args = problem.fwd();
  args.k.stride_seq = args.v.stride_seq = 0;
  EXPECT_EQ(
      in_forked_child([&] {
        const rlimit little = {1 << 30, 1 << 30};
        if (setrlimit(RLIMIT_AS, &little) != 0) return 1;
        if (attn_fwd(&args) != ATTN_ERROR_OUT_OF_MEMORY) return 2;
        const std::string message = attn_last_error();
        return message.find("2097152 keys (seqlen_k) of head_size_qk 64 and head_size_v 64") ==
                       std::string::npos
                   ? 3
                   : 0;
      }),
      0);
}
#endif

// Counts polls and stops at one of them; 0: at none.
struct Poll {
  explicit Poll(int stop_at) : stop_at(stop_at) { attn_set_interrupt(&called, this); }
  ~Poll() { attn_set_interrupt(nullptr, nullptr); }
  static int called(void* context) {
    Poll& self = *static_cast<Poll*>(context);
    return ++self.polls == self.stop_at ? -1 : 0;
  }
  const int stop_at;
  int polls = 0;
};

// Some 10^11 steps in one head.
TEST(CpuCallTest, ItCanBeInterrupted) {
  TestProblem problem(Shape{1, 1, 1, 20000, 20000, 64, 64}, ATTN_DTYPE_FP16);
  const attn_fwd_args fwd = problem.fwd();
  const attn_bwd_args bwd = problem.bwd();
  for (const std::function<attn_status()>& call :
       {std::function<attn_status()>([&] { return attn_fwd(&fwd); }),
        std::function<attn_status()>([&] { return attn_bwd(&bwd); })}) {
    const Poll poll(/*stop_at=*/3);
    const auto start = std::chrono::steady_clock::now();
    expect_refused(call(), ATTN_ERROR_INTERRUPTED, "attn_set_interrupt");
    EXPECT_EQ(poll.polls, 3);
    // 60 ms; a machine that does other things takes longer, but not as long as the call.
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  }
}

TEST(CpuCallTest, PollsThatDoNotStopChangeNothing) {
  TestProblem alone(Shape{1, 2, 1, 1000, 1000, 64, 64}, ATTN_DTYPE_FP32);
  TestProblem polled(Shape{1, 2, 1, 1000, 1000, 64, 64}, ATTN_DTYPE_FP32);
  for (TestProblem* problem : {&alone, &polled}) {
    const Poll poll(/*stop_at=*/0);
    if (problem == &alone) attn_set_interrupt(nullptr, nullptr);
    const auto start = std::chrono::steady_clock::now();
    const attn_fwd_args fwd = problem->fwd();
    EXPECT_EQ(attn_fwd(&fwd), ATTN_OK);
    const attn_bwd_args bwd = problem->bwd();
    EXPECT_EQ(attn_bwd(&bwd), ATTN_OK);
    const auto taken = std::chrono::steady_clock::now() - start;
    // Every 20 ms, or ten times as rarely where the machine is busy; both calls may end before one.
    const auto expected = taken / std::chrono::milliseconds(200) - 2;
    EXPECT_GE(poll.polls, problem == &alone ? 0 : expected);
    EXPECT_LE(poll.polls, problem == &alone ? 0 : taken / std::chrono::milliseconds(20));
  }
  for (const auto buffer :
       {&TestProblem::o, &TestProblem::dq, &TestProblem::dk, &TestProblem::dv}) {
    const Extents& e = (alone.*buffer).extents();
    const size_t bytes = e.batch * e.seq * e.heads * e.head_size * sizeof(float);
    EXPECT_EQ(std::memcmp((alone.*buffer).tensor().data, (polled.*buffer).tensor().data, bytes), 0);
  }
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::attention
