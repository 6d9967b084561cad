// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The norms' calls of a GPU runtime and of a compiler, through the C ABI, on stand-ins for them:
// which source with which macros, grid, block, shared memory, stream and arguments. The images that
// the stand-in compilers make are texts that name their sources.
#include "aiter/norm/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "aiter/norm.h"
#include "kernels/norm/arguments.h"
#include "tests/support/runtime/recorder.h"

namespace AITER_ATTN_NAMESPACE::norm {
namespace {

using ::testing::AllOf;
using testing::Environment;
using ::testing::HasSubstr;
using testing::kernarg_of;
using ::testing::Not;
using testing::Recorder;
using ::testing::StartsWith;

constexpr char kCuda[] = "AITER_ATTN_CUDA_LIBRARY";
constexpr char kHip[] = "AITER_ATTN_HIP_LIBRARY";
constexpr int kMultiprocessors = 132;  // of the stand-in
constexpr int kThreads = 2048;         // that one of them holds

void* const kStream = reinterpret_cast<void*>(0x5000);

// Addresses on the "GPU": nothing reads or writes there.
void* address(uintptr_t which, uintptr_t more = 0) {
  return reinterpret_cast<void*>((which << 40) + more);
}
float* floats(uintptr_t which) { return static_cast<float*>(address(which)); }

attn_norm_problem norm_problem(int32_t kind, int64_t rows, int64_t hidden,
                               int32_t device_type = ATTN_DEVICE_CUDA) {
  attn_norm_problem p = {};
  p.struct_size = sizeof(p);
  p.kind = kind;
  p.device_type = device_type;
  p.stream = kStream;
  p.rows = rows;
  p.hidden = hidden;
  p.x_dtype = p.weight_dtype = p.y_dtype = ATTN_DTYPE_BF16;
  p.epsilon = 1e-5f;
  return p;
}

attn_norm_fwd_args forward_args(const attn_norm_problem& p) {
  attn_norm_fwd_args args = {};
  args.struct_size = sizeof(args);
  args.problem = &p;
  args.x = {address(1), p.hidden};
  args.y = {address(2), p.hidden};
  args.gamma = address(3);
  args.rstd = floats(4);
  return args;
}

attn_norm_bwd_args backward_args(const attn_norm_problem& p) {
  attn_norm_bwd_args args = {};
  args.struct_size = sizeof(args);
  args.problem = &p;
  args.x = {address(1), p.hidden};
  args.dy = {address(2), p.hidden};
  args.dx = {address(3), p.hidden};
  args.gamma = address(4);
  args.rstd = floats(5);
  args.dgamma = address(6);
  if (p.kind == ATTN_NORM_LAYER) {
    args.mean = floats(7);
    args.dbeta = address(8);
  }
  return args;
}

attn_softmax_problem softmax_problem(int32_t mask_kind, int64_t rows, int64_t columns,
                                     int32_t device_type = ATTN_DEVICE_CUDA) {
  attn_softmax_problem p = {};
  p.struct_size = sizeof(p);
  p.mask_kind = mask_kind;
  p.device_type = device_type;
  p.stream = kStream;
  p.rows = rows;
  p.columns = columns;
  p.queries = 4;
  p.mask_repeat = mask_kind == ATTN_SOFTMAX_MASK_EXPLICIT ? 1 : 0;
  p.dtype = ATTN_DTYPE_FP16;
  p.scale = 0.5f;
  return p;
}

attn_softmax_fwd_args softmax_args(const attn_softmax_problem& p) {
  attn_softmax_fwd_args args = {};
  args.struct_size = sizeof(args);
  args.problem = &p;
  args.x = {address(1), p.columns};
  args.y = {address(2), p.columns};
  if (p.mask_kind == ATTN_SOFTMAX_MASK_EXPLICIT) {
    args.mask = static_cast<const uint8_t*>(address(3));
  }
  return args;
}

void expect_ok(attn_status status) {
  EXPECT_EQ(status, ATTN_OK);
  EXPECT_STREQ(attn_last_error(), "");
}

void expect_refused(attn_status got, attn_status want, const std::string& message) {
  EXPECT_EQ(got, want);
  EXPECT_THAT(attn_last_error(), HasSubstr(message));
}

std::string image(const RecordedCall& call) {
  return std::string(reinterpret_cast<const char*>(call.image), call.module_size - 1);
}

// The value of a macro of the image.
std::string macro(const RecordedCall& call, const std::string& name) {
  const std::string text = image(call);
  const size_t at = text.rfind(" -D" + name + "=");
  if (at == text.npos) return "none";
  const size_t value = at + name.size() + 4;
  return text.substr(value, text.find(' ', value) - value);
}
int number(const RecordedCall& call, const std::string& name) {
  return std::stoi(macro(call, name));
}

void expect_shape(const RecordedCall& call, const std::string& symbol, uint32_t x, uint32_t y,
                  uint32_t threads) {
  EXPECT_EQ(call.symbol, symbol);
  EXPECT_EQ(call.grid[0], x);
  EXPECT_EQ(call.grid[1], y);
  EXPECT_EQ(call.grid[2], 1u);
  EXPECT_EQ(call.block[0], threads);
  EXPECT_EQ(call.block[1], 1u);
  EXPECT_EQ(call.block[2], 1u);
  EXPECT_EQ(call.stream, kStream);
}

TEST(LaunchTest, RmsNormForward) {
  attn_norm_problem p = norm_problem(ATTN_NORM_RMS, 1001, 1024);
  const attn_norm_fwd_args args = forward_args(p);
  const Recorder recorder(kCuda);
  expect_ok(attn_norm_fwd(&args));
  // No context was current before, nor is one afterwards.
  EXPECT_EQ(recorder.order(), "slks");
  EXPECT_EQ(recorder.all().back().device, -1);
  const RecordedCall call = recorder.of(kRecordedLaunch)[0];

  EXPECT_THAT(image(call), AllOf(StartsWith("cubin norm_forward.cpp="), HasSubstr(" rows.h="),
                                 HasSubstr("ROW_KERNEL norm_forward"),
                                 HasSubstr(" --gpu-architecture=sm_90 -std=c++17 -DNORM_ADD=0 ")));
  EXPECT_EQ(number(call, "ROW_HIDDEN"), 1024);
  EXPECT_EQ(number(call, "ROW_VECTOR"), 8);
  EXPECT_EQ(macro(call, "NORM_X"), "bf16");
  EXPECT_EQ(macro(call, "NORM_W"), "bf16");
  EXPECT_EQ(macro(call, "NORM_Y"), "bf16");
  EXPECT_EQ(number(call, "NORM_LAYER"), 0);
  EXPECT_EQ(number(call, "NORM_BETA"), 0);
  EXPECT_EQ(number(call, "NORM_ADD"), 0);
  EXPECT_EQ(number(call, "NORM_ZERO_CENTRED"), 0);
  EXPECT_EQ(macro(call, "NORM_LAG"), "none");

  // The table has no waves here: a CTA for every row in hand.
  const int threads = number(call, "ROW_THREADS");
  const int in_hand = threads / number(call, "ROW_LANES");
  const auto groups = static_cast<uint32_t>((1001 + in_hand - 1) / in_hand);
  expect_shape(call, "norm_forward", groups, 1, static_cast<uint32_t>(threads));
  // A slot of each warp holds a row.
  EXPECT_EQ(call.shared_bytes,
            static_cast<uint32_t>(number(call, "ROW_STAGES") * in_hand * 1024 * 2));
  EXPECT_EQ(call.most_shared_bytes, call.shared_bytes);
  EXPECT_EQ(call.waits_itself, 1u);  // so few rows take little longer than their launch

  ASSERT_EQ(call.kernarg_size, sizeof(row_kernels::NormForwardArguments));
  const auto got = kernarg_of<row_kernels::NormForwardArguments>(call);
  EXPECT_EQ(got.x.data, args.x.data);
  EXPECT_EQ(got.x.stride, 1024);
  EXPECT_EQ(got.y, args.y.data);
  EXPECT_EQ(got.y_stride, 1024);
  EXPECT_EQ(got.gamma, args.gamma);
  EXPECT_EQ(got.rstd, args.rstd);
  EXPECT_EQ(got.rows, 1001);
  EXPECT_EQ(got.epsilon, 1e-5f);
  EXPECT_EQ(got.groups, static_cast<int>(groups));
  EXPECT_EQ(got.residual.data, nullptr);
  EXPECT_EQ(got.sum, nullptr);
  EXPECT_EQ(got.beta, nullptr);
  EXPECT_EQ(got.mean, nullptr);
  EXPECT_EQ(got.scale, nullptr);
  EXPECT_EQ(got.amax, nullptr);
  EXPECT_EQ(got.counter, nullptr);
}

TEST(LaunchTest, LayerNormForwardWithEverything) {
  attn_norm_problem p = norm_problem(ATTN_NORM_LAYER, 7, 768);
  p.x_dtype = ATTN_DTYPE_FP16;
  p.weight_dtype = ATTN_DTYPE_FP32;
  p.y_dtype = ATTN_DTYPE_FP8_E5M2;
  p.zero_centred = 1;
  attn_norm_fwd_args args = forward_args(p);
  args.x.stride = 800, args.y.stride = 896;
  args.residual = {address(5), 1000};
  args.sum = {address(6), 768};
  args.beta = address(7);
  args.mean = floats(8);
  args.scale = floats(9), args.amax = floats(10);
  const Recorder recorder(kCuda);
  expect_ok(attn_norm_fwd(&args));
  const RecordedCall call = recorder.of(kRecordedLaunch)[0];
  EXPECT_EQ(macro(call, "NORM_X"), "fp16");
  EXPECT_EQ(macro(call, "NORM_W"), "fp32");
  EXPECT_EQ(macro(call, "NORM_Y"), "fp8_e5m2");
  EXPECT_EQ(number(call, "NORM_LAYER"), 1);
  EXPECT_EQ(number(call, "NORM_BETA"), 1);
  EXPECT_EQ(number(call, "NORM_ADD"), 1);
  EXPECT_EQ(number(call, "NORM_ZERO_CENTRED"), 1);
  EXPECT_EQ(number(call, "ROW_VECTOR"), 8);
  const auto got = kernarg_of<row_kernels::NormForwardArguments>(call);
  EXPECT_EQ(got.x.stride, 800);
  EXPECT_EQ(got.y_stride, 896);
  EXPECT_EQ(got.residual.data, args.residual.data);
  EXPECT_EQ(got.residual.stride, 1000);
  EXPECT_EQ(got.sum, args.sum.data);
  EXPECT_EQ(got.sum_stride, 768);
  EXPECT_EQ(got.beta, args.beta);
  EXPECT_EQ(got.mean, args.mean);
  EXPECT_EQ(got.scale, args.scale);
  EXPECT_EQ(got.amax, args.amax);
}

TEST(LaunchTest, ASecondCallLoadsNothing) {
  attn_norm_problem p = norm_problem(ATTN_NORM_RMS, 100, 2000);
  const attn_norm_fwd_args args = forward_args(p);
  expect_ok(attn_norm_fwd(&args));
  p.rows = 90, p.epsilon = 0;  // not compiled in
  const Recorder recorder(kCuda);
  expect_ok(attn_norm_fwd(&args));
  EXPECT_EQ(recorder.order(), "sks");
}

attn_status launch(const attn_norm_fwd_args& args) { return attn_norm_fwd(&args); }
attn_status launch(const attn_norm_bwd_args& args) { return attn_norm_bwd(&args); }
attn_status launch(const attn_softmax_fwd_args& args) { return attn_softmax_fwd(&args); }

// Whether the rows of a changed call are shifted, and the elements of its vectors.
template <typename P, typename Args, typename Change>
std::pair<int, int> vectors_of(P p, Args (*args_of)(const P&), const Change& change) {
  Args args = args_of(p);
  change(p, args);
  const Recorder recorder(kCuda);
  expect_ok(launch(args));
  const RecordedCall call = recorder.of(kRecordedLaunch)[0];
  return {number(call, "ROW_SHIFTED"), number(call, "ROW_VECTOR")};
}

// Addresses and strides decide how many columns a thread moves at once.
TEST(LaunchTest, AlignmentChoosesTheVector) {
  const auto vector = [](const auto& change) {
    return vectors_of(norm_problem(ATTN_NORM_RMS, 100, 1000), forward_args, change).second;
  };
  EXPECT_EQ(vector([](auto&, auto&) {}), 8);
  EXPECT_EQ(vector([](auto&, auto& args) { args.x.data = address(1, 8); }), 4);
  EXPECT_EQ(vector([](auto&, auto& args) { args.y.data = address(2, 4); }), 2);
  EXPECT_EQ(vector([](auto&, auto& args) { args.gamma = address(3, 2); }), 8);
  EXPECT_EQ(vector([](auto&, auto& args) { args.x.stride = 1004; }), 4);
  EXPECT_EQ(vector([](auto&, auto& args) { args.y.stride = 1001; }), 1);
  EXPECT_EQ(vector([](auto& p, auto& args) { p.rows = 1, args.y.stride = 1001; }), 8);
  EXPECT_EQ(vector([](auto& p, auto&) { p.hidden = 998; }), 8);
  EXPECT_EQ(vector([](auto& p, auto&) { p.hidden = 7; }), 1);
  EXPECT_EQ(
      vector([](auto& p, auto&) { p.x_dtype = p.weight_dtype = p.y_dtype = ATTN_DTYPE_FP32; }), 4);
}

// As softmax does. gamma may be anywhere.
TEST(LaunchTest, RowsOfANormThatNoVectorDividesAreShifted) {
  const auto shape = [](const auto& change) {
    return vectors_of(norm_problem(ATTN_NORM_LAYER, 1000, 3001), forward_args, change);
  };
  EXPECT_EQ(shape([](auto&, auto&) {}), std::make_pair(1, 8));
  EXPECT_EQ(shape([](auto&, auto& args) { args.gamma = address(3, 2); }), std::make_pair(1, 8));
  EXPECT_EQ(shape([](auto& p, auto&) { p.x_dtype = p.y_dtype = ATTN_DTYPE_FP32; }),
            std::make_pair(1, 8));
  EXPECT_EQ(shape([](auto& p, auto&) { p.y_dtype = ATTN_DTYPE_FP8_E4M3; }), std::make_pair(1, 8));
  EXPECT_EQ(shape([](auto&, auto& args) { args.y.stride = 3002; }), std::make_pair(0, 1));
  EXPECT_EQ(shape([](auto&, auto& args) { args.y.data = address(2, 2); }), std::make_pair(0, 1));
  EXPECT_EQ(shape([](auto&, auto& args) {
              args.residual = {address(5), 3009};
              args.sum = {address(6), 3001};
            }),
            std::make_pair(1, 8));
  EXPECT_EQ(shape([](auto&, auto& args) {
              args.residual = {address(5, 2), 3001};
              args.sum = {address(6), 3001};
            }),
            std::make_pair(0, 1));
  EXPECT_EQ(shape([](auto& p, auto&) { p.hidden = 3000; }), std::make_pair(1, 8));  // by stride
}

// dgamma's columns keep their threads: gamma, dgamma and dbeta may be anywhere.
TEST(LaunchTest, RowsOfANormsBackwardPassThatNoVectorDividesAreShifted) {
  const auto shape = [](const auto& change) {
    return vectors_of(norm_problem(ATTN_NORM_RMS, 40, 3001), backward_args, change);
  };
  EXPECT_EQ(shape([](auto&, auto&) {}), std::make_pair(1, 8));
  EXPECT_EQ(shape([](auto&, auto& args) { args.gamma = address(4, 2); }), std::make_pair(1, 8));
  EXPECT_EQ(shape([](auto& p, auto&) { p.x_dtype = ATTN_DTYPE_FP32; }), std::make_pair(1, 8));
  EXPECT_EQ(shape([](auto&, auto& args) { args.dh = {address(7), 3009}; }), std::make_pair(1, 8));
  EXPECT_EQ(shape([](auto& p, auto&) { p.hidden = 3000; }), std::make_pair(1, 8));  // by stride
  // Few enough for one kernel: without vectors two more have to sum dgamma, in a workspace.
  const auto needs_workspace = [](const auto& change) {
    attn_norm_problem p = norm_problem(ATTN_NORM_RMS, 40, 3001);
    attn_norm_bwd_args args = backward_args(p);
    change(args);
    uint64_t size = 0;
    expect_ok(attn_norm_bwd_workspace_size(&args, &size));
    return size > 0;
  };
  EXPECT_FALSE(needs_workspace([](auto&) {}));
  EXPECT_TRUE(needs_workspace([](auto& args) { args.dx.stride = 3002; }));
  EXPECT_TRUE(needs_workspace([](auto& args) { args.dh = {address(7, 2), 3001}; }));
}

// Softmax takes whole vectors wherever rows start, if they start there in all matrices.
TEST(LaunchTest, RowsThatNoVectorDividesAreShifted) {
  const auto shape = [](const auto& change) {
    return vectors_of(softmax_problem(ATTN_SOFTMAX_MASK_NONE, 12, 997), softmax_args, change);
  };
  EXPECT_EQ(shape([](auto&, auto&) {}), std::make_pair(1, 8));
  EXPECT_EQ(shape([](auto& p, auto&) { p.dtype = ATTN_DTYPE_FP32; }), std::make_pair(1, 4));
  EXPECT_EQ(shape([](auto&, auto& args) { args.y.stride = 1005; }), std::make_pair(1, 8));
  EXPECT_EQ(shape([](auto&, auto& args) { args.y.stride = 998; }), std::make_pair(0, 1));
  EXPECT_EQ(shape([](auto&, auto& args) { args.x.data = address(1, 2); }), std::make_pair(0, 1));
  EXPECT_EQ(shape([](auto& p, auto&) { p.columns = 7; }), std::make_pair(0, 1));
  EXPECT_EQ(
      shape([](auto& p, auto& args) { p.columns = 1000, args.x.stride = args.y.stride = 1000; }),
      std::make_pair(0, 8));
  EXPECT_EQ(
      shape([](auto& p, auto& args) { p.columns = 1000, args.x.stride = args.y.stride = 1001; }),
      std::make_pair(1, 8));
}

TEST(LaunchTest, LongRowsTakeClustersAndABarrier) {
  attn_norm_problem p = norm_problem(ATTN_NORM_RMS, 5000, 131072);
  attn_norm_fwd_args args = forward_args(p);
  {
    const Recorder recorder(kCuda);
    expect_ok(attn_norm_fwd(&args));
    const RecordedCall call = recorder.of(kRecordedLaunch)[0];
    EXPECT_EQ(number(call, "ROW_ON_DEMAND"), 0);
    EXPECT_EQ(kernarg_of<row_kernels::NormForwardArguments>(call).counter, nullptr);
  }
  args.barrier = address(9);
  const Recorder recorder(kCuda);
  expect_ok(attn_norm_fwd(&args));
  const RecordedCall call = recorder.of(kRecordedLaunch)[0];
  EXPECT_EQ(number(call, "ROW_ON_DEMAND"), 1);
  EXPECT_EQ(call.wide_clusters, 1u);
  EXPECT_EQ(call.waits_itself, 0u);  // it would take the place of other streams' work meanwhile
  const int cluster = number(call, "ROW_CLUSTER");
  const int held = kMultiprocessors * (kThreads / number(call, "ROW_THREADS")) / cluster;
  EXPECT_GT(cluster, 1);
  EXPECT_EQ(call.grid[0], static_cast<uint32_t>(held * cluster));
  const auto got = kernarg_of<row_kernels::NormForwardArguments>(call);
  EXPECT_EQ(got.groups, held);
  EXPECT_EQ(got.counter, args.barrier);
}

TEST(LaunchTest, AnOlderGpu) {
  attn_norm_problem p = norm_problem(ATTN_NORM_RMS, 5000, 131072);
  p.device_id = 2;
  attn_norm_fwd_args args = forward_args(p);
  args.barrier = address(9);
  const Recorder recorder(kCuda);
  expect_ok(attn_norm_fwd(&args));
  const RecordedCall call = recorder.of(kRecordedLaunch)[0];
  EXPECT_EQ(call.device, 2);
  EXPECT_THAT(image(call), HasSubstr("--gpu-architecture=sm_75"));
  EXPECT_EQ(number(call, "ROW_CLUSTER"), 1);
  EXPECT_EQ(number(call, "ROW_STAGES"), 0);
  EXPECT_EQ(number(call, "ROW_ON_DEMAND"), 0);
  EXPECT_EQ(call.wide_clusters, 0u);

  p.hidden = 4096;
  attn_norm_bwd_args backward = backward_args(p);
  expect_ok(attn_norm_bwd_workspace_size(&backward, &backward.workspace_size));
  backward.workspace = address(10);
  expect_ok(attn_norm_bwd(&backward));
  const RecordedCall reduce = recorder.of(kRecordedLaunch)[2];
  EXPECT_EQ(std::string(reduce.symbol), "norm_backward_reduce");
  EXPECT_EQ(reduce.waits_itself, 0u);  // such devices end one kernel before the next
}

// A driver says so by a number of 0, or by an error.
TEST(LaunchTest, ClustersThatTheDeviceDoesNotHoldAreDoneWithout) {
  const auto expect_no_cluster = [](int64_t hidden, const char* variable, const char* value) {
    SCOPED_TRACE(value);
    const Environment small(variable, value);
    attn_norm_problem p = norm_problem(ATTN_NORM_RMS, 5000, hidden);  // a shape of its own
    const attn_norm_fwd_args args = forward_args(p);
    const Recorder recorder(kCuda);
    expect_ok(attn_norm_fwd(&args));
    const RecordedCall call = recorder.of(kRecordedLaunch)[0];
    EXPECT_EQ(number(call, "ROW_CLUSTER"), 1);
    EXPECT_EQ(number(call, "ROW_STAGES"), 0);
  };
  expect_no_cluster(131064, "AITER_RECORDING_CUDA_MOST_CLUSTER", "1");
  expect_no_cluster(131056, "AITER_RECORDING_CUDA_FAIL", "cuOccupancyMaxActiveClusters=912");
}

TEST(LaunchTest, NormBackward) {
  attn_norm_problem p = norm_problem(ATTN_NORM_LAYER, 4096, 4096);
  attn_norm_bwd_args args = backward_args(p);
  args.dh = {address(9), 4096};
  uint64_t bytes = 0;
  const Recorder recorder(kCuda);
  expect_ok(attn_norm_bwd_workspace_size(&args, &bytes));
  // Both modules, in either order: on a machine of several cores, by two threads.
  EXPECT_EQ(recorder.of(kRecordedLoad).size(), 2u);
  EXPECT_EQ(recorder.of(kRecordedLaunch).size(), 0u);
  const size_t before = recorder.order().size();
  args.workspace = address(10);
  args.workspace_size = bytes;
  expect_ok(attn_norm_bwd(&args));
  EXPECT_EQ(recorder.order().substr(before), "skks");

  const RecordedCall rows = recorder.of(kRecordedLaunch)[0];
  const int threads = number(rows, "ROW_THREADS");
  EXPECT_THAT(image(rows), StartsWith("cubin norm_backward.cpp="));
  EXPECT_EQ(number(rows, "NORM_ADD"), 1);
  EXPECT_EQ(macro(rows, "NORM_BETA"), "none");
  EXPECT_NE(macro(rows, "NORM_LAG"), "none");
  const int groups = kMultiprocessors * (kThreads / threads);
  expect_shape(rows, "norm_backward", static_cast<uint32_t>(groups), 1,
               static_cast<uint32_t>(threads));
  EXPECT_EQ(bytes, 2ull * static_cast<uint64_t>(groups) * 4096 * sizeof(float));
  const auto a = kernarg_of<row_kernels::NormBackwardArguments>(rows);
  EXPECT_EQ(a.x.data, args.x.data);
  EXPECT_EQ(a.dy.data, args.dy.data);
  EXPECT_EQ(a.dh.data, args.dh.data);
  EXPECT_EQ(a.dx, args.dx.data);
  EXPECT_EQ(a.dx_stride, 4096);
  EXPECT_EQ(a.gamma, args.gamma);
  EXPECT_EQ(a.mean, args.mean);
  EXPECT_EQ(a.rstd, args.rstd);
  EXPECT_EQ(a.rows, 4096);
  EXPECT_EQ(a.groups, groups);
  EXPECT_EQ(a.dgamma, args.workspace);
  EXPECT_EQ(a.dbeta, static_cast<float*>(args.workspace) + groups * 4096);

  const RecordedCall reduce = recorder.of(kRecordedLaunch)[1];
  expect_shape(reduce, "norm_backward_reduce", 4096 / 32, 2, 256);
  EXPECT_THAT(image(reduce), StartsWith("cubin norm_columns.cpp="));
  EXPECT_THAT(image(reduce), Not(HasSubstr("norm_backward.cpp=")));
  EXPECT_EQ(number(reduce, "ROW_HIDDEN"), 4096);
  EXPECT_EQ(number(reduce, "ROW_VECTOR"), 8);
  EXPECT_EQ(macro(reduce, "NORM_W"), "bf16");
  EXPECT_EQ(macro(reduce, "NORM_LAYER"), "none");  // both kinds share it
  EXPECT_EQ(reduce.shared_bytes, 0u);
  EXPECT_EQ(reduce.waits_itself, 1u);
  const auto r = kernarg_of<row_kernels::NormReduceArguments>(reduce);
  EXPECT_EQ(r.parts[0], a.dgamma);
  EXPECT_EQ(r.parts[1], a.dbeta);
  EXPECT_EQ(r.sum[0], args.dgamma);
  EXPECT_EQ(r.sum[1], args.dbeta);
  EXPECT_EQ(r.count, groups);
  EXPECT_EQ(r.side, 32);
}

TEST(LaunchTest, NormBackwardOfFewRowsIsOneLaunch) {
  attn_norm_problem p = norm_problem(ATTN_NORM_LAYER, 64, 8192);
  attn_norm_bwd_args args = backward_args(p);
  const Recorder recorder(kCuda);
  expect_ok(attn_norm_bwd_workspace_size(&args, &args.workspace_size));
  EXPECT_EQ(args.workspace_size, 0u);
  EXPECT_EQ(recorder.of(kRecordedLoad).size(), 1u);
  expect_ok(attn_norm_bwd(&args));
  const std::vector<RecordedCall> calls = recorder.of(kRecordedLaunch);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(number(calls[0], "NORM_LAG"), 0);
  // CTAs that sum columns, several vectors of them each, and a cluster for every row.
  const int columns = 8 * number(calls[0], "NORM_FEW_ROWS");
  ASSERT_GT(columns, 0);
  const int cluster = number(calls[0], "ROW_CLUSTER");
  expect_shape(calls[0], "norm_backward", static_cast<uint32_t>(8192 / columns + 64 * cluster), 1,
               static_cast<uint32_t>(number(calls[0], "ROW_THREADS")));
  const auto a = kernarg_of<row_kernels::NormBackwardArguments>(calls[0]);
  EXPECT_EQ(a.dgamma, args.dgamma);
  EXPECT_EQ(a.dbeta, args.dbeta);
  EXPECT_EQ(a.groups, 64);
  EXPECT_EQ(a.rows, 64);

  // Any other number of few rows: the same kernel. A handful, many: others.
  p.rows = 17;
  expect_ok(attn_norm_bwd(&args));
  EXPECT_EQ(recorder.of(kRecordedLoad).size(), 1u);
  p.rows = 16;
  expect_ok(attn_norm_bwd(&args));
  EXPECT_EQ(recorder.of(kRecordedLoad).size(), 2u);
  p.rows = 513;
  expect_ok(attn_norm_bwd_workspace_size(&args, &args.workspace_size));
  EXPECT_GT(args.workspace_size, 0u);
  EXPECT_EQ(recorder.of(kRecordedLoad).size(), 4u);
}

TEST(LaunchTest, NormBackwardOfRowsBeyondRegisters) {
  attn_norm_problem p = norm_problem(ATTN_NORM_RMS, 1000, 300001);
  attn_norm_bwd_args args = backward_args(p);
  args.dh = {address(11), 300001};
  expect_ok(attn_norm_bwd_workspace_size(&args, &args.workspace_size));
  // 147 slices; 6 parts of 167 rows.
  EXPECT_EQ(args.workspace_size, (6ull * 300001 + 1000 * 147) * sizeof(float));
  args.workspace = address(10);
  const Recorder recorder(kCuda);
  expect_ok(attn_norm_bwd(&args));
  EXPECT_EQ(recorder.order(), "skkks");
  const std::vector<RecordedCall> calls = recorder.of(kRecordedLaunch);
  expect_shape(calls[0], "norm_backward_slices", 147, 6, 256);
  expect_shape(calls[1], "norm_backward_long", 147, 6, 256);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(image(calls[i]), StartsWith("cubin norm_long.cpp="));
    EXPECT_EQ(number(calls[i], "ROW_VECTOR"), 1);
    EXPECT_EQ(number(calls[i], "NORM_ADD"), 1);
    EXPECT_EQ(macro(calls[i], "ROW_THREADS"), "none");
    EXPECT_EQ(calls[i].waits_itself, 0u);
    const auto a = kernarg_of<row_kernels::NormLongArguments>(calls[i]);
    EXPECT_EQ(a.rows, 1000);
    EXPECT_EQ(a.rows_per_part, 167);
    EXPECT_EQ(a.x.data, args.x.data);
    EXPECT_EQ(a.dy.data, args.dy.data);
    EXPECT_EQ(a.dh.data, args.dh.data);
    EXPECT_EQ(a.dx, args.dx.data);
    EXPECT_EQ(a.dx_stride, 300001);
    EXPECT_EQ(a.gamma, args.gamma);
    EXPECT_EQ(a.rstd, args.rstd);
    EXPECT_EQ(a.dgamma_parts, args.workspace);
    EXPECT_EQ(a.slices, a.dgamma_parts + 6 * 300001);
  }
  expect_shape(calls[2], "norm_backward_reduce", (300001 + 31) / 32, 1, 256);
  EXPECT_EQ(calls[2].waits_itself, 0u);
  const auto r = kernarg_of<row_kernels::NormReduceArguments>(calls[2]);
  EXPECT_EQ(r.count, 6);
  EXPECT_EQ(r.side, 8);
  EXPECT_EQ(r.parts[0], args.workspace);
}

// The sums of slices are there all the same.
TEST(LaunchTest, NormBackwardOfRowsBeyondRegistersWithoutSums) {
  attn_norm_problem p = norm_problem(ATTN_NORM_LAYER, 3, 1 << 20);
  attn_norm_bwd_args args = backward_args(p);
  args.dgamma = args.dbeta = nullptr;
  expect_ok(attn_norm_bwd_workspace_size(&args, &args.workspace_size));
  EXPECT_EQ(args.workspace_size, 3ull * 512 * 2 * sizeof(float));
  args.workspace = address(10);
  const Recorder recorder(kCuda);
  expect_ok(attn_norm_bwd(&args));
  const std::vector<RecordedCall> calls = recorder.of(kRecordedLaunch);
  ASSERT_EQ(calls.size(), 2u);
  expect_shape(calls[1], "norm_backward_long", 512, 2, 256);
  EXPECT_EQ(number(calls[1], "NORM_SUMS"), 0);
  EXPECT_EQ(kernarg_of<row_kernels::NormLongArguments>(calls[1]).slices, args.workspace);
}

// dgamma is stored four columns at a time, or one by one.
TEST(LaunchTest, MisalignedDgammaIsServed) {
  attn_norm_problem p = norm_problem(ATTN_NORM_RMS, 1000, 1024);
  attn_norm_bwd_args args = backward_args(p);
  args.dgamma = address(6, 2);
  expect_ok(attn_norm_bwd_workspace_size(&args, &args.workspace_size));
  args.workspace = address(10);
  const Recorder recorder(kCuda);
  expect_ok(attn_norm_bwd(&args));
  const RecordedCall rows = recorder.of(kRecordedLaunch)[0];
  EXPECT_EQ(number(rows, "ROW_VECTOR"), 8);
  EXPECT_EQ(number(rows, "ROW_SHIFTED"), 1);
  // A slot of a warp's ring has a vector of memory more than the warp has of the row.
  const int stages = number(rows, "ROW_STAGES"), warps = number(rows, "ROW_THREADS") / 32;
  const int columns = 1024 * warps * 32 / number(rows, "ROW_LANES");
  EXPECT_GT(stages, 0);
  EXPECT_EQ(rows.shared_bytes, static_cast<uint32_t>(stages * (columns + 8 * warps) * 2 * 2));
  const RecordedCall sums = recorder.of(kRecordedLaunch)[1];
  EXPECT_EQ(number(sums, "ROW_VECTOR"), 1);
  EXPECT_EQ(sums.grid[0], 1024u / 8);
}

TEST(LaunchTest, Softmax) {
  attn_softmax_problem p = softmax_problem(ATTN_SOFTMAX_MASK_EXPLICIT, 24, 1000);
  p.mask_repeat = 3;
  const attn_softmax_fwd_args forward = softmax_args(p);
  const Recorder recorder(kCuda);
  expect_ok(attn_softmax_fwd(&forward));
  const RecordedCall call = recorder.of(kRecordedLaunch)[0];
  EXPECT_THAT(image(call), StartsWith("cubin softmax.cpp="));
  EXPECT_EQ(std::string(call.symbol), "softmax_forward");
  EXPECT_EQ(macro(call, "SOFTMAX_X"), "fp16");
  EXPECT_EQ(number(call, "SOFTMAX_MASK"), 1);
  EXPECT_EQ(number(call, "SOFTMAX_BACKWARD"), 0);
  const auto a = kernarg_of<row_kernels::SoftmaxForwardArguments>(call);
  EXPECT_EQ(a.x.data, forward.x.data);
  EXPECT_EQ(a.y, forward.y.data);
  EXPECT_EQ(a.mask, forward.mask);
  EXPECT_EQ(a.queries, 4);
  EXPECT_EQ(a.mask_repeat, 3);
  EXPECT_EQ(a.rows, 24);
  EXPECT_EQ(a.scale, 0.5f);

  attn_softmax_bwd_args backward = {};
  backward.struct_size = sizeof(backward);
  p.mask_kind = ATTN_SOFTMAX_MASK_CAUSAL, p.mask_repeat = 0;
  backward.problem = &p;
  backward.y = {address(1), 1000}, backward.dy = {address(2), 1000};
  backward.dx = {address(3), 1008};
  expect_ok(attn_softmax_bwd(&backward));
  const RecordedCall second = recorder.of(kRecordedLaunch)[1];
  EXPECT_EQ(std::string(second.symbol), "softmax_backward");
  EXPECT_EQ(number(second, "SOFTMAX_MASK"), 2);
  EXPECT_EQ(number(second, "SOFTMAX_BACKWARD"), 1);
  const auto b = kernarg_of<row_kernels::SoftmaxBackwardArguments>(second);
  EXPECT_EQ(b.y.data, backward.y.data);
  EXPECT_EQ(b.dy.data, backward.dy.data);
  EXPECT_EQ(b.dx, backward.dx.data);
  EXPECT_EQ(b.dx_stride, 1008);
  EXPECT_EQ(b.queries, 4);
  EXPECT_EQ(b.rows, 24);
  EXPECT_EQ(b.scale, 0.5f);
}

TEST(LaunchTest, AMisalignedMaskIsServed) {
  const attn_softmax_problem p = softmax_problem(ATTN_SOFTMAX_MASK_EXPLICIT, 24, 1000);
  attn_softmax_fwd_args args = softmax_args(p);
  args.mask = static_cast<const uint8_t*>(address(3, 2));
  const Recorder recorder(kCuda);
  expect_ok(attn_softmax_fwd(&args));
  EXPECT_EQ(number(recorder.of(kRecordedLaunch)[0], "ROW_VECTOR"), 2);
}

TEST(LaunchTest, NoRows) {
  attn_norm_problem p = norm_problem(ATTN_NORM_LAYER, 0, 8);
  std::vector<uint16_t> dgamma(8, 1), dbeta(8, 1);  // the stand-in fills memory of the host
  attn_norm_bwd_args args = backward_args(p);
  args.dgamma = dgamma.data(), args.dbeta = dbeta.data();
  const Recorder recorder(kCuda);
  expect_ok(attn_norm_bwd_workspace_size(&args, &args.workspace_size));
  EXPECT_EQ(args.workspace_size, 0u);
  expect_ok(attn_norm_bwd(&args));
  EXPECT_EQ(dgamma, std::vector<uint16_t>(8, 0));
  EXPECT_EQ(dbeta, std::vector<uint16_t>(8, 0));
  const attn_norm_fwd_args forward = forward_args(p);
  expect_ok(attn_norm_fwd(&forward));
  EXPECT_EQ(recorder.of(kRecordedLaunch).size(), 0u);
}

TEST(LaunchTest, AnAmdGpu) {
  attn_norm_problem p = norm_problem(ATTN_NORM_RMS, 5000, 4096, ATTN_DEVICE_ROCM);
  attn_norm_bwd_args args = backward_args(p);
  const Recorder recorder(kHip);
  expect_ok(attn_norm_bwd_workspace_size(&args, &args.workspace_size));
  args.workspace = address(10);
  expect_ok(attn_norm_bwd(&args));
  const std::vector<RecordedCall> calls = recorder.of(kRecordedLaunch);
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_THAT(image(calls[0]), AllOf(StartsWith("hip norm_backward.cpp="),
                                     HasSubstr(" --offload-arch=gfx942 -std=c++17 -DNORM_ADD=0 ")));
  // One row of several waves in hand, and nothing that AMD GPUs do not have.
  EXPECT_EQ(number(calls[0], "ROW_THREADS"), number(calls[0], "ROW_LANES"));
  EXPECT_EQ(number(calls[0], "ROW_STAGES"), 0);
  EXPECT_EQ(number(calls[0], "ROW_CLUSTER"), 1);
  EXPECT_EQ(calls[0].kernarg_size, sizeof(row_kernels::NormBackwardArguments));
  EXPECT_EQ(calls[0].stream, kStream);
}

TEST(LaunchTest, AnAmdGpuOfWavesOf32IsRefused) {
  attn_norm_problem p = norm_problem(ATTN_NORM_RMS, 5000, 4096, ATTN_DEVICE_ROCM);
  p.device_id = 1;
  const Environment archs("AITER_RECORDING_HIP_ARCHS", "gfx942,gfx1201");
  const Recorder recorder(kHip);
  const attn_norm_fwd_args args = forward_args(p);
  expect_refused(attn_norm_fwd(&args), ATTN_ERROR_UNSUPPORTED,
                 "the device is gfx1201, but norms and softmax have kernels for sm_70 and newer, "
                 "gfx90a, gfx942, gfx950: use another GPU, or arrays in host memory");
}

// HIP takes at most 2^32 - 1 work-items in a grid.
TEST(LaunchTest, GridsOfAnAmdGpuAreAsItTakesThem) {
  attn_norm_problem p = norm_problem(ATTN_NORM_RMS, 2, (int64_t{1} << 27) - 8, ATTN_DEVICE_ROCM);
  attn_norm_bwd_args args = backward_args(p);
  args.dgamma = address(6, 2);  // summed column by column
  expect_ok(attn_norm_bwd_workspace_size(&args, &args.workspace_size));
  args.workspace = address(10);
  const Recorder recorder(kHip);
  expect_ok(attn_norm_bwd(&args));
  EXPECT_EQ(recorder.of(kRecordedLaunch).size(), 3u);
  ++p.hidden;
  expect_refused(attn_norm_bwd(&args), ATTN_ERROR_INVALID_ARGUMENT,
                 "hidden is 134217721, but must be from 1 to 134217720");

  const attn_softmax_problem many =
      softmax_problem(ATTN_SOFTMAX_MASK_NONE, int64_t{8} << 20, 16385, ATTN_DEVICE_ROCM);
  const attn_softmax_fwd_args softmax = softmax_args(many);
  expect_ok(attn_softmax_fwd(&softmax));
  const RecordedCall call = recorder.of(kRecordedLaunch)[3];
  EXPECT_LT(uint64_t{call.grid[0]} * call.block[0], uint64_t{1} << 32);
}

TEST(LaunchTest, EveryNumberOfRowsKeepsCountsIn32Bits) {
  // A thread of norm_backward looks up to two warps of turns beyond its next.
  constexpr int64_t kTurnsAhead = 2 * 64 + 2;
  const auto expect_in_32_bits = [](const RecordedCall& call, int64_t rows) {
    const int64_t in_hand = number(call, "ROW_THREADS") / number(call, "ROW_LANES");
    EXPECT_GE(call.grid[0], 1u);
    EXPECT_LT(rows + kTurnsAhead * in_hand * call.grid[0], int64_t{1} << 31) << call.symbol;
  };
  const auto expect_all_in_32_bits = [&](int32_t device_type, const char* library, int64_t rows) {
    const attn_softmax_problem softmax =
        softmax_problem(ATTN_SOFTMAX_MASK_NONE, rows, 64, device_type);
    const attn_softmax_fwd_args forward = softmax_args(softmax);
    const attn_norm_problem norm = norm_problem(ATTN_NORM_LAYER, rows, 64, device_type);
    attn_norm_bwd_args backward = backward_args(norm);
    expect_ok(attn_norm_bwd_workspace_size(&backward, &backward.workspace_size));
    backward.workspace = address(10);
    const Recorder recorder(library);
    expect_ok(attn_softmax_fwd(&forward));
    expect_ok(attn_norm_bwd(&backward));
    expect_in_32_bits(recorder.of(kRecordedLaunch)[0], rows);
    expect_in_32_bits(recorder.of(kRecordedLaunch)[1], rows);
  };
  for (const int64_t rows : {int64_t{1}, int64_t{1} << 20, (int64_t{1} << 31) - (1 << 20)}) {
    expect_all_in_32_bits(ATTN_DEVICE_CUDA, kCuda, rows);
    expect_all_in_32_bits(ATTN_DEVICE_ROCM, kHip, rows);
  }
}

TEST(LaunchTest, ThreadsShareAPlan) {
  attn_norm_problem p = norm_problem(ATTN_NORM_RMS, 16, 3000);
  const attn_norm_fwd_args args = forward_args(p);
  const Recorder recorder(kCuda);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(attn_norm_fwd(&args), ATTN_OK); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(recorder.of(kRecordedLoad).size(), 1u);
  EXPECT_EQ(recorder.of(kRecordedLaunch).size(), 8u);
}

TEST(LaunchTest, AFailedPlanIsTriedAgain) {
  attn_norm_problem p = norm_problem(ATTN_NORM_RMS, 16, 3008);
  const attn_norm_fwd_args args = forward_args(p);
  {
    const Environment fails("AITER_RECORDING_CUDA_FAIL", "cuModuleLoadData=2");
    expect_refused(attn_norm_fwd(&args), ATTN_ERROR_OUT_OF_MEMORY,
                   "cuModuleLoadData failed: CUDA_ERROR_OUT_OF_MEMORY (2), out of memory");
  }
  expect_ok(attn_norm_fwd(&args));
  const Environment fails("AITER_RECORDING_CUDA_FAIL", "cuLaunchKernelEx=719");
  expect_refused(attn_norm_fwd(&args), ATTN_ERROR_DRIVER,
                 "cuLaunchKernelEx(norm_forward) failed: CUDA_ERROR_RECORDED (719)");
}

TEST(LaunchTest, TheSumInTheResidualsPlace) {
  const Recorder recorder(kCuda);
  attn_norm_problem p = norm_problem(ATTN_NORM_RMS, 4096, 4104);
  attn_norm_fwd_args args = forward_args(p);
  args.y = args.x;
  args.residual = args.sum = {address(5), p.hidden};
  expect_ok(attn_norm_fwd(&args));
  const RecordedCall call = recorder.of(kRecordedLaunch)[0];
  EXPECT_EQ(macro(call, "NORM_ADD"), "1");
  EXPECT_EQ(macro(call, "NORM_IN_PLACE"), "none");
  const auto a = kernarg_of<row_kernels::NormForwardArguments>(call);
  EXPECT_EQ(a.y, a.x.data);
  EXPECT_EQ(a.sum, a.residual.data);
  // An older GPU reads rows that registers do not hold from memory again.
  p = norm_problem(ATTN_NORM_RMS, 4096, 131080);
  p.device_id = 2;
  args.x.stride = args.y.stride = args.residual.stride = args.sum.stride = p.hidden;
  expect_ok(attn_norm_fwd(&args));
  EXPECT_EQ(macro(recorder.of(kRecordedLaunch)[1], "NORM_IN_PLACE"), "1");
}

TEST(LaunchTest, WithoutGammaOrGradientsOfWeights) {
  const Recorder recorder(kCuda);
  const attn_norm_problem p = norm_problem(ATTN_NORM_LAYER, 4096, 4112);
  attn_norm_fwd_args forward = forward_args(p);
  forward.gamma = nullptr;
  expect_ok(attn_norm_fwd(&forward));
  EXPECT_EQ(macro(recorder.of(kRecordedLaunch)[0], "NORM_GAMMA"), "0");
  EXPECT_EQ(macro(recorder.of(kRecordedLaunch)[0], "NORM_BETA"), "0");

  attn_norm_bwd_args args = backward_args(p);
  args.dgamma = args.dbeta = nullptr;
  uint64_t bytes = 1;
  expect_ok(attn_norm_bwd_workspace_size(&args, &bytes));
  EXPECT_EQ(bytes, 0u);
  expect_ok(attn_norm_bwd(&args));
  ASSERT_EQ(recorder.of(kRecordedLaunch).size(), 2u);  // one of each pass
  EXPECT_EQ(macro(recorder.of(kRecordedLaunch)[1], "NORM_SUMS"), "0");
  EXPECT_EQ(macro(recorder.of(kRecordedLaunch)[1], "NORM_GAMMA"), "none");

  args = backward_args(p);
  args.gamma = args.dgamma = nullptr;  // dbeta alone
  expect_ok(attn_norm_bwd_workspace_size(&args, &bytes));
  args.workspace = address(10);
  args.workspace_size = bytes;
  expect_ok(attn_norm_bwd(&args));
  const RecordedCall reduce = recorder.of(kRecordedLaunch).back();
  EXPECT_EQ(reduce.grid[1], 1u);
  const auto r = kernarg_of<row_kernels::NormReduceArguments>(reduce);
  EXPECT_EQ(r.sum[0], args.dbeta);
  const auto a = kernarg_of<row_kernels::NormBackwardArguments>(recorder.of(kRecordedLaunch)[2]);
  EXPECT_EQ(r.parts[0], a.dbeta);
}

TEST(LaunchTest, FewRowsWithoutGradientsOfWeightsHaveNoCtasForThem) {
  const Recorder recorder(kCuda);
  const attn_norm_problem p = norm_problem(ATTN_NORM_RMS, 4, 4120);
  attn_norm_bwd_args args = backward_args(p);
  args.dgamma = nullptr;
  expect_ok(attn_norm_bwd(&args));
  EXPECT_EQ(macro(recorder.of(kRecordedLaunch)[0], "NORM_SUMS"), "0");
  EXPECT_EQ(macro(recorder.of(kRecordedLaunch)[0], "NORM_FEW_ROWS"), "0");
}

TEST(LaunchTest, ScalesThatThePassMakes) {
  const Recorder recorder(kCuda);
  attn_norm_problem p = norm_problem(ATTN_NORM_RMS, 4096, 4128);
  p.y_dtype = ATTN_DTYPE_FP8_E4M3;
  attn_norm_fwd_args args = forward_args(p);
  args.scales = address(6);
  for (const int32_t kind : {ATTN_NORM_SCALES_ROWS, ATTN_NORM_SCALES_BLOCKS}) {
    args.scales_kind = kind;
    expect_ok(attn_norm_fwd(&args));
    const RecordedCall call = recorder.of(kRecordedLaunch).back();
    EXPECT_EQ(number(call, "NORM_SCALES"), kind);
    EXPECT_EQ(kernarg_of<row_kernels::NormForwardArguments>(call).amax, args.scales);
  }
  // Single columns of narrow rows: the lanes of a block are side by side.
  p.hidden = 32;
  args.x = {address(1, 2), 33};
  args.y = {address(2, 1), 33};
  expect_ok(attn_norm_fwd(&args));
  const RecordedCall narrow = recorder.of(kRecordedLaunch).back();
  EXPECT_EQ(number(narrow, "ROW_LANES"), 32);
  EXPECT_EQ(number(narrow, "ROW_VECTOR"), 1);
  EXPECT_EQ(number(narrow, "ROW_SHIFTED"), 0);
}

// NVRTC alone says "BUILTIN_OPERATION_FAILURE (7)".
TEST(LaunchTest, MissingBuiltinsOfNvrtcAreNamed) {
  attn_norm_problem p = norm_problem(ATTN_NORM_RMS, 16, 3016);
  const attn_norm_fwd_args args = forward_args(p);
  {
    const Environment fails("AITER_FAKE_RTC_FAIL", "nvrtcCompileProgram=7");
    expect_refused(attn_norm_fwd(&args), ATTN_ERROR_DRIVER,
                   "NVRTC compiles with libnvrtc-builtins.so.13.0, which belongs beside it: "
                   "install both anew (pip install --force-reinstall nvidia-cuda-nvrtc), or name "
                   "the file of a complete NVRTC in AITER_ATTN_NVRTC_LIBRARY");
  }
  expect_ok(attn_norm_fwd(&args));
}

TEST(LaunchTest, Refusals) {
  attn_norm_problem p = norm_problem(ATTN_NORM_RMS, 4096, 4096);
  attn_norm_bwd_args backward = backward_args(p);
  uint64_t bytes = 0;
  expect_ok(attn_norm_bwd_workspace_size(&backward, &bytes));
  expect_refused(attn_norm_bwd(&backward), ATTN_ERROR_INVALID_ARGUMENT,
                 "workspace_size is 0, but this problem needs " + std::to_string(bytes) +
                     " bytes of device memory: ask attn_norm_bwd_workspace_size");
  backward.workspace = address(10);
  backward.workspace_size = bytes - 1;
  expect_refused(attn_norm_bwd(&backward), ATTN_ERROR_INVALID_ARGUMENT,
                 "workspace_size is " + std::to_string(bytes - 1) + ", but this problem needs");
  backward.workspace_size = bytes;
  backward.workspace = address(10, 128);
  expect_refused(attn_norm_bwd(&backward), ATTN_ERROR_INVALID_ARGUMENT,
                 "must be aligned to 256 bytes");
  backward.workspace = backward.dx.data;
  expect_refused(attn_norm_bwd(&backward), ATTN_ERROR_INVALID_ARGUMENT, "workspace overlaps dx");
  expect_refused(attn_norm_bwd_workspace_size(&backward, nullptr), ATTN_ERROR_INVALID_ARGUMENT,
                 "bytes is NULL");

  attn_norm_fwd_args args = forward_args(p);
  args.barrier = address(9, 2);
  expect_refused(attn_norm_fwd(&args), ATTN_ERROR_INVALID_ARGUMENT, "must be aligned to 4 bytes");
  args.barrier = args.y.data;
  expect_refused(attn_norm_fwd(&args), ATTN_ERROR_INVALID_ARGUMENT, "barrier overlaps y");
  args.barrier = nullptr;
  args.x.data = address(1, 1);
  expect_refused(attn_norm_fwd(&args), ATTN_ERROR_INVALID_ARGUMENT, "must be a multiple of 2");
  args.x.data = address(2, 16);
  expect_refused(attn_norm_fwd(&args), ATTN_ERROR_INVALID_ARGUMENT, "y overlaps x");
  args = forward_args(p);
  p.hidden = 0;
  expect_refused(attn_norm_fwd(&args), ATTN_ERROR_INVALID_ARGUMENT,
                 "hidden is 0, but must be from 1 to 2146435072");
  p.hidden = (int64_t{1} << 31) - 1;
  expect_refused(attn_norm_fwd(&args), ATTN_ERROR_INVALID_ARGUMENT,
                 "hidden is 2147483647, but must be from 1 to 2146435072");
  p.hidden = 4096;
  p.y_dtype = 77;
  expect_refused(attn_norm_fwd(&args), ATTN_ERROR_INVALID_ARGUMENT, "y_dtype is 77");
  p.y_dtype = ATTN_DTYPE_BF16;
  p.device_id = 3;
  expect_refused(attn_norm_fwd(&args), ATTN_ERROR_INVALID_ARGUMENT,
                 "device_id is 3, but this machine has 3 GPU(s): pass 0 to 2");
  p.device_id = 1;
  expect_refused(attn_norm_fwd(&args), ATTN_ERROR_UNSUPPORTED,
                 "the device is sm_61, but norms and softmax need sm_70 (Volta) or newer");
  p.device_id = -1;
  expect_refused(attn_norm_fwd(&args), ATTN_ERROR_INVALID_ARGUMENT,
                 "device_id is -1, but must be 0 or greater");
  p.device_type = 4;
  expect_refused(attn_norm_fwd(&args), ATTN_ERROR_INVALID_ARGUMENT,
                 "device_type is 4, but must be 1 (CPU), 2 (CUDA) or 10 (ROCm)");
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::norm
