// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The calls of attention over key-value caches to a GPU runtime, through the C ABI, against the
// recording HIP: which kernels, in which order, with which grids and arguments, and how much
// workspace.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "aiter/attn.h"
#include "tests/support/attention/cache_problems.h"
#include "tests/support/attention/test_launch_table.h"
#include "tests/support/runtime/recorder.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using namespace testing;
using kernels::Features;
using kernels::LaunchArgs;
using ::testing::HasSubstr;

// A problem on the "GPU", whose memory is the host's, and a workspace of the size that it asks for.
class GpuCache : public CacheProblem {
 public:
  GpuCache(const CacheShape& shape, attn_dtype dtype) : CacheProblem(shape, dtype) {
    problem.device_type = ATTN_DEVICE_ROCM;
  }

  attn_kvcache_fwd_args with_workspace(int32_t splits) {
    attn_kvcache_fwd_args args = CacheProblem::args();
    args.splits = splits;
    EXPECT_EQ(attn_kvcache_fwd_workspace_size(&args, &args.workspace_size), ATTN_OK);
    workspace_.resize(args.workspace_size / sizeof(Page) + 1);
    args.workspace = args.workspace_size == 0 ? nullptr : workspace_.data();
    return args;
  }

 private:
  struct alignas(256) Page {
    unsigned char bytes[256];
  };
  std::vector<Page> workspace_;
};

CacheShape shape_of(Storage storage, bool group, int32_t head_size = 64) {
  CacheShape shape;
  shape.shape = {0, 4, 2, 70, 0, head_size, head_size};
  shape.lengths = {300, 0, 65};
  if (group) shape.cu_seqlens_q = {0, 1, 41, 111};
  shape.storage = storage;
  shape.page_size = 128;
  return shape;
}

void expect_launch(const RecordedCall& call, const std::string& kernel, uint32_t x, uint32_t y,
                   uint32_t z) {
  EXPECT_EQ(std::string(call.symbol), kernel);
  EXPECT_EQ(call.grid[0], x);
  EXPECT_EQ(call.grid[1], y);
  EXPECT_EQ(call.grid[2], z);
}

std::vector<RecordedCall> launches(const attn_kvcache_fwd_args& args) {
  const Recorder recorder;
  EXPECT_EQ(attn_kvcache_fwd(&args), ATTN_OK) << attn_last_error();
  return recorder.of(kRecordedLaunch);
}

TEST(KvcacheLaunchTest, PartsAndTheirCombinationInPlace) {
  GpuCache p(shape_of(Storage::kInPlace, false), ATTN_DTYPE_FP16);
  const attn_kvcache_fwd_args args = p.with_workspace(3);
  // [3][4][3][70] floats to the next multiple of 256 bytes, and 64 times as many.
  EXPECT_EQ(args.workspace_size, 10240u + 3 * 4 * 3 * 70 * 64 * 4);
  const std::vector<RecordedCall> calls = launches(args);
  ASSERT_EQ(calls.size(), 2u);
  expect_launch(calls[0], "fwd_splitkv_d64_fp16_batch_nmask_psk", 2 * 3, 4, 3);
  expect_launch(calls[1], "combine_d64_fp16_batch_lse", 3, 4, 3);
  for (const RecordedCall& call : calls) {
    const auto got = kernarg_of<TestKernarg>(call);
    const Features& f = got.features;
    EXPECT_EQ(got.q.data, args.q.data);
    EXPECT_EQ(got.k.data, args.k.data);
    EXPECT_EQ(got.k.stride_batch, args.k.stride_batch);
    EXPECT_EQ(got.o.data, args.o.data);
    EXPECT_EQ(got.lse, args.lse);
    EXPECT_EQ(f.splits, 3);
    EXPECT_EQ(static_cast<void*>(f.lse_acc), args.workspace);
    EXPECT_EQ(static_cast<void*>(f.o_acc), static_cast<char*>(args.workspace) + 10240);
    EXPECT_EQ(f.seqlens_k, p.lengths.data());
    EXPECT_EQ(f.batch_index, p.batch_index.data());
    EXPECT_EQ(f.block_table, nullptr);
    EXPECT_EQ(f.page_size, 0);
  }
}

TEST(KvcacheLaunchTest, ASinkFollowsAndNeedsAnLse) {
  GpuCache p(shape_of(Storage::kInPlace, false), ATTN_DTYPE_FP16);
  static const float sink[4] = {};
  attn_kvcache_fwd_args args = p.with_workspace(3);
  const uint64_t without = args.workspace_size;
  args.sink = sink;
  std::vector<RecordedCall> calls = launches(args);
  ASSERT_EQ(calls.size(), 3u);
  expect_launch(calls[2], "attn_sink_fp16", 3, 4, 1);
  EXPECT_EQ(kernarg_of<TestKernarg>(calls[2]).lse, args.lse);
  EXPECT_EQ(kernarg_of<TestKernarg>(calls[2]).sink, sink);

  args.lse = nullptr;
  EXPECT_EQ(attn_kvcache_fwd_workspace_size(&args, &args.workspace_size), ATTN_OK);
  EXPECT_EQ(args.workspace_size, without + 3584);  // [3][4][70] floats, and room to the next piece
  std::vector<char> room(args.workspace_size + 256);
  args.workspace = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(room.data()) + 255) & ~255);
  calls = launches(args);
  ASSERT_EQ(calls.size(), 3u);
  expect_launch(calls[1], "combine_d64_fp16_batch_lse", 3, 4, 3);
  for (const size_t i : {1, 2}) {
    EXPECT_EQ(reinterpret_cast<char*>(kernarg_of<TestKernarg>(calls[i]).lse),
              static_cast<char*>(args.workspace) + without);
  }
}

TEST(KvcacheLaunchTest, PagesInGroupMode) {
  GpuCache p(shape_of(Storage::kPages, true), ATTN_DTYPE_FP16);
  p.problem.mask = ATTN_MASK_BOTTOM_RIGHT;
  p.add_slopes();
  attn_kvcache_fwd_args args = p.with_workspace(0);
  EXPECT_EQ(attn_kvcache_fwd(&args), ATTN_ERROR_UNSUPPORTED) << "the table has none with ALiBi";
  p.problem.bias = ATTN_BIAS_NONE;
  p.slopes.clear();
  args = p.with_workspace(0);
  const std::vector<RecordedCall> calls = launches(args);
  ASSERT_EQ(calls.size(), 2u);
  // 5 tiles of 64 queries by 4 heads: 20 workgroups; room for 8 tiles of keys.
  expect_launch(calls[0], "fwd_splitkv_d64_fp16_group_mask_paged_psk", 2 * 8, 4, 3);
  expect_launch(calls[1], "combine_d64_fp16_group_lse", 3, 4, 3);
  const auto got = kernarg_of<TestKernarg>(calls[0]);
  EXPECT_EQ(got.features.splits, 8);
  EXPECT_EQ(got.features.block_table, p.block_table.data());
  EXPECT_EQ(got.features.block_table_stride, 4);
  EXPECT_EQ(got.features.page_size, 128);
  EXPECT_EQ(got.problem.cu_seqlens_q, p.cu_seqlens_q.data());
  EXPECT_EQ(got.problem.cu_seqlens_k, p.cu_seqlens_q.data())
      << "upstream reads it, and in pages does not use what it read";
  EXPECT_EQ(args.workspace_size, 14336u + 8 * 111 * 4 * 64 * 4);
}

TEST(KvcacheLaunchTest, PagesThatAreNotSplitNeedNoWorkspace) {
  GpuCache p(shape_of(Storage::kPages, true, 128), ATTN_DTYPE_FP16);
  attn_kvcache_fwd_args args = p.args();
  args.splits = 1;
  args.lse = nullptr;
  args.min_seqlen_q = 1;
  EXPECT_EQ(attn_kvcache_fwd_workspace_size(&args, &args.workspace_size), ATTN_OK);
  EXPECT_EQ(args.workspace_size, 0u);
  const std::vector<RecordedCall> calls = launches(args);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(std::string(calls[0].symbol), "fwd_pagedkv_d128_fp16_group_nmask_skip");
  EXPECT_EQ(kernarg_of<TestKernarg>(calls[0]).features.min_seqlen_q, 1);
}

TEST(KvcacheLaunchTest, ASinkBesideSequencesThatAreLeftOutHasNoKernel) {
  GpuCache p(shape_of(Storage::kPages, true, 128), ATTN_DTYPE_FP16);
  static const float sink[4] = {};
  attn_kvcache_fwd_args args = p.args();
  args.min_seqlen_q = 1;
  args.sink = sink;
  EXPECT_EQ(attn_kvcache_fwd(&args), ATTN_ERROR_UNSUPPORTED);
  EXPECT_THAT(attn_last_error(), HasSubstr("sink is set, but kernels that leave sequences out"));
  EXPECT_THAT(attn_last_error(), HasSubstr("pass min_seqlen_q 0, or leave sink NULL"));
  EXPECT_STREQ(attn_last_error_field(), "sink");
}

TEST(KvcacheLaunchTest, KeysOneByOne) {
  GpuCache p(shape_of(Storage::kPageList, true, 128), ATTN_DTYPE_FP16);
  const attn_kvcache_fwd_args args = p.with_workspace(0);
  EXPECT_EQ(args.workspace_size, 0u);
  const std::vector<RecordedCall> calls = launches(args);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(std::string(calls[0].symbol), "batch_prefill_d128_fp16_group_nmask");
  const auto got = kernarg_of<TestKernarg>(calls[0]);
  EXPECT_EQ(got.k.stride_batch, args.k.stride_batch);
  EXPECT_EQ(got.lse, args.lse);
  EXPECT_EQ(got.problem.cu_seqlens_q, p.cu_seqlens_q.data());
  const Features& f = got.features;
  EXPECT_EQ(f.pages, p.cache.entries);
  EXPECT_EQ(f.page_indptr, p.page_indptr.data());
  EXPECT_EQ(f.page_indices, p.page_indices.data());
}

TEST(KvcacheLaunchTest, KeysOneByOneInBatchModeHaveNoKernel) {
  GpuCache p(shape_of(Storage::kPageList, false, 128), ATTN_DTYPE_FP16);
  const attn_kvcache_fwd_args args = p.args();
  EXPECT_EQ(attn_kvcache_fwd(&args), ATTN_ERROR_UNSUPPORTED);
  EXPECT_THAT(attn_last_error(), HasSubstr("no fwd_batch_prefill kernel in this build"));
  EXPECT_THAT(attn_last_error(), HasSubstr("is for group mode"));
}

TEST(KvcacheLaunchTest, PackedKeysOfGroupMode) {
  GpuCache p(shape_of(Storage::kInPlace, true), ATTN_DTYPE_FP16);
  const std::vector<RecordedCall> calls = launches(p.with_workspace(1));
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(std::string(calls[0].symbol), "fwd_splitkv_d64_fp16_group_nmask_psk");
  const auto got = kernarg_of<TestKernarg>(calls[0]);
  EXPECT_EQ(got.problem.cu_seqlens_k, p.cu_seqlens_k.data());
  EXPECT_EQ(got.features.splits, 1);
}

TEST(KvcacheLaunchTest, WithoutKeysOutputsAreFilled) {
  GpuCache p(shape_of(Storage::kPages, false), ATTN_DTYPE_FP16);
  p.cache.entries = 0;
  attn_kvcache_fwd_args args = p.with_workspace(2);
  EXPECT_EQ(args.workspace_size, 0u);
  const Recorder recorder;
  EXPECT_EQ(attn_kvcache_fwd(&args), ATTN_OK) << attn_last_error();
  EXPECT_EQ(recorder.order(), "ff");
}

TEST(KvcacheLaunchTest, PlansAreWhatIsLaunched) {
  GpuCache p(shape_of(Storage::kPages, false), ATTN_DTYPE_FP16);
  const attn_kvcache_fwd_args args = p.with_workspace(2);
  uint32_t kernels[5], count = 5;
  ASSERT_EQ(attn_plan_kvcache_fwd(&args, nullptr, kernels, &count), ATTN_OK);
  const std::vector<RecordedCall> calls = launches(args);
  ASSERT_EQ(calls.size(), count);
  for (uint32_t i = 0; i < count; ++i) {
    attn_kernel_info_t info = {};
    info.struct_size = sizeof(info);
    ASSERT_EQ(attn_kernel_info(kernels[i], &info), ATTN_OK);
    EXPECT_EQ(std::string(info.name), calls[i].symbol);
  }
}

TEST(KvcacheLaunchTest, TheWorkspaceIsChecked) {
  GpuCache p(shape_of(Storage::kPages, false), ATTN_DTYPE_FP16);
  const attn_kvcache_fwd_args good = p.with_workspace(2);
  const auto refused = [&](auto spoil, const char* part) {
    attn_kvcache_fwd_args args = good;
    spoil(&args);
    EXPECT_EQ(attn_kvcache_fwd(&args), ATTN_ERROR_INVALID_ARGUMENT);
    EXPECT_THAT(attn_last_error(), HasSubstr(part));
  };
  refused([](auto* args) { --args->workspace_size; }, "ask attn_kvcache_fwd_workspace_size");
  refused([](auto* args) { args->workspace = nullptr; },
          "workspace is NULL, but this problem needs");
  refused([](auto* args) { args->workspace = static_cast<char*>(args->workspace) + 16; },
          "must be aligned to 256 bytes");
  refused([](auto* args) { args->lse = static_cast<float*>(args->workspace); }, "workspace");
  // Results of parts that a kernel cannot address.
  refused(
      [&p](auto* args) {
        p.problem.seqlen_q = 1 << 22;
        args->q.stride_batch = args->o.stride_batch = 1 << 30;
        args->workspace_size = uint64_t{1} << 40;
      },
      "seqlen_q is 4194304, but must not exceed 2097151 with 2 splits of the keys");
}

// Tables that are on the device are not read.
TEST(KvcacheLaunchTest, ContentsOfTheDeviceAreNotRead) {
  GpuCache p(shape_of(Storage::kPages, true), ATTN_DTYPE_FP16);
  p.cache.seqlens_k = reinterpret_cast<const int32_t*>(0x10000);
  p.cache.block_table = reinterpret_cast<const int32_t*>(0x20000);
  p.problem.cu_seqlens_q = reinterpret_cast<const int32_t*>(0x30000);
  EXPECT_EQ(launches(p.with_workspace(2)).size(), 2u);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::attention
