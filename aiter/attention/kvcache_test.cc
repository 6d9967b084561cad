// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Attention over caches through the C ABI: numbers on the CPU against the definition, in float64,
// key by key wherever it lies; and the refusals, with their texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "aiter/attn.h"
#include "tests/support/attention/cache_problems.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using namespace testing;
using ::testing::HasSubstr;

constexpr attn_status kInvalid = ATTN_ERROR_INVALID_ARGUMENT;

const std::vector<int32_t> kLengths = {6, 0, 1, 11};
const std::vector<int32_t> kStarts = {0, 3, 5, 5, 9};  // of queries

CacheShape shape_of(Storage storage, bool group) {
  CacheShape shape;
  shape.shape = {0, 4, 2, 3, 0, 8, 12};
  shape.lengths = kLengths;
  if (group) shape.cu_seqlens_q = kStarts;
  shape.storage = storage;
  return shape;
}

// The distance of key j to the right of the diagonal of query i.
int64_t distance(const CacheProblem& p, int b, int64_t i, int64_t j) {
  const bool top_left = p.problem.mask == ATTN_MASK_TOP_LEFT;
  return top_left ? j - i : (j - p.lengths[b]) - (i - p.queries(b));
}

bool sees(const CacheProblem& p, int b, int64_t i, int64_t j) {
  const attn_problem& a = p.problem;
  if (a.mask == ATTN_MASK_NONE) return true;
  const int64_t d = distance(p, b, i, j);
  return (a.window_left < 0 || d >= -int64_t{a.window_left}) &&
         (a.window_right < 0 || d <= a.window_right);
}

double score(const CacheProblem& p, int b, int64_t i, int64_t j, int64_t h) {
  const attn_problem& a = p.problem;
  double s = 0;
  for (int c = 0; c < a.head_size_qk; ++c) {
    s += p.query(p.q, b, i, h, c) * p.key(p.k, b, j, h * a.heads_k / a.heads_q, c);
  }
  s *= a.softmax_scale;
  if (a.logits_soft_cap > 0) s = a.logits_soft_cap * std::tanh(s / a.logits_soft_cap);
  if (p.slopes.empty()) return s;
  const double slope = p.slopes[b * a.heads_q + h];
  const bool causal = a.mask != ATTN_MASK_NONE && a.window_left < 0 && a.window_right == 0;
  return s + slope * static_cast<double>(causal ? j : -std::abs(distance(p, b, i, j)));
}

// Every o and lse, but those of sequences that are left out, which are as they were: NaN. sink: of
// each head, or none.
void check_numbers(CacheProblem* p, const std::vector<float>& sink = {}) {
  const attn_problem& a = p->problem;
  attn_kvcache_fwd_args args = p->args();
  if (!sink.empty()) args.sink = sink.data();
  args.min_seqlen_q = a.mode == ATTN_MODE_GROUP && p->cache.page_size > 0 ? 2 : 0;
  for (float& value : p->lse) value = std::nanf("");
  ASSERT_EQ(attn_kvcache_fwd(&args), ATTN_OK) << attn_last_error();
  for (int b = 0; b < a.batch; ++b) {
    const bool left_out = p->queries(b) <= args.min_seqlen_q && args.min_seqlen_q > 0;
    for (int64_t i = 0; i < p->queries(b); ++i) {
      for (int64_t h = 0; h < a.heads_q; ++h) {
        double sum = sink.empty() ? 0 : std::exp(static_cast<double>(sink[h]));
        std::vector<double> o(a.head_size_v);
        for (int64_t j = 0; j < p->lengths[b]; ++j) {
          if (!sees(*p, b, i, j)) continue;
          const double weight = std::exp(score(*p, b, i, j, h));
          sum += weight;
          for (int c = 0; c < a.head_size_v; ++c) {
            o[c] += weight * p->key(p->v, b, j, h * a.heads_k / a.heads_q, c);
          }
        }
        const float lse = p->lse_of(b, i, h);
        if (left_out) {
          EXPECT_TRUE(std::isnan(lse));
        } else if (sum == 0) {
          EXPECT_EQ(lse, -std::numeric_limits<float>::infinity());
        } else {
          EXPECT_NEAR(lse, std::log(sum), 1e-5);
        }
        for (int c = 0; c < a.head_size_v; ++c) {
          const double got = p->query(p->o, b, i, h, c);
          if (left_out) {
            EXPECT_TRUE(std::isnan(got));
          } else {
            EXPECT_NEAR(got, sum == 0 ? 0 : o[c] / sum, 1e-6);
          }
        }
      }
    }
  }
}

struct MaskCase {
  int32_t mask, left, right;
};
constexpr MaskCase kMasks[] = {
    {ATTN_MASK_NONE, -1, -1},
    {ATTN_MASK_TOP_LEFT, -1, 0},
    {ATTN_MASK_BOTTOM_RIGHT, -1, 0},
    {ATTN_MASK_BOTTOM_RIGHT, 2, 1},
};

TEST(KvcacheTest, NumbersOfEveryStorage) {
  for (const Storage storage : {Storage::kInPlace, Storage::kPages, Storage::kPageList}) {
    for (const bool group : {false, true}) {
      for (const MaskCase& mask : kMasks) {
        for (const bool extras : {false, true}) {
          CacheProblem p(shape_of(storage, group), ATTN_DTYPE_FP32);
          p.problem.mask = mask.mask;
          p.problem.window_left = mask.left;
          p.problem.window_right = mask.right;
          if (extras) p.add_slopes(), p.problem.logits_soft_cap = 0.8f;
          check_numbers(&p);
        }
      }
    }
  }
}

// A key more of each query, which has no value: also of rows that see no other, and beside
// sequences that are left out.
TEST(KvcacheTest, ASinkCountsInEveryStorage) {
  for (const Storage storage : {Storage::kInPlace, Storage::kPages, Storage::kPageList}) {
    for (const bool group : {false, true}) {
      for (const MaskCase& mask : kMasks) {
        CacheProblem p(shape_of(storage, group), ATTN_DTYPE_FP32);
        p.problem.mask = mask.mask;
        p.problem.window_left = mask.left;
        p.problem.window_right = mask.right;
        check_numbers(&p, {-2, 0.5f, 3, 1});
      }
    }
  }
}

// Without seqlens_k the problem's own lengths are those of the keys.
TEST(KvcacheTest, LengthsThatAreNotGiven) {
  CacheShape shape = shape_of(Storage::kInPlace, false);
  CacheProblem whole(shape, ATTN_DTYPE_FP32);
  whole.cache.seqlens_k = nullptr;
  whole.k.fill(0.5), whole.v.fill(0.25);
  attn_kvcache_fwd_args args = whole.args();
  ASSERT_EQ(attn_kvcache_fwd(&args), ATTN_OK) << attn_last_error();
  EXPECT_NEAR(whole.query(whole.o, 1, 0, 0, 0), 0.25, 1e-6) << "of keys that were not in use";

  for (const Storage storage : {Storage::kPages, Storage::kPageList}) {
    CacheProblem p(shape_of(storage, true), ATTN_DTYPE_FP32);
    std::vector<int32_t> starts = {0};
    for (const int32_t length : kLengths) starts.push_back(starts.back() + length);
    p.problem.cu_seqlens_k = starts.data();
    p.problem.total_k = starts.back();
    p.cache.seqlens_k = nullptr;
    check_numbers(&p);
  }
}

TEST(KvcacheTest, SequencesMayShareEntriesAndPages) {
  CacheProblem p(shape_of(Storage::kInPlace, false), ATTN_DTYPE_FP32);
  p.batch_index.assign(4, p.batch_index[3]);
  p.lengths.assign(4, 11);
  attn_kvcache_fwd_args args = p.args();
  for (int b = 1; b < 4; ++b) {
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t h = 0; h < 4; ++h) {
        for (int64_t c = 0; c < 8; ++c) p.q.set(b, i, h, c, p.q.get(0, i, h, c));
      }
    }
  }
  ASSERT_EQ(attn_kvcache_fwd(&args), ATTN_OK) << attn_last_error();
  EXPECT_EQ(p.o.get(0, 2, 1, 5), p.o.get(3, 2, 1, 5));
  EXPECT_FALSE(std::isnan(p.o.get(0, 2, 1, 5)));
}

TEST(KvcacheTest, NothingIsRead) {
  CacheShape shape = shape_of(Storage::kPages, false);
  shape.lengths = {0, 0};
  CacheProblem p(shape, ATTN_DTYPE_FP16);
  p.cache.entries = 0;
  attn_kvcache_fwd_args args = p.args();
  args.k.data = args.v.data = nullptr;
  ASSERT_EQ(attn_kvcache_fwd(&args), ATTN_OK) << attn_last_error();
  EXPECT_EQ(p.o.get(1, 2, 3, 4), 0);
  EXPECT_EQ(p.lse[0], -std::numeric_limits<float>::infinity());
  uint64_t bytes = 1;
  EXPECT_EQ(attn_kvcache_fwd_workspace_size(&args, &bytes), ATTN_OK);
  EXPECT_EQ(bytes, 0u) << "the CPU needs none";
  uint32_t count = 1;
  EXPECT_EQ(attn_plan_kvcache_fwd(&args, nullptr, nullptr, &count), ATTN_OK);
  EXPECT_EQ(count, 0u);
  const char* text = nullptr;
  EXPECT_EQ(attn_explain_kvcache_fwd(&args, nullptr, &text), ATTN_OK);
  EXPECT_THAT(text, HasSubstr("CPU reference"));
}

void expect_refused(CacheProblem& p, const attn_kvcache_fwd_args& args, const std::string& part,
                    attn_status expected = kInvalid) {
  EXPECT_EQ(attn_kvcache_fwd(&args), expected);
  EXPECT_THAT(attn_last_error(), HasSubstr(part));
}

void expect_refused(Storage storage, bool group, const std::function<void(CacheProblem*)>& spoil,
                    const std::string& part, attn_status expected = kInvalid) {
  CacheProblem p(shape_of(storage, group), ATTN_DTYPE_FP32);
  spoil(&p);
  expect_refused(p, p.args(), part, expected);
}

TEST(KvcacheTest, StructsAreChecked) {
  CacheProblem p(shape_of(Storage::kPages, false), ATTN_DTYPE_FP32);
  EXPECT_EQ(attn_kvcache_fwd(nullptr), kInvalid);
  EXPECT_THAT(attn_last_error(), HasSubstr("attn_kvcache_fwd_args is NULL"));
  attn_kvcache_fwd_args args = p.args();
  args.cache = nullptr;
  expect_refused(p, args, "attn_kvcache is NULL");
  args = p.args();
  args.reserved = 1;
  expect_refused(p, args, "attn_kvcache_fwd_args.reserved is 1", ATTN_ERROR_ABI_MISMATCH);
  args.struct_size = 199;
  expect_refused(p, args, "attn_kvcache_fwd_args.struct_size is 199, but must be from 200",
                 ATTN_ERROR_ABI_MISMATCH);
  args = p.args();
  p.cache.reserved = 2;
  expect_refused(p, args, "attn_kvcache.reserved is 2", ATTN_ERROR_ABI_MISMATCH);
  p.cache.struct_size = 63;
  expect_refused(p, args, "attn_kvcache.struct_size is 63", ATTN_ERROR_ABI_MISMATCH);
}

TEST(KvcacheTest, EveryFieldIsChecked) {
  const auto in_place = [](auto spoil, const std::string& part) {
    expect_refused(Storage::kInPlace, false, spoil, part);
  };
  const auto in_pages = [](auto spoil, const std::string& part) {
    expect_refused(Storage::kPages, false, spoil, part);
  };
  const auto in_list = [](auto spoil, const std::string& part) {
    expect_refused(Storage::kPageList, false, spoil, part);
  };
  static int32_t some[64] = {};
  in_place([](auto* p) { p->cache.entries = -1; }, "entries is -1, but must be at least 0");
  in_place([](auto* p) { p->cache.page_size = -4; },
           "page_size is -4, but must be at least 1, or 0");
  in_place([](auto* p) { p->cache.block_table = some; },
           "block_table is set, but keys are in place");
  in_place([](auto* p) { p->cache.block_table_stride = 2; }, "block_table_stride is set, but keys");
  in_place([](auto* p) { p->cache.page_indptr = some; },
           "page_indptr is set, but keys are in place");
  in_place([](auto* p) { p->cache.page_indices = some; }, "page_indices is set, but keys are in");
  in_place([](auto* p) { p->cache.batch_index = nullptr, p->cache.entries = 3; },
           "entries is 3, but must be at least batch, 4, without batch_index");
  in_pages([](auto* p) { p->cache.batch_index = some; },
           "batch_index is set, but pages are found by block_table");
  in_pages([](auto* p) { p->cache.block_table_stride = -1; }, "block_table_stride is -1, but must");
  in_pages([](auto* p) { p->problem.seqlen_k -= 1; },
           "seqlen_k is 15, but must be the room of a row");
  in_pages([](auto* p) { p->cache.block_table = nullptr; },
           "block_table is NULL, but this cache needs 16 numbers");
  in_pages([](auto* p) { p->cache.page_indices = some; },
           "page_indices is set, but belongs to page_indptr");
  in_list([](auto* p) { p->cache.page_size = 2; },
          "page_size is 2, but must be 1 with page_indptr");
  in_list([](auto* p) { p->cache.block_table = some; }, "block_table is set, but page_indptr says");
  in_list([](auto* p) { p->cache.page_indptr = nullptr; },
          "block_table is NULL, but keys in pages need it, and block_table_stride; or page_indptr");
  in_list([](auto* p) { p->cache.page_indices = nullptr; },
          "page_indices is NULL, but this cache needs 18 numbers");
  in_list(
      [](auto* p) {
        const auto* bytes = reinterpret_cast<const unsigned char*>(p->page_indices.data());
        p->cache.page_indices = reinterpret_cast<const int32_t*>(bytes + 1);
      },
      "must be aligned to 4 bytes");
  in_place([](auto* p) { p->problem.dropout_p = 0.5f; },
           "dropout_p is set, but attention over a cache has no dropout");
  in_place([](auto* p) { p->problem.bias = ATTN_BIAS_ELEMENTWISE; },
           "bias is set, but attention over a cache has no elementwise bias");
  for (const int32_t splits : {-1, 129}) {
    CacheProblem p(shape_of(Storage::kPages, false), ATTN_DTYPE_FP32);
    attn_kvcache_fwd_args args = p.args();
    args.splits = splits;
    expect_refused(p, args, "splits is " + std::to_string(splits) + ", but must be from 1 to 128");
  }
  CacheProblem p(shape_of(Storage::kInPlace, true), ATTN_DTYPE_FP32);
  attn_kvcache_fwd_args args = p.args();
  args.min_seqlen_q = 1;
  expect_refused(p, args, "min_seqlen_q is set, but keys are in place");
}

TEST(KvcacheTest, GroupModeIsChecked) {
  static const int32_t some[8] = {};
  const auto packed = [](auto spoil, const std::string& part) {
    expect_refused(Storage::kInPlace, true, spoil, part);
  };
  packed([](auto* p) { p->cache.seqlens_k = some; },
         "seqlens_k is set, but in group mode keys in place are packed by cu_seqlens_k");
  packed([](auto* p) { p->cache.batch_index = some; }, "batch_index is set, but in group mode");
  packed([](auto* p) { p->cache.entries = 5; },
         "entries is 5, but packed keys are those of batch, 4, sequences");
  packed([](auto* p) { p->problem.cu_seqlens_k = nullptr; },
         "cu_seqlens_k is NULL, but group mode");
  const auto in_pages = [](auto spoil, const std::string& part) {
    expect_refused(Storage::kPages, true, spoil, part);
  };
  in_pages([](auto* p) { p->cache.seqlens_k = nullptr; }, "cu_seqlens_k is NULL, but group mode");
  in_pages([](auto* p) { p->problem.total_k = 3; },
           "total_k is 3, but must be 0 without cu_seqlens_k");
  in_pages([](auto* p) { p->problem.seqlen_k = 17; },
           "seqlen_k is 17, but must not exceed the room");
  in_pages(
      [](auto* p) {
        p->cu_seqlens_k = {0, 6, 6, 6, 17};
        p->problem.cu_seqlens_k = p->cu_seqlens_k.data();
        p->problem.total_k = 17;
      },
      "seqlens_k[2] is 1, but must be from 0 to 0, the length of the sequence by cu_seqlens_k");
}

// Lengths of keys in pages by their offsets alone, for a caller that cannot read a GPU's memory.
TEST(KvcacheTest, TheSumOfKeysInPagesMayBeLeftOut) {
  CacheProblem p(shape_of(Storage::kPages, true), ATTN_DTYPE_FP32);
  std::vector<int32_t> offsets = {0};
  for (const int32_t length : kLengths) offsets.push_back(offsets.back() + length);
  const auto run = [&](int32_t total) {
    p.cache.seqlens_k = nullptr;
    p.problem.cu_seqlens_k = offsets.data();
    p.problem.total_k = total;
    const attn_kvcache_fwd_args args = p.args();
    return attn_kvcache_fwd(&args);
  };
  ASSERT_EQ(run(offsets.back()), ATTN_OK) << attn_last_error();
  const std::vector<float> lse = p.lse;
  for (float& value : p.lse) value = 1;
  ASSERT_EQ(run(0), ATTN_OK) << attn_last_error();
  EXPECT_EQ(p.lse, lse);
  EXPECT_EQ(run(offsets.back() - 1), kInvalid);
  EXPECT_THAT(attn_last_error(), HasSubstr("cu_seqlens_k[4] is 18, but must equal total_k, 17"));
}

TEST(KvcacheTest, LengthsAndTablesAreChecked) {
  const auto in_place = [](auto spoil, const std::string& part) {
    expect_refused(Storage::kInPlace, false, spoil, part);
  };
  in_place([](auto* p) { p->lengths[3] = 15; },
           "seqlens_k[3] is 15, but must be from 0 to 14, the room of a sequence");
  in_place([](auto* p) { p->lengths[1] = -1; }, "seqlens_k[1] is -1, but must be from 0 to 14");
  in_place([](auto* p) { p->batch_index[2] = 6; },
           "batch_index[2] is 6, but the cache has 6 entries, numbered from 0");
  in_place([](auto* p) { p->batch_index[0] = -1; }, "batch_index[0] is -1, but the cache has");
  const auto in_pages = [](auto spoil, const std::string& part) {
    for (const bool group : {false, true}) expect_refused(Storage::kPages, group, spoil, part);
  };
  in_pages([](auto* p) { p->lengths[0] = 17; }, "seqlens_k[0] is 17, but must be from 0 to 16");
  in_pages([](auto* p) { p->block_table[1] = 9; },
           "block_table[1] is 9, but the cache has 9 pages, numbered from 0");
  in_pages([](auto* p) { p->block_table[14] = -1; },
           "block_table[14] is -1, but the cache has 9 pages");
  const auto in_list = [](auto spoil, const std::string& part) {
    for (const bool group : {false, true}) expect_refused(Storage::kPageList, group, spoil, part);
  };
  in_list([](auto* p) { p->page_indptr[0] = 1; }, "page_indptr[0] is 1, but must be 0");
  in_list([](auto* p) { p->page_indptr[2] = 5; },
          "page_indptr[2] is 5, but must not be less than the one before, 6");
  in_list([](auto* p) { p->page_indptr[4] = 19; },
          "page_indptr[4] - page_indptr[3] is 12, but must not exceed the room of a sequence, 11");
  in_list([](auto* p) { p->page_indices[17] = 21; },
          "page_indices[17] is 21, but the cache has 21 pages, numbered from 0");
  in_list([](auto* p) { p->cache.seqlens_k = p->lengths.data(), p->lengths[2] = 2; },
          "seqlens_k[2] is 2, but must be from 0 to 1, the keys that page_indptr lists");
}

TEST(KvcacheTest, OutputsShareNothingWithTables) {
  for (const Storage storage : {Storage::kInPlace, Storage::kPages, Storage::kPageList}) {
    CacheProblem p(shape_of(storage, false), ATTN_DTYPE_FP32);
    attn_kvcache_fwd_args args = p.args();
    // Room for the LSE, so that it meets nothing but the table.
    std::vector<int32_t> table(std::max(p.lse.size(), p.block_table.size()));
    const auto moved = [&](const std::vector<int32_t>& from) {
      std::copy(from.begin(), from.end(), table.begin());
      return table.data();
    };
    const char* name = "";
    if (storage == Storage::kInPlace) {
      p.cache.batch_index = moved(p.batch_index), name = "batch_index";
    } else if (storage == Storage::kPages) {
      p.cache.block_table = moved(p.block_table), name = "block_table";
    } else {
      p.cache.page_indices = moved(p.page_indices), name = "page_indices";
    }
    args.lse = reinterpret_cast<float*>(table.data());
    expect_refused(p, args, "lse");
    EXPECT_THAT(attn_last_error(), HasSubstr(name));
  }
}

TEST(KvcacheTest, WhatAGpuCannotDoIsRefused) {
  const auto refused = [](Storage storage, bool group, auto spoil, const std::string& part,
                          attn_status expected) {
    CacheProblem p(shape_of(storage, group), ATTN_DTYPE_FP16);
    p.problem.device_type = ATTN_DEVICE_ROCM;
    attn_kvcache_fwd_args args = p.args();
    spoil(&p, &args);
    uint64_t bytes = 0;
    EXPECT_EQ(attn_kvcache_fwd_workspace_size(&args, &bytes), expected);
    EXPECT_THAT(attn_last_error(), HasSubstr(part));
  };
  refused(
      Storage::kPages, false, [](auto*, auto* args) { args->splits = 9; },
      "splits is 9, but kernels combine up to 8", ATTN_ERROR_UNSUPPORTED);
  refused(
      Storage::kPages, true, [](auto*, auto* args) { args->splits = 2, args->min_seqlen_q = 1; },
      "splits is 2, but kernels that leave sequences out, as min_seqlen_q asks, do not split keys",
      ATTN_ERROR_UNSUPPORTED);
  refused(
      Storage::kPageList, true, [](auto*, auto* args) { args->splits = 2; },
      "splits is 2, but kernels over page_indptr do not split keys", ATTN_ERROR_UNSUPPORTED);
  refused(
      Storage::kPageList, true, [](auto*, auto* args) { args->min_seqlen_q = 1; },
      "min_seqlen_q is 1, but kernels over page_indptr leave no sequence out",
      ATTN_ERROR_UNSUPPORTED);
  refused(
      Storage::kPageList, true, [](auto* p, auto*) { p->cache.seqlens_k = p->lengths.data(); },
      "seqlens_k is set, but kernels over page_indptr take its differences",
      ATTN_ERROR_UNSUPPORTED);
  refused(
      Storage::kPageList, true, [](auto*, auto* args) { args->v.stride_batch = 1 << 30; },
      "v.stride_batch is 1073741824, but over", kInvalid);
  refused(
      Storage::kPages, false,
      [](auto* p, auto*) {
        p->problem.batch = 1 << 20;
        p->cache.block_table_stride = 1 << 11;
        p->problem.seqlen_k = 1 << 13;
      },
      "block_table_stride is 2048, but over 1048576 rows it exceeds the 2147483647 entries",
      kInvalid);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::attention
