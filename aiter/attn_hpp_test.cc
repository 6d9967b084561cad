// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The C++ header, against the library itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "aiter/attn.hpp"
#include "tests/support/attention/problems.h"
#include "tests/support/attention/test_launch_table.h"

namespace AITER_ATTN_NAMESPACE::testing {
namespace {

namespace attn = aiter::attn;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(AttnHppTest, ForwardAndBackward) {
  TestProblem memory(Shape{2, 4, 2, 5, 6, 8, 8}, ATTN_DTYPE_BF16);
  attn_problem problem = attn::batch_problem(ATTN_DTYPE_BF16, {2, 4, 2, 5, 6, 8});
  attn::causal(&problem);
  attn_fwd_args fwd = attn::fwd_args(&problem);
  fwd.q = attn::contiguous(memory.q.tensor().data, 5, 4, 8);
  fwd.k = attn::contiguous(memory.k.tensor().data, 6, 2, 8);
  fwd.v = attn::contiguous(memory.v.tensor().data, 6, 2, 8);
  fwd.o = attn::contiguous(memory.o.tensor().data, 5, 4, 8);
  fwd.lse = memory.lse.data();
  attn::fwd(fwd);
  // The reference's own answer to the same problem.
  const double o = memory.o.get(1, 4, 3, 7);
  memory.o.fill(0);
  memory.problem.mask = ATTN_MASK_BOTTOM_RIGHT;
  memory.problem.window_right = 0;
  attn_fwd_args same = memory.fwd();
  attn::check(attn_fwd(&same));
  EXPECT_EQ(memory.o.get(1, 4, 3, 7), o);

  attn_bwd_args bwd = memory.bwd();
  EXPECT_EQ(attn::bwd_workspace_size(bwd), 0u);
  attn::bwd(bwd);
}

TEST(AttnHppTest, GroupMode) {
  TestProblem memory(Shape{0, 2, 2, 0, 0, 8, 8}, ATTN_DTYPE_FP32, 1, {0, 3, 7}, {0, 4, 6});
  attn_problem problem =
      attn::group_problem(ATTN_DTYPE_FP32, {2, 2, 2, 4, 4, 8}, memory.cu_seqlens_q.data(), 7,
                          memory.cu_seqlens_k.data(), 6);
  attn_fwd_args fwd = memory.fwd();
  fwd.problem = &problem;
  attn::fwd(fwd);
  attn_bwd_args bwd = memory.bwd();
  bwd.problem = &problem;
  attn::bwd(bwd);
}

// Scales of powers of two, so that rounding is the same, and v in both layouts.
TEST(AttnHppTest, Fp8) {
  TestProblem memory(Shape{2, 4, 2, 5, 6, 8, 16}, ATTN_DTYPE_FP8_E4M3_FNUZ);
  memory.problem.softmax_scale = 0.5f;
  attn_fwd_args plain = memory.fwd();
  attn::fwd(plain);
  std::vector<double> expected;
  for (int c = 0; c < 16; ++c) expected.push_back(memory.o.get(1, 4, 3, c));
  EXPECT_NE(expected[0], 0);

  attn_problem problem = attn::batch_problem(ATTN_DTYPE_FP8_E4M3_FNUZ, {2, 4, 2, 5, 6, 8, 16});
  problem.softmax_scale = 0.5f;
  attn_fwd_args args = attn::fwd_args(&problem);
  args.q = plain.q, args.k = plain.k, args.o = plain.o;
  attn::scaled(&args, 4, 0.25f, 0.125f, 8);
  memory.turn_v();
  attn_tensor columns = memory.v_columns->tensor();
  // [batch][head_size][heads][seqlen] as [batch][heads][head_size][seqlen]
  std::vector<uint8_t> dense(size_t{2} * 2 * 16 * 6);
  const attn_tensor v = attn::contiguous_columns(dense.data(), 6, 2, 16);
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t h = 0; h < 2; ++h) {
      for (int64_t c = 0; c < 16; ++c) {
        for (int64_t j = 0; j < 6; ++j) {
          dense[b * v.stride_batch + c * v.stride_seq + h * v.stride_head + j] =
              static_cast<const uint8_t*>(
                  columns.data)[b * columns.stride_batch + c * columns.stride_seq +
                                h * columns.stride_head + j];
        }
      }
    }
  }
  attn::by_columns(&args, v);
  memory.o.fill(0);
  attn::fwd(args);
  for (int c = 0; c < 16; ++c) EXPECT_EQ(memory.o.get(1, 4, 3, c), expected[c]) << c;

  memory.set_o_dtype(ATTN_DTYPE_FP32);
  args.o = memory.o.tensor();
  attn::scaled(&args, 4, 0.25f, 0.125f, ATTN_DTYPE_FP32);
  attn::fwd(args);
  for (int c = 0; c < 16; ++c) EXPECT_NEAR(8 * memory.o.get(1, 4, 3, c), expected[c], 0.2) << c;

  attn::scaled(&args, 4, 0, 0.125f, 8);
  EXPECT_THROW(attn::fwd(args), attn::Error);
  EXPECT_THAT(attn_last_error(), HasSubstr("descale_k is 0"));
}

// Of so much weight that nothing else has any; over a cache the same as without.
TEST(AttnHppTest, Sinks) {
  TestProblem memory(Shape{2, 4, 2, 5, 6, 8, 8}, ATTN_DTYPE_FP32);
  const std::vector<float> sink = {0.5f, -1, 40, 0};
  attn_fwd_args fwd = memory.fwd();
  attn::fwd(fwd);
  const double without = memory.o.get(1, 4, 3, 7);
  attn::with_sink(&fwd, sink.data());
  attn::fwd(fwd);
  const double with = memory.o.get(1, 4, 3, 7);
  EXPECT_LT(std::abs(with), std::abs(without));
  EXPECT_NEAR(memory.o.get(1, 4, 2, 7), 0, 1e-12);

  attn_bwd_args bwd = memory.bwd();
  std::vector<float> dsink(4);
  attn::with_sink(&bwd, sink.data(), dsink.data());
  attn::bwd(bwd);
  EXPECT_NE(dsink[0], 0);
  EXPECT_NEAR(dsink[2], 0, 1e-12);

  const std::vector<int32_t> lengths = {6, 6};
  const attn_kvcache cache = attn::cache_in_place(2, lengths.data());
  attn_kvcache_fwd_args over_cache = attn::kvcache_fwd_args(&memory.problem, &cache);
  over_cache.q = fwd.q, over_cache.k = fwd.k, over_cache.v = fwd.v, over_cache.o = fwd.o;
  attn::with_sink(&over_cache, sink.data());
  memory.o.fill(0);
  attn::kvcache_fwd(over_cache);
  EXPECT_NEAR(memory.o.get(1, 4, 3, 7), with, 1e-6);
}

TEST(AttnHppTest, DbiasIsSummed) {
  TestProblem memory(Shape{2, 4, 2, 5, 6, 8, 8}, ATTN_DTYPE_FP32);
  memory.add_bias();
  attn::fwd(memory.fwd());
  attn_bwd_args args = memory.bwd();
  const attn_tensor every = args.dbias;
  attn::bwd(args);
  std::vector<float> sums(size_t{5} * 6);
  attn::with_dbias(&args, attn::contiguous(sums.data(), 5, 1, 6),
                   ATTN_DBIAS_SUM_BATCH | ATTN_DBIAS_SUM_HEADS);
  attn::bwd(args);
  double expected = 0;
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t h = 0; h < 4; ++h) expected += memory.dbias->get(b, 4, h, 3);
  }
  EXPECT_NEAR(sums[4 * 6 + 3], expected, 1e-6);
  memory.dbias->fill(0);
  attn::with_dbias(&args, every);
  EXPECT_EQ(args.dbias_sums, 0);
  attn::bwd(args);
  EXPECT_NE(memory.dbias->get(1, 4, 3, 2), 0);
}

// The same keys in place, in pages, and listed one by one.
TEST(AttnHppTest, Caches) {
  TestProblem memory(Shape{2, 4, 2, 5, 8, 8, 8}, ATTN_DTYPE_FP32);
  const std::vector<int32_t> lengths = {8, 6}, table = {0, 1, 2, 3}, starts = {0, 8, 14};
  const std::vector<int32_t> list = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
  const attn_kvcache caches[] = {
      attn::cache_in_place(2, lengths.data()),
      attn::cache_in_pages(4, 4, table.data(), 2, lengths.data()),
      attn::cache_in_page_list(16, starts.data(), list.data()),
  };
  std::vector<double> results;
  for (const attn_kvcache& cache : caches) {
    attn_kvcache_fwd_args args = attn::kvcache_fwd_args(&memory.problem, &cache);
    args.q = memory.q.tensor();
    args.k = memory.k.tensor();
    args.v = memory.v.tensor();
    if (cache.page_size > 0) {
      args.k.stride_batch = args.v.stride_batch = cache.page_size * args.k.stride_seq;
    }
    args.o = memory.o.tensor();
    memory.o.fill(0);
    attn::kvcache_fwd(args);
    results.push_back(memory.o.get(1, 4, 3, 7));
    EXPECT_EQ(attn::kvcache_fwd_workspace_size(args), 0u);
    EXPECT_TRUE(attn::plan_kvcache_fwd(args).empty());
    EXPECT_THAT(attn::explain_kvcache_fwd(args), HasSubstr("CPU reference"));
  }
  EXPECT_NE(results[0], 0);
  EXPECT_EQ(results[1], results[0]);
  EXPECT_EQ(results[2], results[0]);
}

TEST(AttnHppTest, Appending) {
  TestProblem memory(Shape{2, 4, 2, 1, 8, 16, 8}, ATTN_DTYPE_FP32);
  TestProblem added(Shape{2, 4, 2, 1, 1, 16, 8}, ATTN_DTYPE_FP32, 2);
  const std::vector<int32_t> lengths = {0, 6};
  const attn_kvcache cache = attn::cache_in_place(2, lengths.data());
  attn_append_kv_args args = attn::append_kv_args(&memory.problem, &cache, 1);
  // A half turn.
  const std::vector<float> cos(8 * 8, -1), sin(8 * 8, 0);
  attn::rotated(&args, ATTN_ROTARY_HALVES, 16, cos.data(), sin.data(), 8);
  args.q = memory.q.tensor();
  args.k = memory.k.tensor();
  args.v = memory.v.tensor();
  args.k_new = added.k.tensor();
  args.v_new = added.v.tensor();
  const double query = memory.q.get(1, 0, 3, 5);
  attn::append_kv(args);
  EXPECT_EQ(memory.q.get(1, 0, 3, 5), -query);
  EXPECT_EQ(memory.k.get(1, 6, 1, 9), -added.k.get(1, 0, 1, 9));
  EXPECT_EQ(memory.v.get(0, 0, 1, 7), added.v.get(0, 0, 1, 7));
  EXPECT_TRUE(attn::plan_append_kv(args).empty());
  EXPECT_THAT(attn::explain_append_kv(args), HasSubstr("CPU reference"));
}

TEST(AttnHppTest, FailuresAreExceptions) {
  const attn_problem problem = attn::batch_problem(ATTN_DTYPE_FP16, {1, 1, 1, 5, 6, 8});
  const attn_fwd_args args = attn::fwd_args(&problem);
  try {
    attn::fwd(args);
    FAIL();
  } catch (const attn::Error& error) {
    EXPECT_EQ(error.status(), ATTN_ERROR_INVALID_ARGUMENT);
    EXPECT_THAT(error.what(), HasSubstr("q.data is NULL"));
    EXPECT_EQ(error.field(), "q.data");
    EXPECT_EQ(error.index(), -1);
  }
}

TEST(AttnHppTest, CallsCanBeInterrupted) {
  TestProblem memory(Shape{1, 1, 1, 20000, 20000, 64, 64}, ATTN_DTYPE_FP16);
  int asked = 0;
  {
    const attn::Interruptible interruptible([&] { return ++asked == 2; });
    try {
      attn::fwd(memory.fwd());
      FAIL();
    } catch (const attn::Error& error) {
      EXPECT_EQ(error.status(), ATTN_ERROR_INTERRUPTED);
    }
  }
  EXPECT_EQ(asked, 2);
  memory.problem.seqlen_q = memory.problem.seqlen_k = 700;
  attn::fwd(memory.fwd());
  EXPECT_EQ(asked, 2);
}

TEST(AttnHppTest, Queries) {
  const attn_kernel_info_t info = attn::kernel_info(0);
  EXPECT_EQ(attn::code_object(info.key).size(), info.code_object_size);
  EXPECT_THAT(attn::driver_info(ATTN_DEVICE_CPU), HasSubstr("CPU reference"));
  attn_problem problem = attn::batch_problem(ATTN_DTYPE_BF16, {1, 4, 2, 100, 100, 128});
  attn::on_rocm(&problem, 0, nullptr);
  attn::windowed(&problem, ATTN_MASK_TOP_LEFT, 10, 0);
  attn_fwd_args fwd = attn::fwd_args(&problem);
  float lse = 0;
  fwd.lse = &lse;
  EXPECT_THAT(attn::explain_fwd(fwd, "gfx950"), HasSubstr("fwd_d128_bf16_batch_mask_psk"));
  EXPECT_THAT(attn::explain_bwd(attn::bwd_args(&problem), "gfx950"),
              HasSubstr("attn_sum_heads_bf16"));
  EXPECT_GT(attn::bwd_workspace_size(attn::bwd_args(&problem)), 0u);
  EXPECT_EQ(attn::plan_fwd(fwd, "gfx950").size(), 1u);
  EXPECT_EQ(attn::plan_bwd(attn::bwd_args(&problem), "gfx950").size(), 5u);
}

TEST(AttnHppTest, Norms) {
  const std::vector<float> x = {1, 2, 2, 4, 3, 0, 4, 0};
  std::vector<float> y(8), rstd(2), dx(8);
  attn_norm_problem problem = attn::norm_problem(ATTN_NORM_RMS, ATTN_DTYPE_FP32, 2, 4, 0);
  attn_norm_fwd_args fwd = attn::norm_fwd_args(&problem);
  fwd.x = attn::contiguous_rows(x.data(), 4);
  fwd.y = attn::contiguous_rows(y.data(), 4);
  fwd.rstd = rstd.data();
  attn::norm_fwd(fwd);
  EXPECT_THAT(y, ElementsAre(0.4f, 0.8f, 0.8f, 1.6f, 1.2f, 0.f, 1.6f, 0.f));
  EXPECT_THAT(rstd, ElementsAre(0.4f, 0.4f));

  // Along x itself the result does not change.
  attn_norm_bwd_args bwd = attn::norm_bwd_args(&problem);
  bwd.x = bwd.dy = fwd.x;
  bwd.dx = attn::contiguous_rows(dx.data(), 4);
  bwd.rstd = rstd.data();
  EXPECT_EQ(attn::norm_bwd_workspace_size(bwd), 0u);
  attn::norm_bwd(bwd);
  for (const float each : dx) EXPECT_NEAR(each, 0, 1e-6);

  problem.hidden = 0;
  try {
    attn::norm_fwd(fwd);
    FAIL() << "no row has no columns";
  } catch (const attn::Error& error) {
    EXPECT_EQ(error.status(), ATTN_ERROR_INVALID_ARGUMENT);
    EXPECT_THAT(error.what(), HasSubstr("hidden"));
  }
}

TEST(AttnHppTest, Softmax) {
  const std::vector<float> x(4), dy = {1, 2, 3, 4};
  std::vector<float> y(4), dx(4);
  const std::vector<uint8_t> mask = {0, 1, 0, 0};
  attn_softmax_problem problem = attn::softmax_problem(ATTN_DTYPE_FP32, 2, 2);
  attn_softmax_fwd_args fwd = attn::softmax_fwd_args(&problem);
  fwd.x = attn::contiguous_rows(x.data(), 2);
  fwd.y = attn::contiguous_rows(y.data(), 2);
  attn::softmax_fwd(fwd);
  EXPECT_THAT(y, ElementsAre(0.5f, 0.5f, 0.5f, 0.5f));

  attn_softmax_bwd_args bwd = attn::softmax_bwd_args(&problem);
  bwd.y = fwd.y;
  bwd.dy = attn::contiguous_rows(dy.data(), 2);
  bwd.dx = attn::contiguous_rows(dx.data(), 2);
  attn::softmax_bwd(bwd);
  EXPECT_THAT(dx, ElementsAre(-0.25f, 0.25f, -0.25f, 0.25f));

  attn::causal(&problem, 2);
  attn::softmax_fwd(fwd);
  EXPECT_THAT(y, ElementsAre(1.f, 0.f, 0.5f, 0.5f));

  attn::masked(&problem, 2, 1);
  fwd.mask = mask.data();
  attn::softmax_fwd(fwd);
  EXPECT_THAT(y, ElementsAre(1.f, 0.f, 0.5f, 0.5f));
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::testing
