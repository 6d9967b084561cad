// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The C ABI's promises: how structs are read, what is refused and in which words, and what is
// served on the CPU.
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <thread>

#include "aiter/attn.h"
#include "aiter/testing/problems.h"
#include "aiter/testing/test_launch_table.h"
#include "aiter/testing/testing.h"
#include "aiter/testing/tiny_elf.h"

namespace aiter_attn::testing {
namespace {

constexpr attn_status kInvalid = ATTN_ERROR_INVALID_ARGUMENT;
const Shape kShape = {2, 4, 2, 5, 6, 8, 8};

void expect_refused(attn_status actual, attn_status expected, const std::string& part) {
  EXPECT_EQ(actual, expected);
  EXPECT_CONTAINS(attn_last_error(), part);
}

TEST(versions) {
  EXPECT_EQ(attn_abi_version(), ATTN_ABI_VERSION);
  EXPECT_EQ(std::string(attn_version()), "0.1.0");
}

TEST(null_is_refused) {
  expect_refused(attn_fwd(nullptr), kInvalid, "attn_fwd_args is NULL");
  expect_refused(attn_varlen_fwd(nullptr), kInvalid, "attn_fwd_args is NULL");
  expect_refused(attn_bwd(nullptr), kInvalid, "attn_bwd_args is NULL");
  expect_refused(attn_varlen_bwd(nullptr), kInvalid, "attn_bwd_args is NULL");
  uint64_t bytes = 0;
  expect_refused(attn_bwd_workspace_size(nullptr, &bytes), kInvalid, "attn_bwd_args is NULL");
  const char* text = nullptr;
  expect_refused(attn_explain_fwd(nullptr, "gfx942", &text), kInvalid, "attn_fwd_args is NULL");
  expect_refused(attn_explain_bwd(nullptr, "gfx942", &text), kInvalid, "attn_bwd_args is NULL");
  expect_refused(attn_kernel_info(0, nullptr), kInvalid, "attn_kernel_info_t is NULL");
  Problem problem(kShape, ATTN_DTYPE_FP32);
  const attn_fwd_args fwd = problem.fwd();
  const attn_bwd_args bwd = problem.bwd();
  expect_refused(attn_explain_fwd(&fwd, nullptr, nullptr), kInvalid, "text is NULL");
  expect_refused(attn_bwd_workspace_size(&bwd, nullptr), kInvalid, "bytes is NULL");
  expect_refused(attn_driver_info(ATTN_DEVICE_CPU, nullptr), kInvalid, "text is NULL");
  void* data = nullptr;
  uint64_t size = 0;
  expect_refused(attn_code_object(nullptr, &data, &size), kInvalid, "key is NULL");
  expect_refused(attn_code_object("k", nullptr, &size), kInvalid, "data is NULL");
  expect_refused(attn_code_object("k", &data, nullptr), kInvalid, "size is NULL");
}

TEST(short_structs_are_refused) {
  Problem problem(kShape, ATTN_DTYPE_FP32);
  for (uint32_t size : {0u, 4u, static_cast<uint32_t>(sizeof(attn_fwd_args)) - 1}) {
    attn_fwd_args fwd = problem.fwd();
    fwd.struct_size = size;
    expect_refused(attn_fwd(&fwd), ATTN_ERROR_ABI_MISMATCH,
                   "attn_fwd_args.struct_size is " + std::to_string(size));
  }
  attn_bwd_args bwd = problem.bwd();
  bwd.struct_size = sizeof(bwd) - 4;
  expect_refused(attn_bwd(&bwd), ATTN_ERROR_ABI_MISMATCH, "attn_bwd_args.struct_size is");
  attn_kernel_info_t info = {};
  expect_refused(attn_kernel_info(0, &info), ATTN_ERROR_ABI_MISMATCH, "struct_size is 0");
}

TEST(longer_structs_are_served_while_what_is_unknown_is_zero) {
  struct Newer {
    attn_fwd_args args;
    uint64_t appended;
  };
  Problem problem(kShape, ATTN_DTYPE_FP32);
  Newer newer = {problem.fwd(), 0};
  newer.args.struct_size = sizeof(newer);
  EXPECT_EQ(attn_fwd(&newer.args), ATTN_OK);
  newer.appended = uint64_t{1} << 32;
  expect_refused(attn_fwd(&newer.args), ATTN_ERROR_ABI_MISMATCH, "byte 236 is set");
}

TEST(reserved_must_be_zero) {
  Problem problem(kShape, ATTN_DTYPE_FP32);
  attn_fwd_args args = problem.fwd();
  args.reserved = 1;
  expect_refused(attn_fwd(&args), ATTN_ERROR_ABI_MISMATCH, "reserved is 1");
}

// One field changed, and the words that the refusal must have.
struct Refusal {
  std::function<void(attn_problem*)> change;
  const char* words;
};

TEST(every_field_of_the_problem_is_checked) {
  const Refusal refusals[] = {
      {[](attn_problem* p) { p->device_type = 2; }, "device_type is 2, but must be 1 (CPU) or 10"},
      {[](attn_problem* p) { p->device_id = 1; }, "device_id is 1, but must be 0 on the CPU"},
      {[](attn_problem* p) { p->dtype = 0; }, "dtype is 0"},
      {[](attn_problem* p) { p->dtype = 4; }, "dtype is 4"},
      {[](attn_problem* p) { p->batch = -1; }, "batch is -1, but must be at least 0"},
      {[](attn_problem* p) { p->heads_q = 0; }, "heads_q is 0, but must be at least 1"},
      {[](attn_problem* p) { p->heads_k = 0; }, "heads_k is 0, but must be at least 1"},
      {[](attn_problem* p) { p->heads_k = 3; }, "heads_k is 3, but must divide heads_q, 4"},
      {[](attn_problem* p) { p->heads_k = 8; }, "heads_k is 8, but must divide heads_q, 4"},
      {[](attn_problem* p) { p->head_size_qk = 0; }, "head_size_qk is 0"},
      {[](attn_problem* p) { p->head_size_v = -8; }, "head_size_v is -8"},
      {[](attn_problem* p) { p->seqlen_q = -1; }, "seqlen_q is -1"},
      {[](attn_problem* p) { p->seqlen_k = -1; }, "seqlen_k is -1"},
      {[](attn_problem* p) { p->total_q = 1; }, "total_q is set, but belongs to group mode"},
      {[](attn_problem* p) { p->total_k = 1; }, "total_k is set, but belongs to group mode"},
      {[](attn_problem* p) { p->cu_seqlens_q = &p->batch; }, "cu_seqlens_q is set"},
      {[](attn_problem* p) { p->cu_seqlens_k = &p->batch; }, "cu_seqlens_k is set"},
      {[](attn_problem* p) { p->softmax_scale = 0; }, "softmax_scale is 0"},
      {[](attn_problem* p) { p->softmax_scale = -1; }, "softmax_scale is -1"},
      {[](attn_problem* p) { p->softmax_scale = std::nanf(""); }, "softmax_scale is nan"},
      {[](attn_problem* p) { p->softmax_scale = HUGE_VALF; }, "softmax_scale is inf"},
      {[](attn_problem* p) { p->mask = 3; }, "mask is 3"},
      {[](attn_problem* p) { p->window_left = 5; }, "window_left is 5, but must be -1 without a"},
      {[](attn_problem* p) { p->window_right = 0; }, "window_right is 0, but must be -1 without a"},
      {[](attn_problem* p) { p->mask = 1, p->window_left = -2; }, "window_left is -2"},
      {[](attn_problem* p) { p->mask = 1, p->window_right = -2; }, "window_right is -2"},
  };
  for (const Refusal& refusal : refusals) {
    Problem problem(kShape, ATTN_DTYPE_FP32);
    attn_fwd_args fwd = problem.fwd();
    refusal.change(&fwd.problem);
    expect_refused(attn_fwd(&fwd), kInvalid, refusal.words);
    attn_bwd_args bwd = problem.bwd();
    refusal.change(&bwd.problem);
    expect_refused(attn_bwd(&bwd), kInvalid, refusal.words);
  }
}

TEST(lengths_in_group_mode_are_checked) {
  const auto refused = [](const std::function<void(attn_problem*)>& change, const char* words) {
    Problem problem(Shape{0, 2, 2, 0, 0, 8, 8}, ATTN_DTYPE_FP32, 1, {0, 3, 7}, {0, 4, 6});
    attn_fwd_args fwd = problem.fwd();
    change(&fwd.problem);
    expect_refused(attn_varlen_fwd(&fwd), kInvalid, words);
    attn_bwd_args bwd = problem.bwd();
    change(&bwd.problem);
    expect_refused(attn_varlen_bwd(&bwd), kInvalid, words);
  };
  static const int32_t late[] = {1, 3, 7}, falling[] = {0, 8, 7}, other[] = {0, 3, 6},
                       falling_keys[] = {0, 4, 3};
  refused([](attn_problem* p) { p->cu_seqlens_q = nullptr; }, "cu_seqlens_q is NULL");
  refused([](attn_problem* p) { p->cu_seqlens_k = nullptr; }, "cu_seqlens_k is NULL");
  refused([](attn_problem* p) { p->cu_seqlens_q = late; }, "cu_seqlens_q[0] is 1");
  refused([](attn_problem* p) { p->cu_seqlens_q = falling, p->seqlen_q = 8; },
          "cu_seqlens_q[2] is 7, but must not be less than the one before, 8");
  refused([](attn_problem* p) { p->cu_seqlens_q = other; },
          "cu_seqlens_q[2] is 6, but must equal total_q, 7");
  refused([](attn_problem* p) { p->cu_seqlens_k = falling_keys; },
          "cu_seqlens_k[2] is 3, but must not be less than the one before, 4");
  refused([](attn_problem* p) { p->total_q = -1; }, "total_q is -1");
  refused([](attn_problem* p) { p->total_q = 9; }, "total_q is 9, but cannot exceed batch (2)");
  refused([](attn_problem* p) { p->total_k = 100; }, "total_k is 100, but cannot exceed");
}

TEST(tensors_are_checked) {
  struct Case {
    std::function<void(attn_fwd_args*)> change;
    const char* words;
  };
  const Case cases[] = {
      {[](attn_fwd_args* a) { a->q.data = nullptr; }, "q.data is NULL"},
      {[](attn_fwd_args* a) { a->k.data = nullptr; }, "k.data is NULL"},
      {[](attn_fwd_args* a) { a->v.data = nullptr; }, "v.data is NULL"},
      {[](attn_fwd_args* a) { a->o.data = nullptr; }, "o.data is NULL"},
      {[](attn_fwd_args* a) { a->q.data = static_cast<char*>(a->q.data) + 2; },
       "must be aligned to its elements' 4 bytes"},
      {[](attn_fwd_args* a) { a->lse = reinterpret_cast<float*>(2); }, "lse is 0x2"},
      {[](attn_fwd_args* a) { a->o.stride_seq = 0; }, "o.stride_seq is 0, but rows of an output"},
      {[](attn_fwd_args* a) { a->o.stride_head = 7; }, "o.stride_head is 7, but rows of an output"},
      {[](attn_fwd_args* a) { a->o.stride_batch = 64; }, "must not overlap"},
      {[](attn_fwd_args* a) { a->k.stride_seq = std::numeric_limits<int64_t>::min(); },
       "exceeds the address space"},
  };
  for (const Case& c : cases) {
    Problem problem(kShape, ATTN_DTYPE_FP32);
    attn_fwd_args args = problem.fwd();
    c.change(&args);
    expect_refused(attn_fwd(&args), kInvalid, c.words);
  }
  Problem problem(kShape, ATTN_DTYPE_FP32);
  for (attn_tensor attn_bwd_args::* field :
       {&attn_bwd_args::q, &attn_bwd_args::k, &attn_bwd_args::v, &attn_bwd_args::o,
        &attn_bwd_args::dout, &attn_bwd_args::dq, &attn_bwd_args::dk, &attn_bwd_args::dv}) {
    attn_bwd_args args = problem.bwd();
    (args.*field).data = nullptr;
    expect_refused(attn_bwd(&args), kInvalid, ".data is NULL");
  }
  for (attn_tensor attn_bwd_args::* field :
       {&attn_bwd_args::dq, &attn_bwd_args::dk, &attn_bwd_args::dv}) {
    attn_bwd_args args = problem.bwd();
    (args.*field).stride_seq = 0;
    expect_refused(attn_bwd(&args), kInvalid, ".stride_seq is 0");
  }
  attn_bwd_args args = problem.bwd();
  args.lse = nullptr;
  expect_refused(attn_bwd(&args), kInvalid, "lse is NULL");
}

TEST(inputs_may_be_broadcast) {
  Problem problem(kShape, ATTN_DTYPE_FP32);
  attn_fwd_args args = problem.fwd();
  args.k.stride_batch = 0;
  args.v.stride_head = 0;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
}

TEST(what_a_gpu_cannot_address_is_refused) {
  Problem problem(kShape, ATTN_DTYPE_FP16);
  problem.problem.device_type = ATTN_DEVICE_ROCM;
  const auto refused = [&](const std::function<void(attn_fwd_args*)>& change, const char* words) {
    attn_fwd_args args = problem.fwd();
    change(&args);
    expect_refused(attn_fwd(&args), kInvalid, words);
  };
  refused([](attn_fwd_args* a) { a->q.stride_head = -1; }, "q.stride_head is -1");
  refused([](attn_fwd_args* a) { a->k.stride_batch = int64_t{1} << 31; },
          "k.stride_batch is 2147483648, but must be from 0 to 2147483647");
  refused([](attn_fwd_args* a) { a->v.stride_seq = 2147483647 / 2; },
          "over 6 rows it exceeds the 2147483647 elements");
  refused([](attn_fwd_args* a) { a->problem.heads_q = a->problem.seqlen_q = 1 << 17; },
          "heads_q * seqlen_q");
  refused([](attn_fwd_args* a) { a->problem.device_id = -1; }, "device_id is -1");
  attn_fwd_args args = problem.fwd();
  args.problem.dtype = ATTN_DTYPE_FP32;
  expect_refused(attn_fwd(&args), ATTN_ERROR_UNSUPPORTED, "only the CPU reference computes");
}

TEST(empty_problems_need_no_memory) {
  Problem problem(Shape{0, 2, 2, 5, 5, 8, 8}, ATTN_DTYPE_FP16);
  attn_fwd_args fwd = problem.fwd();
  fwd.q.data = fwd.k.data = fwd.v.data = fwd.o.data = nullptr;
  fwd.lse = nullptr;
  EXPECT_EQ(attn_fwd(&fwd), ATTN_OK);
  attn_bwd_args bwd = {};
  bwd.struct_size = sizeof(bwd);
  bwd.problem = problem.problem;
  EXPECT_EQ(attn_bwd(&bwd), ATTN_OK);
}

TEST(messages_belong_to_threads_and_to_the_last_call) {
  EXPECT_EQ(attn_fwd(nullptr), kInvalid);
  std::thread([] { EXPECT_EQ(std::string(attn_last_error()), ""); }).join();
  EXPECT_CONTAINS(attn_last_error(), "NULL");
  EXPECT_CONTAINS(attn_last_error(), "NULL");
  Problem problem(kShape, ATTN_DTYPE_FP32);
  const attn_fwd_args args = problem.fwd();
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  EXPECT_EQ(std::string(attn_last_error()), "");
}

TEST(cpu_results_do_not_depend_on_lse_being_wanted) {
  Problem problem(kShape, ATTN_DTYPE_BF16);
  attn_fwd_args args = problem.fwd();
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  const double with = problem.o.get(1, 4, 3, 7);
  problem.o.fill(0);
  args.lse = nullptr;
  EXPECT_EQ(attn_fwd(&args), ATTN_OK);
  EXPECT_EQ(problem.o.get(1, 4, 3, 7), with);
  uint64_t bytes = 1;
  const attn_bwd_args bwd = problem.bwd();
  EXPECT_EQ(attn_bwd_workspace_size(&bwd, &bytes), ATTN_OK);
  EXPECT_EQ(bytes, 0u);
  EXPECT_EQ(attn_bwd(&bwd), ATTN_OK);
}

TEST(workspace_size_needs_no_pointers_and_may_not_overflow) {
  attn_bwd_args args = {};
  args.struct_size = sizeof(args);
  args.problem = make_problem(Shape{2, 4, 2, 64, 64, 64, 64}, ATTN_DTYPE_BF16);
  args.problem.device_type = ATTN_DEVICE_ROCM;
  uint64_t batch = 0;
  EXPECT_EQ(attn_bwd_workspace_size(&args, &batch), ATTN_OK);
  EXPECT_EQ(batch, uint64_t{2 * 64 * 4 * 4} + 2 * 64 * 4 * 64 * 4 + 2 * (2 * 64 * 4 * 64 * 2));
  args.problem.total_q = args.problem.total_k = 128;
  uint64_t group = 0;
  EXPECT_EQ(attn_bwd_workspace_size(&args, &group), ATTN_OK);
  EXPECT_EQ(group, batch);

  args.problem = make_problem(Shape{1, 1, 1, 0, 0, 64, 64}, ATTN_DTYPE_BF16);
  args.problem.device_type = ATTN_DEVICE_ROCM;
  const int32_t most = std::numeric_limits<int32_t>::max();
  args.problem.seqlen_q = args.problem.seqlen_k = args.problem.heads_q = args.problem.heads_k =
      most;
  args.problem.head_size_qk = most;
  expect_refused(attn_bwd_workspace_size(&args, &group), kInvalid, "2^64 bytes");
}

TEST(the_launch_table_can_be_listed) {
  const uint32_t count = attn_kernel_count();
  EXPECT(count > 0);
  uint32_t sum_heads = 0;
  for (uint32_t i = 0; i < count; ++i) {
    attn_kernel_info_t info = {};
    info.struct_size = sizeof(info);
    EXPECT_EQ(attn_kernel_info(i, &info), ATTN_OK);
    EXPECT_EQ(info.struct_size, sizeof(info));
    EXPECT_EQ(std::strlen(info.key), 64u);
    EXPECT(std::strcmp(info.arch, "gfx942") == 0 || std::strcmp(info.arch, "gfx950") == 0);
    EXPECT(find_instance(info.name) != nullptr);
    EXPECT_EQ(std::string(info.symbol), info.name);
    EXPECT(info.code_object_size > 0 && info.embedded_size > 0);
    sum_heads += std::strcmp(info.kind, "sum_heads") == 0;
  }
  EXPECT_EQ(sum_heads, 4u);
  attn_kernel_info_t info = {};
  info.struct_size = sizeof(info);
  expect_refused(attn_kernel_info(count, &info), kInvalid,
                 "index is " + std::to_string(count) + ", but this build has " +
                     std::to_string(count) + " kernels");
}

TEST(code_objects_can_be_had) {
  const Instance* instance = find_instance("fwd_d64_fp16_batch_mask_psk");
  void* data = nullptr;
  uint64_t size = 0;
  EXPECT_EQ(attn_code_object(instance->code_objects[0].key, &data, &size), ATTN_OK);
  const std::vector<unsigned char> image = tiny_code_object(instance->symbol, "gfx942");
  EXPECT_EQ(size, image.size());
  EXPECT(std::memcmp(data, image.data(), size) == 0);
  attn_code_object_free(data);
  attn_code_object_free(nullptr);
  expect_refused(attn_code_object("0123", &data, &size), ATTN_ERROR_UNSUPPORTED, "'0123'");
  EXPECT(data == nullptr);
  const CodeObject& corrupt = find_instance(kCorruptName)->code_objects[0];
  expect_refused(attn_code_object(corrupt.key, &data, &size), ATTN_ERROR_CORRUPT, corrupt.key);
}

TEST(drivers) {
  const char* text = nullptr;
  EXPECT_EQ(attn_driver_info(ATTN_DEVICE_CPU, &text), ATTN_OK);
  EXPECT_CONTAINS(text, "CPU reference");
  expect_refused(attn_driver_info(2, &text), kInvalid, "device_type is 2");
  EXPECT(text == nullptr);

  setenv("AITER_ATTN_HIP_LIBRARY", "/no/such/libamdhip64.so", 1);
  expect_refused(attn_driver_info(ATTN_DEVICE_ROCM, &text), ATTN_ERROR_DRIVER,
                 "/no/such/libamdhip64.so");
  EXPECT_CONTAINS(attn_last_error(), "AITER_ATTN_HIP_LIBRARY");
  // A library that is there, but not HIP.
  setenv("AITER_ATTN_HIP_LIBRARY", "libc.so.6", 1);
  expect_refused(attn_driver_info(ATTN_DEVICE_ROCM, &text), ATTN_ERROR_DRIVER,
                 "libc.so.6 has no hip");
  unsetenv("AITER_ATTN_HIP_LIBRARY");
}

}  // namespace
}  // namespace aiter_attn::testing
