// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The C ABI's promises: the reading of structs, refusals and their texts, and calls on the CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "aiter/attn.h"
#include "tests/support/attention/problems.h"
#include "tests/support/attention/test_launch_table.h"
#include "tests/support/runtime/tiny_elf.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr attn_status kInvalid = ATTN_ERROR_INVALID_ARGUMENT;
const Shape kShape = {2, 4, 2, 5, 6, 8, 8};

// A struct whose last byte is the last of a page that nothing follows.
template <typename T>
class AtPageEnd {
 public:
  explicit AtPageEnd(const T& value) : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    memory_ = mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(static_cast<char*>(memory_) + page_, page_, PROT_NONE);
    *get() = value;
  }
  ~AtPageEnd() { munmap(memory_, 2 * page_); }
  AtPageEnd(const AtPageEnd&) = delete;
  T* get() { return reinterpret_cast<T*>(static_cast<char*>(memory_) + page_ - sizeof(T)); }
  T* operator->() { return get(); }

 private:
  size_t page_;
  void* memory_;
};

void expect_refused(attn_status actual, attn_status expected, const std::string& part) {
  EXPECT_EQ(actual, expected);
  EXPECT_THAT(attn_last_error(), HasSubstr(part));
}

TEST(CAbiTest, Versions) {
  EXPECT_EQ(attn_abi_version(), ATTN_ABI_VERSION);
  EXPECT_EQ(std::string(attn_version()), "0.1.0");
}

TEST(CAbiTest, NullIsRefused) {
  expect_refused(attn_fwd(nullptr), kInvalid, "attn_fwd_args is NULL");
  expect_refused(attn_bwd(nullptr), kInvalid, "attn_bwd_args is NULL");
  uint64_t bytes = 0;
  expect_refused(attn_bwd_workspace_size(nullptr, &bytes), kInvalid, "attn_bwd_args is NULL");
  const char* text = nullptr;
  expect_refused(attn_explain_fwd(nullptr, "gfx942", &text), kInvalid, "attn_fwd_args is NULL");
  expect_refused(attn_explain_bwd(nullptr, "gfx942", &text), kInvalid, "attn_bwd_args is NULL");
  uint32_t count = 0;
  expect_refused(attn_plan_fwd(nullptr, "gfx942", nullptr, &count), kInvalid,
                 "attn_fwd_args is NULL");
  expect_refused(attn_kernel_info(0, nullptr), kInvalid, "attn_kernel_info_t is NULL");
  TestProblem problem(kShape, ATTN_DTYPE_FP32);
  const attn_fwd_args fwd = problem.fwd();
  const attn_bwd_args bwd = problem.bwd();
  expect_refused(attn_explain_fwd(&fwd, nullptr, nullptr), kInvalid, "text is NULL");
  expect_refused(attn_plan_bwd(&bwd, nullptr, nullptr, nullptr), kInvalid, "count is NULL");
  expect_refused(attn_bwd_workspace_size(&bwd, nullptr), kInvalid, "bytes is NULL");
  attn_fwd_args lost = fwd;
  lost.problem = nullptr;
  expect_refused(attn_fwd(&lost), kInvalid, "attn_problem is NULL");
  expect_refused(attn_driver_info(ATTN_DEVICE_CPU, nullptr), kInvalid, "text is NULL");
  void* data = nullptr;
  uint64_t size = 0;
  expect_refused(attn_code_object(nullptr, &data, &size), kInvalid, "key is NULL");
  expect_refused(attn_code_object("k", nullptr, &size), kInvalid, "data is NULL");
  expect_refused(attn_code_object("k", &data, nullptr), kInvalid, "size is NULL");
  uint32_t is_there = 0;
  expect_refused(attn_fetch_code_object(nullptr, &is_there), kInvalid, "key is NULL");
  expect_refused(attn_fetch_code_object("k", nullptr), kInvalid, "is_there is NULL");
}

// Sizes that no caller of any version has, for each struct. Memory behind a struct is not read:
// these are at the end of their pages.
TEST(CAbiTest, SizesThatNobodyHasAreRefused) {
  const auto sizes = [](size_t least) {
    return std::vector<uint32_t>{0,
                                 4,
                                 static_cast<uint32_t>(least) - 1,
                                 (64u << 10) + 1,
                                 0xbebebebe,
                                 std::numeric_limits<uint32_t>::max()};
  };
  const auto refused = [](attn_status status, const char* type, uint32_t size) {
    expect_refused(status, ATTN_ERROR_ABI_MISMATCH,
                   std::string(type) + ".struct_size is " + std::to_string(size));
  };
  TestProblem problem(kShape, ATTN_DTYPE_FP32);
  AtPageEnd<attn_fwd_args> fwd(problem.fwd());
  for (const uint32_t size : sizes(152)) {
    fwd->struct_size = size;
    refused(attn_fwd(fwd.get()), "attn_fwd_args", size);
  }
  AtPageEnd<attn_bwd_args> bwd(problem.bwd());
  for (const uint32_t size : sizes(296)) {
    bwd->struct_size = size;
    refused(attn_bwd(bwd.get()), "attn_bwd_args", size);
  }
  AtPageEnd<attn_problem> shape(problem.problem);
  attn_fwd_args args = problem.fwd();
  args.problem = shape.get();
  for (const uint32_t size : sizes(96)) {
    shape->struct_size = size;
    refused(attn_fwd(&args), "attn_problem", size);
  }
  AtPageEnd<attn_kernel_info_t> info({});
  for (const uint32_t size : sizes(120)) {
    info->struct_size = size;
    refused(attn_kernel_info(0, info.get()), "attn_kernel_info_t", size);
  }
}

// All functions read their structs alike.
TEST(CAbiTest, EveryFunctionChecksSizes) {
  TestProblem problem(kShape, ATTN_DTYPE_FP32);
  attn_fwd_args fwd = problem.fwd();
  attn_bwd_args bwd = problem.bwd();
  attn_kvcache cache = {};
  cache.struct_size = sizeof(cache);
  cache.entries = kShape.batch;
  attn_kvcache_fwd_args over_cache = {};
  over_cache.struct_size = sizeof(over_cache);
  over_cache.problem = &problem.problem;
  over_cache.cache = &cache;
  over_cache.q = fwd.q, over_cache.k = fwd.k, over_cache.v = fwd.v, over_cache.o = fwd.o;
  const char* text = nullptr;
  uint32_t count = 0;
  uint64_t bytes = 0;
  const std::function<attn_status()> calls[] = {
      [&] { return attn_fwd(&fwd); },
      [&] { return attn_bwd(&bwd); },
      [&] { return attn_bwd_workspace_size(&bwd, &bytes); },
      [&] { return attn_plan_fwd(&fwd, "gfx942", nullptr, &count); },
      [&] { return attn_plan_bwd(&bwd, "gfx942", nullptr, &count); },
      [&] { return attn_explain_fwd(&fwd, "gfx942", &text); },
      [&] { return attn_explain_bwd(&bwd, "gfx942", &text); },
      [&] { return attn_kvcache_fwd(&over_cache); },
      [&] { return attn_kvcache_fwd_workspace_size(&over_cache, &bytes); },
      [&] { return attn_plan_kvcache_fwd(&over_cache, "gfx942", nullptr, &count); },
      [&] { return attn_explain_kvcache_fwd(&over_cache, "gfx942", &text); },
  };
  for (const auto& call : calls) {
    EXPECT_EQ(call(), ATTN_OK) << attn_last_error();
    fwd.struct_size = bwd.struct_size = over_cache.struct_size = (64 << 10) + 1;
    expect_refused(call(), ATTN_ERROR_ABI_MISMATCH, "struct_size is 65537");
    fwd.struct_size = sizeof(fwd), bwd.struct_size = sizeof(bwd);
    over_cache.struct_size = sizeof(over_cache);
    problem.problem.struct_size = 0xbebebebe;
    expect_refused(call(), ATTN_ERROR_ABI_MISMATCH, "attn_problem.struct_size is 3200171710");
    problem.problem.struct_size = sizeof(problem.problem);
  }
}

template <typename T>
struct Newer {
  T known;
  uint64_t appended;
};

TEST(CAbiTest, NewerCallersAreServedWhileWhatIsUnknownIsZero) {
  TestProblem problem(kShape, ATTN_DTYPE_FP32);
  Newer<attn_problem> shape = {problem.problem, 0};
  Newer<attn_fwd_args> fwd = {problem.fwd(), 0};
  Newer<attn_bwd_args> bwd = {problem.bwd(), 0};
  shape.known.struct_size = sizeof(shape);
  fwd.known.struct_size = sizeof(fwd);
  bwd.known.struct_size = sizeof(bwd);
  fwd.known.problem = bwd.known.problem = &shape.known;
  EXPECT_EQ(attn_fwd(&fwd.known), ATTN_OK);
  EXPECT_EQ(attn_bwd(&bwd.known), ATTN_OK);
  constexpr uint64_t kSet = uint64_t{1} << 32;
  fwd.appended = bwd.appended = kSet;
  expect_refused(attn_fwd(&fwd.known), ATTN_ERROR_ABI_MISMATCH, "byte 260 is set");
  expect_refused(attn_bwd(&bwd.known), ATTN_ERROR_ABI_MISMATCH, "byte 412 is set");
  fwd.appended = 0;
  shape.appended = kSet;
  expect_refused(attn_fwd(&fwd.known), ATTN_ERROR_ABI_MISMATCH,
                 "attn_problem.struct_size is 184, and byte 180 is set");
  Newer<attn_kernel_info_t> info = {{}, 0};
  info.known.struct_size = sizeof(info);
  EXPECT_EQ(attn_kernel_info(0, &info.known), ATTN_OK);
  EXPECT_EQ(info.known.struct_size, sizeof(info));
  info.appended = kSet;
  expect_refused(attn_kernel_info(0, &info.known), ATTN_ERROR_ABI_MISMATCH, "byte 132 is set");
}

TEST(CAbiTest, ReservedMustBeZero) {
  TestProblem problem(kShape, ATTN_DTYPE_FP32);
  attn_fwd_args args = problem.fwd();
  args.reserved = 1;
  expect_refused(attn_fwd(&args), ATTN_ERROR_ABI_MISMATCH, "attn_fwd_args.reserved is 1");
  attn_bwd_args bwd = problem.bwd();
  bwd.reserved2 = 2;
  expect_refused(attn_bwd(&bwd), ATTN_ERROR_ABI_MISMATCH, "attn_bwd_args.reserved2 is 2");
  args.reserved = 0, problem.problem.reserved = 3;
  expect_refused(attn_fwd(&args), ATTN_ERROR_ABI_MISMATCH, "attn_problem.reserved is 3");
}

// Callers that were compiled before biases, caps and dropout.
TEST(CAbiTest, OlderCallersAreServed) {
  TestProblem problem(kShape, ATTN_DTYPE_FP32);
  attn_fwd_args fwd = problem.fwd();
  attn_bwd_args bwd = problem.bwd();
  problem.problem.struct_size = 96, fwd.struct_size = 152, bwd.struct_size = 296;
  // The fields behind are not theirs, and mean nothing.
  problem.problem.bias = 77, fwd.min_seqlen_q = -5, bwd.deterministic = 9;
  EXPECT_EQ(attn_fwd(&fwd), ATTN_OK) << attn_last_error();
  EXPECT_EQ(attn_bwd(&bwd), ATTN_OK) << attn_last_error();
}

// Callers that were compiled before sums of dbias: it is of every score.
TEST(CAbiTest, OlderCallersSumNoDbias) {
  TestProblem problem(kShape, ATTN_DTYPE_FP32), newer(kShape, ATTN_DTYPE_FP32);
  for (TestProblem* p : {&problem, &newer}) {
    p->add_bias();
    const attn_fwd_args fwd = p->fwd();
    EXPECT_EQ(attn_fwd(&fwd), ATTN_OK) << attn_last_error();
  }
  const attn_bwd_args want = newer.bwd();
  EXPECT_EQ(attn_bwd(&want), ATTN_OK) << attn_last_error();
  AtPageEnd<std::array<char, 384>> given({});
  attn_bwd_args bwd = problem.bwd();
  bwd.struct_size = 384;
  std::memcpy(given.get(), &bwd, 384);
  EXPECT_EQ(attn_bwd(reinterpret_cast<const attn_bwd_args*>(given.get())), ATTN_OK)
      << attn_last_error();
  for (int b = 0; b < kShape.batch; ++b) {
    for (int h = 0; h < kShape.heads_q; ++h) {
      EXPECT_EQ(problem.dbias->get(b, 4, h, 5), newer.dbias->get(b, 4, h, 5));
    }
  }
}

TEST(CAbiTest, WhatGoesWithAFeatureIsChecked) {
  const auto refused = [](auto&& change, const char* words) {
    TestProblem problem(kShape, ATTN_DTYPE_FP32);
    attn_fwd_args args = problem.fwd();
    change(&problem, &args);
    expect_refused(attn_fwd(&args), kInvalid, words);
  };
  static float number[8];
  refused([](TestProblem*, attn_fwd_args* a) { a->bias.data = number; },
          "bias.data is set, but the problem's bias is not ATTN_BIAS_ELEMENTWISE");
  refused([](TestProblem*, attn_fwd_args* a) { a->alibi_slopes = number; },
          "alibi_slopes is set, but the problem's bias is not ATTN_BIAS_ALIBI");
  refused([](TestProblem*, attn_fwd_args* a) { a->alibi_stride_batch = 4; },
          "alibi_stride_batch is set, but");
  refused([](TestProblem* p, attn_fwd_args* a) { p->add_slopes(), a->alibi_stride_batch = -1; },
          "alibi_stride_batch is -1, but must be from 0 to");
  refused(
      [](TestProblem* p, attn_fwd_args* a) {
        p->add_slopes();
        a->alibi_slopes = reinterpret_cast<float*>(2);
      },
      "alibi_slopes is 0x2, but must be aligned to 4 bytes");
  refused([](TestProblem*, attn_fwd_args* a) { a->sink = reinterpret_cast<float*>(2); },
          "sink is 0x2, but must be aligned to 4 bytes");
  refused([](TestProblem*, attn_fwd_args* a) { a->sink = a->lse; }, "lse overlaps sink");
  refused([](TestProblem*, attn_fwd_args* a) { a->min_seqlen_q = -1; }, "min_seqlen_q is -1");
  refused([](TestProblem*, attn_fwd_args* a) { a->min_seqlen_q = 3; },
          "min_seqlen_q is 3, but belongs to group mode");
}

TEST(CAbiTest, WhatGoesWithAFeatureBackwardIsChecked) {
  const auto refused = [](auto&& change, const char* words) {
    TestProblem problem(kShape, ATTN_DTYPE_FP32);
    problem.add_bias();
    attn_bwd_args args = problem.bwd();
    change(&problem.problem, &args);
    expect_refused(attn_bwd(&args), kInvalid, words);
  };
  refused([](attn_problem*, attn_bwd_args* a) { a->bias_grad = 2; },
          "bias_grad is 2, but must be 0 or 1");
  refused([](attn_problem*, attn_bwd_args* a) { a->deterministic = -1; },
          "deterministic is -1, but must be 0 or 1");
  refused([](attn_problem*, attn_bwd_args* a) { a->bias_grad = 0; },
          "dbias.data is set, but bias_grad is 0");
  static float number[64];
  refused([](attn_problem*, attn_bwd_args* a) { a->dsink = number; },
          "dsink is set, but sink is NULL: leave dsink NULL, or set sink");
  refused([](attn_problem*, attn_bwd_args* a) { a->sink = a->dsink = number; },
          "dsink overlaps sink");
  refused(
      [](attn_problem*, attn_bwd_args* a) {
        a->sink = number;
        a->dsink = reinterpret_cast<float*>(2);
      },
      "dsink is 0x2, but must be aligned to 4 bytes");
  refused([](attn_problem*, attn_bwd_args* a) { a->dbias.data = nullptr; }, "dbias.data is NULL");
  refused([](attn_problem*, attn_bwd_args* a) { a->dbias = a->bias; }, "dbias overlaps");
  refused([](attn_problem*, attn_bwd_args* a) { a->dbias.stride_head = 0; },
          "dbias.stride_head is 0, but rows of an output must not overlap");
  refused([](attn_problem* p, attn_bwd_args* a) { p->bias = 0, a->bias = {}; },
          "bias_grad is 1, but must be 0, as the problem's bias is not");
  for (const int32_t sums : {-1, 8, 15}) {
    refused([&](attn_problem*, attn_bwd_args* a) { a->dbias_sums = sums; },
            "but must be a sum of 1 (batch), 2 (heads) and 4 (queries)");
  }
  refused(
      [](attn_problem*, attn_bwd_args* a) { a->dbias_sums = 1, a->bias_grad = 0, a->dbias = {}; },
      "dbias_sums is 1, but must be 0, as bias_grad is 0");
  TestProblem group(Shape{0, 4, 2, 0, 0, 8, 8}, ATTN_DTYPE_FP32, 1, {0, 5}, {0, 6});
  group.add_bias();
  attn_bwd_args args = group.bwd();
  args.dbias_sums = ATTN_DBIAS_SUM_BATCH | ATTN_DBIAS_SUM_HEADS;
  expect_refused(attn_bwd(&args), kInvalid,
                 "dbias_sums is 3, but must be without 1 (batch) in group mode");
}

// A dimension that dbias is summed over has one entry, whose strides mean nothing.
TEST(CAbiTest, StridesOfDbiasThatIsSummed) {
  TestProblem problem(kShape, ATTN_DTYPE_FP32);
  problem.add_bias();
  attn_bwd_args args = problem.bwd();
  args.dbias_sums = ATTN_DBIAS_SUM_BATCH | ATTN_DBIAS_SUM_HEADS;
  args.dbias.stride_batch = args.dbias.stride_head = 0;
  EXPECT_EQ(attn_bwd(&args), ATTN_OK) << attn_last_error();
  args.dbias.stride_seq = 5;
  expect_refused(attn_bwd(&args), kInvalid, "dbias.stride_seq is 5, but rows of an output");
  args.dbias_sums |= ATTN_DBIAS_SUM_QUERIES;
  EXPECT_EQ(attn_bwd(&args), ATTN_OK) << attn_last_error();
}

TEST(CAbiTest, TheWeightsThatDropoutKeeps) {
  TestProblem problem(kShape, ATTN_DTYPE_FP16);
  problem.problem.dropout_p = 0.5f;
  std::vector<uint8_t> kept(2 * 4 * 5 * 6, 7);
  attn_dropout_mask_args args = {sizeof(args), 0, &problem.problem, kept.data()};
  EXPECT_EQ(attn_dropout_mask(&args), ATTN_OK);
  EXPECT_THAT(kept, ::testing::Each(::testing::AnyOf(0, 1)));
  EXPECT_THAT(kept, ::testing::Contains(0));
  EXPECT_THAT(kept, ::testing::Contains(1));

  // The same from memory.
  problem.problem.dropout_seed = 3, problem.problem.dropout_offset = uint64_t{5} << 40;
  EXPECT_EQ(attn_dropout_mask(&args), ATTN_OK);
  const std::vector<uint8_t> by_numbers = kept;
  uint64_t state[] = {3, uint64_t{5} << 40, 0};
  problem.problem.rng_state = state;
  expect_refused(attn_dropout_mask(&args), kInvalid, "dropout_seed is 3, but must be 0 beside");
  problem.problem.dropout_seed = 0;
  expect_refused(attn_dropout_mask(&args), kInvalid, "dropout_offset is 5497558138880, but must");
  problem.problem.dropout_offset = 0;
  kept.assign(kept.size(), 7);
  EXPECT_EQ(attn_dropout_mask(&args), ATTN_OK);
  EXPECT_EQ(kept, by_numbers);
  problem.problem.rng_state =
      reinterpret_cast<const uint64_t*>(reinterpret_cast<const char*>(state) + 4);
  expect_refused(attn_dropout_mask(&args), kInvalid, "must be aligned to 8 bytes");
  problem.problem.rng_state = reinterpret_cast<const uint64_t*>(kept.data());
  expect_refused(attn_dropout_mask(&args), kInvalid, "kept overlaps");
  problem.problem.rng_state = nullptr;

  problem.problem.dropout_p = 0;
  EXPECT_EQ(attn_dropout_mask(&args), ATTN_OK);
  EXPECT_THAT(kept, ::testing::Each(1));
  args.kept = nullptr;
  expect_refused(attn_dropout_mask(&args), kInvalid, "kept is NULL");
  args.kept = kept.data(), args.reserved = 1;
  expect_refused(attn_dropout_mask(&args), ATTN_ERROR_ABI_MISMATCH, "reserved is 1");
  args.reserved = 0;
  expect_refused(attn_dropout_mask(nullptr), kInvalid, "attn_dropout_mask_args is NULL");
}

// One field changed, and the words that the refusal must have.
struct Refusal {
  std::function<void(attn_problem*)> change;
  const char* words;
};

TEST(CAbiTest, EveryFieldOfTheProblemIsChecked) {
  const Refusal refusals[] = {
      {[](attn_problem* p) { p->mode = 0; }, "mode is 0, but must be ATTN_MODE_BATCH (1) or"},
      {[](attn_problem* p) { p->mode = 3; }, "mode is 3"},
      {[](attn_problem* p) { p->device_type = 2; }, "device_type is 2, but must be 1 (CPU) or 10"},
      {[](attn_problem* p) { p->device_id = 1; }, "device_id is 1, but must be 0 on the CPU"},
      {[](attn_problem* p) { p->dtype = 0; }, "dtype is 0"},
      {[](attn_problem* p) { p->dtype = 5; }, "dtype is 5"},
      {[](attn_problem* p) { p->dtype = 7; }, "dtype is 7"},
      {[](attn_problem* p) { p->batch = -1; }, "batch is -1, but must be at least 0"},
      {[](attn_problem* p) { p->heads_q = 0; }, "heads_q is 0, but must be at least 1"},
      {[](attn_problem* p) { p->heads_k = 0; }, "heads_k is 0, but must be at least 1"},
      {[](attn_problem* p) { p->heads_k = 3; }, "heads_k is 3, but must divide heads_q, 4"},
      {[](attn_problem* p) { p->heads_k = 8; }, "heads_k is 8, but must divide heads_q, 4"},
      {[](attn_problem* p) { p->head_size_qk = 0; }, "head_size_qk is 0"},
      {[](attn_problem* p) { p->head_size_v = -8; }, "head_size_v is -8"},
      {[](attn_problem* p) { p->seqlen_q = -1; }, "seqlen_q is -1"},
      {[](attn_problem* p) { p->seqlen_k = -1; }, "seqlen_k is -1"},
      {[](attn_problem* p) { p->total_q = 1; }, "total_q is set, but belongs to group mode"},
      {[](attn_problem* p) { p->total_k = 1; }, "total_k is set, but belongs to group mode"},
      {[](attn_problem* p) { p->cu_seqlens_q = &p->batch; }, "cu_seqlens_q is set"},
      {[](attn_problem* p) { p->cu_seqlens_k = &p->batch; }, "cu_seqlens_k is set"},
      {[](attn_problem* p) { p->softmax_scale = 0; }, "softmax_scale is 0"},
      {[](attn_problem* p) { p->softmax_scale = -1; }, "softmax_scale is -1"},
      {[](attn_problem* p) { p->softmax_scale = std::nanf(""); }, "softmax_scale is nan"},
      {[](attn_problem* p) { p->softmax_scale = HUGE_VALF; }, "softmax_scale is inf"},
      {[](attn_problem* p) { p->mask = 3; }, "mask is 3"},
      {[](attn_problem* p) { p->window_left = 5; }, "window_left is 5, but must be -1 without a"},
      {[](attn_problem* p) { p->window_right = 0; }, "window_right is 0, but must be -1 without a"},
      {[](attn_problem* p) { p->mask = 1, p->window_left = -2; }, "window_left is -2"},
      {[](attn_problem* p) { p->mask = 1, p->window_right = -2; }, "window_right is -2"},
      {[](attn_problem* p) { p->bias = 3; }, "bias is 3, but must be 0 (none), 1 (elementwise) or"},
      {[](attn_problem* p) { p->bias = 1; }, "bias.data is NULL"},
      {[](attn_problem* p) { p->bias = 2; }, "alibi_slopes is NULL, but ALiBi needs 4 fp32"},
      {[](attn_problem* p) { p->logits_soft_cap = -1; }, "logits_soft_cap is -1"},
      {[](attn_problem* p) { p->logits_soft_cap = HUGE_VALF; }, "logits_soft_cap is inf"},
      {[](attn_problem* p) { p->logits_soft_cap = std::nanf(""); }, "logits_soft_cap is nan"},
      {[](attn_problem* p) { p->dropout_p = -0.5f; }, "dropout_p is -0.5, but must be a prob"},
      {[](attn_problem* p) { p->dropout_p = 1; },
       "dropout_p is 1, but must be a probability below"},
      {[](attn_problem* p) { p->dropout_p = std::nanf(""); }, "dropout_p is nan"},
  };
  for (const Refusal& refusal : refusals) {
    TestProblem problem(kShape, ATTN_DTYPE_FP32);
    refusal.change(&problem.problem);
    const attn_fwd_args fwd = problem.fwd();
    expect_refused(attn_fwd(&fwd), kInvalid, refusal.words);
    const attn_bwd_args bwd = problem.bwd();
    expect_refused(attn_bwd(&bwd), kInvalid, refusal.words);
  }
}

TEST(CAbiTest, ScalesAndLayoutOfFp8AreChecked) {
  const auto refused = [](attn_dtype dtype, const std::function<void(attn_fwd_args*)>& change,
                          attn_status status, const char* words) {
    TestProblem problem(kShape, dtype);
    attn_fwd_args args = problem.fwd();
    change(&args);
    expect_refused(attn_fwd(&args), status, words);
  };
  constexpr attn_dtype kFp8 = ATTN_DTYPE_FP8_E4M3, kFnuz = ATTN_DTYPE_FP8_E4M3_FNUZ;
  refused(
      kFp8, [](attn_fwd_args* a) { a->descale_q = 0; }, kInvalid,
      "descale_q is 0, but fp8 needs a positive and finite scale: 1 where there is none");
  refused(kFnuz, [](attn_fwd_args* a) { a->descale_k = -1; }, kInvalid, "descale_k is -1");
  refused(
      kFp8, [](attn_fwd_args* a) { a->descale_v = std::nanf(""); }, kInvalid, "descale_v is nan");
  refused(kFnuz, [](attn_fwd_args* a) { a->scale_o = HUGE_VALF; }, kInvalid, "scale_o is inf");
  refused(
      kFp8, [](attn_fwd_args* a) { a->descale_q = a->descale_k = 1e-30f; }, kInvalid,
      "softmax_scale * descale_q * descale_k is");
  refused(
      kFp8, [](attn_fwd_args* a) { a->descale_v = a->scale_o = 1e30f; }, kInvalid,
      "descale_v * scale_o is");
  refused(
      ATTN_DTYPE_FP16, [](attn_fwd_args* a) { a->scale_o = 1; }, kInvalid,
      "scale_o is 1, but belongs to fp8: leave it 0");
  refused(kFp8, [](attn_fwd_args* a) { a->v_layout = 2; }, kInvalid, "v_layout is 2");
  refused(
      ATTN_DTYPE_FP16, [](attn_fwd_args* a) { a->v_layout = 1; }, kInvalid,
      "v_layout is 1, but columns are for fp8 in batch mode");
  // An o of another dtype holds the result itself.
  refused(
      kFp8, [](attn_fwd_args* a) { a->o_dtype = ATTN_DTYPE_BF16; }, kInvalid,
      "scale_o is 1, but belongs to an o of fp8: leave it 0");
  refused(
      kFp8, [](attn_fwd_args* a) { a->scale_o = 0, a->descale_v = 1e-40f, a->o_dtype = 3; },
      kInvalid, "descale_v is");
  refused(
      kFnuz, [](attn_fwd_args* a) { a->o_dtype = ATTN_DTYPE_FP16; }, kInvalid,
      "o_dtype is 1, but must be 0 (fp8, as dtype), 2 (bf16) or 3 (fp32)");
  refused(
      kFp8, [](attn_fwd_args* a) { a->o_dtype = -1; }, kInvalid, "o_dtype is -1, but must be 0");
  refused(
      ATTN_DTYPE_BF16, [](attn_fwd_args* a) { a->o_dtype = ATTN_DTYPE_FP32; }, kInvalid,
      "o_dtype is 3, but o has another dtype than q with fp8 alone: leave it 0");
  refused(
      kFp8, [](attn_fwd_args* a) { a->reserved2 = 1; }, ATTN_ERROR_ABI_MISMATCH,
      "attn_fwd_args.reserved2 is 1");
  TestProblem wide(kShape, kFp8);
  wide.set_o_dtype(ATTN_DTYPE_FP32);
  attn_fwd_args unaligned = wide.fwd();
  unaligned.o.data = static_cast<char*>(unaligned.o.data) + 2;
  expect_refused(attn_fwd(&unaligned), kInvalid, "must be aligned to its elements' 4 bytes");
  TestProblem group(Shape{0, 2, 2, 0, 0, 8, 8}, kFp8, 1, {0, 3, 7}, {0, 4, 6});
  attn_fwd_args args = group.fwd();
  EXPECT_EQ(attn_fwd(&args), ATTN_OK) << attn_last_error();
  args.v_layout = ATTN_V_COLUMNS;
  expect_refused(attn_fwd(&args), kInvalid, "columns are for fp8 in batch mode");
  TestProblem problem(kShape, kFnuz);
  const attn_bwd_args backward = problem.bwd();
  expect_refused(attn_bwd(&backward), kInvalid, "dtype is 6, but fp8 is for attn_fwd alone");
}

TEST(CAbiTest, LengthsInGroupModeAreChecked) {
  const auto refused = [](const std::function<void(attn_problem*)>& change, const char* words) {
    TestProblem problem(Shape{0, 2, 2, 0, 0, 8, 8}, ATTN_DTYPE_FP32, 1, {0, 3, 7}, {0, 4, 6});
    change(&problem.problem);
    const attn_fwd_args fwd = problem.fwd();
    expect_refused(attn_fwd(&fwd), kInvalid, words);
    const attn_bwd_args bwd = problem.bwd();
    expect_refused(attn_bwd(&bwd), kInvalid, words);
  };
  static const int32_t late[] = {1, 3, 7}, falling[] = {0, 8, 7}, other[] = {0, 3, 6},
                       falling_keys[] = {0, 4, 3};
  refused([](attn_problem* p) { p->cu_seqlens_q = nullptr; }, "cu_seqlens_q is NULL");
  refused([](attn_problem* p) { p->cu_seqlens_k = nullptr; }, "cu_seqlens_k is NULL");
  refused([](attn_problem* p) { p->cu_seqlens_q = late; }, "cu_seqlens_q[0] is 1");
  refused([](attn_problem* p) { p->cu_seqlens_q = falling, p->seqlen_q = 8; },
          "cu_seqlens_q[2] is 7, but must not be less than the one before, 8");
  refused([](attn_problem* p) { p->cu_seqlens_q = other; },
          "cu_seqlens_q[2] is 6, but must equal total_q, 7");
  refused([](attn_problem* p) { p->cu_seqlens_k = falling_keys; },
          "cu_seqlens_k[2] is 3, but must not be less than the one before, 4");
  refused([](attn_problem* p) { p->total_q = -1; }, "total_q is -1");
  refused([](attn_problem* p) { p->total_q = 9; }, "total_q is 9, but cannot exceed batch (2)");
  refused([](attn_problem* p) { p->total_k = 100; }, "total_k is 100, but cannot exceed");
}

TEST(CAbiTest, TensorsAreChecked) {
  struct Case {
    std::function<void(attn_fwd_args*)> change;
    const char* words;
  };
  const Case cases[] = {
      {[](attn_fwd_args* a) { a->q.data = nullptr; }, "q.data is NULL"},
      {[](attn_fwd_args* a) { a->k.data = nullptr; }, "k.data is NULL"},
      {[](attn_fwd_args* a) { a->v.data = nullptr; }, "v.data is NULL"},
      {[](attn_fwd_args* a) { a->o.data = nullptr; }, "o.data is NULL"},
      {[](attn_fwd_args* a) { a->q.data = static_cast<char*>(a->q.data) + 2; },
       "must be aligned to its elements' 4 bytes"},
      {[](attn_fwd_args* a) { a->lse = reinterpret_cast<float*>(2); }, "lse is 0x2"},
      {[](attn_fwd_args* a) { a->o.stride_seq = 0; }, "o.stride_seq is 0, but rows of an output"},
      {[](attn_fwd_args* a) { a->o.stride_head = 7; }, "o.stride_head is 7, but rows of an output"},
      {[](attn_fwd_args* a) { a->o.stride_batch = 64; }, "must not overlap"},
      {[](attn_fwd_args* a) { a->k.stride_seq = std::numeric_limits<int64_t>::min(); },
       "exceeds the address space"},
  };
  for (const Case& c : cases) {
    TestProblem problem(kShape, ATTN_DTYPE_FP32);
    attn_fwd_args args = problem.fwd();
    c.change(&args);
    expect_refused(attn_fwd(&args), kInvalid, c.words);
  }
  TestProblem problem(kShape, ATTN_DTYPE_FP32);
  for (attn_tensor attn_bwd_args::* field :
       {&attn_bwd_args::q, &attn_bwd_args::k, &attn_bwd_args::v, &attn_bwd_args::o,
        &attn_bwd_args::dout, &attn_bwd_args::dq, &attn_bwd_args::dk, &attn_bwd_args::dv}) {
    attn_bwd_args args = problem.bwd();
    (args.*field).data = nullptr;
    expect_refused(attn_bwd(&args), kInvalid, ".data is NULL");
  }
  for (attn_tensor attn_bwd_args::* field :
       {&attn_bwd_args::dq, &attn_bwd_args::dk, &attn_bwd_args::dv}) {
    attn_bwd_args args = problem.bwd();
    (args.*field).stride_seq = 0;
    expect_refused(attn_bwd(&args), kInvalid, ".stride_seq is 0");
  }
  attn_bwd_args args = problem.bwd();
  args.lse = nullptr;
  expect_refused(attn_bwd(&args), kInvalid, "lse is NULL");
}

TEST(CAbiTest, InputsMayBeBroadcast) {
  TestProblem problem(kShape, ATTN_DTYPE_FP32);
  attn_fwd_args args = problem.fwd();
  args.k.stride_batch = 0;
  args.v.stride_head = 0;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
}

TEST(CAbiTest, WhatAGpuCannotAddressIsRefused) {
  TestProblem problem(kShape, ATTN_DTYPE_FP16);
  problem.problem.device_type = ATTN_DEVICE_ROCM;
  const auto refused = [&](const std::function<void(attn_fwd_args*)>& change, const char* words) {
    attn_fwd_args args = problem.fwd();
    change(&args);
    expect_refused(attn_fwd(&args), kInvalid, words);
  };
  refused([](attn_fwd_args* a) { a->q.stride_head = -1; }, "q.stride_head is -1");
  refused([](attn_fwd_args* a) { a->k.stride_batch = int64_t{1} << 31; },
          "k.stride_batch is 2147483648, but must be from 0 to 2147483647");
  refused([](attn_fwd_args* a) { a->v.stride_seq = 2147483647 / 2; },
          "over 6 rows it exceeds the 2147483647 elements");
  const attn_problem good = problem.problem;
  problem.problem.heads_q = problem.problem.seqlen_q = 1 << 17;
  refused([](attn_fwd_args*) {}, "heads_q * seqlen_q");
  problem.problem = good;
  problem.problem.device_id = -1;
  refused([](attn_fwd_args*) {}, "device_id is -1");
  problem.problem = good;
  problem.problem.dtype = ATTN_DTYPE_FP32;
  const attn_fwd_args args = problem.fwd();
  expect_refused(attn_fwd(&args), ATTN_ERROR_UNSUPPORTED, "only the CPU reference computes");
}

TEST(CAbiTest, EmptyProblemsNeedNoMemory) {
  TestProblem problem(Shape{0, 2, 2, 5, 5, 8, 8}, ATTN_DTYPE_FP16);
  attn_fwd_args fwd = problem.fwd();
  fwd.q.data = fwd.k.data = fwd.v.data = fwd.o.data = nullptr;
  fwd.lse = nullptr;
  EXPECT_EQ(attn_fwd(&fwd), ATTN_OK);
  attn_bwd_args bwd = {};
  bwd.struct_size = sizeof(bwd);
  bwd.problem = &problem.problem;
  EXPECT_EQ(attn_bwd(&bwd), ATTN_OK);
}

TEST(CAbiTest, MessagesBelongToThreadsAndToTheLastCall) {
  EXPECT_EQ(attn_fwd(nullptr), kInvalid);
  std::thread([] { EXPECT_EQ(std::string(attn_last_error()), ""); }).join();
  EXPECT_THAT(attn_last_error(), HasSubstr("NULL"));
  EXPECT_THAT(attn_last_error(), HasSubstr("NULL"));
  TestProblem problem(kShape, ATTN_DTYPE_FP32);
  const attn_fwd_args args = problem.fwd();
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  EXPECT_EQ(std::string(attn_last_error()), "");
}

// A window that reaches all keys is not the causal mask, of which ALiBi's lse is another.
TEST(CAbiTest, WideWindowsAreNoCausalMaskToAlibi) {
  std::vector<std::vector<float>> lses;
  for (const int32_t left : {5 + 6 - 1, 5 + 6, std::numeric_limits<int32_t>::max(), -1}) {
    TestProblem problem(kShape, ATTN_DTYPE_FP32);
    problem.add_slopes();
    problem.problem.mask = ATTN_MASK_BOTTOM_RIGHT;
    problem.problem.window_left = left;
    problem.problem.window_right = 0;
    const attn_fwd_args args = problem.fwd();
    EXPECT_EQ(attn_fwd(&args), ATTN_OK) << attn_last_error();
    lses.push_back(problem.lse);
  }
  EXPECT_EQ(lses[1], lses[0]);
  EXPECT_EQ(lses[2], lses[0]);
  EXPECT_NE(lses[3], lses[0]);
}

TEST(CAbiTest, ErrorsNameTheirFieldAndSequence) {
  static const int32_t late[] = {1, 3, 7}, falling[] = {0, 8, 7}, other[] = {0, 3, 6};
  struct Case {
    std::function<void(attn_problem*, attn_fwd_args*)> change;
    const char* field;
    int64_t index;
  };
  const Case cases[] = {
      {[](attn_problem* p, attn_fwd_args*) { p->cu_seqlens_q = nullptr; }, "cu_seqlens_q", -1},
      {[](attn_problem* p, attn_fwd_args*) { p->cu_seqlens_q = late; }, "cu_seqlens_q", 0},
      {[](attn_problem* p, attn_fwd_args*) { p->cu_seqlens_q = falling, p->seqlen_q = 8; },
       "cu_seqlens_q", 1},
      {[](attn_problem* p, attn_fwd_args*) { p->cu_seqlens_q = other; }, "cu_seqlens_q", -1},
      {[](attn_problem* p, attn_fwd_args*) { p->seqlen_k = 3; }, "cu_seqlens_k", 0},
      {[](attn_problem* p, attn_fwd_args*) { p->total_q = -1; }, "total_q", -1},
      {[](attn_problem* p, attn_fwd_args*) { p->heads_k = 3; }, "heads_k", -1},
      {[](attn_problem*, attn_fwd_args* a) { a->o.stride_seq = 1; }, "o.stride_seq", -1},
      {[](attn_problem*, attn_fwd_args* a) { a->k.data = nullptr; }, "k.data", -1},
      {[](attn_problem*, attn_fwd_args* a) { a->o = a->v; }, "o", -1},
      {[](attn_problem*, attn_fwd_args* a) { a->alibi_stride_batch = 1; }, "alibi_stride_batch",
       -1},
  };
  for (const Case& wrong : cases) {
    TestProblem problem(Shape{0, 2, 2, 0, 0, 8, 8}, ATTN_DTYPE_FP32, 1, {0, 3, 7}, {0, 4, 6});
    attn_fwd_args args = problem.fwd();
    wrong.change(&problem.problem, &args);
    EXPECT_EQ(attn_fwd(&args), kInvalid) << wrong.field;
    EXPECT_EQ(std::string(attn_last_error_field()), wrong.field) << attn_last_error();
    EXPECT_EQ(attn_last_error_index(), wrong.index) << attn_last_error();
    EXPECT_THAT(attn_last_error(), ::testing::StartsWith(wrong.field));
  }
  std::thread([] {
    EXPECT_EQ(std::string(attn_last_error_field()), "");
    EXPECT_EQ(attn_last_error_index(), -1);
  }).join();
  // The next call's, which is about none.
  EXPECT_EQ(attn_fwd(nullptr), kInvalid);
  EXPECT_EQ(std::string(attn_last_error_field()), "");
  EXPECT_EQ(attn_last_error_index(), -1);
}

TEST(CAbiTest, WorkspaceSizeNeedsNoPointersAndMayNotOverflow) {
  attn_problem p = make_problem(Shape{2, 4, 2, 64, 64, 64, 64}, ATTN_DTYPE_BF16);
  attn_bwd_args args = {};
  args.struct_size = sizeof(args);
  args.problem = &p;
  p.device_type = ATTN_DEVICE_ROCM;
  uint64_t batch = 0;
  EXPECT_EQ(attn_bwd_workspace_size(&args, &batch), ATTN_OK);
  EXPECT_EQ(batch, uint64_t{2 * 64 * 4 * 4} + 2 * 64 * 4 * 64 * 4 + 2 * (2 * 64 * 4 * 64 * 2));
  p.mode = ATTN_MODE_GROUP;
  p.total_q = p.total_k = 128;
  uint64_t group = 0;
  EXPECT_EQ(attn_bwd_workspace_size(&args, &group), ATTN_OK);
  EXPECT_EQ(group, batch);

  p = make_problem(Shape{1, 1, 1, 0, 0, 64, 64}, ATTN_DTYPE_BF16);
  p.device_type = ATTN_DEVICE_ROCM;
  p.seqlen_q = p.seqlen_k = p.heads_q = p.heads_k = p.head_size_qk =
      std::numeric_limits<int32_t>::max();
  expect_refused(attn_bwd_workspace_size(&args, &group), kInvalid, "2^64 bytes");
}

TEST(CAbiTest, PlansAreIndicesOfKernels) {
  attn_problem p = make_problem(Shape{2, 4, 2, 100, 256, 128, 128}, ATTN_DTYPE_BF16);
  p.device_type = ATTN_DEVICE_ROCM;
  float lse = 0;
  attn_fwd_args fwd = {};
  fwd.struct_size = sizeof(fwd);
  fwd.problem = &p;
  fwd.lse = &lse;
  attn_bwd_args bwd = {};
  bwd.struct_size = sizeof(bwd);
  bwd.problem = &p;
  const auto names = [](const uint32_t* kernels, uint32_t count, const char* arch) {
    std::vector<std::string> names;
    for (uint32_t i = 0; i < count; ++i) {
      attn_kernel_info_t info = {};
      info.struct_size = sizeof(info);
      EXPECT_EQ(attn_kernel_info(kernels[i], &info), ATTN_OK);
      EXPECT_STREQ(info.arch, arch);
      names.push_back(info.name);
    }
    return names;
  };
  for (const char* arch : kTestArchs) {
    uint32_t count = 0;
    EXPECT_EQ(attn_plan_fwd(&fwd, arch, nullptr, &count), ATTN_OK);
    EXPECT_EQ(count, 1u);
    uint32_t kernels[6] = {};
    EXPECT_EQ(attn_plan_fwd(&fwd, arch, kernels, &count), ATTN_OK);
    EXPECT_THAT(names(kernels, count, arch), ElementsAre("fwd_d128_bf16_batch_nmask_npad"));
    count = 6;
    EXPECT_EQ(attn_plan_bwd(&bwd, arch, kernels, &count), ATTN_OK);
    EXPECT_THAT(
        names(kernels, count, arch),
        ElementsAre("dot_do_o_d128_bf16_batch", "dq_dk_dv_d128_bf16_batch_nmask",
                    "convert_dq_d128_bf16_batch", "attn_sum_heads_bf16", "attn_sum_heads_bf16"));
    count = 4;
    kernels[0] = 12345;
    expect_refused(attn_plan_bwd(&bwd, arch, kernels, &count), kInvalid,
                   "count is 4, but the plan has 5 kernels");
    EXPECT_EQ(count, 5u);
    EXPECT_EQ(kernels[0], 12345u);
  }
  uint32_t count = 1;
  expect_refused(attn_plan_fwd(&fwd, "gfx90a", nullptr, &count), ATTN_ERROR_UNSUPPORTED,
                 "no fwd kernel in this build for bf16");
  EXPECT_EQ(count, 0u);
  p.seqlen_k = 0;
  count = 1;
  EXPECT_EQ(attn_plan_fwd(&fwd, "gfx942", nullptr, &count), ATTN_OK);
  EXPECT_EQ(count, 0u);
  p.device_type = ATTN_DEVICE_CPU;
  EXPECT_EQ(attn_plan_bwd(&bwd, nullptr, nullptr, &count), ATTN_OK);
  EXPECT_EQ(count, 0u);
}

TEST(CAbiTest, TheLaunchTableCanBeListed) {
  const uint32_t count = attn_kernel_count();
  EXPECT_TRUE(count > 0);
  uint32_t sum_heads = 0;
  for (uint32_t i = 0; i < count; ++i) {
    attn_kernel_info_t info = {};
    info.struct_size = sizeof(info);
    EXPECT_EQ(attn_kernel_info(i, &info), ATTN_OK);
    EXPECT_EQ(info.struct_size, sizeof(info));
    EXPECT_EQ(std::strlen(info.key), 64u);
    EXPECT_TRUE(std::strcmp(info.arch, "gfx942") == 0 || std::strcmp(info.arch, "gfx950") == 0);
    EXPECT_EQ(info.key, test_key(info.name, info.arch));
    EXPECT_STREQ(info.kind, name_of(test_row(info.name).traits.kind));
    EXPECT_TRUE(info.code_object_size > 0 && info.embedded_size > 0);
    sum_heads += std::strcmp(info.kind, "sum_heads") == 0;
  }
  EXPECT_EQ(sum_heads, 4u);
  attn_kernel_info_t info = {};
  info.struct_size = sizeof(info);
  expect_refused(attn_kernel_info(count, &info), kInvalid,
                 "index is " + std::to_string(count) + ", but this build has " +
                     std::to_string(count) + " kernels");
}

TEST(CAbiTest, CallersTextsComeBackAsUtf8) {
  void* data = nullptr;
  uint64_t size = 0;
  expect_refused(attn_code_object("k\xff", &data, &size), ATTN_ERROR_UNSUPPORTED,
                 "the key 'k\xef\xbf\xbd'");
  TestProblem problem(Shape{1, 1, 1, 8, 8, 64, 64}, ATTN_DTYPE_FP16);
  problem.problem.device_type = ATTN_DEVICE_ROCM;
  const attn_fwd_args args = problem.fwd();
  const char* text = nullptr;
  expect_refused(attn_explain_fwd(&args, "gfx\xfe", &text), ATTN_ERROR_UNSUPPORTED,
                 "on gfx\xef\xbf\xbd.");
}

TEST(CAbiTest, CodeObjectsCanBeHad) {
  const char* const name = "fwd_d64_fp16_batch_mask_psk";
  void* data = nullptr;
  uint64_t size = 0;
  EXPECT_EQ(attn_code_object(test_key(name, "gfx942").c_str(), &data, &size), ATTN_OK);
  const std::vector<unsigned char> image = tiny_code_object(name, "gfx942");
  EXPECT_EQ(size, image.size());
  EXPECT_TRUE(std::memcmp(data, image.data(), size) == 0);
  attn_code_object_free(data);
  attn_code_object_free(nullptr);
  expect_refused(attn_code_object("0123", &data, &size), ATTN_ERROR_UNSUPPORTED, "'0123'");
  EXPECT_TRUE(data == nullptr);
  // Of another embedded pack, which no row of the table knows.
  EXPECT_EQ(attn_code_object(kKeyWithoutRow, &data, &size), ATTN_OK) << attn_last_error();
  EXPECT_EQ(std::string(static_cast<const char*>(data), size), kObjectWithoutRow);
  attn_code_object_free(data);
  const std::string unknown(64, '0');
  expect_refused(attn_code_object(unknown.c_str(), &data, &size), ATTN_ERROR_UNSUPPORTED,
                 "no code object with key '" + unknown + "' (the library: does not have it");
  const std::string corrupt = test_key(kCorruptName, "gfx942");
  expect_refused(attn_code_object(corrupt.c_str(), &data, &size), ATTN_ERROR_CORRUPT, corrupt);
  uint32_t is_there = 2;
  EXPECT_EQ(attn_fetch_code_object(test_key(name, "gfx942").c_str(), &is_there), ATTN_OK);
  EXPECT_EQ(is_there, 1u);
  EXPECT_EQ(attn_fetch_code_object(unknown.c_str(), &is_there), ATTN_OK);
  EXPECT_EQ(is_there, 0u);
  expect_refused(attn_fetch_code_object(corrupt.c_str(), &is_there), ATTN_ERROR_CORRUPT, corrupt);
}

TEST(CAbiTest, Drivers) {
  const char* text = nullptr;
  EXPECT_EQ(attn_driver_info(ATTN_DEVICE_CPU, &text), ATTN_OK);
  EXPECT_THAT(text, HasSubstr("CPU reference"));
  expect_refused(attn_driver_info(4, &text), kInvalid,
                 "device_type is 4, but must be 1 (CPU), 2 (CUDA) or 10 (ROCm)");
  EXPECT_TRUE(text == nullptr);

  setenv("AITER_ATTN_HIP_LIBRARY", "/no/such/libamdhip64.so", 1);
  expect_refused(attn_driver_info(ATTN_DEVICE_ROCM, &text), ATTN_ERROR_DRIVER,
                 "/no/such/libamdhip64.so");
  EXPECT_THAT(attn_last_error(), HasSubstr("AITER_ATTN_HIP_LIBRARY"));
  setenv("AITER_ATTN_HIP_LIBRARY", "/no/such/\xff.so", 1);
  expect_refused(attn_driver_info(ATTN_DEVICE_ROCM, &text), ATTN_ERROR_DRIVER,
                 "'/no/such/\xef\xbf\xbd.so'");
  EXPECT_THAT(attn_last_error(), Not(HasSubstr("\xff")));
  // A library that is there, but not HIP.
  setenv("AITER_ATTN_HIP_LIBRARY", "libc.so.6", 1);
  expect_refused(attn_driver_info(ATTN_DEVICE_ROCM, &text), ATTN_ERROR_DRIVER,
                 "libc.so.6 has no hip");
  unsetenv("AITER_ATTN_HIP_LIBRARY");

  setenv("AITER_ATTN_CUDA_LIBRARY", "/no/such/libcuda.so", 1);
  expect_refused(attn_driver_info(ATTN_DEVICE_CUDA, &text), ATTN_ERROR_DRIVER,
                 "cannot load the CUDA driver '/no/such/libcuda.so' that AITER_ATTN_CUDA_LIBRARY");
  setenv("AITER_ATTN_CUDA_LIBRARY", "libc.so.6", 1);
  expect_refused(attn_driver_info(ATTN_DEVICE_CUDA, &text), ATTN_ERROR_DRIVER, "has no cuInit");
  unsetenv("AITER_ATTN_CUDA_LIBRARY");
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::attention
