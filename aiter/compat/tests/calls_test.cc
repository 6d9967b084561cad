// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Answers of AITER's interface: milliseconds, checks, and the refusals, which name AITER's fields.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mha_bwd.h>
#include <mha_fwd.h>

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/attention/test_launch_table.h"
#include "tests/support/runtime/recorder.h"

namespace {

using AITER_ATTN_NAMESPACE::testing::Environment;
using AITER_ATTN_NAMESPACE::testing::Recorder;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Two entries of 32 queries and keys, two heads of 64, in either mode.
constexpr int kBatch = 2, kRows = 32, kHeads = 2, kSize = 64;

class Calls : public ::testing::Test {
 protected:
  struct alignas(256) Tensor {
    std::array<uint16_t, kBatch * kRows * kHeads * kSize> elements = {};
  };

  template <typename Args>
  void fill(Args* a) {
    a->data_type = "fp16";
    a->q_ptr = tensors_[0].elements.data();
    a->k_ptr = tensors_[1].elements.data();
    a->v_ptr = tensors_[2].elements.data();
    a->o_ptr = tensors_[3].elements.data();
    a->lse_ptr = lse_;
    a->seqlen_q = a->seqlen_k = a->max_seqlen_q = kRows;
    a->batch = kBatch;
    a->hdim_q = a->hdim_v = kSize;
    a->nhead_q = a->nhead_k = kHeads;
    a->stride_q = a->stride_k = a->stride_v = a->stride_o = kHeads * kSize;
    a->nhead_stride_q = a->nhead_stride_k = a->nhead_stride_v = a->nhead_stride_o = kSize;
    a->batch_stride_q = a->batch_stride_k = a->batch_stride_v = a->batch_stride_o =
        kRows * kHeads * kSize;
    a->window_size_left = a->window_size_right = -1;
  }

  template <typename Args>
  void make_group(Args* a) {
    a->is_group_mode = true;
    a->seqstart_q_ptr = a->seqstart_k_ptr = starts_;
    a->seqlen_q = a->seqlen_k = kBatch * kRows;
  }

  aiter::mha_fwd_args forward_args(bool group) {
    aiter::mha_fwd_args a{};
    fill(&a);
    a.has_lse = true;
    a.nhead_stride_lse = group ? kBatch * kRows : kRows;
    a.batch_stride_lse = kHeads * kRows;
    a.scale_s = 0.125f;
    if (group) make_group(&a);
    return a;
  }

  aiter::mha_bwd_args backward_args(bool group) {
    aiter::mha_bwd_args a{};
    fill(&a);
    a.do_ptr = tensors_[4].elements.data();
    a.dq_ptr = tensors_[5].elements.data();
    a.dk_ptr = tensors_[6].elements.data();
    a.dv_ptr = tensors_[7].elements.data();
    a.max_seqlen_k = kRows;
    a.scale = 0.125f;
    a.p_undrop = 1;
    a.stride_do = a.stride_dq = a.stride_dk = a.stride_dv = kHeads * kSize;
    a.nhead_stride_do = a.nhead_stride_dq = a.nhead_stride_dk = a.nhead_stride_dv = kSize;
    a.batch_stride_do = a.batch_stride_dq = a.batch_stride_dk = a.batch_stride_dv =
        kRows * kHeads * kSize;
    a.nhead_stride_lsed = group ? kBatch * kRows : kRows;
    a.batch_stride_lsed = kHeads * kRows;
    if (group) make_group(&a);
    return a;
  }

  // The call's answer; message_ is what it says.
  template <typename Args>
  float call(const Args& args, const ck_tile::stream_config& stream = {}) {
    ::testing::internal::CaptureStderr();
    float answer;
    if constexpr (std::is_same_v<Args, aiter::mha_fwd_args>) {
      answer = aiter::mha_fwd(args, stream);
    } else {
      answer = aiter::mha_bwd(args, stream);
    }
    message_ = ::testing::internal::GetCapturedStderr();
    return answer;
  }

  template <typename Args>
  void expect_refused(const Args& args, const std::string& text) {
    const Recorder recorder;
    EXPECT_EQ(call(args), -1) << text;
    EXPECT_EQ(recorder.order(), "") << text;
    const bool forward = std::is_same_v<Args, aiter::mha_fwd_args>;
    EXPECT_THAT(message_, StartsWith((forward ? "aiter::mha_fwd: " : "aiter::mha_bwd: ") + text));
  }

  std::array<Tensor, 8> tensors_;
  float lse_[kBatch * kRows * kHeads] = {};
  const int32_t starts_[kBatch + 1] = {0, kRows, 2 * kRows};
  std::string message_;
};

TEST_F(Calls, AreServedAsTheyAre) {
  for (const bool group : {false, true}) {
    EXPECT_EQ(call(forward_args(group)), 0) << message_;
    EXPECT_EQ(call(backward_args(group)), 0) << message_;
    EXPECT_EQ(message_, "");
  }
}

TEST_F(Calls, AreTimedWhereTheyAreAsked) {
  // The recording GPU takes a millisecond for a launch: one forward, three backward.
  const ck_tile::stream_config stream{nullptr, true, 0};
  Recorder forward;
  EXPECT_EQ(call(forward_args(false), stream), 1) << message_;
  EXPECT_EQ(forward.of(kRecordedLaunch).size(), 13u);
  Recorder backward;
  EXPECT_EQ(call(backward_args(false), stream), 3) << message_;
  EXPECT_EQ(backward.of(kRecordedLaunch).size(), 3 * 13u);

  const ck_tile::stream_config no_runs{nullptr, true, 0, 3, 0};
  EXPECT_EQ(call(forward_args(false), no_runs), -1);
  EXPECT_THAT(message_, HasSubstr("stream.nrepeat_ is 0, but must be at least 1"));
}

// The table by hand has no kernels of AITER's.
TEST_F(Calls, OfWhichOnlyTheAssemblyIsAskedFor) {
  aiter::mha_fwd_args fwd = forward_args(false);
  fwd.use_asm_v3 = fwd.v3_api_check = true;
  fwd.how_v3_bf16_cvt = 1;
  aiter::mha_bwd_args bwd = backward_args(false);
  bwd.use_asm_v3 = bwd.v3_api_check = true;
  const Recorder recorder;
  EXPECT_EQ(call(fwd), -1);
  EXPECT_EQ(message_, "");
  EXPECT_EQ(call(bwd), -1);
  EXPECT_EQ(message_, "");
  EXPECT_EQ(recorder.order(), "");
  // Without the check Composable Kernel's serve.
  fwd.v3_api_check = bwd.v3_api_check = false;
  EXPECT_EQ(call(fwd), 0) << message_;
  EXPECT_EQ(call(bwd), 0) << message_;
}

TEST_F(Calls, WithoutLseTakeMemoryOfThePool) {
  aiter::mha_fwd_args args = forward_args(false);
  args.has_lse = false;
  const Recorder recorder;
  EXPECT_EQ(call(args), 0) << message_;
  EXPECT_EQ(recorder.living(), 0u);
  const Environment fail("AITER_RECORDING_HIP_FAIL", "hipMallocAsync=2");
  EXPECT_EQ(call(args), -1);
  EXPECT_THAT(message_, HasSubstr("hipMallocAsync failed with HIP's error 2"));
}

TEST_F(Calls, OnADeviceThatIsNotThere) {
  const Environment fail("AITER_RECORDING_HIP_FAIL", "hipGetDevice=101");
  EXPECT_EQ(call(forward_args(false)), -1);
  EXPECT_THAT(message_, HasSubstr("hipGetDevice failed with HIP's error 101"));
}

template <typename Args>
struct Bad {
  std::function<void(Args*)> edit;
  const char* text;
};

// Of both structs.
template <typename Args>
std::vector<Bad<Args>> common() {
  static const int32_t sums[] = {0, 1, 2};
  return {
      {[](Args* a) { a->data_type = "fp64"; }, "data_type is fp64, but must be fp16 or bf16"},
      {[](Args* a) { a->data_type = ""; }, "data_type is \"\", but must be fp16 or bf16"},
      {[](Args* a) { a->data_type = "fp8bf16"; }, "data_type is fp8bf16, but must be fp16"},
      {[](Args* a) { a->q_ptr = nullptr; }, "q_ptr is NULL"},
      {[](Args* a) { a->k_ptr = nullptr; }, "k_ptr is NULL"},
      {[](Args* a) { a->o_ptr = nullptr; }, "o_ptr is NULL"},
      {[](Args* a) { a->lse_ptr = nullptr; }, "lse_ptr is NULL"},
      {[](Args* a) { a->mask_type = 4; }, "mask_type is 4, but must be 0 (none), 1"},
      {[](Args* a) { a->mask_type = -1; }, "mask_type is -1"},
      {[](Args* a) { a->bias_type = 3; }, "bias_type is 3, but must be 0 (none), 1 (elementwise)"},
      {[](Args* a) { a->bias_type = 1; }, "bias_ptr is NULL, but bias_type 1 needs one"},
      {[](Args* a) { a->hdim_q = 0; }, "hdim_q is 0"},
      {[](Args* a) { a->nhead_k = 3; }, "nhead_k is 3, but must divide heads_q, 2"},
      {[](Args* a) { a->batch = -1; }, "batch is -1"},
      {[](Args* a) { a->max_seqlen_q = 31; }, "max_seqlen_q is 31, but must be seqlen_q, 32"},
      {[](Args* a) { a->stride_q = -8; }, "stride_q is -8"},
      {[](Args* a) { a->nhead_stride_k = 7; }, "nhead_stride_k is 7"},
      {[](Args* a) { a->seqstart_q_ptr = sums; }, "seqstart_q_ptr is 0x"},
      {[](Args* a) { a->seqlen_k_ptr = sums; }, "seqlen_k_ptr is 0x"},
  };
}

template <typename Args>
std::vector<Bad<Args>> common_in_groups() {
  static const int32_t sums[] = {0, 1, 2};
  return {
      {[](Args* a) { a->seqstart_q_ptr = nullptr; }, "seqstart_q_ptr is NULL"},
      {[](Args* a) { a->seqlen_q_ptr = a->cu_seqlen_q_ptr = sums; }, "cu_seqlen_q_ptr is 0x"},
      {[](Args* a) { a->seqlen_k_ptr = a->cu_seqlen_k_ptr = sums; }, "cu_seqlen_k_ptr is 0x"},
      {[](Args* a) { a->max_seqlen_q = -1; }, "max_seqlen_q is -1"},
  };
}

using Fwd = aiter::mha_fwd_args;
using Bwd = aiter::mha_bwd_args;

TEST_F(Calls, ForwardRefuses) {
  static const uint64_t numbers[3] = {};
  std::vector<Bad<Fwd>> all = common<Fwd>();
  all.insert(
      all.end(),
      {
          {[](Fwd* a) { a->seqlen_k = -1; }, "seqlen_k is -1"},
          {[](Fwd* a) { a->scale_s = 0; }, "scale_s is 0"},
          {[](Fwd* a) { a->logits_soft_cap = -1; }, "logits_soft_cap is -1"},
          {[](Fwd* a) { a->p_drop = 1; }, "p_drop is 1"},
          {[](Fwd* a) { a->how_v3_bf16_cvt = 3; }, "how_v3_bf16_cvt is 3, but must be 0 (nearest"},
          {[](Fwd* a) { a->qscale_type = 1; }, "qscale_type is 1, but must be 0"},
          {[](Fwd* a) { a->sink_size = 4; }, "sink_size is 4, but must be 0"},
          {[](Fwd* a) { a->s_randval = true; }, "s_randval is true, but must be false"},
          {[](Fwd* a) { a->nhead_stride_lse = 40; },
           "nhead_stride_lse is 40, but must be seqlen_q, 32"},
          {[](Fwd* a) { a->batch_stride_lse = 40; },
           "batch_stride_lse is 40, but must be nhead_q * seqlen_q, 64"},
          {[](Fwd* a) {
             a->p_drop = 0.5f;
             a->drop_seed_offset = std::pair<const void*, const void*>(numbers, numbers + 2);
           },
           "drop_seed_offset is the pointers 0x"},
          {[](Fwd* a) {
             a->p_drop = 0.5f;
             a->drop_seed_offset = std::pair<const void*, const void*>(nullptr, numbers);
           },
           "drop_seed_offset is the pointers 0"},
      });
  for (const Bad<Fwd>& bad : all) {
    Fwd args = forward_args(false);
    bad.edit(&args);
    expect_refused(args, bad.text);
  }
  std::vector<Bad<Fwd>> in_groups = common_in_groups<Fwd>();
  in_groups.push_back({[](Fwd* a) { a->nhead_stride_lse = 40; },
                       "nhead_stride_lse is 40, but must be at least seqlen_q, 64"});
  in_groups.push_back({[](Fwd* a) { a->min_seqlen_q = -1; }, "min_seqlen_q is -1"});
  for (const Bad<Fwd>& bad : in_groups) {
    Fwd args = forward_args(true);
    bad.edit(&args);
    expect_refused(args, bad.text);
  }
}

TEST_F(Calls, BackwardRefuses) {
  static const uint64_t numbers[3] = {};
  std::vector<Bad<Bwd>> all = common<Bwd>();
  all.insert(
      all.end(),
      {
          {[](Bwd* a) { a->scale = 0; }, "scale is 0"},
          {[](Bwd* a) { a->cu_seqlen_q_ptr = numbers; }, "cu_seqlen_q_ptr is 0x"},
          {[](Bwd* a) { a->do_ptr = nullptr; }, "do_ptr is NULL"},
          {[](Bwd* a) { a->dv_ptr = nullptr; }, "dv_ptr is NULL"},
          {[](Bwd* a) { a->v3_bf16_cvt = -1; }, "v3_bf16_cvt is -1"},
          {[](Bwd* a) { a->is_store_randval = true; }, "is_store_randval is true"},
          {[](Bwd* a) { a->max_seqlen_k = 31; }, "max_seqlen_k is 31, but must be seqlen_k, 32"},
          {[](Bwd* a) { a->has_dbias = true; }, "has_dbias is true, but bias_type is 0"},
          {[](Bwd* a) { a->nhead_stride_lsed = 40; }, "nhead_stride_lsed is 40"},
          {[](Bwd* a) { a->batch_stride_lsed = 40; }, "batch_stride_lsed is 40"},
          {[](Bwd* a) {
             a->has_dropout = true;
             a->p_drop = 0.5f;
           },
           "p_undrop is 1, but must be 1 - p_drop, 0.5"},
          {[](Bwd* a) {
             a->has_dropout = true;
             a->p_drop = a->p_undrop = 0.5f;
             a->drop_seed_offset = std::pair<const void*, const void*>(numbers, numbers + 2);
           },
           "drop_seed_offset is the pointers 0x"},
          {[](Bwd* a) {
             a->nhead_q = 4;
             a->has_dropout = true;
             a->p_drop = a->p_undrop = 0.5f;
             a->batch_stride_lsed = 4 * kRows;
             a->drop_seed_offset = std::pair<const void*, const void*>(numbers, numbers + 1);
           },
           "nhead_k is 2 beside nhead_q 4, which is not served with dropout's offset on the "
           "device"},
      });
  for (const Bad<Bwd>& bad : all) {
    Bwd args = backward_args(false);
    bad.edit(&args);
    expect_refused(args, bad.text);
  }
  std::vector<Bad<Bwd>> in_groups = common_in_groups<Bwd>();
  in_groups.push_back({[](Bwd* a) {
                         a->nhead_q = 4;
                         a->has_dropout = true;
                         a->p_drop = a->p_undrop = 0.5f;
                       },
                       "nhead_k is 2 beside nhead_q 4, which is not served with dropout in group"});
  in_groups.push_back({[](Bwd* a) { a->max_seqlen_k = -1; }, "max_seqlen_k is -1"});
  for (const Bad<Bwd>& bad : in_groups) {
    Bwd args = backward_args(true);
    bad.edit(&args);
    expect_refused(args, bad.text);
  }
}

// Fields that not every pin has.

template <typename Args>
auto give_no_memory(Args* args, int) -> decltype(args->workspace_alloc, bool()) {
  args->workspace_alloc = [](size_t, bool) -> void* { return nullptr; };
  return true;
}
template <typename Args>
bool give_no_memory(Args*, long) {
  return false;
}

template <typename Args>
auto throw_for_memory(Args* args, int) -> decltype(args->workspace_alloc, bool()) {
  args->workspace_alloc = [](size_t, bool) -> void* { throw std::runtime_error("no more today"); };
  return true;
}
template <typename Args>
bool throw_for_memory(Args*, long) {
  return false;
}

template <typename Args>
auto set_sink(const float* sink, Args* args, int) -> decltype(args->sink_ptr, bool()) {
  args->sink_ptr = sink;
  return true;
}
template <typename Args>
bool set_sink(const float*, Args*, long) {
  return false;
}

TEST_F(Calls, BackwardAsksForMemory) {
  Bwd args = backward_args(false);
  if (give_no_memory(&args, 0)) expect_refused(args, "workspace_alloc returned NULL for ");
  if (throw_for_memory(&args, 0)) expect_refused(args, "no more today");
}

TEST_F(Calls, BackwardRefusesSinksByEntry) {
  Bwd args = backward_args(false);
  if (set_sink(lse_, &args, 0)) expect_refused(args, "sink_ptr is 0x");
}

}  // namespace
