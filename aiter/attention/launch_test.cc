// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The library's calls of a GPU runtime, through the C ABI, against the recording HIP: which code
// object, kernel, grid, block, stream and kernel arguments, in which order.
#include "aiter/attention/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "aiter/attention/code_object.h"
#include "aiter/attention/passes/passes.h"
#include "aiter/attention/problem/error.h"
#include "aiter/attn.h"
#include "aiter/runtime/library_store.h"
#include "aiter/runtime/store/digest.h"
#include "aiter/runtime/store/pack.h"
#include "tests/support/attention/problems.h"
#include "tests/support/attention/table_builder.h"
#include "tests/support/attention/test_launch_table.h"
#include "tests/support/runtime/pack.h"
#include "tests/support/runtime/recorder.h"
#include "tests/support/runtime/tiny_elf.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using namespace testing;
using kernels::LaunchArgs;
using ::testing::HasSubstr;

constexpr const char* kArchs = "AITER_RECORDING_HIP_ARCHS";
constexpr const char* kFail = "AITER_RECORDING_HIP_FAIL";

void* const kStream = reinterpret_cast<void*>(0x5000);

// A problem on the "GPU", whose memory is the host's.
class GpuProblem : public TestProblem {
 public:
  template <typename... Args>
  explicit GpuProblem(Args&&... args) : TestProblem(std::forward<Args>(args)...) {
    problem.device_type = ATTN_DEVICE_ROCM;
    problem.stream = kStream;
  }

  // With a workspace of the size that the library asks for, full of garbage.
  attn_bwd_args bwd_with_workspace(int32_t dbias_sums = 0) {
    attn_bwd_args args = bwd();
    args.dbias_sums = dbias_sums;
    EXPECT_EQ(attn_bwd_workspace_size(&args, &args.workspace_size), ATTN_OK);
    workspace_.assign(args.workspace_size / sizeof(Page) + 1, Page{});
    std::memset(workspace_.data(), 0x5a, workspace_.size() * sizeof(Page));
    args.workspace = workspace_.data();
    return args;
  }

 private:
  struct alignas(256) Page {
    unsigned char bytes[256];
  };
  std::vector<Page> workspace_;
};

std::string image_digest(const std::string& kernel, const char* arch) {
  const std::vector<unsigned char> image = tiny_code_object(kernel, arch);
  return runtime::hex(runtime::sha256(image.data(), image.size()));
}

void expect_launch(const RecordedCall& call, const std::string& kernel, uint32_t x, uint32_t y,
                   uint32_t z, uint32_t block, const char* arch = "gfx942") {
  EXPECT_EQ(call.kind, kRecordedLaunch);
  EXPECT_EQ(std::string(call.symbol), kernel);
  EXPECT_EQ(std::string(call.module_sha256), image_digest(kernel, arch));
  EXPECT_EQ(call.grid[0], x);
  EXPECT_EQ(call.grid[1], y);
  EXPECT_EQ(call.grid[2], z);
  EXPECT_EQ(call.block[0], block);
  EXPECT_EQ(call.block[1], 1u);
  EXPECT_EQ(call.block[2], 1u);
  // As the test table's launch functions ask.
  EXPECT_EQ(call.shared_bytes, kernel.rfind("dq_dk_dv", 0) == 0 ? 512u : 0u);
  EXPECT_EQ(call.stream, kStream);
}

template <typename T>
void expect_same(const T& a, const T& b) {
  EXPECT_EQ(std::memcmp(&a, &b, sizeof(T)), 0);
}

void expect_fill(const RecordedCall& call, const void* data, size_t width, uint32_t value) {
  EXPECT_EQ(call.kind, kRecordedFill);
  EXPECT_EQ(call.data, const_cast<void*>(data));
  EXPECT_EQ(call.width, width);
  EXPECT_EQ(call.rows, 1u);
  EXPECT_EQ(call.value, value);
  EXPECT_EQ(call.stream, kStream);
}

TEST(LaunchTest, ForwardInBatchMode) {
  GpuProblem problem(Shape{2, 4, 2, 300, 200, 64, 64}, ATTN_DTYPE_FP16);
  problem.problem.mask = ATTN_MASK_BOTTOM_RIGHT;
  problem.problem.window_right = 0;
  attn_fwd_args args = problem.fwd();
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  EXPECT_EQ(std::string(attn_last_error()), "");
  EXPECT_EQ(recorder.order(), "lk");
  expect_launch(recorder.all()[1], "fwd_d64_fp16_batch_mask_psk", 4, 3, 2, 256);
  const LaunchArgs got = kernarg_of<TestKernarg>(recorder.all()[1]);
  expect_same(got.problem, problem.problem);
  expect_same(got.q, args.q);
  expect_same(got.k, args.k);
  expect_same(got.v, args.v);
  expect_same(got.o, args.o);
  EXPECT_EQ(got.lse, args.lse);
}

TEST(LaunchTest, SecondLaunchLoadsNothing) {
  GpuProblem problem(Shape{2, 4, 2, 300, 200, 64, 64}, ATTN_DTYPE_FP16);
  problem.problem.mask = ATTN_MASK_TOP_LEFT;
  attn_fwd_args args = problem.fwd();
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  EXPECT_EQ(recorder.order(), "k");
}

TEST(LaunchTest, MultiplesOfTheTileTakeTheUnpaddedInstance) {
  GpuProblem problem(Shape{1, 2, 2, 100, 256, 128, 128}, ATTN_DTYPE_BF16);
  attn_fwd_args args = problem.fwd();
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  expect_launch(recorder.all().back(), "fwd_d128_bf16_batch_nmask_npad", 2, 1, 1, 256);
}

TEST(LaunchTest, ForwardInGroupMode) {
  GpuProblem problem(Shape{0, 4, 4, 0, 0, 64, 64}, ATTN_DTYPE_BF16, 1,
                     std::vector<int32_t>{0, 10, 210}, std::vector<int32_t>{0, 64, 128});
  attn_fwd_args args = problem.fwd();
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  EXPECT_EQ(recorder.order(), "lk");
  expect_launch(recorder.all()[1], "fwd_d64_bf16_group_nmask_psk", 4, 2, 2, 256);
  const LaunchArgs got = kernarg_of<TestKernarg>(recorder.all()[1]);
  EXPECT_EQ(got.problem.cu_seqlens_q, problem.problem.cu_seqlens_q);
  EXPECT_EQ(got.problem.total_q, 210);
  EXPECT_EQ(got.problem.seqlen_q, 200);
}

// A caller that does not know the greatest length gives a bound, which may be far away.
TEST(LaunchTest, WorkgroupsBehindAllRowsAreNotAskedFor) {
  GpuProblem problem(Shape{0, 4, 4, 0, 0, 64, 64}, ATTN_DTYPE_BF16, 1,
                     std::vector<int32_t>{0, 10, 210}, std::vector<int32_t>{0, 64, 128});
  problem.problem.seqlen_q = std::numeric_limits<int32_t>::max() / 4;
  attn_fwd_args args = problem.fwd();
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  expect_launch(recorder.all().back(), "fwd_d64_bf16_group_nmask_psk", 4, 2, 2, 256);
  EXPECT_EQ(kernarg_of<TestKernarg>(recorder.all().back()).problem.seqlen_q, 210);
}

TEST(LaunchTest, SmallerHeadSizesTakeTheNextBucket) {
  GpuProblem problem(Shape{1, 1, 1, 7, 7, 72, 80}, ATTN_DTYPE_BF16);
  attn_fwd_args args = problem.fwd();
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  expect_launch(recorder.all().back(), "fwd_d128_bf16_batch_nmask_psk", 1, 1, 1, 256);
}

TEST(LaunchTest, WideWindowsAreNoWindows) {
  GpuProblem problem(Shape{1, 1, 1, 7, 7, 64, 64}, ATTN_DTYPE_BF16);
  problem.problem.mask = ATTN_MASK_TOP_LEFT;
  problem.problem.window_left = std::numeric_limits<int32_t>::max();
  problem.problem.window_right = 14;
  attn_fwd_args args = problem.fwd();
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  const LaunchArgs got = kernarg_of<TestKernarg>(recorder.all().back());
  EXPECT_EQ(got.problem.window_left, -1);
  EXPECT_EQ(got.problem.window_right, -1);
  EXPECT_EQ(got.problem.mask, ATTN_MASK_TOP_LEFT);
}

TEST(LaunchTest, StridesOfSingleEntriesDoNotMatter) {
  GpuProblem problem(Shape{1, 2, 1, 1, 7, 64, 64}, ATTN_DTYPE_BF16);
  attn_fwd_args args = problem.fwd();
  args.q.stride_batch = int64_t{1} << 40;
  args.q.stride_seq = 3;
  args.k.stride_head = -1;
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  const LaunchArgs got = kernarg_of<TestKernarg>(recorder.all().back());
  EXPECT_EQ(got.q.stride_batch, 0);
  EXPECT_EQ(got.q.stride_seq, 128);
  EXPECT_EQ(got.k.stride_head, 64);
}

TEST(LaunchTest, NothingToDoLaunchesNothing) {
  const Recorder recorder;
  for (const Shape& shape : {Shape{0, 2, 2, 5, 5, 64, 64}, Shape{3, 2, 2, 0, 5, 64, 64}}) {
    GpuProblem problem(shape, ATTN_DTYPE_FP16);
    attn_fwd_args args = problem.fwd();
    EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  }
  EXPECT_EQ(recorder.order(), "");
}

TEST(LaunchTest, ForwardWithoutKeysFills) {
  GpuProblem problem(Shape{2, 3, 3, 5, 0, 64, 64}, ATTN_DTYPE_FP16);
  problem.o.fill(1);
  attn_fwd_args args = problem.fwd();
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  EXPECT_EQ(recorder.order(), "ff");
  expect_fill(recorder.all()[0], args.o.data, 2 * 5 * 3 * 64 * 2, 0);
  expect_fill(recorder.all()[1], args.lse, 2 * 3 * 5 * 4, 0xff800000);
  EXPECT_EQ(problem.o.get(1, 4, 2, 63), 0);
  for (float lse : problem.lse) EXPECT_EQ(lse, -std::numeric_limits<float>::infinity());
}

TEST(LaunchTest, FillsFollowStrides) {
  // o is the first 64 columns of rows of 128, heads outermost.
  GpuProblem problem(Shape{2, 3, 3, 5, 0, 64, 64}, ATTN_DTYPE_FP16);
  Buffer wide({3, 2 * 5, 1, 128}, ATTN_DTYPE_FP16);
  wide.fill(1);
  attn_fwd_args args = problem.fwd();
  args.o = {wide.tensor().data, 5 * 128, 128, 2 * 5 * 128};
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  for (int h = 0; h < 3; ++h) {
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(wide.get(h, i, 0, 63), 0);
      EXPECT_EQ(wide.get(h, i, 0, 64), 1);
    }
  }
}

TEST(LaunchTest, BackwardInBatchMode) {
  GpuProblem problem(Shape{2, 2, 2, 100, 200, 64, 64}, ATTN_DTYPE_FP16);
  problem.problem.mask = ATTN_MASK_BOTTOM_RIGHT;
  problem.problem.window_right = 0;
  attn_bwd_args args = problem.bwd_with_workspace();
  // delta and dq_acc, each rounded up to 256 bytes.
  const uint64_t delta = 2 * 2 * 100 * 4, dq_acc = 2 * 100 * 2 * 64 * 4;
  EXPECT_EQ(args.workspace_size, 1792 + dq_acc);
  EXPECT_TRUE(delta <= 1792);
  const Recorder recorder;
  EXPECT_EQ(attn_bwd(&args), ATTN_OK);
  EXPECT_EQ(recorder.order(), "lkflklk");

  const std::vector<RecordedCall> calls = recorder.all();
  expect_launch(calls[1], "dot_do_o_d64_fp16_batch", 2, 2, 2, 64);
  char* const workspace = static_cast<char*>(args.workspace);
  expect_fill(calls[2], workspace + 1792, dq_acc, 0);
  expect_launch(calls[4], "dq_dk_dv_d64_fp16_batch_mask", 2, 2, 2, 256);
  expect_launch(calls[6], "convert_dq_d64_fp16_batch", 2, 2, 2, 256);
  for (int i : {1, 4, 6}) {
    const LaunchArgs got = kernarg_of<TestKernarg>(calls[i]);
    expect_same(got.problem, problem.problem);
    expect_same(got.q, args.q);
    expect_same(got.k, args.k);
    expect_same(got.v, args.v);
    expect_same(got.o, args.o);
    expect_same(got.dout, args.dout);
    expect_same(got.dq, args.dq);
    expect_same(got.dk, args.dk);
    expect_same(got.dv, args.dv);
    EXPECT_EQ(got.lse, args.lse);
    EXPECT_EQ(static_cast<void*>(got.delta), static_cast<void*>(workspace));
    EXPECT_EQ(static_cast<void*>(got.dq_acc), static_cast<void*>(workspace + 1792));
  }
}

TEST(LaunchTest, BackwardSumsSharedHeads) {
  GpuProblem problem(Shape{2, 6, 2, 64, 128, 128, 128}, ATTN_DTYPE_BF16);
  attn_bwd_args args = problem.bwd_with_workspace();
  const Recorder recorder;
  EXPECT_EQ(attn_bwd(&args), ATTN_OK);
  EXPECT_EQ(recorder.order(), "lkflklklkk");
  const std::vector<RecordedCall> launches = recorder.of(kRecordedLaunch);
  expect_launch(launches[1], "dq_dk_dv_d128_bf16_batch_nmask", 1, 6, 2, 256);
  const LaunchArgs main = kernarg_of<TestKernarg>(launches[1]);
  const attn_tensor expanded = {main.dk.data, 128 * 6 * 128, 6 * 128, 128};
  expect_same(main.dk, expanded);
  const uint64_t bytes = uint64_t{2} * 128 * 6 * 128 * 2;
  EXPECT_EQ(static_cast<char*>(main.dv.data) - static_cast<char*>(main.dk.data),
            static_cast<ptrdiff_t>(bytes));
  EXPECT_EQ(static_cast<char*>(main.dv.data) + bytes,
            static_cast<char*>(args.workspace) + args.workspace_size);
  const attn_tensor* from[] = {&main.dk, &main.dv};
  const attn_tensor* to[] = {&args.dk, &args.dv};
  for (int i : {0, 1}) {
    expect_launch(launches[3 + i], "attn_sum_heads_bf16", 7, 1, 1, 256);
    const LaunchArgs got = kernarg_of<TestKernarg>(launches[3 + i]);
    expect_same(got.sum_from, *from[i]);
    expect_same(got.sum_to, *to[i]);
    EXPECT_EQ(got.sum_head_size, 128);
  }
}

TEST(LaunchTest, SumsHaveTheHeadSizesOfTheirTensors) {
  GpuProblem problem(Shape{1, 2, 1, 64, 128, 80, 120}, ATTN_DTYPE_BF16);
  attn_bwd_args args = problem.bwd_with_workspace();
  const Recorder recorder;
  EXPECT_EQ(attn_bwd(&args), ATTN_OK);
  const std::vector<RecordedCall> launches = recorder.of(kRecordedLaunch);
  ASSERT_EQ(launches.size(), 5u);
  EXPECT_EQ(kernarg_of<TestKernarg>(launches[3]).sum_head_size, 80);
  EXPECT_EQ(kernarg_of<TestKernarg>(launches[4]).sum_head_size, 120);
}

TEST(LaunchTest, BackwardInGroupMode) {
  GpuProblem problem(Shape{0, 4, 1, 0, 0, 64, 64}, ATTN_DTYPE_BF16, 1,
                     std::vector<int32_t>{0, 10, 210}, std::vector<int32_t>{0, 0, 130});
  attn_bwd_args args = problem.bwd_with_workspace();
  const Recorder recorder;
  EXPECT_EQ(attn_bwd(&args), ATTN_OK);
  const std::vector<RecordedCall> launches = recorder.of(kRecordedLaunch);
  EXPECT_EQ(launches.size(), 5u);
  expect_launch(launches[0], "dot_do_o_d64_bf16_group", 4, 4, 2, 64);
  expect_launch(launches[1], "dq_dk_dv_d64_bf16_group_nmask", 2, 4, 2, 256);
  expect_launch(launches[2], "convert_dq_d64_bf16_group", 4, 4, 2, 256);
  EXPECT_EQ(kernarg_of<TestKernarg>(launches[1]).dk.stride_seq, 4 * 64);
}

TEST(LaunchTest, BackwardTakesPaddedHeadsWhereNeeded) {
  GpuProblem problem(Shape{1, 1, 1, 64, 128, 80, 128}, ATTN_DTYPE_BF16);
  attn_bwd_args args = problem.bwd_with_workspace();
  const Recorder recorder;
  EXPECT_EQ(attn_bwd(&args), ATTN_OK);
  const std::vector<RecordedCall> launches = recorder.of(kRecordedLaunch);
  expect_launch(launches[0], "dot_do_o_d128_bf16_batch", 1, 1, 1, 64);
  expect_launch(launches[1], "dq_dk_dv_d128_bf16_batch_nmask_pd", 1, 1, 1, 256);
  expect_launch(launches[2], "convert_dq_d128_bf16_batch_pd", 1, 1, 1, 256);
}

TEST(LaunchTest, AnElementwiseBias) {
  GpuProblem problem(Shape{2, 4, 2, 30, 50, 64, 64}, ATTN_DTYPE_FP16);
  problem.add_bias();
  attn_fwd_args args = problem.fwd();
  args.bias.stride_batch = 0;  // one for all
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  EXPECT_STREQ(attn_last_error(), "");
  expect_launch(recorder.all().back(), "fwd_d64_fp16_batch_nmask_psk_bias", 4, 1, 2, 256);
  const kernels::Features got = kernarg_of<TestKernarg>(recorder.all().back()).features;
  EXPECT_EQ(got.bias, args.bias.data);
  EXPECT_EQ(got.bias_stride_batch, 0);
  EXPECT_EQ(got.bias_stride_seq, args.bias.stride_seq);
  EXPECT_EQ(got.bias_stride_head, args.bias.stride_head);

  attn_bwd_args back = problem.bwd_with_workspace();
  back.bias.stride_batch = 0;
  const Recorder backward;
  EXPECT_EQ(attn_bwd(&back), ATTN_OK);
  // Scores that no tile writes are zero.
  const RecordedCall zeroed = backward.of(kRecordedFill)[0];
  expect_fill(zeroed, back.dbias.data, 2 * 4 * 30 * 50 * 2, 0);
  const RecordedCall call = backward.of(kRecordedLaunch)[1];
  expect_launch(call, "dq_dk_dv_d64_fp16_batch_nmask_bias", 1, 4, 2, 256);
  const kernels::Features of_backward = kernarg_of<TestKernarg>(call).features;
  EXPECT_EQ(of_backward.bias_stride_batch, 0);
  EXPECT_EQ(of_backward.dbias, back.dbias.data);
  EXPECT_EQ(of_backward.dbias_stride_batch, back.dbias.stride_batch);
  EXPECT_EQ(of_backward.dbias_stride_seq, back.dbias.stride_seq);
  EXPECT_EQ(of_backward.dbias_stride_head, back.dbias.stride_head);
}

// Summed over heads and batch: of every score, in the workspace, with these innermost.
TEST(LaunchTest, DbiasIsSummed) {
  GpuProblem problem(Shape{3, 4, 2, 30, 50, 64, 64}, ATTN_DTYPE_FP16);
  problem.add_bias();
  attn_bwd_args args = problem.bwd();
  uint64_t before = 0;
  EXPECT_EQ(attn_bwd_workspace_size(&args, &before), ATTN_OK);
  args = problem.bwd_with_workspace(ATTN_DBIAS_SUM_BATCH | ATTN_DBIAS_SUM_HEADS);
  const uint64_t bytes = 3 * 4 * 30 * 50 * 2;
  EXPECT_EQ(args.workspace_size, before + (bytes + 255) / 256 * 256);
  args.dbias.stride_seq = 51;  // the summing kernel takes any
  const Recorder recorder;
  EXPECT_EQ(attn_bwd(&args), ATTN_OK) << attn_last_error();
  const std::vector<RecordedCall> launches = recorder.of(kRecordedLaunch);
  ASSERT_EQ(launches.size(), 6u);
  char* const scores = static_cast<char*>(args.workspace) + before;
  expect_fill(recorder.of(kRecordedFill)[0], scores, bytes, 0);
  const kernels::Features main = kernarg_of<TestKernarg>(launches[1]).features;
  EXPECT_EQ(main.dbias, scores);
  EXPECT_EQ(main.dbias_stride_head, 50);
  EXPECT_EQ(main.dbias_stride_batch, 4 * 50);
  EXPECT_EQ(main.dbias_stride_seq, 3 * 4 * 50);
  EXPECT_EQ(kernarg_of<TestKernarg>(launches[3]).sum_to.data, args.dk.data);
  EXPECT_EQ(kernarg_of<TestKernarg>(launches[4]).sum_to.data, args.dv.data);
  EXPECT_EQ(std::string(launches[5].symbol), "attn_sum_heads_fp16");
  const LaunchArgs sum = kernarg_of<TestKernarg>(launches[5]);
  EXPECT_EQ(sum.sum_from.data, scores);
  EXPECT_EQ(sum.sum_to.data, args.dbias.data);
  EXPECT_EQ(sum.sum_to.stride_seq, 51);
  EXPECT_EQ(sum.sum_head_size, 50);
  EXPECT_EQ(sum.problem.mode, ATTN_MODE_BATCH);
  EXPECT_EQ(sum.problem.batch, 1);
  EXPECT_EQ(sum.problem.seqlen_k, 30);
  EXPECT_EQ(sum.problem.heads_k, 1);
  EXPECT_EQ(sum.problem.heads_q, 3 * 4);
}

TEST(LaunchTest, DbiasIsSummedInGroupMode) {
  GpuProblem problem(Shape{0, 4, 4, 0, 0, 64, 64}, ATTN_DTYPE_FP16, 1,
                     std::vector<int32_t>{0, 10, 30}, std::vector<int32_t>{0, 0, 50});
  problem.add_bias();
  attn_bwd_args args = problem.bwd_with_workspace(ATTN_DBIAS_SUM_QUERIES);
  const Recorder recorder;
  EXPECT_EQ(attn_bwd(&args), ATTN_OK) << attn_last_error();
  const std::vector<RecordedCall> launches = recorder.of(kRecordedLaunch);
  ASSERT_EQ(launches.size(), 4u);
  const kernels::Features main = kernarg_of<TestKernarg>(launches[1]).features;
  EXPECT_EQ(main.dbias_stride_seq, 50);
  EXPECT_EQ(main.dbias_stride_head, 30 * 50);
  const LaunchArgs sum = kernarg_of<TestKernarg>(launches[3]);
  EXPECT_EQ(sum.problem.mode, ATTN_MODE_BATCH);
  EXPECT_EQ(sum.problem.batch, 1);
  EXPECT_EQ(sum.problem.seqlen_k, 1);
  EXPECT_EQ(sum.problem.heads_k, 4);
  EXPECT_EQ(sum.problem.heads_q, 4 * 30);
}

// A sum of nothing; no kernel runs.
TEST(LaunchTest, DbiasOfNoQueryIsZero) {
  GpuProblem problem(Shape{2, 4, 4, 0, 50, 64, 64}, ATTN_DTYPE_FP16);
  problem.add_bias();
  attn_bwd_args args = problem.bwd();
  std::vector<uint16_t> row(50);
  args.dbias = {row.data(), 0, 0, 0};
  args.dbias_sums = 7;
  const Recorder recorder;
  EXPECT_EQ(attn_bwd(&args), ATTN_OK) << attn_last_error();
  expect_fill(recorder.of(kRecordedFill).back(), row.data(), 100, 0);
}

TEST(LaunchTest, DbiasBeforeItsSumIsAddressable) {
  GpuProblem problem(Shape{2, 1, 1, 1, 1, 64, 64}, ATTN_DTYPE_FP16);
  problem.add_bias();
  attn_bwd_args args = problem.bwd();
  problem.problem.seqlen_q = 1 << 15, problem.problem.seqlen_k = (1 << 16) - 1;
  for (attn_tensor* t : {&args.q, &args.k, &args.v, &args.o, &args.dout, &args.bias}) {
    t->stride_batch = 0;
  }
  attn_tensor* outputs[] = {&args.dq, &args.dk, &args.dv, &args.dbias};
  for (size_t i = 0; i < std::size(outputs); ++i) {
    outputs[i]->data = reinterpret_cast<void*>((i + 1) << 40);
    outputs[i]->stride_seq = 64, outputs[i]->stride_batch = int64_t{1} << 30;
  }
  args.dbias.stride_seq = 1 << 16;
  args.bias.stride_seq = 0;
  args.dbias_sums = ATTN_DBIAS_SUM_BATCH;
  EXPECT_EQ(attn_bwd_workspace_size(&args, &args.workspace_size), ATTN_OK) << attn_last_error();
  args.workspace = reinterpret_cast<void*>(uint64_t{1} << 44);
  EXPECT_EQ(attn_bwd(&args), ATTN_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(attn_last_error(),
              HasSubstr("dbias, before it is summed, has 2 x 1 x 32768 x 65535 entries"));
}

TEST(LaunchTest, SlopesOfAlibi) {
  GpuProblem problem(Shape{2, 4, 2, 30, 50, 64, 64}, ATTN_DTYPE_FP16);
  problem.add_slopes();
  attn_fwd_args args = problem.fwd();
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  expect_launch(recorder.all().back(), "fwd_d64_fp16_batch_nmask_psk_alibi", 4, 1, 2, 256);
  const LaunchArgs got = kernarg_of<TestKernarg>(recorder.all().back());
  EXPECT_EQ(got.features.bias, args.alibi_slopes);
  EXPECT_EQ(got.features.bias_stride_seq, 4);  // between batch entries
  EXPECT_EQ(got.problem.mask, ATTN_MASK_NONE);
  EXPECT_EQ(got.problem.window_left, -1);
  EXPECT_EQ(got.problem.window_right, -1);
  args.alibi_stride_batch = 0;  // the same for all
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  EXPECT_EQ(kernarg_of<TestKernarg>(recorder.all().back()).features.bias_stride_seq, 0);
}

TEST(LaunchTest, DropoutAndCaps) {
  GpuProblem problem(Shape{1, 2, 2, 30, 50, 64, 64}, ATTN_DTYPE_FP16);
  problem.problem.dropout_p = 0.25f;
  problem.problem.dropout_seed = 0x123456789abcdef0;
  problem.problem.dropout_offset = 77;
  attn_fwd_args args = problem.fwd();
  attn_bwd_args back = problem.bwd_with_workspace();
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  EXPECT_EQ(attn_bwd(&back), ATTN_OK);
  const std::vector<RecordedCall> launches = recorder.of(kRecordedLaunch);
  expect_launch(launches[0], "fwd_d64_fp16_batch_nmask_psk_dropout", 2, 1, 1, 256);
  expect_launch(launches[2], "dq_dk_dv_d64_fp16_batch_nmask_dropout", 1, 2, 1, 256);
  for (const int i : {0, 2}) {
    const kernels::Features got = kernarg_of<TestKernarg>(launches[i]).features;
    EXPECT_EQ(got.p_drop, 0.25f);
    EXPECT_EQ(got.drop_seed, 0x123456789abcdef0u);
    EXPECT_EQ(got.drop_offset, 77u);
  }

  // Kernels read arrays on the GPU: the library does not.
  problem.problem.dropout_seed = problem.problem.dropout_offset = 0;
  problem.problem.rng_state = reinterpret_cast<const uint64_t*>(0x7f0000000010);
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  const TestKernarg read = kernarg_of<TestKernarg>(recorder.of(kRecordedLaunch).back());
  EXPECT_EQ(read.problem.rng_state, problem.problem.rng_state);
  EXPECT_EQ(read.features.drop_seed, 0u);
  problem.problem.rng_state = nullptr;

  problem.problem.dropout_p = 0;
  problem.problem.logits_soft_cap = 30;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  const RecordedCall capped = recorder.of(kRecordedLaunch).back();
  expect_launch(capped, "fwd_d64_fp16_batch_nmask_psk_cap", 2, 1, 1, 256);
  EXPECT_EQ(kernarg_of<TestKernarg>(capped).features.logits_soft_cap, 30.0f);
  // No kernel would take the cap into account.
  EXPECT_EQ(attn_bwd(&back), ATTN_ERROR_UNSUPPORTED);
  EXPECT_THAT(attn_last_error(), HasSubstr("no backward kernel with a cap"));
}

TEST(LaunchTest, Fp8) {
  const Environment archs(kArchs, "gfx942,gfx942,gfx950");
  for (const int device : {0, 2}) {
    const bool ocp = device == 2;
    const attn_dtype dtype = ocp ? ATTN_DTYPE_FP8_E4M3 : ATTN_DTYPE_FP8_E4M3_FNUZ;
    GpuProblem problem(Shape{2, 4, 2, 256, 192, 64, 64}, dtype);
    problem.problem.device_id = device;
    problem.problem.softmax_scale = 0.125f;
    problem.turn_v();
    attn_fwd_args args = problem.fwd();
    args.lse = nullptr;
    args.descale_q = 0.5f, args.descale_k = 4, args.descale_v = 3, args.scale_o = 0.25f;
    const Recorder recorder;
    EXPECT_EQ(attn_fwd(&args), ATTN_OK) << attn_last_error();
    const RecordedCall call = recorder.of(kRecordedLaunch).back();
    expect_launch(call, "fwd_d64_fp8_batch_nmask_npad", 4, 2, 2, ocp ? 128 : 256,
                  ocp ? "gfx950" : "gfx942");
    const LaunchArgs got = kernarg_of<TestKernarg>(call);
    // From element to element of a head, and the keys of one are contiguous.
    EXPECT_EQ(got.v.stride_seq, 2 * 192);
    EXPECT_EQ(got.v.stride_head, 192);
    EXPECT_EQ(got.v.stride_batch, 64 * 2 * 192);
    // As upstream's example derives them (example/ck_tile/01_fmha/fmha_fwd.cpp): probabilities use
    // all of the format's range.
    const float largest = ocp ? 448 : 240;
    EXPECT_EQ(got.problem.softmax_scale, 0.125f * 0.5f * 4);
    EXPECT_EQ(got.features.scale_p, largest);
    EXPECT_EQ(got.features.scale_o, 3 * 0.25f / largest);

    // The other arch's format.
    problem.problem.device_id = 2 - device;
    EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_UNSUPPORTED);
    EXPECT_THAT(attn_last_error(),
                HasSubstr(ocp ? "dtype is 4 (fp8 e4m3), but kernels for gfx942 compute with 6 "
                                "(fp8 e4m3 fnuz)"
                              : "dtype is 6 (fp8 e4m3 fnuz), but kernels for gfx950 compute with "
                                "4 (fp8 e4m3)"));
    problem.problem.device_id = device;

    args.v = problem.v.tensor(), args.v_layout = ATTN_V_ROWS;
    EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_UNSUPPORTED);
    EXPECT_THAT(attn_last_error(), HasSubstr("kernels take columns"));
    args = problem.fwd();
    EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_UNSUPPORTED);  // with lse
    EXPECT_THAT(attn_last_error(), HasSubstr("lse"));
    args.lse = nullptr;
    args.q.stride_seq += 8;
    EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_INVALID_ARGUMENT);
    EXPECT_THAT(attn_last_error(), HasSubstr("strides of 16 elements"));
  }
}

TEST(LaunchTest, Fp8WithAWiderO) {
  const Environment archs(kArchs, "gfx942,gfx950");
  for (const bool wide : {false, true}) {
    GpuProblem problem(Shape{2, 4, 2, 200, 170, 64, 64}, ATTN_DTYPE_FP8_E4M3_FNUZ);
    problem.set_o_dtype(wide ? ATTN_DTYPE_FP32 : ATTN_DTYPE_BF16);
    attn_fwd_args args = problem.fwd();
    args.lse = nullptr;
    args.descale_q = 0.5f, args.descale_k = 4, args.descale_v = 3;
    const Recorder recorder;
    EXPECT_EQ(attn_fwd(&args), ATTN_OK) << attn_last_error();
    const RecordedCall call = recorder.of(kRecordedLaunch).back();
    expect_launch(call,
                  wide ? "fwd_d64_fp8fp32_batch_nmask_psk" : "fwd_d64_fp8bf16_batch_nmask_psk", 4,
                  2, 2, 256);
    const LaunchArgs got = kernarg_of<TestKernarg>(call);
    EXPECT_EQ(got.v.stride_seq, 2 * 64);  // by rows
    EXPECT_EQ(got.features.scale_p, 240);
    EXPECT_EQ(got.features.scale_o, 3 / 240.0f);

    // Strides of o are multiples of 16 bytes.
    attn_fwd_args odd = args;
    odd.o.stride_batch += wide ? 2 : 4;
    EXPECT_EQ(attn_fwd(&odd), ATTN_ERROR_INVALID_ARGUMENT);
    EXPECT_THAT(attn_last_error(),
                HasSubstr(wide ? "strides of 4 elements" : "strides of 8 elements"));

    problem.turn_v();
    attn_fwd_args columns = problem.fwd();
    columns.lse = nullptr;
    EXPECT_EQ(attn_fwd(&columns), ATTN_ERROR_UNSUPPORTED);
    EXPECT_THAT(attn_last_error(), HasSubstr("take rows where o is bf16 or fp32"));

    float sink[4] = {};
    args.sink = sink;
    EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_UNSUPPORTED);
    EXPECT_THAT(attn_last_error(), HasSubstr("a sink needs q, k and v of fp16 or bf16"));

    // Without keys o is zero, over all of its bytes.
    problem.problem.seqlen_k = 0;
    args.sink = nullptr;
    problem.o.fill(1);
    EXPECT_EQ(attn_fwd(&args), ATTN_OK) << attn_last_error();
    EXPECT_EQ(problem.o.get(0, 0, 0, 0), 0);
    EXPECT_EQ(problem.o.get(1, 199, 3, 63), 0);
  }
}

// All of the table's instances write an lse.
TEST(LaunchTest, AnLseThatIsNotWantedStaysInTheWorkspace) {
  GpuProblem problem(Shape{2, 4, 2, 300, 200, 64, 64}, ATTN_DTYPE_FP16);
  attn_fwd_args args = problem.fwd();
  uint64_t bytes = 1;
  EXPECT_EQ(attn_fwd_workspace_size(&args, &bytes), ATTN_OK) << attn_last_error();
  EXPECT_EQ(bytes, 0u) << "it is wanted";
  args.lse = nullptr;
  EXPECT_EQ(attn_fwd_workspace_size(&args, &bytes), ATTN_OK) << attn_last_error();
  EXPECT_EQ(bytes, 2u * 4 * 300 * sizeof(float));

  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_UNSUPPORTED);
  EXPECT_THAT(attn_last_error(), HasSubstr("With a workspace of attn_fwd_workspace_size bytes"));
  alignas(256) static char workspace[2 * 4 * 300 * sizeof(float)];
  args.workspace = workspace;
  args.workspace_size = bytes - 1;
  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(attn_last_error(), HasSubstr("workspace_size is 9599, but this problem needs 9600 "
                                           "bytes: ask attn_fwd_workspace_size"));
  args.workspace_size = bytes;
  args.workspace = workspace + 128;
  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(attn_last_error(), HasSubstr("must be aligned to 256 bytes"));
  args.workspace = workspace;
  args.o.data = workspace + 64;
  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(attn_last_error(), HasSubstr("overlaps"));
  args.o = problem.o.tensor();

  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK) << attn_last_error();
  const RecordedCall call = recorder.of(kRecordedLaunch).back();
  expect_launch(call, "fwd_d64_fp16_batch_nmask_psk", 4, 3, 2, 256);
  EXPECT_EQ(kernarg_of<TestKernarg>(call).lse, reinterpret_cast<float*>(workspace));
  // As wide a struct as callers had before.
  args.struct_size = offsetof(attn_fwd_args, workspace);
  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_UNSUPPORTED);
}

TEST(LaunchTest, ASinkFollowsTheForwardPass) {
  GpuProblem problem(Shape{2, 4, 2, 300, 200, 64, 64}, ATTN_DTYPE_FP16);
  attn_fwd_args args = problem.fwd();
  static const float sink[4] = {};
  args.sink = sink;
  uint64_t bytes = 1;
  EXPECT_EQ(attn_fwd_workspace_size(&args, &bytes), ATTN_OK) << attn_last_error();
  EXPECT_EQ(bytes, 0u) << "lse is the caller's";
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK) << attn_last_error();
  const std::vector<RecordedCall> launches = recorder.of(kRecordedLaunch);
  ASSERT_EQ(launches.size(), 2u);
  expect_launch(launches[0], "fwd_d64_fp16_batch_nmask_psk", 4, 3, 2, 256);
  expect_launch(launches[1], "attn_sink_fp16", 3, 4, 1, 256);
  for (const RecordedCall& call : launches) {
    const LaunchArgs got = kernarg_of<TestKernarg>(call);
    EXPECT_EQ(got.lse, args.lse);
    EXPECT_EQ(got.sink, sink);
    expect_same(got.o, args.o);
  }
}

TEST(LaunchTest, ASinkNeedsAnLseThatTheCallerDoesNot) {
  GpuProblem problem(Shape{2, 4, 2, 300, 200, 64, 64}, ATTN_DTYPE_FP16);
  attn_fwd_args args = problem.fwd();
  static const float sink[4] = {};
  args.sink = sink;
  args.lse = nullptr;
  uint64_t bytes = 0;
  EXPECT_EQ(attn_fwd_workspace_size(&args, &bytes), ATTN_OK) << attn_last_error();
  EXPECT_EQ(bytes, 2u * 4 * 300 * sizeof(float));
  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(attn_last_error(), HasSubstr("workspace_size is 0, but this problem needs 9600"));
  alignas(256) static char workspace[2 * 4 * 300 * sizeof(float)];
  args.workspace = workspace;
  args.workspace_size = bytes;
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK) << attn_last_error();
  const std::vector<RecordedCall> launches = recorder.of(kRecordedLaunch);
  ASSERT_EQ(launches.size(), 2u);
  for (const RecordedCall& call : launches) {
    EXPECT_EQ(kernarg_of<TestKernarg>(call).lse, reinterpret_cast<float*>(workspace));
  }
  // As wide a struct as callers had before: no sink, and no place for an lse is needed then.
  args.struct_size = offsetof(attn_fwd_args, sink);
  const Recorder older;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK) << attn_last_error();
  EXPECT_EQ(older.of(kRecordedLaunch).size(), 1u);
}

// Their lse is the sink, which the kernel alone can write.
TEST(LaunchTest, ASinkWithoutKeysIsWrittenByItsKernel) {
  GpuProblem problem(Shape{2, 4, 2, 5, 0, 64, 64}, ATTN_DTYPE_FP16);
  attn_fwd_args args = problem.fwd();
  static const float sink[4] = {};
  args.sink = sink;
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK) << attn_last_error();
  EXPECT_EQ(recorder.of(kRecordedFill).size(), 0u);
  const std::vector<RecordedCall> launches = recorder.of(kRecordedLaunch);
  ASSERT_EQ(launches.size(), 2u);
  expect_launch(launches[1], "attn_sink_fp16", 3, 4, 1, 256);
}

TEST(LaunchTest, TheGradientOfASink) {
  GpuProblem problem(Shape{2, 4, 2, 300, 200, 64, 64}, ATTN_DTYPE_FP16);
  attn_bwd_args args = problem.bwd_with_workspace();
  static const float sink[4] = {};
  static float dsink[4] = {};
  args.sink = sink;
  Recorder recorder;
  EXPECT_EQ(attn_bwd(&args), ATTN_OK) << attn_last_error();
  EXPECT_EQ(recorder.of(kRecordedLaunch).size(), 5u) << "it is not wanted";
  args.dsink = dsink;
  recorder = Recorder();
  EXPECT_EQ(attn_bwd(&args), ATTN_OK) << attn_last_error();
  const std::vector<RecordedCall> launches = recorder.of(kRecordedLaunch);
  ASSERT_EQ(launches.size(), 6u);
  expect_launch(launches[3], "attn_sink_grad", 4, 1, 1, 256);
  const LaunchArgs got = kernarg_of<TestKernarg>(launches[3]);
  EXPECT_EQ(got.sink, sink);
  EXPECT_EQ(got.dsink, dsink);
  EXPECT_EQ(got.lse, args.lse);
  EXPECT_EQ(got.delta, kernarg_of<TestKernarg>(launches[0]).delta);
}

TEST(LaunchTest, TheGradientOfASinkWithoutKeysIsZero) {
  GpuProblem problem(Shape{2, 4, 2, 3, 0, 64, 64}, ATTN_DTYPE_FP16);
  attn_bwd_args args = problem.bwd_with_workspace();
  static const float sink[4] = {};
  float dsink[4] = {1, 2, 3, 4};
  args.sink = sink;
  args.dsink = dsink;
  const Recorder recorder;
  EXPECT_EQ(attn_bwd(&args), ATTN_OK) << attn_last_error();
  EXPECT_EQ(recorder.order(), "ff");
  EXPECT_THAT(dsink, ::testing::Each(0.0f));
}

TEST(LaunchTest, ASinkTakesNoFp8) {
  GpuProblem problem(Shape{2, 2, 2, 128, 128, 64, 64}, ATTN_DTYPE_FP8_E4M3_FNUZ);
  attn_fwd_args args = problem.fwd();
  static const float sink[2] = {};
  args.sink = sink;
  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_UNSUPPORTED);
  EXPECT_STREQ(attn_last_error_field(), "v_layout");
  problem.turn_v();
  args = problem.fwd();
  args.sink = sink;
  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_UNSUPPORTED);
  EXPECT_STREQ(attn_last_error_field(), "sink");
}

TEST(LaunchTest, ShortSequencesAreLeftOut) {
  GpuProblem problem(Shape{0, 2, 2, 0, 0, 64, 64}, ATTN_DTYPE_FP16, 1,
                     std::vector<int32_t>{0, 10, 210}, std::vector<int32_t>{0, 64, 128});
  attn_fwd_args args = problem.fwd();
  args.min_seqlen_q = 10;
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  const RecordedCall call = recorder.all().back();
  EXPECT_EQ(std::string(call.symbol), "fwd_d64_fp16_group_nmask_psk_skip");
  EXPECT_EQ(kernarg_of<TestKernarg>(call).features.min_seqlen_q, 10);
}

// Only the kernel can tell which they are, though no sequence has a key.
TEST(LaunchTest, ShortSequencesWithoutAnyKeyStayAsTheyAre) {
  GpuProblem problem(Shape{0, 2, 2, 0, 0, 64, 64}, ATTN_DTYPE_FP16, 1,
                     std::vector<int32_t>{0, 10, 210}, std::vector<int32_t>{0, 0, 0});
  attn_fwd_args args = problem.fwd();
  args.min_seqlen_q = 10;
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK) << attn_last_error();
  EXPECT_EQ(recorder.of(kRecordedFill).size(), 0u);
  const RecordedCall call = recorder.all().back();
  EXPECT_EQ(std::string(call.symbol), "fwd_d64_fp16_group_nmask_psk_skip");
  EXPECT_EQ(kernarg_of<TestKernarg>(call).features.min_seqlen_q, 10);
}

TEST(LaunchTest, ADeterministicBackwardKeepsASumForEachTileOfKeys) {
  GpuProblem problem(Shape{2, 2, 2, 100, 300, 64, 64}, ATTN_DTYPE_FP16);
  attn_bwd_args args = problem.bwd();
  uint64_t plain = 0, bytes = 0;
  EXPECT_EQ(attn_bwd_workspace_size(&args, &plain), ATTN_OK);
  args.deterministic = 1;
  EXPECT_EQ(attn_bwd_workspace_size(&args, &bytes), ATTN_OK);
  const uint64_t dq_acc = 2 * 100 * 2 * 64 * 4;
  EXPECT_EQ(bytes, plain + 2 * dq_acc);  // 300 keys are 3 tiles of 128
  std::vector<unsigned char> memory(bytes + 256);
  void* workspace = memory.data();
  size_t space = memory.size();
  args.workspace = std::align(256, bytes, workspace, space);
  args.workspace_size = bytes;
  const Recorder recorder;
  EXPECT_EQ(attn_bwd(&args), ATTN_OK);
  EXPECT_EQ(recorder.of(kRecordedFill)[0].width, 3 * dq_acc);
  const std::vector<RecordedCall> launches = recorder.of(kRecordedLaunch);
  expect_launch(launches[1], "dq_dk_dv_d64_fp16_batch_nmask_det", 3, 2, 2, 256);
  expect_launch(launches[2], "convert_dq_d64_fp16_batch_det", 2, 2, 2, 256);
  for (const int i : {1, 2}) {
    const LaunchArgs got = kernarg_of<TestKernarg>(launches[i]);
    EXPECT_EQ(got.features.dq_acc_stride_split, 2 * 100 * 2 * 64);
  }
}

// Which weights dropout keeps: one kernel, for any dtype and head sizes.
TEST(LaunchTest, ADropoutMask) {
  GpuProblem problem(Shape{2, 4, 2, 30, 50, 200, 8}, ATTN_DTYPE_BF16);
  problem.problem.dropout_p = 0.5f;
  problem.problem.dropout_seed = 7;
  std::vector<uint8_t> kept(2 * 4 * 30 * 50);
  const attn_dropout_mask_args args = {sizeof(args), 0, &problem.problem, kept.data()};
  const Recorder recorder;
  EXPECT_EQ(attn_dropout_mask(&args), ATTN_OK) << attn_last_error();
  EXPECT_EQ(recorder.order(), "lk");
  const RecordedCall call = recorder.all().back();
  expect_launch(call, "attn_dropout_mask_u8", 5, 2, 1, 256);
  const LaunchArgs got = kernarg_of<TestKernarg>(call);
  EXPECT_EQ(got.kept, kept.data());
  EXPECT_EQ(got.problem.dropout_seed, 7u);
  EXPECT_EQ(got.problem.dropout_p, 0.5f);
  EXPECT_EQ(got.problem.heads_q, 4);
}

TEST(LaunchTest, ADropoutMaskOfNothing) {
  GpuProblem problem(Shape{2, 4, 2, 30, 0, 64, 64}, ATTN_DTYPE_FP16);
  problem.problem.dropout_p = 0.5f;
  const attn_dropout_mask_args args = {sizeof(args), 0, &problem.problem, nullptr};
  const Recorder recorder;
  EXPECT_EQ(attn_dropout_mask(&args), ATTN_OK) << attn_last_error();
  EXPECT_EQ(recorder.order(), "");
  problem.problem.seqlen_k = 50;
  EXPECT_EQ(attn_dropout_mask(&args), ATTN_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(attn_last_error(), HasSubstr("kept is NULL"));
}

TEST(LaunchTest, ADropoutMaskOnAnArchThatTheBuildLacks) {
  GpuProblem problem(Shape{1, 2, 2, 3, 5, 64, 64}, ATTN_DTYPE_FP16);
  problem.problem.device_id = 8;
  std::vector<uint8_t> kept(2 * 3 * 5);
  const attn_dropout_mask_args args = {sizeof(args), 0, &problem.problem, kept.data()};
  const Environment archs(kArchs, "a,b,c,d,e,f,g,h,gfx90a");
  const Recorder recorder;
  EXPECT_EQ(attn_dropout_mask(&args), ATTN_ERROR_UNSUPPORTED);
  EXPECT_THAT(attn_last_error(), HasSubstr("no dropout_mask kernel in this build for"));
  EXPECT_THAT(attn_last_error(), HasSubstr("on gfx90a. It has code for gfx942, gfx950 only"));
}

// Of a sequence without keys two are read: docs/races.md, N.
TEST(LaunchTest, ADeterministicBackwardOfSequencesHasTwoSumsAtLeast) {
  GpuProblem problem(Shape{0, 2, 2, 0, 0, 64, 64}, ATTN_DTYPE_FP16, 1,
                     std::vector<int32_t>{0, 10, 30}, std::vector<int32_t>{0, 0, 20});
  attn_bwd_args args = problem.bwd_with_workspace();
  const uint64_t plain = args.workspace_size, dq_acc = 30 * 2 * 64 * 4;
  args.deterministic = 1;
  EXPECT_EQ(attn_bwd_workspace_size(&args, &args.workspace_size), ATTN_OK);
  EXPECT_EQ(args.workspace_size, plain + dq_acc);
}

TEST(LaunchTest, FeaturesWithoutAnInstanceAreNamed) {
  GpuProblem problem(Shape{1, 2, 2, 30, 50, 128, 128}, ATTN_DTYPE_BF16);
  problem.problem.dropout_p = 0.5f;
  const attn_fwd_args args = problem.fwd();
  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_UNSUPPORTED);
  EXPECT_THAT(attn_last_error(), HasSubstr("dropout"));
  problem.problem.dropout_p = 0;
  attn_bwd_args back = problem.bwd();
  back.deterministic = 1;
  uint64_t bytes = 0;
  EXPECT_EQ(attn_bwd_workspace_size(&back, &bytes), ATTN_OK);
  back = problem.bwd_with_workspace();
  back.deterministic = 1;
  EXPECT_EQ(attn_bwd(&back), ATTN_ERROR_UNSUPPORTED);
  EXPECT_THAT(attn_last_error(), HasSubstr("dq summed in a fixed order"));
}

TEST(LaunchTest, BackwardWithoutKeysOrQueriesFills) {
  GpuProblem no_keys(Shape{2, 2, 1, 3, 0, 64, 64}, ATTN_DTYPE_FP16);
  no_keys.dq.fill(1);
  attn_bwd_args args = no_keys.bwd_with_workspace();
  EXPECT_EQ(args.workspace_size, 0u);
  args.workspace = nullptr;
  Recorder recorder;
  EXPECT_EQ(attn_bwd(&args), ATTN_OK);
  EXPECT_EQ(recorder.order(), "f");
  EXPECT_EQ(no_keys.dq.get(1, 2, 1, 63), 0);

  GpuProblem no_queries(Shape{2, 2, 1, 0, 3, 64, 64}, ATTN_DTYPE_FP16);
  no_queries.dk.fill(1);
  no_queries.dv.fill(1);
  args = no_queries.bwd_with_workspace();
  recorder = Recorder();
  EXPECT_EQ(attn_bwd(&args), ATTN_OK);
  EXPECT_EQ(recorder.order(), "ff");
  EXPECT_EQ(no_queries.dk.get(1, 2, 0, 63), 0);
  EXPECT_EQ(no_queries.dv.get(1, 2, 0, 63), 0);
}

TEST(LaunchTest, WorkspaceIsChecked) {
  GpuProblem problem(Shape{1, 1, 1, 64, 128, 64, 64}, ATTN_DTYPE_BF16);
  const attn_bwd_args good = problem.bwd_with_workspace();
  attn_bwd_args args = good;
  args.workspace_size -= 1;
  EXPECT_EQ(attn_bwd(&args), ATTN_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(attn_last_error(),
              HasSubstr("workspace_size is " + std::to_string(args.workspace_size)));
  EXPECT_THAT(attn_last_error(), HasSubstr(std::to_string(good.workspace_size)));
  args = good;
  args.workspace = nullptr;
  EXPECT_EQ(attn_bwd(&args), ATTN_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(attn_last_error(), HasSubstr("workspace is NULL"));
  args = good;
  args.workspace = static_cast<char*>(args.workspace) + 128;
  EXPECT_EQ(attn_bwd(&args), ATTN_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(attn_last_error(), HasSubstr("aligned to 256"));
}

TEST(LaunchTest, TheDeviceIsMadeCurrentAndRestored) {
  const Environment archs(kArchs, "gfx942,gfx942,gfx950");
  GpuProblem problem(Shape{1, 2, 2, 100, 100, 64, 64}, ATTN_DTYPE_FP16);
  problem.problem.device_id = 2;
  attn_fwd_args args = problem.fwd();
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  EXPECT_EQ(recorder.order(), "slks");
  EXPECT_EQ(recorder.all()[0].device, 2);
  EXPECT_EQ(recorder.all()[1].device, 2);
  EXPECT_EQ(recorder.all()[3].device, 0);
  expect_launch(recorder.all()[2], "fwd_d64_fp16_batch_nmask_psk", 2, 1, 1, 128, "gfx950");
}

TEST(LaunchTest, EveryDeviceLoadsForItself) {
  const Environment archs(kArchs, "gfx942,gfx942");
  GpuProblem problem(Shape{1, 2, 2, 100, 64, 64, 64}, ATTN_DTYPE_FP16);
  attn_fwd_args args = problem.fwd();
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  problem.problem.device_id = 1;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  EXPECT_EQ(recorder.of(kRecordedLoad).size(), 2u);
}

TEST(LaunchTest, NoSuchDevice) {
  GpuProblem problem(Shape{1, 1, 1, 8, 8, 64, 64}, ATTN_DTYPE_FP16);
  problem.problem.device_id = 9;
  attn_fwd_args args = problem.fwd();
  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(attn_last_error(), HasSubstr("device_id is 9"));
}

TEST(LaunchTest, AnArchWithoutCodeIsNamedWithThoseThatHave) {
  const Environment archs(kArchs, "gfx942,x,y,gfx1100:xnack-");
  GpuProblem problem(Shape{1, 1, 1, 8, 8, 64, 64}, ATTN_DTYPE_FP16);
  problem.problem.device_id = 3;
  attn_fwd_args args = problem.fwd();
  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_UNSUPPORTED);
  EXPECT_THAT(attn_last_error(), HasSubstr("on gfx1100"));
  EXPECT_THAT(attn_last_error(), HasSubstr("no build has code for gfx1100"));
}

TEST(LaunchTest, AnArchThatIsNoGfxNameIsADriverError) {
  const Environment archs(kArchs, "gfx942,x,y,z,AMD Radeon");
  GpuProblem problem(Shape{1, 1, 1, 8, 8, 64, 64}, ATTN_DTYPE_FP16);
  problem.problem.device_id = 4;
  attn_fwd_args args = problem.fwd();
  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_DRIVER);
  EXPECT_THAT(attn_last_error(), HasSubstr("'AMD Radeon'"));
}

TEST(LaunchTest, AFailedLoadIsTriedAgain) {
  GpuProblem problem(Shape{1, 2, 2, 100, 100, 128, 128}, ATTN_DTYPE_FP16);
  attn_fwd_args args = problem.fwd();
  {
    const Environment fail(kFail, "hipModuleLoadData=209");
    EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_DRIVER);
    EXPECT_THAT(attn_last_error(), HasSubstr("hipModuleLoadData failed"));
    EXPECT_THAT(attn_last_error(), HasSubstr("(209)"));
    EXPECT_THAT(attn_last_error(), HasSubstr("fwd_d128_fp16_batch_nmask_psk, device 0"));
  }
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  EXPECT_EQ(recorder.order(), "lk");
}

TEST(LaunchTest, OutOfMemoryHasItsOwnStatus) {
  GpuProblem problem(Shape{1, 2, 2, 100, 100, 128, 128}, ATTN_DTYPE_BF16);
  problem.problem.mask = ATTN_MASK_TOP_LEFT;  // no other test loads this instance
  attn_fwd_args args = problem.fwd();
  const Environment fail(kFail, "hipModuleLoadData=2");
  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_OUT_OF_MEMORY);
  EXPECT_THAT(attn_last_error(), HasSubstr("hipErrorOutOfMemory"));
}

TEST(LaunchTest, AFailedLaunchNamesTheKernelAndRestoresTheDevice) {
  const Environment archs(kArchs, "gfx942,gfx942");
  const Environment fail(kFail, "hipModuleLaunchKernel=719");
  GpuProblem problem(Shape{1, 2, 2, 100, 100, 64, 64}, ATTN_DTYPE_BF16);
  problem.problem.device_id = 1;
  attn_fwd_args args = problem.fwd();
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_DRIVER);
  EXPECT_THAT(attn_last_error(), HasSubstr("hipModuleLaunchKernel(fwd_d64_bf16_batch_nmask_psk)"));
  EXPECT_THAT(attn_last_error(), HasSubstr("(719)"));
  EXPECT_EQ(recorder.order(), "sls");
}

TEST(LaunchTest, FailuresBetweenLaunchesAreReported) {
  GpuProblem problem(Shape{2, 2, 2, 100, 200, 64, 64}, ATTN_DTYPE_FP16);
  attn_bwd_args args = problem.bwd_with_workspace();
  for (const char* function : {"hipMemsetD32Async", "hipGetDevice", "hipModuleLaunchKernel"}) {
    const Environment fail(kFail, std::string(function) + "=1");
    EXPECT_EQ(attn_bwd(&args), ATTN_ERROR_DRIVER);
    EXPECT_THAT(attn_last_error(), HasSubstr(function));
  }
}

TEST(LaunchTest, ACorruptCodeObjectIsNotLoaded) {
  GpuProblem problem(Shape{0, 4, 4, 0, 0, 128, 128}, ATTN_DTYPE_BF16, 1,
                     std::vector<int32_t>{0, 10}, std::vector<int32_t>{0, 64});
  problem.problem.mask = ATTN_MASK_TOP_LEFT;
  attn_fwd_args args = problem.fwd();
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_CORRUPT);
  EXPECT_THAT(attn_last_error(), HasSubstr(test_key(kCorruptName, "gfx942")));
  EXPECT_EQ(recorder.order(), "");
}

// The message of launching the one row of a table, which it must refuse with that status.
std::string refusal(const char* name, kernels::MakeLaunch launch_code,
                    const kernels::CodeObjectRow& object, Status status,
                    const runtime::Store& store = runtime::library_store()) {
  kernels::Row row = {};
  row.traits.kind = kernels::Kind::kFwd;
  row.traits.dtype = kernels::Dtype::kFp16;
  row.traits.pad_head_size_qk = row.traits.pad_head_size_v = true;
  row.head_size_alignment = 1;
  TableBuilder builder({"gfx942"});
  builder.add(name, row, launch_code, {object});
  const kernels::LaunchTable table = builder.build("test");
  Plan plan;
  plan.add(kernels::Kind::kFwd, &table.row(0));

  GpuProblem problem(Shape{1, 2, 2, 100, 100, 64, 64}, ATTN_DTYPE_FP16);
  const attn_fwd_args args = problem.fwd();
  const Problem valid = read(&args, Pointers::kRequired);
  runtime::Driver& driver = runtime::driver_for(ATTN_DEVICE_ROCM);
  runtime::Loader loader(store);
  try {
    launch(table, valid, plan, 0, driver, loader);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), status);
    return error.what();
  }
  ADD_FAILURE() << name << " was launched";
  return {};
}

TEST(LaunchTest, ARowWithoutBytesIsAskedOfTheStore) {
  const auto launch_code = [](const LaunchArgs&, kernels::Launch* launch) {
    launch->grid[0] = launch->grid[1] = launch->grid[2] = 1;
    launch->kernarg_size = 8;
  };
  EXPECT_THAT(refusal("unbuilt", launch_code, {{0xab}, {}, 0}, Status::kUnsupported),
              HasSubstr("no code object with key 'ab00"));
}

// A provider that has the object of any key.
class AnyKey : public runtime::Provider {
 public:
  explicit AnyKey(runtime::Bytes object) : object_(std::move(object)) {}
  std::string name() const override { return "any"; }
  std::optional<runtime::Bytes> get(const runtime::CodeObjectRef&) override { return object_; }

 private:
  const runtime::Bytes object_;
};

TEST(LaunchTest, ARowWithoutBytesHoldsThoseThatComeAgainstItsLaunchCode) {
  const auto launch_code = [](const LaunchArgs&, kernels::Launch* launch) {
    launch->grid[0] = launch->grid[1] = launch->grid[2] = 1;
    launch->kernarg_size = 8;
  };
  const auto refused = [&](uint32_t kernarg_size, uint32_t workgroup_size) {
    std::vector<std::unique_ptr<runtime::Provider>> providers;
    providers.push_back(std::make_unique<AnyKey>(
        tiny_code_object("unbuilt", "", TinyMetadata{kernarg_size, workgroup_size})));
    const runtime::Store store(std::move(providers));
    const Recorder recorder;
    std::string why =
        refusal("unbuilt", launch_code, {{0xab}, {}, 0, {256, 1, 1}}, Status::kCorrupt, store);
    EXPECT_TRUE(recorder.of(kRecordedLoad).empty());
    return why;
  };
  EXPECT_THAT(refused(16, 256), HasSubstr("has unbuilt with 16 bytes of arguments, but this "
                                          "library's host code makes 8"));
  EXPECT_THAT(refused(8, 64), HasSubstr("has unbuilt for workgroups of 64 work-items, but this "
                                        "library launches it with 256"));
}

// Of a kernel that a lock has.
TEST(LaunchTest, ARowWithoutBytesMayHaveTheirDigest) {
  const auto launch_code = [](const LaunchArgs&, kernels::Launch* launch) {
    launch->grid[0] = launch->grid[1] = launch->grid[2] = 1;
    launch->kernarg_size = 8;
  };
  const runtime::Bytes bytes = tiny_code_object("unbuilt", "", TinyMetadata{8, 256});
  kernels::CodeObjectRow object = {{0xab}, {}, 0, {256, 1, 1}};
  const runtime::Bytes pack = make_pack({{digest(object.key), bytes}});
  std::vector<std::unique_ptr<runtime::Provider>> providers;
  providers.push_back(std::make_unique<runtime::PackProvider>("a pack", pack.data(), pack.size()));
  const runtime::Store store(std::move(providers));
  object.sha256[0] = 0xcd;
  EXPECT_THAT(refusal("unbuilt", launch_code, object, Status::kCorrupt, store),
              HasSubstr("instead of cd00"));
}

TEST(LaunchTest, ARowWithoutLaunchCodeIsNotLaunched) {
  EXPECT_THAT(refusal("unlaunchable", nullptr, {{1}, {}, 0}, Status::kInternal),
              HasSubstr("unlaunchable has launch code 0"));
}

TEST(LaunchTest, VectorLoadsNeedAlignment) {
  GpuProblem problem(Shape{1, 2, 2, 100, 100, 64, 64}, ATTN_DTYPE_FP16);
  attn_fwd_args args = problem.fwd();
  args.v.data = static_cast<char*>(args.v.data) + 8;
  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(attn_last_error(), HasSubstr("v.data"));
  EXPECT_THAT(attn_last_error(), HasSubstr("multiple of 16 bytes"));
  args = problem.fwd();
  args.k.stride_seq = 124;  // of 128: all of k lies in its memory still, and meets no other's
  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(attn_last_error(), HasSubstr("k.stride_seq is 124"));
}

TEST(LaunchTest, ThreadsLoadOnce) {
  GpuProblem problem(Shape{1, 2, 2, 100, 100, 64, 64}, ATTN_DTYPE_FP16);
  problem.problem.mask = ATTN_MASK_TOP_LEFT;
  const Environment archs(kArchs, "gfx942,gfx942,gfx942,gfx942,gfx942,gfx942");
  problem.problem.device_id = 5;
  const Recorder recorder;
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      attn_fwd_args args = problem.fwd();
      good += attn_fwd(&args) == ATTN_OK;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good.load(), 8);
  EXPECT_EQ(recorder.of(kRecordedLoad).size(), 1u);
  EXPECT_EQ(recorder.of(kRecordedLaunch).size(), 8u);
}

TEST(LaunchTest, DriverInfoListsDevices) {
  const char* text = nullptr;
  EXPECT_EQ(attn_driver_info(ATTN_DEVICE_ROCM, &text), ATTN_OK);
  EXPECT_THAT(text, HasSubstr("libamdhip64.so"));
  EXPECT_THAT(text, HasSubstr(": 0 gfx942"));
}

constexpr const char* kReplaced = "\xef\xbf\xbd";  // U+FFFD

TEST(LaunchTest, WhatTheRuntimeSaysBecomesUtf8) {
  const Environment archs(kArchs, "a,b,c,d,e,f,gfx9\xff\xfe,AMD\x80");
  const char* text = nullptr;
  GpuProblem problem(Shape{1, 1, 1, 8, 8, 64, 64}, ATTN_DTYPE_FP16);
  problem.problem.device_id = 6;
  attn_fwd_args args = problem.fwd();
  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_UNSUPPORTED);
  EXPECT_THAT(attn_last_error(), HasSubstr(std::string("on gfx9") + kReplaced + kReplaced + "."));
  problem.problem.device_id = 7;
  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_DRIVER);
  EXPECT_THAT(attn_last_error(), HasSubstr(std::string("'AMD") + kReplaced + "'"));

  const Environment fail(kFail, "hipGetDeviceCount=1");
  const Environment said("AITER_RECORDING_HIP_ERROR", "d\xe9j\xe0");
  EXPECT_EQ(attn_driver_info(ATTN_DEVICE_ROCM, &text), ATTN_ERROR_DRIVER);
  EXPECT_THAT(attn_last_error(), HasSubstr(std::string("d") + kReplaced + "j" + kReplaced));
}

TEST(LaunchTest, ExplainAsksTheDeviceForItsArch) {
  GpuProblem problem(Shape{1, 2, 2, 100, 100, 64, 64}, ATTN_DTYPE_FP16);
  attn_fwd_args args = problem.fwd();
  const char* text = nullptr;
  const Recorder recorder;
  EXPECT_EQ(attn_explain_fwd(&args, nullptr, &text), ATTN_OK);
  EXPECT_THAT(text, HasSubstr("on gfx942"));
  EXPECT_EQ(recorder.order(), "");
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::attention
