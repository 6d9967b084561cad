// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The reference against a formulation that shares nothing with it: dense matrices of probabilities
// made entry by entry from the definition, and finite differences for the gradients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "aiter/attention/passes/passes.h"
#include "tests/support/attention/problems.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using testing::Buffer;
using testing::Shape;
using testing::TestProblem;

template <typename Args>
void run(const Args& args) {
  const Problem problem = read(&args, Pointers::kRequired);
  problem.pass->compute(problem);
}

void forward(TestProblem& problem) { run(problem.fwd()); }

void backward(TestProblem& problem) { run(problem.bwd()); }

// Row i of sequence b, wherever the mode puts it.
struct Rows {
  const TestProblem& p;
  int64_t queries(int b) const {
    return p.is_group() ? p.cu_seqlens_q[b + 1] - p.cu_seqlens_q[b] : p.problem.seqlen_q;
  }
  int64_t keys(int b) const {
    return p.is_group() ? p.cu_seqlens_k[b + 1] - p.cu_seqlens_k[b] : p.problem.seqlen_k;
  }
  double query(const Buffer& t, int b, int64_t i, int64_t h, int64_t c) const {
    return p.is_group() ? t.get(0, p.cu_seqlens_q[b] + i, h, c) : t.get(b, i, h, c);
  }
  double key(const Buffer& t, int b, int64_t j, int64_t h, int64_t c) const {
    return p.is_group() ? t.get(0, p.cu_seqlens_k[b] + j, h, c) : t.get(b, j, h, c);
  }
  double lse(int b, int64_t i, int64_t h) const {
    return p.is_group() ? p.lse[h * p.problem.total_q + p.cu_seqlens_q[b] + i]
                        : p.lse[(int64_t{b} * p.problem.heads_q + h) * p.problem.seqlen_q + i];
  }
};

bool sees(const attn_problem& p, int64_t queries, int64_t keys, int64_t i, int64_t j) {
  if (p.mask == ATTN_MASK_NONE) return true;
  // The distance of the key to the right of the query's own position.
  const int64_t distance = p.mask == ATTN_MASK_TOP_LEFT ? j - i : (j - keys) - (i - queries);
  return (p.window_left < 0 || distance >= -int64_t{p.window_left}) &&
         (p.window_right < 0 || distance <= p.window_right);
}

// The probabilities [queries][keys] and the lse of one head, by definition.
struct Softmax {
  std::vector<std::vector<double>> p;
  std::vector<double> lse;
};

Softmax softmax(const TestProblem& problem, int b, int64_t h) {
  const Rows rows{problem};
  const attn_problem& p = problem.problem;
  const int64_t key_head = h * p.heads_k / p.heads_q;
  Softmax result;
  for (int64_t i = 0; i < rows.queries(b); ++i) {
    std::vector<double> weights(rows.keys(b), 0);
    double sum = 0;
    for (int64_t j = 0; j < rows.keys(b); ++j) {
      if (!sees(p, rows.queries(b), rows.keys(b), i, j)) continue;
      double score = 0;
      for (int c = 0; c < p.head_size_qk; ++c) {
        score += rows.query(problem.q, b, i, h, c) * rows.key(problem.k, b, j, key_head, c);
      }
      weights[j] = std::exp(score * p.softmax_scale);
      sum += weights[j];
    }
    for (double& weight : weights) weight = sum > 0 ? weight / sum : 0;
    result.p.push_back(weights);
    result.lse.push_back(std::log(sum));
  }
  return result;
}

double tolerance(attn_dtype dtype) {
  return dtype == ATTN_DTYPE_FP32 ? 1e-6 : dtype == ATTN_DTYPE_FP16 ? 2e-3 : 2e-2;
}

void check_forward(TestProblem* problem) {
  const attn_problem& p = problem->problem;
  forward(*problem);
  const Rows rows{*problem};
  const double allowed = tolerance(static_cast<attn_dtype>(p.dtype));
  for (int b = 0; b < p.batch; ++b) {
    for (int h = 0; h < p.heads_q; ++h) {
      const Softmax expected = softmax(*problem, b, h);
      for (int64_t i = 0; i < rows.queries(b); ++i) {
        const double lse = rows.lse(b, i, h);
        if (std::isinf(expected.lse[i])) {
          EXPECT_EQ(lse, expected.lse[i]);
        } else {
          EXPECT_NEAR(lse, expected.lse[i], 1e-5);
        }
        for (int c = 0; c < p.head_size_v; ++c) {
          double o = 0;
          for (int64_t j = 0; j < rows.keys(b); ++j) {
            o += expected.p[i][j] * rows.key(problem->v, b, j, h * p.heads_k / p.heads_q, c);
          }
          EXPECT_NEAR(rows.query(problem->o, b, i, h, c), o, allowed * (1 + std::fabs(o)));
        }
      }
    }
  }
}

// Gradients as products of dense matrices: dS = P * (dP - rowsum(P * dP)).
void check_backward(TestProblem* problem) {
  const attn_problem& p = problem->problem;
  forward(*problem);
  backward(*problem);
  const Rows rows{*problem};
  // dP is of the order of sqrt(head size); 16-bit o makes delta inexact.
  const double allowed = 8 * tolerance(static_cast<attn_dtype>(p.dtype));
  const int group = p.heads_q / p.heads_k;
  for (int b = 0; b < p.batch; ++b) {
    const int64_t queries = rows.queries(b), keys = rows.keys(b);
    for (int hk = 0; hk < p.heads_k; ++hk) {
      std::vector<std::vector<double>> dk(keys, std::vector<double>(p.head_size_qk));
      std::vector<std::vector<double>> dv(keys, std::vector<double>(p.head_size_v));
      for (int h = hk * group; h < (hk + 1) * group; ++h) {
        const Softmax s = softmax(*problem, b, h);
        for (int64_t i = 0; i < queries; ++i) {
          std::vector<double> dp(keys, 0);
          double mean = 0;
          for (int64_t j = 0; j < keys; ++j) {
            for (int c = 0; c < p.head_size_v; ++c) {
              dp[j] += rows.query(problem->dout, b, i, h, c) * rows.key(problem->v, b, j, hk, c);
            }
            mean += s.p[i][j] * dp[j];
          }
          for (int c = 0; c < p.head_size_qk; ++c) {
            double dq = 0;
            for (int64_t j = 0; j < keys; ++j) {
              const double ds = p.softmax_scale * s.p[i][j] * (dp[j] - mean);
              dq += ds * rows.key(problem->k, b, j, hk, c);
              dk[j][c] += ds * rows.query(problem->q, b, i, h, c);
            }
            EXPECT_NEAR(rows.query(problem->dq, b, i, h, c), dq, allowed);
          }
          for (int64_t j = 0; j < keys; ++j) {
            for (int c = 0; c < p.head_size_v; ++c) {
              dv[j][c] += s.p[i][j] * rows.query(problem->dout, b, i, h, c);
            }
          }
        }
      }
      for (int64_t j = 0; j < keys; ++j) {
        for (int c = 0; c < p.head_size_qk; ++c) {
          EXPECT_NEAR(rows.key(problem->dk, b, j, hk, c), dk[j][c], allowed);
        }
        for (int c = 0; c < p.head_size_v; ++c) {
          EXPECT_NEAR(rows.key(problem->dv, b, j, hk, c), dv[j][c], allowed);
        }
      }
    }
  }
}

struct MaskCase {
  int32_t mask, left, right;
};
constexpr MaskCase kMasks[] = {
    {ATTN_MASK_NONE, -1, -1},        {ATTN_MASK_TOP_LEFT, -1, 0},
    {ATTN_MASK_BOTTOM_RIGHT, -1, 0}, {ATTN_MASK_TOP_LEFT, 3, 2},
    {ATTN_MASK_BOTTOM_RIGHT, 2, 4},  {ATTN_MASK_BOTTOM_RIGHT, 0, -1},
    {ATTN_MASK_TOP_LEFT, -1, -1},    {ATTN_MASK_BOTTOM_RIGHT, INT32_MAX, INT32_MAX},
};

void set_mask(TestProblem* problem, const MaskCase& mask) {
  problem->problem.mask = mask.mask;
  problem->problem.window_left = mask.left;
  problem->problem.window_right = mask.right;
}

TEST(ReferenceTest, ForwardInBatchMode) {
  for (attn_dtype dtype : {ATTN_DTYPE_FP32, ATTN_DTYPE_FP16, ATTN_DTYPE_BF16}) {
    for (const MaskCase& mask : kMasks) {
      for (const Shape& shape : {Shape{2, 4, 2, 7, 13, 8, 8}, Shape{1, 3, 1, 17, 5, 16, 24},
                                 Shape{2, 2, 2, 9, 9, 5, 3}, Shape{1, 1, 1, 1, 1, 1, 1}}) {
        TestProblem problem(shape, dtype);
        set_mask(&problem, mask);
        check_forward(&problem);
      }
    }
  }
}

TEST(ReferenceTest, BackwardInBatchMode) {
  for (attn_dtype dtype : {ATTN_DTYPE_FP32, ATTN_DTYPE_FP16, ATTN_DTYPE_BF16}) {
    for (const MaskCase& mask : kMasks) {
      for (const Shape& shape : {Shape{2, 4, 2, 7, 13, 8, 8}, Shape{1, 3, 1, 17, 5, 16, 24},
                                 Shape{1, 2, 2, 9, 9, 5, 3}}) {
        TestProblem problem(shape, dtype);
        set_mask(&problem, mask);
        check_backward(&problem);
      }
    }
  }
}

TEST(ReferenceTest, GroupModeHasEmptyAndUnevenSequences) {
  for (const MaskCase& mask : kMasks) {
    TestProblem problem(Shape{0, 4, 2, 0, 0, 8, 12}, ATTN_DTYPE_FP32, 7, {0, 5, 5, 12, 13},
                        {0, 3, 9, 9, 20});
    set_mask(&problem, mask);
    check_forward(&problem);
    check_backward(&problem);
  }
}

TEST(ReferenceTest, RowsWithoutKeysAreZero) {
  // The first 6 of 10 queries lie left of every key.
  TestProblem problem(Shape{1, 1, 1, 10, 4, 8, 8}, ATTN_DTYPE_FP16);
  set_mask(&problem, {ATTN_MASK_BOTTOM_RIGHT, -1, 0});
  problem.o.fill(7);
  problem.dq.fill(7);
  forward(problem);
  backward(problem);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(std::isinf(problem.lse[i]), i < 6);
    EXPECT_EQ(problem.o.get(0, i, 0, 3) == 0, i < 6);
    EXPECT_EQ(problem.dq.get(0, i, 0, 3) == 0, i < 7);  // the 7th sees one key: its p is constant
  }
}

TEST(ReferenceTest, NoKeysAtAll) {
  TestProblem problem(Shape{2, 2, 1, 3, 0, 8, 8}, ATTN_DTYPE_BF16);
  problem.o.fill(7);
  problem.dq.fill(7);
  forward(problem);
  backward(problem);
  for (float lse : problem.lse) EXPECT_EQ(lse, -std::numeric_limits<float>::infinity());
  for (int b = 0; b < 2; ++b) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(problem.o.get(b, i, 1, 0), 0);
      EXPECT_EQ(problem.dq.get(b, i, 1, 0), 0);
    }
  }
}

TEST(ReferenceTest, NanStaysInItsRow) {
  TestProblem problem(Shape{1, 1, 1, 3, 4, 8, 8}, ATTN_DTYPE_FP32);
  problem.q.set(0, 1, 0, 0, std::nan(""));
  forward(problem);
  EXPECT_FALSE(std::isnan(problem.o.get(0, 0, 0, 0)));
  EXPECT_TRUE(std::isnan(problem.o.get(0, 1, 0, 0)));
  EXPECT_TRUE(std::isnan(problem.lse[1]));
  EXPECT_FALSE(std::isnan(problem.o.get(0, 2, 0, 0)));
}

TEST(ReferenceTest, KeysAtMinusInfinityAreNotSeen) {
  TestProblem problem(Shape{1, 1, 1, 2, 3, 1, 1}, ATTN_DTYPE_FP32);
  problem.q.fill(1);
  problem.k.fill(-std::numeric_limits<double>::infinity());
  forward(problem);
  backward(problem);
  EXPECT_EQ(problem.o.get(0, 1, 0, 0), 0);
  EXPECT_EQ(problem.lse[1], -std::numeric_limits<float>::infinity());
  EXPECT_EQ(problem.dq.get(0, 1, 0, 0), 0);
}

TEST(ReferenceTest, LargeScoresDoNotOverflow) {
  TestProblem problem(Shape{1, 1, 1, 2, 2, 1, 1}, ATTN_DTYPE_FP32);
  problem.problem.softmax_scale = 1;
  problem.q.fill(1e4);
  problem.k.set(0, 0, 0, 0, 1);
  problem.k.set(0, 1, 0, 0, 0.9);
  problem.v.set(0, 0, 0, 0, 3);
  problem.v.set(0, 1, 0, 0, 5);
  forward(problem);
  EXPECT_EQ(problem.o.get(0, 0, 0, 0), 3);
  EXPECT_EQ(problem.lse[0], 1e4f);
}

// d loss / d x by central differences, where loss = sum(dout * o).
double loss(TestProblem* problem) {
  forward(*problem);
  double sum = 0;
  const Extents& e = problem->o.extents();
  for (int64_t i = 0; i < e.seq; ++i) {
    for (int64_t h = 0; h < e.heads; ++h) {
      for (int64_t c = 0; c < e.head_size; ++c) {
        sum += problem->o.get(0, i, h, c) * problem->dout.get(0, i, h, c);
      }
    }
  }
  return sum;
}

void check_gradients(TestProblem& problem) {
  forward(problem);
  backward(problem);
  struct Pair {
    Buffer* input;
    const Buffer* gradient;
  };
  std::vector<Pair> pairs = {
      {&problem.q, &problem.dq}, {&problem.k, &problem.dk}, {&problem.v, &problem.dv}};
  if (problem.bias) pairs.push_back({&*problem.bias, &*problem.dbias});
  for (const Pair& pair : pairs) {
    const Extents& e = pair.input->extents();
    for (int64_t i = 0; i < e.seq; ++i) {
      for (int64_t h = 0; h < e.heads; ++h) {
        for (int64_t c = 0; c < e.head_size; ++c) {
          constexpr double kStep = 1.0 / 64;
          const double x = pair.input->get(0, i, h, c);
          pair.input->set(0, i, h, c, x + kStep);
          const double above = loss(&problem);
          pair.input->set(0, i, h, c, x - kStep);
          const double below = loss(&problem);
          pair.input->set(0, i, h, c, x);
          EXPECT_NEAR(pair.gradient->get(0, i, h, c), (above - below) / (2 * kStep), 1e-3);
        }
      }
    }
  }
}

TEST(ReferenceTest, GradientsAreFiniteDifferences) {
  for (const MaskCase& mask : kMasks) {
    for (const bool capped : {false, true}) {
      for (const int32_t bias : {ATTN_BIAS_NONE, ATTN_BIAS_ELEMENTWISE, ATTN_BIAS_ALIBI}) {
        TestProblem problem(Shape{1, 4, 2, 5, 6, 3, 4}, ATTN_DTYPE_FP32, 3);
        set_mask(&problem, mask);
        if (bias == ATTN_BIAS_ELEMENTWISE) problem.add_bias();
        if (bias == ATTN_BIAS_ALIBI) problem.add_slopes();
        if (capped) {
          problem.problem.logits_soft_cap = 0.7f;
          problem.problem.dropout_p = 0.3f;
          problem.problem.dropout_seed = 5;
        }
        check_gradients(problem);
      }
    }
  }
}

// dbias of every entry of a bias that repeats along `sums`.
struct DbiasSums {
  DbiasSums(TestProblem* problem, int32_t sums) : problem(*problem), args(problem->bwd()) {
    args.dbias_sums = sums;
    const Extents all = problem->dbias->extents();
    Extents e = all;
    if (sums & ATTN_DBIAS_SUM_BATCH) e.batch = 1;
    if (sums & ATTN_DBIAS_SUM_HEADS) e.heads = 1;
    if (sums & ATTN_DBIAS_SUM_QUERIES) e.seq = 1;
    dbias.emplace(e, static_cast<attn_dtype>(problem->problem.dtype));
    dbias->fill(7);
    args.dbias = dbias->tensor();
  }
  void compute() { run(args); }

  TestProblem& problem;
  attn_bwd_args args;
  std::optional<Buffer> dbias;
};

template <typename Visit>
void for_each_entry(const Extents& e, const Visit& visit) {
  for (int64_t b = 0; b < e.batch; ++b) {
    for (int64_t i = 0; i < e.seq; ++i) {
      for (int64_t h = 0; h < e.heads; ++h) {
        for (int64_t j = 0; j < e.head_size; ++j) visit(b, i, h, j);
      }
    }
  }
}

// The sums that come out against sums in double of what comes out without.
void check_dbias_sums(TestProblem* problem, int32_t sums, double allowed) {
  forward(*problem);
  DbiasSums summed(problem, sums);
  summed.compute();
  const std::vector<double> dq = [&] {
    std::vector<double> all;
    for_each_entry(problem->dq.extents(), [&](int64_t b, int64_t i, int64_t h, int64_t c) {
      all.push_back(problem->dq.get(b, i, h, c));
    });
    return all;
  }();
  backward(*problem);
  const Extents& e = summed.dbias->extents();
  std::vector<double> expected(e.batch * e.seq * e.heads * e.head_size);
  for_each_entry(problem->dbias->extents(), [&](int64_t b, int64_t i, int64_t h, int64_t j) {
    const int64_t row = (b % e.batch * e.seq + i % e.seq) * e.heads + h % e.heads;
    expected[row * e.head_size + j] += problem->dbias->get(b, i, h, j);
  });
  double worst = 0;
  auto next = expected.begin();
  for_each_entry(e, [&](int64_t b, int64_t i, int64_t h, int64_t j) {
    worst = std::max(worst, std::fabs(summed.dbias->get(b, i, h, j) - *next++));
  });
  EXPECT_LE(worst, allowed) << "sums " << sums;
  // The other gradients are the same.
  auto before = dq.begin();
  for_each_entry(problem->dq.extents(), [&](int64_t b, int64_t i, int64_t h, int64_t c) {
    ASSERT_EQ(problem->dq.get(b, i, h, c), *before++);
  });
}

TEST(ReferenceTest, SumsOfDbias) {
  for (const MaskCase& mask : kMasks) {
    for (const double dropout : {0.0, 0.3}) {
      for (int32_t sums = 1; sums < 8; ++sums) {
        // Rows beyond the queries that are summed at a time.
        for (const Shape& shape : {Shape{2, 4, 2, 7, 13, 8, 8}, Shape{3, 2, 1, 131, 9, 4, 5}}) {
          TestProblem problem(shape, ATTN_DTYPE_FP32);
          problem.add_bias();
          set_mask(&problem, mask);
          problem.problem.dropout_p = static_cast<float>(dropout);
          check_dbias_sums(&problem, sums, 2e-5);
        }
        if (sums & ATTN_DBIAS_SUM_BATCH) continue;
        TestProblem problem(Shape{0, 4, 2, 0, 0, 8, 12}, ATTN_DTYPE_FP32, 7,
                            {0, 0, 5, 5, 75, 76, 206, 210, 210}, {0, 2, 5, 11, 11, 22, 40, 44, 44});
        problem.add_bias();
        set_mask(&problem, mask);
        problem.problem.dropout_p = static_cast<float>(dropout);
        check_dbias_sums(&problem, sums, 2e-5);
      }
    }
  }
}

// In double, and rounded once: half a unit of fp16 below 8, and the roundings of the terms.
TEST(ReferenceTest, SumsOfDbiasAreRoundedOnce) {
  TestProblem exact(Shape{2, 4, 4, 300, 10, 8, 8}, ATTN_DTYPE_FP32);
  exact.add_bias();
  TestProblem problem(Shape{2, 4, 4, 300, 10, 8, 8}, ATTN_DTYPE_FP16);
  problem.add_bias();
  const Buffer* const from[] = {&problem.q, &problem.k, &problem.v, &problem.dout, &*problem.bias};
  Buffer* const to[] = {&exact.q, &exact.k, &exact.v, &exact.dout, &*exact.bias};
  for (size_t n = 0; n < std::size(from); ++n) {
    for_each_entry(from[n]->extents(), [&](int64_t b, int64_t i, int64_t h, int64_t c) {
      to[n]->set(b, i, h, c, from[n]->get(b, i, h, c));
    });
  }
  forward(problem);
  for_each_entry(problem.o.extents(), [&](int64_t b, int64_t i, int64_t h, int64_t c) {
    exact.o.set(b, i, h, c, problem.o.get(b, i, h, c));
  });
  exact.lse = problem.lse;
  DbiasSums rounded(&problem, 7), sums(&exact, 7);
  rounded.compute();
  sums.compute();
  for (int64_t j = 0; j < 10; ++j) {
    const double expected = sums.dbias->get(0, 0, 0, j);
    EXPECT_NEAR(rounded.dbias->get(0, 0, 0, j), expected, std::fabs(expected) * 0x1.02p-11);
  }
}

// Of one entry of a bias that serves several scores: the loss is what all of them change.
TEST(ReferenceTest, SumsOfDbiasAreFiniteDifferences) {
  for (const bool group : {false, true}) {
    for (int32_t sums = 1; sums < 8; ++sums) {
      if (group && (sums & ATTN_DBIAS_SUM_BATCH)) continue;
      TestProblem problem = group ? TestProblem(Shape{0, 4, 2, 0, 0, 3, 4}, ATTN_DTYPE_FP32, 3,
                                                {0, 2, 2, 6}, {0, 3, 4, 9})
                                  : TestProblem(Shape{2, 4, 2, 3, 5, 3, 4}, ATTN_DTYPE_FP32, 3);
      problem.add_bias();
      set_mask(&problem, {ATTN_MASK_BOTTOM_RIGHT, 3, 1});
      problem.problem.dropout_p = 0.3f;
      problem.problem.logits_soft_cap = 0.7f;
      DbiasSums summed(&problem, sums);
      const Extents& e = summed.dbias->extents();
      Buffer shared(e, ATTN_DTYPE_FP32);
      std::mt19937 random(5);
      shared.randomise(&random);
      const attn_tensor t = shared.tensor();
      attn_tensor repeated = t;
      if (e.batch == 1) repeated.stride_batch = 0;
      if (e.seq == 1) repeated.stride_seq = 0;
      if (e.heads == 1) repeated.stride_head = 0;
      const auto loss = [&] {
        attn_fwd_args args = problem.fwd();
        args.bias = repeated;
        run(args);
        double sum = 0;
        for_each_entry(problem.o.extents(), [&](int64_t b, int64_t i, int64_t h, int64_t c) {
          sum += problem.o.get(b, i, h, c) * problem.dout.get(b, i, h, c);
        });
        return sum;
      };
      loss();
      summed.args.bias = repeated;
      summed.compute();
      for_each_entry(e, [&](int64_t b, int64_t i, int64_t h, int64_t j) {
        constexpr double kStep = 1.0 / 128;
        const double x = shared.get(b, i, h, j);
        shared.set(b, i, h, j, x + kStep);
        const double above = loss();
        shared.set(b, i, h, j, x - kStep);
        const double below = loss();
        shared.set(b, i, h, j, x);
        EXPECT_NEAR(summed.dbias->get(b, i, h, j), (above - below) / (2 * kStep), 1e-3) << sums;
      });
    }
  }
}

TEST(ReferenceTest, SumsOfNothingAreZero) {
  for (const Shape& shape : {Shape{2, 2, 1, 0, 4, 8, 8}, Shape{0, 2, 1, 3, 4, 8, 8}}) {
    TestProblem problem(shape, ATTN_DTYPE_FP16);
    problem.add_bias();
    DbiasSums summed(&problem, 7);
    summed.compute();
    for (int64_t j = 0; j < 4; ++j) EXPECT_EQ(summed.dbias->get(0, 0, 0, j), 0);
  }
}

TEST(ReferenceTest, AnyStrides) {
  TestProblem plain(Shape{2, 2, 2, 3, 4, 8, 8}, ATTN_DTYPE_FP32);
  forward(plain);
  // The same numbers with heads outermost, and keys in memory from last to first.
  TestProblem turned(Shape{2, 2, 2, 3, 4, 8, 8}, ATTN_DTYPE_FP32);
  const auto permuted = [](const Buffer& from, const Buffer& to) {
    const Extents e = from.extents();
    const attn_tensor t = {to.tensor().data, e.seq * e.head_size, e.head_size,
                           e.batch * e.seq * e.head_size};
    for (int64_t b = 0; b < e.batch; ++b) {
      for (int64_t i = 0; i < e.seq; ++i) {
        for (int64_t h = 0; h < e.heads; ++h) {
          float* row = static_cast<float*>(t.data) + b * t.stride_batch + i * t.stride_seq +
                       h * t.stride_head;
          for (int64_t c = 0; c < e.head_size; ++c) {
            row[c] = static_cast<float>(from.get(b, i, h, c));
          }
        }
      }
    }
    return t;
  };
  attn_fwd_args args = turned.fwd();
  args.q = permuted(plain.q, turned.q);
  args.k = permuted(plain.k, turned.k);
  args.v = permuted(plain.v, turned.v);
  // Without a mask the order of keys does not matter.
  args.k.data = static_cast<float*>(args.k.data) + 3 * args.k.stride_seq;
  args.k.stride_seq = -args.k.stride_seq;
  args.v.data = static_cast<float*>(args.v.data) + 3 * args.v.stride_seq;
  args.v.stride_seq = -args.v.stride_seq;
  run(args);
  for (int b = 0; b < 2; ++b) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_NEAR(turned.o.get(b, i, 1, 5), plain.o.get(b, i, 1, 5), 1e-6);
    }
  }
}

// Elements stand for their numbers times the scales; o alone is rounded.
void copy_scaled(const Buffer& from, double scale, Buffer* to) {
  for_each_entry(from.extents(), [&](int64_t b, int64_t i, int64_t h, int64_t c) {
    to->set(b, i, h, c, scale * from.get(b, i, h, c));
  });
}

TEST(ReferenceTest, ScalesOfFp8) {
  for (const attn_dtype dtype : {ATTN_DTYPE_FP8_E4M3, ATTN_DTYPE_FP8_E4M3_FNUZ}) {
    TestProblem problem(Shape{2, 4, 2, 5, 9, 16, 24}, dtype);
    set_mask(&problem, {ATTN_MASK_BOTTOM_RIGHT, -1, 0});
    problem.turn_v();
    attn_fwd_args args = problem.fwd();
    args.descale_q = 0.5f, args.descale_k = 3, args.descale_v = 0.25f, args.scale_o = 16;
    run(args);

    TestProblem plain(Shape{2, 4, 2, 5, 9, 16, 24}, ATTN_DTYPE_FP32);
    set_mask(&plain, {ATTN_MASK_BOTTOM_RIGHT, -1, 0});
    copy_scaled(problem.q, 0.5, &plain.q);
    copy_scaled(problem.k, 3, &plain.k);
    copy_scaled(problem.v, 0.25, &plain.v);
    forward(plain);
    // A unit in the last place, which is 2^-3, and of the smallest numbers 2^-9.
    for (int b = 0; b < 2; ++b) {
      for (int64_t i = 0; i < 5; ++i) {
        for (int64_t h = 0; h < 4; ++h) {
          for (int64_t c = 0; c < 24; ++c) {
            const double expected = 16 * plain.o.get(b, i, h, c);
            EXPECT_NEAR(problem.o.get(b, i, h, c), expected,
                        std::fabs(expected) / 16 + 0x1p-10 + 1e-5);
          }
          EXPECT_NEAR(problem.lse[(b * 4 + h) * 5 + i], plain.lse[(b * 4 + h) * 5 + i], 1e-5);
        }
      }
    }
    // By rows it is the same, and numbers beyond the largest become it.
    const double before = problem.o.get(1, 4, 3, 20);
    args.v = problem.v.tensor(), args.v_layout = ATTN_V_ROWS;
    problem.o.fill(0);
    run(args);
    EXPECT_EQ(problem.o.get(1, 4, 3, 20), before);
    args.scale_o = 1e6f;
    run(args);
    EXPECT_EQ(std::fabs(problem.o.get(1, 4, 3, 20)), dtype == ATTN_DTYPE_FP8_E4M3 ? 448 : 240);
  }
}

// Of fp8 numbers o is another dtype's: it is rounded to that alone, in both modes.
TEST(ReferenceTest, OOfFp8MayBeWider) {
  for (const attn_dtype o_dtype : {ATTN_DTYPE_BF16, ATTN_DTYPE_FP32}) {
    for (const bool group : {false, true}) {
      const auto make = [group](attn_dtype dtype) {
        std::vector<int32_t> cu_q, cu_k;
        if (group) cu_q = {0, 3, 3, 8}, cu_k = {0, 4, 6, 6};
        auto problem =
            std::make_unique<TestProblem>(Shape{2, 4, 2, 5, 9, 16, 24}, dtype, 1, cu_q, cu_k);
        set_mask(problem.get(), {ATTN_MASK_BOTTOM_RIGHT, -1, 0});
        return problem;
      };
      const auto problem = make(ATTN_DTYPE_FP8_E4M3);
      problem->set_o_dtype(o_dtype);
      problem->o.fill(-1);
      attn_fwd_args args = problem->fwd();
      args.descale_q = 0.5f, args.descale_k = 3, args.descale_v = 0.25f;
      run(args);

      const auto plain = make(ATTN_DTYPE_FP32);
      copy_scaled(problem->q, 0.5, &plain->q);
      copy_scaled(problem->k, 3, &plain->k);
      copy_scaled(problem->v, 0.25, &plain->v);
      forward(*plain);
      const double unit = o_dtype == ATTN_DTYPE_BF16 ? 0x1p-8 : 0x1p-24;
      for_each_entry(plain->o.extents(), [&](int64_t b, int64_t i, int64_t h, int64_t c) {
        const double expected = plain->o.get(b, i, h, c);
        ASSERT_NEAR(problem->o.get(b, i, h, c), expected, unit * std::fabs(expected) + 1e-6);
      });
    }
  }
}

TEST(ReferenceTest, BiasOfFp8IsFp32) {
  TestProblem problem(Shape{1, 1, 1, 1, 3, 16, 16}, ATTN_DTYPE_FP8_E4M3);
  problem.add_bias();
  problem.q.fill(0);
  attn_fwd_args args = problem.fwd();
  // As fp8 the second one would be 3.0.
  problem.bias->set(0, 0, 0, 0, 0);
  problem.bias->set(0, 0, 0, 1, 3.0078125);
  problem.bias->set(0, 0, 0, 2, -std::numeric_limits<double>::infinity());
  run(args);
  EXPECT_NEAR(problem.lse[0], std::log(1 + std::exp(3.0078125)), 1e-6);
}

// The distance of a float from a number, in units in the last place of that.
double ulps(double actual, long double expected) {
  const float nearest = std::fabs(static_cast<float>(expected));
  const float unit = std::nextafter(nearest, INFINITY) - nearest;
  return std::fabs(static_cast<double>((actual - expected) / unit));
}

// Over borders of tiles, in long double: float32 is rounded once, of sums that are exact enough.
// The backward pass has the softmax from lse and the products of o as they are rounded.
TEST(ReferenceTest, Float32IsRoundedOnce) {
  for (const MaskCase& mask : {kMasks[0], kMasks[2], MaskCase{ATTN_MASK_BOTTOM_RIGHT, 140, 20}}) {
    TestProblem problem(Shape{1, 2, 1, 150, 301, 40, 24}, ATTN_DTYPE_FP32);
    set_mask(&problem, mask);
    forward(problem);
    backward(problem);
    const attn_problem& p = problem.problem;
    const int64_t queries = 150, keys = 301;
    std::vector<std::vector<long double>> dk(keys, std::vector<long double>(40)),
        dv(keys, std::vector<long double>(24));
    double worst = 0;
    for (int h = 0; h < 2; ++h) {
      for (int64_t i = 0; i < queries; ++i) {
        std::vector<long double> o(24), dq(40);
        std::vector<long double> score(keys);
        long double sum = 0, delta = 0;
        for (int c = 0; c < 24; ++c) {
          delta +=
              static_cast<long double>(problem.o.get(0, i, h, c)) * problem.dout.get(0, i, h, c);
        }
        for (int64_t j = 0; j < keys; ++j) {
          if (!sees(p, queries, keys, i, j)) continue;
          for (int c = 0; c < 40; ++c) {
            score[j] +=
                static_cast<long double>(problem.q.get(0, i, h, c)) * problem.k.get(0, j, 0, c);
          }
          score[j] *= p.softmax_scale;
          const long double weight = std::exp(score[j]);
          sum += weight;
          for (int c = 0; c < 24; ++c) o[c] += weight * problem.v.get(0, j, 0, c);
          const long double rounded = std::exp(score[j] - problem.lse[h * queries + i]);
          long double dp = 0;
          for (int c = 0; c < 24; ++c) {
            dp +=
                static_cast<long double>(problem.dout.get(0, i, h, c)) * problem.v.get(0, j, 0, c);
            dv[j][c] += rounded * problem.dout.get(0, i, h, c);
          }
          const long double ds = p.softmax_scale * rounded * (dp - delta);
          for (int c = 0; c < 40; ++c) {
            dq[c] += ds * problem.k.get(0, j, 0, c);
            dk[j][c] += ds * problem.q.get(0, i, h, c);
          }
        }
        for (int c = 0; c < 24; ++c) {
          worst = std::max(worst, ulps(problem.o.get(0, i, h, c), o[c] / sum));
        }
        for (int c = 0; c < 40; ++c)
          worst = std::max(worst, ulps(problem.dq.get(0, i, h, c), dq[c]));
      }
    }
    for (int64_t j = 0; j < keys; ++j) {
      for (int c = 0; c < 40; ++c)
        worst = std::max(worst, ulps(problem.dk.get(0, j, 0, c), dk[j][c]));
      for (int c = 0; c < 24; ++c)
        worst = std::max(worst, ulps(problem.dv.get(0, j, 0, c), dv[j][c]));
    }
    EXPECT_LT(worst, 0.51);
  }
}

// Numbers of keys that a query does not see are in none of its results.
TEST(ReferenceTest, WhatIsNotSeenMayBeNoNumber) {
  TestProblem expected(Shape{1, 2, 1, 70, 140, 8, 8}, ATTN_DTYPE_FP32);
  TestProblem problem(Shape{1, 2, 1, 70, 140, 8, 8}, ATTN_DTYPE_FP32);
  set_mask(&expected, {ATTN_MASK_BOTTOM_RIGHT, -1, 0});
  set_mask(&problem, {ATTN_MASK_BOTTOM_RIGHT, -1, 0});
  // The last key is the last query's alone, as is that query's dout.
  problem.v.set(0, 139, 0, 3, std::numeric_limits<double>::infinity());
  problem.k.set(0, 139, 0, 3, std::nan(""));
  problem.dout.set(0, 69, 0, 2, std::nan(""));
  for (TestProblem* each : {&expected, &problem}) {
    forward(*each);
    backward(*each);
  }
  EXPECT_TRUE(std::isnan(problem.o.get(0, 69, 0, 3)));
  EXPECT_TRUE(std::isnan(problem.dq.get(0, 69, 0, 3)));
  for (int h = 0; h < 2; ++h) {
    for (int c = 0; c < 8; ++c) {
      for (int64_t i = 0; i < 69; ++i) {
        ASSERT_EQ(problem.o.get(0, i, h, c), expected.o.get(0, i, h, c));
        ASSERT_FLOAT_EQ(problem.dq.get(0, i, h, c), expected.dq.get(0, i, h, c));
      }
    }
  }
}

// Heads are divided where these are few: the parts give the whole's bits.
TEST(ReferenceTest, PartsOfAHeadGiveTheSame) {
  TestProblem few(Shape{1, 1, 1, 1500, 700, 16, 16}, ATTN_DTYPE_FP32);
  TestProblem many(Shape{70, 1, 1, 1500, 700, 16, 16}, ATTN_DTYPE_FP32);
  for (TestProblem* each : {&few, &many}) set_mask(each, {ATTN_MASK_BOTTOM_RIGHT, -1, 0});
  attn_fwd_args args = many.fwd();
  args.q = few.q.tensor(), args.k = few.k.tensor(), args.v = few.v.tensor();
  args.q.stride_batch = args.k.stride_batch = args.v.stride_batch = 0;
  run(args);
  forward(few);
  for (int64_t i = 0; i < 1500; ++i) {
    for (int c = 0; c < 16; ++c) ASSERT_EQ(few.o.get(0, i, 0, c), many.o.get(69, i, 0, c));
  }
}

TEST(ReferenceTest, ManyThreadsGiveTheSame) {
  TestProblem problem(Shape{2, 8, 4, 96, 128, 64, 64}, ATTN_DTYPE_BF16);
  set_mask(&problem, {ATTN_MASK_BOTTOM_RIGHT, -1, 0});
  check_forward(&problem);
  backward(problem);
  const double before = problem.dk.get(1, 5, 3, 7);
  backward(problem);
  EXPECT_EQ(problem.dk.get(1, 5, 3, 7), before);
}

TEST(ReferenceTest, SumsOfDbiasDoNotDependOnThreads) {
  TestProblem problem(Shape{4, 4, 2, 200, 64, 64, 64}, ATTN_DTYPE_FP32);
  problem.add_bias();
  forward(problem);
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  }
  for (int32_t sums = 1; sums < 8; ++sums) {
    DbiasSums many(&problem, sums), alone(&problem, sums);
    many.compute();
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    alone.compute();
    ASSERT_EQ(sched_setaffinity(0, sizeof(all), &all), 0);
    for_each_entry(many.dbias->extents(), [&](int64_t b, int64_t i, int64_t h, int64_t j) {
      ASSERT_EQ(many.dbias->get(b, i, h, j), alone.dbias->get(b, i, h, j));
    });
  }
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::attention
