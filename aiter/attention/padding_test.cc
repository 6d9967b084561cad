// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Padded sequences on the CPU: results are those of the same sequences without padding, and no row
// of padding is read (it is NaN) or written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "aiter/attn.h"
#include "tests/support/attention/problems.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using namespace testing;
using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kUntouched = 7;
constexpr int32_t kHeadsQ = 4, kHeadsK = 2, kSize = 8, kBatch = 5;

// Of five sequences: their rooms, and what is used of them: all, some, no query, no key, nothing.
const std::vector<int32_t> kRoomQ = {6, 9, 4, 7, 3}, kUsedQ = {6, 5, 0, 7, 0};
const std::vector<int32_t> kRoomK = {8, 9, 5, 3, 9}, kUsedK = {8, 2, 5, 0, 0};

std::vector<int32_t> starts(const std::vector<int32_t>& lengths) {
  std::vector<int32_t> all = {0};
  for (const int32_t length : lengths) all.push_back(all.back() + length);
  return all;
}

enum class Side { kQueries, kKeys };

const std::vector<int32_t>& used_of(Side side) { return side == Side::kQueries ? kUsedQ : kUsedK; }

// A problem says which rows are used by seqused_*, or by cu_seqused_*.
enum class Form { kNumbers, kSums };

// Of a row, in buffers.
struct Place {
  int64_t entry, row;
};

// A problem whose sequences are padded, in either mode, and the packed one of the used rows.
class PaddedTest : public ::testing::TestWithParam<std::tuple<attn_mode, Form>> {
 protected:
  PaddedTest()
      : padded_({kBatch, kHeadsQ, kHeadsK, 9, 9, kSize, kSize}, ATTN_DTYPE_FP32, 1,
                is_group() ? starts(kRoomQ) : std::vector<int32_t>(),
                is_group() ? starts(kRoomK) : std::vector<int32_t>()),
        packed_({kBatch, kHeadsQ, kHeadsK, 9, 9, kSize, kSize}, ATTN_DTYPE_FP32, 2, starts(kUsedQ),
                starts(kUsedK)) {
    for (TestProblem* p : {&padded_, &packed_}) {
      p->problem.mask = ATTN_MASK_BOTTOM_RIGHT;
      p->problem.window_right = 1;
      p->problem.window_left = 4;
    }
    use(Side::kQueries, kUsedQ);
    use(Side::kKeys, kUsedK);
    for (Buffer* buffer : {&padded_.q, &padded_.k, &padded_.v, &padded_.dout}) buffer->fill(kNan);
    for (Buffer* buffer : {&padded_.o, &padded_.dq, &padded_.dk, &padded_.dv}) {
      buffer->fill(kUntouched);
    }
    padded_.lse.assign(padded_.lse.size(), kUntouched);
    copy(packed_.q, &padded_.q, Side::kQueries);
    copy(packed_.dout, &padded_.dout, Side::kQueries);
    copy(packed_.k, &padded_.k, Side::kKeys);
    copy(packed_.v, &padded_.v, Side::kKeys);
  }

  static bool is_group() { return std::get<attn_mode>(GetParam()) == ATTN_MODE_GROUP; }
  static bool by_sums() { return std::get<Form>(GetParam()) == Form::kSums; }

  // The padded problem uses so many rows of its sequences.
  void use(Side side, const std::vector<int32_t>& rows) {
    const bool queries = side == Side::kQueries;
    attn_problem& p = padded_.problem;
    if (by_sums()) {
      sums_[queries] = starts(rows);
      (queries ? p.cu_seqused_q : p.cu_seqused_k) = sums_[queries].data();
    } else {
      (queries ? p.seqused_q : p.seqused_k) = rows.data();
    }
  }

  // Of row i of sequence b of the padded problem.
  Place place(Side side, int b, int64_t i) const {
    if (!is_group()) return {b, i};
    return {0, (side == Side::kQueries ? padded_.cu_seqlens_q : padded_.cu_seqlens_k)[b] + i};
  }

  void copy(const Buffer& from, Buffer* to, Side side) const {
    int64_t packed = 0;
    for (int b = 0; b < kBatch; ++b) {
      for (int64_t i = 0; i < used_of(side)[b]; ++i, ++packed) {
        const Place at = place(side, b, i);
        for (int64_t h = 0; h < from.extents().heads; ++h) {
          for (int64_t c = 0; c < kSize; ++c) {
            to->set(at.entry, at.row, h, c, from.get(0, packed, h, c));
          }
        }
      }
    }
  }

  // `to` has `from` in its used rows, and nothing in the others.
  void expect_rows(const Buffer& from, const Buffer& to, Side side) const {
    Buffer wanted(to.extents(), ATTN_DTYPE_FP32);
    wanted.fill(kUntouched);
    copy(from, &wanted, side);
    const Extents& e = to.extents();
    for (int64_t b = 0; b < e.batch; ++b) {
      for (int64_t i = 0; i < e.seq; ++i) {
        for (int64_t h = 0; h < e.heads; ++h) {
          for (int64_t c = 0; c < kSize; ++c) {
            ASSERT_EQ(to.get(b, i, h, c), wanted.get(b, i, h, c)) << b << " " << i << " " << h;
          }
        }
      }
    }
  }

  TestProblem padded_, packed_;
  std::vector<int32_t> sums_[2];
};

TEST_P(PaddedTest, ForwardIsThatOfTheUsedRows) {
  const attn_fwd_args padded = padded_.fwd(), packed = packed_.fwd();
  ASSERT_EQ(attn_fwd(&packed), ATTN_OK) << attn_last_error();
  ASSERT_EQ(attn_fwd(&padded), ATTN_OK) << attn_last_error();
  expect_rows(packed_.o, padded_.o, Side::kQueries);
  std::vector<float> wanted(padded_.lse.size(), kUntouched);
  const int64_t rows = is_group() ? padded_.problem.total_q : padded_.problem.seqlen_q;
  for (int64_t h = 0; h < kHeadsQ; ++h) {
    int64_t from = h * packed_.problem.total_q;
    for (int b = 0; b < kBatch; ++b) {
      for (int64_t i = 0; i < kUsedQ[b]; ++i) {
        const Place at = place(Side::kQueries, b, i);
        wanted[(at.entry * kHeadsQ + h) * rows + at.row] = packed_.lse[from++];
      }
    }
  }
  EXPECT_EQ(padded_.lse, wanted);
}

TEST_P(PaddedTest, BackwardIsThatOfTheUsedRows) {
  const attn_fwd_args forward[] = {padded_.fwd(), packed_.fwd()};
  for (const attn_fwd_args& args : forward) {
    ASSERT_EQ(attn_fwd(&args), ATTN_OK) << attn_last_error();
  }
  const attn_bwd_args backward[] = {padded_.bwd(), packed_.bwd()};
  for (const attn_bwd_args& args : backward) {
    ASSERT_EQ(attn_bwd(&args), ATTN_OK) << attn_last_error();
  }
  expect_rows(packed_.dq, padded_.dq, Side::kQueries);
  expect_rows(packed_.dk, padded_.dk, Side::kKeys);
  expect_rows(packed_.dv, padded_.dv, Side::kKeys);
}

TEST_P(PaddedTest, OnlyOneSideMayBePadded) {
  // All keys of the room are used then, NaNs in it too.
  padded_.problem.seqused_k = padded_.problem.cu_seqused_k = nullptr;
  padded_.k.fill(0.5), padded_.v.fill(0.25);
  padded_.problem.mask = ATTN_MASK_NONE;
  padded_.problem.window_left = padded_.problem.window_right = -1;
  const attn_fwd_args args = padded_.fwd();
  ASSERT_EQ(attn_fwd(&args), ATTN_OK) << attn_last_error();
  const Place first = place(Side::kQueries, 1, 4), behind = place(Side::kQueries, 1, 5);
  EXPECT_NEAR(padded_.o.get(first.entry, first.row, 0, 0), 0.25, 1e-6);
  EXPECT_EQ(padded_.o.get(behind.entry, behind.row, 0, 0), kUntouched);
}

TEST_P(PaddedTest, NumbersThatNoSequenceHasAreRefused) {
  const auto refuses = [this](const std::string& message, attn_status status) {
    const attn_fwd_args args = padded_.fwd();
    EXPECT_EQ(attn_fwd(&args), status);
    EXPECT_THAT(attn_last_error(), HasSubstr(message));
  };
  std::vector<int32_t> used = kUsedK;
  used[3] = -1;
  use(Side::kKeys, used);
  refuses(by_sums() ? "cu_seqused_k[4] is 14, but must not be less than the one before, 15"
                    : "seqused_k[3] is -1, but must be from 0 to ",
          ATTN_ERROR_INVALID_ARGUMENT);
  used[3] = is_group() ? 4 : 10;
  use(Side::kKeys, used);
  const std::string field = by_sums() ? "cu_seqused_k[4] - cu_seqused_k[3]" : "seqused_k[3]";
  refuses(field + (is_group() ? " is 4, but must be from 0 to 3, the rows of the sequence"
                              : " is 10, but must be from 0 to 9, seqlen_k"),
          ATTN_ERROR_INVALID_ARGUMENT);
}

TEST_P(PaddedTest, AnArrayOfTheOtherFormIsRefusedBesideIt) {
  const std::vector<int32_t> sums = starts(kUsedQ);
  padded_.problem.seqused_q = kUsedQ.data();
  padded_.problem.cu_seqused_q = sums.data();
  const attn_fwd_args args = padded_.fwd();
  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(attn_last_error(), HasSubstr("must be NULL beside seqused_q, which says the same"));
}

TEST_P(PaddedTest, AnArrayOfUsedRowsIsNoOutput) {
  attn_problem& p = padded_.problem;
  const int32_t*& used = by_sums() ? p.cu_seqused_q : p.seqused_q;
  // With room for all of lse, which else would meet what lies behind.
  std::vector<int32_t> room(int64_t{kHeadsQ} * padded_.lse.size());
  std::copy_n(used, kBatch + (by_sums() ? 1 : 0), room.data());
  used = room.data();
  attn_fwd_args args = padded_.fwd();
  args.lse = reinterpret_cast<float*>(room.data());
  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(attn_last_error(), HasSubstr(by_sums() ? "cu_seqused_q" : "seqused_q"));
}

TEST_P(PaddedTest, TheDropoutMaskIsThatOfTheUsedRows) {
  std::vector<uint8_t> kept[2];
  for (const bool packed : {false, true}) {
    TestProblem& test = packed ? packed_ : padded_;
    test.problem.seqlen_k = 9;
    test.problem.dropout_p = 0.5f;
    test.problem.dropout_seed = 3;
    const int64_t rows =
        int64_t{test.problem.mode == ATTN_MODE_GROUP ? test.problem.total_q : kBatch * 9};
    kept[packed].assign(rows * kHeadsQ * 9, kUntouched);
    attn_dropout_mask_args args = {};
    args.struct_size = sizeof(args);
    args.problem = &test.problem;
    args.kept = kept[packed].data();
    ASSERT_EQ(attn_dropout_mask(&args), ATTN_OK) << attn_last_error();
  }
  std::vector<uint8_t> wanted(kept[0].size(), kUntouched);
  const int64_t rows = is_group() ? padded_.problem.total_q : padded_.problem.seqlen_q;
  for (int64_t h = 0; h < kHeadsQ; ++h) {
    int64_t from = h * packed_.problem.total_q;
    for (int b = 0; b < kBatch; ++b) {
      for (int64_t i = 0; i < kUsedQ[b]; ++i, ++from) {
        const Place at = place(Side::kQueries, b, i);
        std::copy_n(&kept[1][from * 9], 9, &wanted[((at.entry * kHeadsQ + h) * rows + at.row) * 9]);
      }
    }
  }
  EXPECT_EQ(kept[0], wanted);
}

TEST_P(PaddedTest, SumsMustBeginWithZero) {
  if (!by_sums()) return;
  sums_[0][0] = 1;
  const attn_fwd_args args = padded_.fwd();
  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(attn_last_error(), HasSubstr("cu_seqused_k[0] is 1, but must be 0"));
}

class PaddedBatchTest : public PaddedTest {};

TEST_P(PaddedBatchTest, OnTheGpuWhatKernelsDoNotTakeIsRefused) {
  padded_.problem.device_type = ATTN_DEVICE_ROCM;
  padded_.problem.dtype = ATTN_DTYPE_FP16;
  const attn_bwd_args backward = padded_.bwd();
  EXPECT_EQ(attn_bwd(&backward), ATTN_ERROR_UNSUPPORTED);
  const std::string field = by_sums() ? "cu_seqused_q" : "seqused_q";
  EXPECT_THAT(attn_last_error(), HasSubstr(field + " is set in batch mode, but kernels take padded "
                                                   "sequences in group mode alone: set mode"));
  if (by_sums()) return;
  const attn_fwd_args forward = padded_.fwd();
  EXPECT_EQ(attn_fwd(&forward), ATTN_ERROR_UNSUPPORTED);
  EXPECT_THAT(attn_last_error(), HasSubstr("seqused_q is set in batch mode, where kernels take "
                                           "cu_seqused_q alone: pass the sums"));
}

// In batch mode seqlen_q is the room.
class PaddedGroupTest : public PaddedTest {};

TEST_P(PaddedGroupTest, ARoomMayExceedTheLongestUsedSequence) {
  padded_.problem.seqlen_q = 7;
  const attn_fwd_args args = padded_.fwd();
  EXPECT_EQ(attn_fwd(&args), ATTN_OK) << attn_last_error();
  padded_.problem.seqlen_q = 6;
  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(attn_last_error(),
              HasSubstr(by_sums() ? "cu_seqused_q[4] - cu_seqused_q[3] is 7, but must be "
                                    "from 0 to 6, seqlen_q"
                                  : "seqused_q[3] is 7, but must be from 0 to "
                                    "6, seqlen_q"));
}

const auto kForms = ::testing::Values(Form::kNumbers, Form::kSums);

std::string name_of(const ::testing::TestParamInfo<std::tuple<attn_mode, Form>>& info) {
  const auto [mode, form] = info.param;
  return std::string(mode == ATTN_MODE_BATCH ? "batch" : "group") +
         (form == Form::kSums ? "_by_sums" : "");
}

INSTANTIATE_TEST_SUITE_P(Batch, PaddedBatchTest,
                         ::testing::Combine(::testing::Values(ATTN_MODE_BATCH), kForms), name_of);
INSTANTIATE_TEST_SUITE_P(Group, PaddedGroupTest,
                         ::testing::Combine(::testing::Values(ATTN_MODE_GROUP), kForms), name_of);
INSTANTIATE_TEST_SUITE_P(Modes, PaddedTest,
                         ::testing::Combine(::testing::Values(ATTN_MODE_BATCH, ATTN_MODE_GROUP),
                                            kForms),
                         name_of);

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::attention
