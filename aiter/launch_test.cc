// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// What the library asks of a GPU runtime, through the C ABI, against the recording HIP: which code
// object, kernel, grid, block, stream and kernel arguments, in which order.
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <thread>

#include "aiter/attn.h"
#include "aiter/store/sha256.h"
#include "aiter/testing/problems.h"
#include "aiter/testing/recorder.h"
#include "aiter/testing/test_launch_table.h"
#include "aiter/testing/testing.h"
#include "aiter/testing/tiny_elf.h"
#include "kernels/sum_heads/sum_heads.h"

namespace aiter_attn::testing {
namespace {

constexpr const char* kArchs = "AITER_RECORDING_HIP_ARCHS";
constexpr const char* kFail = "AITER_RECORDING_HIP_FAIL";

void* const kStream = reinterpret_cast<void*>(0x5000);

// A problem on the "GPU", whose memory is the host's.
class GpuProblem : public Problem {
 public:
  template <typename... Args>
  explicit GpuProblem(Args&&... args) : Problem(std::forward<Args>(args)...) {
    problem.device_type = ATTN_DEVICE_ROCM;
    problem.stream = kStream;
  }

  // With a workspace of the size that the library asks for, full of garbage.
  attn_bwd_args bwd_with_workspace() {
    attn_bwd_args args = bwd();
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
  return sha256_hex(image.data(), image.size());
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
  EXPECT_EQ(call.shared_bytes, 0u);
  EXPECT_EQ(call.stream, kStream);
}

void expect_fill(const RecordedCall& call, const void* data, size_t width, uint32_t value) {
  EXPECT_EQ(call.kind, kRecordedFill);
  EXPECT_EQ(call.data, const_cast<void*>(data));
  EXPECT_EQ(call.width, width);
  EXPECT_EQ(call.rows, 1u);
  EXPECT_EQ(call.value, value);
  EXPECT_EQ(call.stream, kStream);
}

TEST(forward_in_batch_mode) {
  GpuProblem problem(Shape{2, 4, 2, 300, 200, 64, 64}, ATTN_DTYPE_FP16);
  problem.problem.mask = ATTN_MASK_BOTTOM_RIGHT;
  problem.problem.window_right = 0;
  attn_fwd_args args = problem.fwd();
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  EXPECT_EQ(std::string(attn_last_error()), "");
  EXPECT_EQ(recorder.order(), "lk");
  expect_launch(recorder.all()[1], "fwd_d64_fp16_batch_mask_psk", 4, 3, 2, 256);
  const attn_fwd_args got = kernarg_of<TestFwdKernarg>(recorder.all()[1]);
  EXPECT(std::memcmp(&got, &args, sizeof(args)) == 0);
}

TEST(second_launch_loads_nothing) {
  GpuProblem problem(Shape{2, 4, 2, 300, 200, 64, 64}, ATTN_DTYPE_FP16);
  problem.problem.mask = ATTN_MASK_TOP_LEFT;
  attn_fwd_args args = problem.fwd();
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  EXPECT_EQ(recorder.order(), "k");
}

TEST(multiples_of_the_tile_take_the_unpadded_instance) {
  GpuProblem problem(Shape{1, 2, 2, 100, 256, 128, 128}, ATTN_DTYPE_BF16);
  attn_fwd_args args = problem.fwd();
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  expect_launch(recorder.all().back(), "fwd_d128_bf16_batch_nmask_npad", 2, 1, 1, 256);
}

TEST(forward_in_group_mode) {
  GpuProblem problem(Shape{0, 4, 4, 0, 0, 64, 64}, ATTN_DTYPE_BF16, 1,
                     std::vector<int32_t>{0, 10, 210}, std::vector<int32_t>{0, 64, 128});
  attn_fwd_args args = problem.fwd();
  const Recorder recorder;
  EXPECT_EQ(attn_varlen_fwd(&args), ATTN_OK);
  EXPECT_EQ(recorder.order(), "lk");
  expect_launch(recorder.all()[1], "fwd_d64_bf16_group_nmask_psk", 4, 2, 2, 256);
  const attn_fwd_args got = kernarg_of<TestFwdKernarg>(recorder.all()[1]);
  EXPECT_EQ(got.problem.cu_seqlens_q, args.problem.cu_seqlens_q);
  EXPECT_EQ(got.problem.total_q, 210);
  EXPECT_EQ(got.problem.seqlen_q, 200);
}

TEST(smaller_head_sizes_take_the_next_bucket) {
  GpuProblem problem(Shape{1, 1, 1, 7, 7, 72, 80}, ATTN_DTYPE_BF16);
  attn_fwd_args args = problem.fwd();
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  expect_launch(recorder.all().back(), "fwd_d128_bf16_batch_nmask_psk", 1, 1, 1, 256);
}

TEST(wide_windows_are_no_windows) {
  GpuProblem problem(Shape{1, 1, 1, 7, 7, 64, 64}, ATTN_DTYPE_BF16);
  problem.problem.mask = ATTN_MASK_TOP_LEFT;
  problem.problem.window_left = std::numeric_limits<int32_t>::max();
  problem.problem.window_right = 14;
  attn_fwd_args args = problem.fwd();
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  const attn_fwd_args got = kernarg_of<TestFwdKernarg>(recorder.all().back());
  EXPECT_EQ(got.problem.window_left, -1);
  EXPECT_EQ(got.problem.window_right, -1);
  EXPECT_EQ(got.problem.mask, ATTN_MASK_TOP_LEFT);
}

TEST(strides_of_single_entries_do_not_matter) {
  GpuProblem problem(Shape{1, 2, 1, 1, 7, 64, 64}, ATTN_DTYPE_BF16);
  attn_fwd_args args = problem.fwd();
  args.q.stride_batch = int64_t{1} << 40;
  args.q.stride_seq = 3;
  args.k.stride_head = -1;
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  const attn_fwd_args got = kernarg_of<TestFwdKernarg>(recorder.all().back());
  EXPECT_EQ(got.q.stride_batch, 0);
  EXPECT_EQ(got.q.stride_seq, 128);
  EXPECT_EQ(got.k.stride_head, 64);
}

TEST(nothing_to_do_launches_nothing) {
  const Recorder recorder;
  for (const Shape& shape : {Shape{0, 2, 2, 5, 5, 64, 64}, Shape{3, 2, 2, 0, 5, 64, 64}}) {
    GpuProblem problem(shape, ATTN_DTYPE_FP16);
    attn_fwd_args args = problem.fwd();
    EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  }
  EXPECT_EQ(recorder.order(), "");
}

TEST(forward_without_keys_fills) {
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

TEST(fills_follow_strides) {
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

TEST(backward_in_batch_mode) {
  GpuProblem problem(Shape{2, 2, 2, 100, 200, 64, 64}, ATTN_DTYPE_FP16);
  problem.problem.mask = ATTN_MASK_BOTTOM_RIGHT;
  problem.problem.window_right = 0;
  attn_bwd_args args = problem.bwd_with_workspace();
  // delta and dq_acc, each rounded up to 256 bytes.
  const uint64_t delta = 2 * 2 * 100 * 4, dq_acc = 2 * 100 * 2 * 64 * 4;
  EXPECT_EQ(args.workspace_size, 1792 + dq_acc);
  EXPECT(delta <= 1792);
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
    const TestBwdKernarg got = kernarg_of<TestBwdKernarg>(calls[i]);
    EXPECT(std::memcmp(&got.args, &args, sizeof(args)) == 0);
    EXPECT_EQ(static_cast<void*>(got.buffers.delta), static_cast<void*>(workspace));
    EXPECT_EQ(static_cast<void*>(got.buffers.dq_acc), static_cast<void*>(workspace + 1792));
    EXPECT(std::memcmp(&got.buffers.dk, &args.dk, sizeof(attn_tensor)) == 0);
    EXPECT(std::memcmp(&got.buffers.dv, &args.dv, sizeof(attn_tensor)) == 0);
  }
}

TEST(backward_sums_shared_heads) {
  GpuProblem problem(Shape{2, 6, 2, 64, 128, 128, 128}, ATTN_DTYPE_BF16);
  attn_bwd_args args = problem.bwd_with_workspace();
  const Recorder recorder;
  EXPECT_EQ(attn_bwd(&args), ATTN_OK);
  EXPECT_EQ(recorder.order(), "lkflklklkk");
  const std::vector<RecordedCall> launches = recorder.of(kRecordedLaunch);
  expect_launch(launches[1], "dq_dk_dv_d128_bf16_batch_nmask", 1, 6, 2, 256);
  const BwdBuffers buffers = kernarg_of<TestBwdKernarg>(launches[1]).buffers;
  EXPECT_EQ(buffers.dk.stride_batch, 128 * 6 * 128);
  EXPECT_EQ(buffers.dk.stride_seq, 6 * 128);
  EXPECT_EQ(buffers.dk.stride_head, 128);
  const uint64_t expanded = uint64_t{2} * 128 * 6 * 128 * 2;
  EXPECT_EQ(static_cast<char*>(buffers.dv.data) - static_cast<char*>(buffers.dk.data),
            static_cast<ptrdiff_t>(expanded));
  EXPECT_EQ(static_cast<char*>(buffers.dv.data) + expanded,
            static_cast<char*>(args.workspace) + args.workspace_size);

  const attn_tensor* from[] = {&buffers.dk, &buffers.dv};
  const attn_tensor* to[] = {&args.dk, &args.dv};
  for (int i : {0, 1}) {
    expect_launch(launches[3 + i], "attn_sum_heads_bf16", sum_heads_workgroups(256, 2, 128), 1, 1,
                  kSumHeadsBlockSize);
    const SumHeadsArgs got = kernarg_of<SumHeadsArgs>(launches[3 + i]);
    EXPECT_EQ(got.src, from[i]->data);
    EXPECT_EQ(got.dst, to[i]->data);
    EXPECT_EQ(got.tokens, 256);
    EXPECT_EQ(got.seqlen, 128);
    EXPECT_EQ(got.dst_stride_batch, 128 * 2 * 128);
    EXPECT_EQ(got.dst_stride_seq, 2 * 128);
    EXPECT_EQ(got.dst_stride_head, 128);
    EXPECT_EQ(got.heads_k, 2);
    EXPECT_EQ(got.group, 3);
    EXPECT_EQ(got.head_size, 128);
    EXPECT_EQ(got.workgroups, launches[3 + i].grid[0]);
  }
}

TEST(backward_in_group_mode) {
  GpuProblem problem(Shape{0, 4, 1, 0, 0, 64, 64}, ATTN_DTYPE_BF16, 1,
                     std::vector<int32_t>{0, 10, 210}, std::vector<int32_t>{0, 0, 130});
  attn_bwd_args args = problem.bwd_with_workspace();
  const Recorder recorder;
  EXPECT_EQ(attn_varlen_bwd(&args), ATTN_OK);
  const std::vector<RecordedCall> launches = recorder.of(kRecordedLaunch);
  EXPECT_EQ(launches.size(), 5u);
  expect_launch(launches[0], "dot_do_o_d64_bf16_group", 4, 4, 2, 64);
  // The masked kernel, though no mask is asked for: see make_request.
  expect_launch(launches[1], "dq_dk_dv_d64_bf16_group_mask", 2, 4, 2, 256);
  expect_launch(launches[2], "convert_dq_d64_bf16_group", 4, 4, 2, 256);
  EXPECT_EQ(kernarg_of<TestBwdKernarg>(launches[1]).buffers.dk.stride_seq, 4 * 64);
  EXPECT_EQ(kernarg_of<SumHeadsArgs>(launches[3]).tokens, 130);
  EXPECT_EQ(kernarg_of<SumHeadsArgs>(launches[3]).seqlen, 130);
}

TEST(backward_takes_padded_heads_where_needed) {
  GpuProblem problem(Shape{1, 1, 1, 64, 128, 80, 128}, ATTN_DTYPE_BF16);
  attn_bwd_args args = problem.bwd_with_workspace();
  const Recorder recorder;
  EXPECT_EQ(attn_bwd(&args), ATTN_OK);
  const std::vector<RecordedCall> launches = recorder.of(kRecordedLaunch);
  expect_launch(launches[0], "dot_do_o_d128_bf16_batch", 1, 1, 1, 64);
  expect_launch(launches[1], "dq_dk_dv_d128_bf16_batch_nmask_pd", 1, 1, 1, 256);
  expect_launch(launches[2], "convert_dq_d128_bf16_batch_pd", 1, 1, 1, 256);
}

TEST(backward_without_keys_or_queries_fills) {
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

TEST(workspace_is_checked) {
  GpuProblem problem(Shape{1, 1, 1, 64, 128, 64, 64}, ATTN_DTYPE_BF16);
  const attn_bwd_args good = problem.bwd_with_workspace();
  attn_bwd_args args = good;
  args.workspace_size -= 1;
  EXPECT_EQ(attn_bwd(&args), ATTN_ERROR_INVALID_ARGUMENT);
  EXPECT_CONTAINS(attn_last_error(), "workspace_size is " + std::to_string(args.workspace_size));
  EXPECT_CONTAINS(attn_last_error(), std::to_string(good.workspace_size));
  args = good;
  args.workspace = nullptr;
  EXPECT_EQ(attn_bwd(&args), ATTN_ERROR_INVALID_ARGUMENT);
  EXPECT_CONTAINS(attn_last_error(), "workspace is NULL");
  args = good;
  args.workspace = static_cast<char*>(args.workspace) + 128;
  EXPECT_EQ(attn_bwd(&args), ATTN_ERROR_INVALID_ARGUMENT);
  EXPECT_CONTAINS(attn_last_error(), "aligned to 256");
}

TEST(the_device_is_made_current_and_restored) {
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
  expect_launch(recorder.all()[2], "fwd_d64_fp16_batch_nmask_psk", 2, 1, 1, 256, "gfx950");
}

TEST(every_device_loads_for_itself) {
  const Environment archs(kArchs, "gfx942,gfx942");
  GpuProblem problem(Shape{1, 2, 2, 100, 64, 64, 64}, ATTN_DTYPE_FP16);
  attn_fwd_args args = problem.fwd();
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  args.problem.device_id = 1;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  EXPECT_EQ(recorder.of(kRecordedLoad).size(), 2u);
}

TEST(no_such_device) {
  GpuProblem problem(Shape{1, 1, 1, 8, 8, 64, 64}, ATTN_DTYPE_FP16);
  problem.problem.device_id = 9;
  attn_fwd_args args = problem.fwd();
  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_INVALID_ARGUMENT);
  EXPECT_CONTAINS(attn_last_error(), "device_id is 9");
}

TEST(an_arch_without_code_is_named_with_those_that_have) {
  const Environment archs(kArchs, "gfx942,x,y,gfx1100:xnack-");
  GpuProblem problem(Shape{1, 1, 1, 8, 8, 64, 64}, ATTN_DTYPE_FP16);
  problem.problem.device_id = 3;
  attn_fwd_args args = problem.fwd();
  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_UNSUPPORTED);
  EXPECT_CONTAINS(attn_last_error(), "on gfx1100");
  EXPECT_CONTAINS(attn_last_error(), "--//kernels:archs=gfx942,gfx950,gfx1100");
}

TEST(an_arch_that_is_no_gfx_name_is_a_driver_error) {
  const Environment archs(kArchs, "gfx942,x,y,z,AMD Radeon");
  GpuProblem problem(Shape{1, 1, 1, 8, 8, 64, 64}, ATTN_DTYPE_FP16);
  problem.problem.device_id = 4;
  attn_fwd_args args = problem.fwd();
  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_DRIVER);
  EXPECT_CONTAINS(attn_last_error(), "'AMD Radeon'");
}

TEST(a_failed_load_is_tried_again) {
  GpuProblem problem(Shape{1, 2, 2, 100, 100, 128, 128}, ATTN_DTYPE_FP16);
  attn_fwd_args args = problem.fwd();
  {
    const Environment fail(kFail, "hipModuleLoadData=209");
    EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_DRIVER);
    EXPECT_CONTAINS(attn_last_error(), "hipModuleLoadData failed");
    EXPECT_CONTAINS(attn_last_error(), "(209)");
    EXPECT_CONTAINS(attn_last_error(), "gfx942");
  }
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  EXPECT_EQ(recorder.order(), "lk");
}

TEST(out_of_memory_has_its_own_status) {
  GpuProblem problem(Shape{1, 2, 2, 100, 100, 128, 128}, ATTN_DTYPE_BF16);
  problem.problem.mask = ATTN_MASK_TOP_LEFT;  // no other test loads this instance
  attn_fwd_args args = problem.fwd();
  const Environment fail(kFail, "hipModuleLoadData=2");
  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_OUT_OF_MEMORY);
  EXPECT_CONTAINS(attn_last_error(), "hipErrorOutOfMemory");
}

TEST(a_failed_launch_names_the_kernel_and_restores_the_device) {
  const Environment archs(kArchs, "gfx942,gfx942");
  const Environment fail(kFail, "hipModuleLaunchKernel=719");
  GpuProblem problem(Shape{1, 2, 2, 100, 100, 64, 64}, ATTN_DTYPE_BF16);
  problem.problem.device_id = 1;
  attn_fwd_args args = problem.fwd();
  const Recorder recorder;
  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_DRIVER);
  EXPECT_CONTAINS(attn_last_error(), "hipModuleLaunchKernel(fwd_d64_bf16_batch_nmask_psk)");
  EXPECT_CONTAINS(attn_last_error(), "(719)");
  EXPECT_EQ(recorder.order(), "sls");
}

TEST(failures_between_launches_are_reported) {
  GpuProblem problem(Shape{2, 2, 2, 100, 200, 64, 64}, ATTN_DTYPE_FP16);
  attn_bwd_args args = problem.bwd_with_workspace();
  for (const char* function : {"hipMemsetD32Async", "hipGetDevice", "hipModuleLaunchKernel"}) {
    const Environment fail(kFail, std::string(function) + "=1");
    EXPECT_EQ(attn_bwd(&args), ATTN_ERROR_DRIVER);
    EXPECT_CONTAINS(attn_last_error(), function);
  }
}

TEST(a_corrupt_code_object_is_not_loaded) {
  GpuProblem problem(Shape{0, 4, 4, 0, 0, 128, 128}, ATTN_DTYPE_BF16, 1,
                     std::vector<int32_t>{0, 10}, std::vector<int32_t>{0, 64});
  problem.problem.mask = ATTN_MASK_TOP_LEFT;
  attn_fwd_args args = problem.fwd();
  const Recorder recorder;
  EXPECT_EQ(attn_varlen_fwd(&args), ATTN_ERROR_CORRUPT);
  EXPECT_CONTAINS(attn_last_error(), find_instance(kCorruptName)->code_objects[0].key);
  EXPECT_EQ(recorder.order(), "");
}

TEST(vector_loads_need_alignment) {
  GpuProblem problem(Shape{1, 2, 2, 100, 100, 64, 64}, ATTN_DTYPE_FP16);
  attn_fwd_args args = problem.fwd();
  args.v.data = static_cast<char*>(args.v.data) + 8;
  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_INVALID_ARGUMENT);
  EXPECT_CONTAINS(attn_last_error(), "v.data");
  EXPECT_CONTAINS(attn_last_error(), "multiple of 16 bytes");
  args = problem.fwd();
  args.k.stride_seq = 132;
  EXPECT_EQ(attn_fwd(&args), ATTN_ERROR_INVALID_ARGUMENT);
  EXPECT_CONTAINS(attn_last_error(), "k.stride_seq is 132");
}

TEST(threads_load_once) {
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

TEST(driver_info_lists_devices) {
  const char* text = nullptr;
  EXPECT_EQ(attn_driver_info(ATTN_DEVICE_ROCM, &text), ATTN_OK);
  EXPECT_CONTAINS(text, "libamdhip64.so");
  EXPECT_CONTAINS(text, ": 0 gfx942");
}

TEST(explain_asks_the_device_for_its_arch) {
  GpuProblem problem(Shape{1, 2, 2, 100, 100, 64, 64}, ATTN_DTYPE_FP16);
  attn_fwd_args args = problem.fwd();
  const char* text = nullptr;
  const Recorder recorder;
  EXPECT_EQ(attn_explain_fwd(&args, nullptr, &text), ATTN_OK);
  EXPECT_CONTAINS(text, "on gfx942");
  EXPECT_EQ(recorder.order(), "");
}

}  // namespace
}  // namespace aiter_attn::testing
