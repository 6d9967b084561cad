// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Appending on the CPU, against the definition, element by element; it changes nothing else of the
// cache.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "aiter/attention/passes/append/append.h"
#include "tests/support/attention/append_problem.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using testing::AppendProblem;
using testing::AppendShape;
using testing::Buffer;
using testing::Shape;

void append(const attn_append_kv_args& args) {
  const Problem problem = read(&args, Pointers::kRequired);
  problem.pass->compute(problem);
}

// All elements of a buffer, by batch entry, row, head and column.
using Elements = std::map<std::tuple<int64_t, int64_t, int64_t, int64_t>, double>;

Elements all(const Buffer& buffer) {
  const Extents& e = buffer.extents();
  Elements found;
  for (int64_t b = 0; b < e.batch; ++b) {
    for (int64_t i = 0; i < e.seq; ++i) {
      for (int64_t h = 0; h < e.heads; ++h) {
        for (int64_t c = 0; c < e.head_size; ++c) found[{b, i, h, c}] = buffer.get(b, i, h, c);
      }
    }
  }
  return found;
}

// Column c of a row that is rotated as a token: the complex number x + i y times cos + i sin.
double rotated(const AppendProblem& p, const Buffer& from, int64_t b, int64_t i, int64_t h,
               int64_t c, int64_t token) {
  const double own = from.get(b, i, h, c);
  const int64_t size = p.shape.rotary_size;
  if (c >= size) return own;
  if (p.shape.rotary == ATTN_ROTARY_HALVES) {
    const int64_t pair = c % (size / 2);
    const double cos = p.cos.get(0, token, 0, pair), sin = p.sin.get(0, token, 0, pair);
    if (c < size / 2) return own * cos - from.get(b, i, h, c + size / 2) * sin;
    return own * cos + from.get(b, i, h, c - size / 2) * sin;
  }
  const double cos = p.cos.get(0, token, 0, c / 2), sin = p.sin.get(0, token, 0, c / 2);
  if (c % 2 == 0) return own * cos - from.get(b, i, h, c + 1) * sin;
  return own * cos + from.get(b, i, h, c - 1) * sin;
}

// Half a unit in the last place of the type.
double rounding(double value, attn_dtype dtype) {
  const double half = dtype == ATTN_DTYPE_FP16   ? 0x1p-11
                      : dtype == ATTN_DTYPE_BF16 ? 0x1p-8
                                                 : 0x1p-24;
  const double least = dtype == ATTN_DTYPE_FP16 ? 0x1p-25 : 1e-40;
  return std::max(std::fabs(value) * half, least);
}

class AppendTest : public ::testing::TestWithParam<std::tuple<attn_rotary, int, attn_dtype>> {};

TEST_P(AppendTest, IsTheDefinition) {
  const auto [rotary, page_size, dtype] = GetParam();
  // An append to an empty sequence, one that begins in a page and ends in the next but one, one
  // that fills the last page, and one that begins with a page.
  AppendShape shape = {Shape{4, 4, 2, 3, 24, 40, 24}, {0, 5, 15, 8}, 9, page_size, rotary};
  shape.rotary_size = rotary == ATTN_ROTARY_NONE ? 0 : 32;
  for (const attn_mask mask : {ATTN_MASK_NONE, ATTN_MASK_BOTTOM_RIGHT}) {
    AppendProblem p(shape, dtype);
    p.problem.mask = mask;
    Elements k = all(p.k), v = all(p.v), q = all(p.q);
    for (int b = 0; b < 4; ++b) {
      for (int64_t i = 0; i < shape.seqlen_new; ++i) {
        const int64_t token = p.seqlens_k[b] + i;
        for (int h = 0; h < 2; ++h) {
          for (int c = 0; c < 40; ++c) {
            k[{p.entry(b, token), p.row(token), h, c}] = rotated(p, p.k_new, b, i, h, c, token);
          }
          for (int c = 0; c < 24; ++c) {
            v[{p.entry(b, token), p.row(token), h, c}] = p.v_new.get(b, i, h, c);
          }
        }
      }
      for (int64_t i = 0; i < 3; ++i) {
        const int64_t token = p.seqlens_k[b] + (mask == ATTN_MASK_NONE ? 0 : i);
        for (int h = 0; h < 4; ++h) {
          for (int c = 0; c < 40; ++c) q[{b, i, h, c}] = rotated(p, p.q, b, i, h, c, token);
        }
      }
    }
    append(p.args());
    const auto expect = [dtype = dtype](const Elements& expected, const Buffer& buffer) {
      for (const auto& [at, value] : expected) {
        const auto [b, i, h, c] = at;
        ASSERT_NEAR(buffer.get(b, i, h, c), value, rounding(value, dtype))
            << b << ' ' << i << ' ' << h << ' ' << c;
      }
    };
    expect(k, p.k);
    expect(v, p.v);
    expect(q, p.q);
  }
}

INSTANTIATE_TEST_SUITE_P(All, AppendTest,
                         ::testing::Combine(::testing::Values(ATTN_ROTARY_NONE, ATTN_ROTARY_HALVES,
                                                              ATTN_ROTARY_INTERLEAVED),
                                            ::testing::Values(0, 4, 8, 1),
                                            ::testing::Values(ATTN_DTYPE_FP16, ATTN_DTYPE_BF16,
                                                              ATTN_DTYPE_FP32)));

// Sequences in order, as batch_index = NULL says.
TEST(AppendToTest, EntriesInOrder) {
  AppendProblem p({Shape{3, 1, 1, 0, 8, 16, 16}, {0, 3, 7}, 1}, ATTN_DTYPE_BF16);
  attn_append_kv_args args = p.args();
  p.cache.batch_index = nullptr;
  append(args);
  for (int b = 0; b < 3; ++b) {
    EXPECT_EQ(p.k.get(b, p.seqlens_k[b], 0, 5), p.k_new.get(b, 0, 0, 5));
    EXPECT_EQ(p.v.get(b, p.seqlens_k[b], 0, 6), p.v_new.get(b, 0, 0, 6));
  }
}

// NaNs and infinities are copied as they are.
TEST(AppendToTest, BitsAreKept) {
  AppendProblem p({Shape{1, 1, 1, 0, 4, 16, 16}, {2}, 2}, ATTN_DTYPE_FP16);
  auto* added = static_cast<uint16_t*>(p.k_new.tensor().data);
  const std::vector<uint16_t> odd = {0x7c01, 0xfdff, 0x7c00, 0x8000, 0x0001};
  std::copy(odd.begin(), odd.end(), added);
  append(p.args());
  const auto* stored =
      static_cast<const uint16_t*>(p.k.tensor().data) + p.k.tensor().stride_batch * p.entry(0, 2);
  EXPECT_TRUE(std::equal(odd.begin(), odd.end(), stored + 2 * p.k.tensor().stride_seq));
}

TEST(AppendToTest, QueriesAloneAreRotated) {
  AppendProblem p({Shape{2, 2, 1, 5, 8, 16, 16}, {8, 3}, 0, 0, ATTN_ROTARY_HALVES, 16},
                  ATTN_DTYPE_FP32);
  const Elements before = all(p.q);
  attn_append_kv_args args = p.args();
  args.rotary_length = 9;  // the cache may be full
  std::vector<float> cos(9 * 8, 0), sin(9 * 8, 1);
  args.rotary_cos = cos.data();
  args.rotary_sin = sin.data();
  append(args);
  for (const auto& [at, value] : before) {
    const auto [b, i, h, c] = at;
    // A quarter turn.
    if (c < 8) EXPECT_EQ(p.q.get(b, i, h, c + 8), value);
    if (c >= 8) EXPECT_EQ(p.q.get(b, i, h, c - 8), -value);
  }
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::attention
