// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The refusals of the norms' C ABI, with their texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "aiter/norm.h"

namespace AITER_ATTN_NAMESPACE::norm {
namespace {

using ::testing::HasSubstr;
using ::testing::StrEq;

constexpr attn_status kInvalid = ATTN_ERROR_INVALID_ARGUMENT;
constexpr attn_status kMismatch = ATTN_ERROR_ABI_MISMATCH;

constexpr int kRows = 4, kColumns = 8;

// Memory for every operand of a call; args that are valid until a test changes them.
struct Call {
  struct Block {
    alignas(64) float data[kRows * kColumns * 4] = {};
  };
  Block a, b, c, d, e, f, g;
  uint8_t mask[kRows * kColumns] = {};
  attn_norm_problem norm = {};
  attn_softmax_problem softmax = {};
  attn_norm_fwd_args forward = {};
  attn_norm_bwd_args backward = {};
  attn_softmax_fwd_args softmax_forward = {};
  attn_softmax_bwd_args softmax_backward = {};

  Call() {
    norm.struct_size = sizeof(norm);
    norm.kind = ATTN_NORM_LAYER;
    norm.device_type = ATTN_DEVICE_CPU;
    norm.rows = kRows;
    norm.hidden = kColumns;
    norm.x_dtype = norm.weight_dtype = norm.y_dtype = ATTN_DTYPE_FP32;
    softmax.struct_size = sizeof(softmax);
    softmax.device_type = ATTN_DEVICE_CPU;
    softmax.rows = kRows;
    softmax.columns = kColumns;
    softmax.queries = 2;
    softmax.dtype = ATTN_DTYPE_FP32;
    softmax.scale = 1;
    forward.struct_size = sizeof(forward);
    forward.problem = &norm;
    forward.x = {a.data, kColumns};
    forward.y = {b.data, kColumns};
    forward.gamma = c.data;
    forward.rstd = d.data;
    backward.struct_size = sizeof(backward);
    backward.problem = &norm;
    backward.x = {a.data, kColumns};
    backward.dy = {b.data, kColumns};
    backward.dx = {c.data, kColumns};
    backward.gamma = d.data;
    backward.mean = e.data;
    backward.rstd = f.data;
    backward.dgamma = g.data;
    softmax_forward.struct_size = sizeof(softmax_forward);
    softmax_forward.problem = &softmax;
    softmax_forward.x = {a.data, kColumns};
    softmax_forward.y = {b.data, kColumns};
    softmax_backward.struct_size = sizeof(softmax_backward);
    softmax_backward.problem = &softmax;
    softmax_backward.y = {a.data, kColumns};
    softmax_backward.dy = {b.data, kColumns};
    softmax_backward.dx = {c.data, kColumns};
  }
  Call(const Call&) = delete;
};

struct Refusal {
  std::function<void(Call&)> change;
  attn_status status;
  const char* message;  // a part of it
};

void expect_refused(const std::vector<Refusal>& refusals,
                    const std::function<attn_status(const Call&)>& run) {
  const Call valid;
  ASSERT_EQ(run(valid), ATTN_OK) << attn_last_error();
  EXPECT_THAT(attn_last_error(), StrEq(""));
  for (const Refusal& refusal : refusals) {
    Call call;
    refusal.change(call);
    EXPECT_EQ(run(call), refusal.status) << refusal.message;
    EXPECT_THAT(attn_last_error(), HasSubstr(refusal.message));
  }
}

attn_status run_forward(const Call& call) { return attn_norm_fwd(&call.forward); }
attn_status run_backward(const Call& call) { return attn_norm_bwd(&call.backward); }
attn_status run_softmax(const Call& call) { return attn_softmax_fwd(&call.softmax_forward); }
attn_status run_softmax_backward(const Call& call) {
  return attn_softmax_bwd(&call.softmax_backward);
}

TEST(RefusalsTest, NullAndSizesOfStructs) {
  EXPECT_EQ(attn_norm_fwd(nullptr), kInvalid);
  EXPECT_THAT(attn_last_error(), HasSubstr("attn_norm_fwd_args is NULL"));
  EXPECT_EQ(attn_norm_bwd(nullptr), kInvalid);
  EXPECT_EQ(attn_softmax_fwd(nullptr), kInvalid);
  EXPECT_EQ(attn_softmax_bwd(nullptr), kInvalid);
  EXPECT_THAT(attn_last_error(), HasSubstr("attn_softmax_bwd_args is NULL"));
  expect_refused(
      {
          {[](Call& c) { c.forward.problem = nullptr; }, kInvalid, "attn_norm_problem is NULL"},
          {[](Call& c) { c.forward.struct_size = 127; }, kMismatch,
           "attn_norm_fwd_args.struct_size is 127, but must be from 128"},
          {[](Call& c) { c.norm.struct_size = 0; }, kMismatch,
           "attn_norm_problem.struct_size is 0"},
          {[](Call& c) { c.forward.reserved = 1; }, kMismatch,
           "attn_norm_fwd_args.reserved is 1, but must be 0"},
          {[](Call& c) { c.norm.reserved = 2; }, kMismatch, "attn_norm_problem.reserved is 2"},
      },
      run_forward);
}

TEST(RefusalsTest, NewerFieldsThatAreSet) {
  struct {
    attn_softmax_problem problem;
    uint64_t newer;
  } grown;
  Call call;
  call.softmax.struct_size = sizeof(grown);
  grown = {call.softmax, 0};
  call.softmax_forward.problem = &grown.problem;
  EXPECT_EQ(run_softmax(call), ATTN_OK) << attn_last_error();
  grown.newer = 1;
  EXPECT_EQ(run_softmax(call), kMismatch);
  EXPECT_THAT(attn_last_error(), HasSubstr("byte 64 is set"));
}

TEST(RefusalsTest, ProblemOfANorm) {
  expect_refused(
      {
          {[](Call& c) { c.norm.kind = 0; }, kInvalid,
           "kind is 0, but must be 1 (LayerNorm) or 2 (RMSNorm)"},
          {[](Call& c) { c.norm.device_type = 4; }, kInvalid,
           "device_type is 4, but must be 1 (CPU), 2 (CUDA) or 10 (ROCm)"},
          {[](Call& c) { c.norm.device_id = 3; }, kInvalid, "device_id is 3, but must be 0"},
          {[](Call& c) { c.norm.rows = -1; }, kInvalid, "rows is -1, but must be from 0"},
          {[](Call& c) { c.norm.rows = int64_t{1} << 31; }, kInvalid, "rows is 2147483648"},
          {[](Call& c) { c.norm.hidden = 0; }, kInvalid, "hidden is 0, but must be from 1"},
          {[](Call& c) { c.norm.x_dtype = 0; }, kInvalid,
           "x_dtype is 0, but must be 1 (fp16), 2 (bf16) or 3 (fp32)"},
          {[](Call& c) { c.norm.weight_dtype = ATTN_DTYPE_FP8_E4M3; }, kInvalid,
           "weight_dtype is 4"},
          {[](Call& c) { c.norm.y_dtype = 6; }, kInvalid,
           "y_dtype is 6, but must be 1 (fp16), 2 (bf16) or 3 (fp32), 4 (fp8 e4m3) or 5"},
          {[](Call& c) { c.norm.zero_centred = 2; }, kInvalid, "zero_centred is 2"},
          {[](Call& c) { c.norm.epsilon = -1; }, kInvalid, "epsilon is -1"},
          {[](Call& c) { c.norm.epsilon = NAN; }, kInvalid, "epsilon is"},
          {[](Call& c) { c.norm.epsilon = INFINITY; }, kInvalid, "epsilon is inf"},
      },
      run_forward);
  expect_refused({{[](Call& c) { c.norm.y_dtype = ATTN_DTYPE_FP8_E4M3; }, kInvalid,
                   "y_dtype is 4, but must be 1"}},
                 run_backward);
}

TEST(RefusalsTest, OperandsThatDoNotBelong) {
  expect_refused(
      {
          {[](Call& c) {
             c.norm.kind = ATTN_NORM_RMS;
             c.forward.beta = c.e.data;
           },
           kInvalid, "beta is not NULL, but RMSNorm has none: pass NULL"},
          {[](Call& c) {
             c.norm.kind = ATTN_NORM_RMS;
             c.forward.mean = c.e.data;
           },
           kInvalid, "mean is not NULL"},
          {[](Call& c) { c.forward.scale = c.e.data; }, kInvalid,
           "scale is not NULL, but only fp8 outputs are scaled"},
          {[](Call& c) { c.forward.amax = c.e.data; }, kInvalid, "amax is not NULL"},
          {[](Call& c) { c.forward.sum = {c.e.data, kColumns}; }, kInvalid, "residual is NULL"},
          {[](Call& c) { c.forward.residual = {c.e.data, kColumns}; }, kInvalid, "sum is NULL"},
          {[](Call& c) {
             c.forward.gamma = nullptr;
             c.norm.zero_centred = 1;
           },
           kInvalid, "zero_centred is 1, but must be 0 where gamma is NULL"},
      },
      run_forward);
  expect_refused(
      {
          {[](Call& c) { c.norm.kind = ATTN_NORM_RMS; }, kInvalid, "mean is not NULL"},
          {[](Call& c) { c.backward.mean = nullptr; }, kInvalid, "mean is NULL"},
          {[](Call& c) { c.backward.rstd = nullptr; }, kInvalid, "rstd is NULL"},
          {[](Call& c) { c.backward.gamma = nullptr; }, kInvalid,
           "dgamma is not NULL, but gamma is NULL, and what is not there has no gradient"},
      },
      run_backward);
}

TEST(RefusalsTest, LayoutsAndAlignment) {
  expect_refused(
      {
          {[](Call& c) { c.forward.x.stride = -8; }, kInvalid,
           "x.stride is -8, but must be at least 0"},
          {[](Call& c) { c.forward.y.stride = kColumns - 1; }, kInvalid,
           "y.stride is 7, but rows of an output must not overlap: it must be at least 8"},
          {[](Call& c) { c.forward.x.stride = int64_t{1} << 60; }, kInvalid,
           "over 4 rows it exceeds the address space"},
          {[](Call& c) { c.forward.x.data = reinterpret_cast<char*>(c.a.data) + 2; }, kInvalid,
           "must be a multiple of 4, the size of its elements"},
      },
      run_forward);
}

// A sanitizer would report an overflow here.
TEST(RefusalsTest, StridesOfWhatIsNotGivenDoNotMatter) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  Call call;
  call.forward.residual = call.forward.sum = {nullptr, kMost};
  EXPECT_EQ(run_forward(call), ATTN_OK) << attn_last_error();
  call.backward.dh = {nullptr, kMost};
  EXPECT_EQ(run_backward(call), ATTN_OK) << attn_last_error();
}

TEST(RefusalsTest, OutputsThatShareMemory) {
  expect_refused(
      {
          {[](Call& c) { c.forward.y = {c.a.data + 4, kColumns}; }, kInvalid,
           "y overlaps x: an output must share no byte"},
          {[](Call& c) { c.forward.y = {c.a.data, int64_t{2} * kColumns}; }, kInvalid,
           "y overlaps x"},
          {[](Call& c) {
             c.forward.y = c.forward.x;
             c.norm.y_dtype = ATTN_DTYPE_BF16;
           },
           kInvalid, "y overlaps x"},
          {[](Call& c) {
             c.forward.residual = c.forward.x;
             c.forward.sum = c.forward.x;
           },
           kInvalid, "sum overlaps x"},
          {[](Call& c) { c.forward.rstd = c.b.data + 31; }, kInvalid, "rstd overlaps y"},
          {[](Call& c) { c.forward.y.data = c.c.data + 7; }, kInvalid, "y overlaps gamma"},
      },
      run_forward);
  expect_refused({{[](Call& c) { c.backward.dx = c.backward.dy; }, kInvalid, "dx overlaps dy"}},
                 run_backward);
  Call interleaved;  // rows of y lie between those of x
  interleaved.forward.x.stride = interleaved.forward.y.stride = int64_t{2} * kColumns;
  interleaved.forward.y.data = interleaved.a.data + kColumns;
  EXPECT_EQ(run_forward(interleaved), ATTN_OK) << attn_last_error();
}

TEST(RefusalsTest, Scales) {
  const auto with = [](int32_t kind, void (*more)(Call&)) {
    return [kind, more](Call& c) {
      c.norm.y_dtype = ATTN_DTYPE_FP8_E4M3;
      c.forward.scales_kind = kind;
      c.forward.scales = c.e.data;
      more(c);
    };
  };
  expect_refused(
      {
          {with(3, [](Call&) {}), kInvalid, "scales_kind is 3, but must be from 0 to 2"},
          {with(0, [](Call&) {}), kInvalid, "scales is not NULL, but scales_kind is 0"},
          {with(1, [](Call& c) { c.forward.scales = nullptr; }), kInvalid, "scales is NULL"},
          {with(1, [](Call& c) { c.forward.scale = c.d.data; }), kInvalid,
           "scale is not NULL, but the pass makes the scales itself"},
          {with(1, [](Call& c) { c.forward.amax = c.d.data; }), kInvalid, "amax is not NULL"},
          {with(1, [](Call& c) { c.forward.scales = c.b.data; }), kInvalid, "scales overlaps y"},
          {with(2, [](Call&) {}), kInvalid, "hidden is 8, but must be a multiple of 32"},
          {[](Call& c) { c.forward.scales_kind = 1; }, kInvalid,
           "scales_kind is 1, but must be 0 (none): only fp8 outputs have scales"},
          {[](Call& c) { c.forward.scales = c.e.data; }, kInvalid,
           "scales is not NULL, but only fp8 outputs have them"},
          {[](Call& c) { c.forward.reserved2 = 1; }, ATTN_ERROR_ABI_MISMATCH,
           "attn_norm_fwd_args.reserved2 is 1, but must be 0"},
      },
      run_forward);
}

TEST(RefusalsTest, Softmax) {
  expect_refused(
      {
          {[](Call& c) { c.softmax.mask_kind = 3; }, kInvalid,
           "mask_kind is 3, but must be from 0 to 2"},
          {[](Call& c) { c.softmax.device_type = 4; }, kInvalid, "device_type is 4"},
          {[](Call& c) { c.softmax.rows = -4; }, kInvalid, "rows is -4"},
          {[](Call& c) { c.softmax.columns = 0; }, kInvalid, "columns is 0"},
          {[](Call& c) { c.softmax.queries = 0; }, kInvalid, "queries is 0"},
          {[](Call& c) { c.softmax.dtype = ATTN_DTYPE_FP8_E5M2; }, kInvalid, "dtype is 5"},
          {[](Call& c) { c.softmax.scale = NAN; }, kInvalid, "scale is"},
          {[](Call& c) { c.softmax.mask_repeat = 1; }, kInvalid,
           "mask_repeat is 1, but must be 0 without an explicit mask"},
          {[](Call& c) { c.softmax_forward.mask = c.mask; }, kInvalid, "mask is not NULL"},
          {[](Call& c) {
             c.softmax.mask_kind = ATTN_SOFTMAX_MASK_CAUSAL;
             c.softmax.queries = 3;
           },
           kInvalid, "rows is 4, but must be a multiple of queries (3)"},
          {[](Call& c) {
             c.softmax.mask_kind = ATTN_SOFTMAX_MASK_EXPLICIT;
             c.softmax.mask_repeat = 1;
           },
           kInvalid, "mask is NULL"},
          {[](Call& c) {
             c.softmax.mask_kind = ATTN_SOFTMAX_MASK_EXPLICIT;
             c.softmax.mask_repeat = 3;
             c.softmax_forward.mask = c.mask;
           },
           kInvalid, "mask_repeat is 3, but must divide rows / queries (2)"},
      },
      run_softmax);
  expect_refused(
      {{[](Call& c) { c.softmax_backward.dx = c.softmax_backward.y; }, kInvalid, "dx overlaps y"}},
      run_softmax_backward);
}

TEST(RefusalsTest, AnInterruptStopsACall) {
  // One row, so one thread however many cores there are: much more than the time between two polls.
  constexpr int64_t kManyColumns = 1 << 24;
  std::vector<float> x(kManyColumns), y(kManyColumns);
  Call call;
  call.softmax.rows = call.softmax.queries = 1;
  call.softmax.columns = kManyColumns;
  call.softmax_forward.x = {x.data(), kManyColumns};
  call.softmax_forward.y = {y.data(), kManyColumns};
  attn_set_interrupt([](void*) { return 1; }, nullptr);
  const attn_status status = run_softmax(call);
  attn_set_interrupt(nullptr, nullptr);
  EXPECT_EQ(status, ATTN_ERROR_INTERRUPTED) << attn_last_error();
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::norm
