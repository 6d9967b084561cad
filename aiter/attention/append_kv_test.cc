// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// attn_append_kv through the C ABI, on a launch table by hand and a HIP that records: refusals, the
// kernel that is launched with its arguments, and the explanation. The CPU's results are in
// reference/append_kv_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "aiter/attn.h"
#include "tests/support/attention/append_problem.h"
#include "tests/support/attention/test_launch_table.h"
#include "tests/support/runtime/recorder.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using namespace testing;
using kernels::LaunchArgs;
using ::testing::HasSubstr;

constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
void* const kStream = reinterpret_cast<void*>(0x5000);

// Two sequences of up to 256 keys in pages of 64, 70 of them new, rotated by halves.
AppendShape paged() {
  return {Shape{2, 4, 2, 70, 256, 64, 64}, {60, 0}, 70, 64, ATTN_ROTARY_HALVES, 64};
}

AppendShape in_place() {
  AppendShape shape = paged();
  shape.page_size = 0;
  return shape;
}

AppendShape plain() { return {Shape{2, 4, 2, 70, 256, 64, 64}, {60, 0}, 70}; }

struct Call {
  explicit Call(const AppendShape& shape, attn_device_type device = ATTN_DEVICE_CPU)
      : problem(shape, ATTN_DTYPE_FP16, /*seed=*/0), args(problem.args()) {
    problem.problem.device_type = device;
    problem.problem.stream = kStream;
  }

  AppendProblem problem;
  attn_append_kv_args args;
};

struct Refusal {
  std::function<void(Call*)> change;
  const char* message;
  attn_status status = ATTN_ERROR_INVALID_ARGUMENT;
};

void expect_refusals(const AppendShape& shape, const std::vector<Refusal>& refusals,
                     attn_device_type device = ATTN_DEVICE_CPU) {
  for (const Refusal& refusal : refusals) {
    Call call(shape, device);
    refusal.change(&call);
    EXPECT_EQ(attn_append_kv(&call.args), refusal.status) << refusal.message;
    EXPECT_THAT(attn_last_error(), HasSubstr(refusal.message));
  }
}

TEST(AppendRefusalTest, Structs) {
  EXPECT_EQ(attn_append_kv(nullptr), ATTN_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(attn_last_error(), HasSubstr("attn_append_kv_args is NULL"));
  expect_refusals(plain(), {
                               {[](Call* c) { c->args.problem = nullptr; }, "attn_problem is NULL"},
                               {[](Call* c) { c->args.cache = nullptr; }, "attn_kvcache is NULL"},
                               {[](Call* c) { c->args.reserved = 1; },
                                "attn_append_kv_args.reserved is 1", ATTN_ERROR_ABI_MISMATCH},
                               {[](Call* c) { c->problem.cache.reserved = 1; },
                                "attn_kvcache.reserved is 1", ATTN_ERROR_ABI_MISMATCH},
                               {[](Call* c) { c->args.struct_size = 8; },
                                "attn_append_kv_args.struct_size is 8", ATTN_ERROR_ABI_MISMATCH},
                               {[](Call* c) { c->problem.cache.struct_size = 8; },
                                "attn_kvcache.struct_size is 8", ATTN_ERROR_ABI_MISMATCH},
                           });
}

TEST(AppendRefusalTest, LengthsAndModes) {
  expect_refusals(
      plain(), {
                   {[](Call* c) { c->problem.problem.mode = ATTN_MODE_GROUP; },
                    "mode is 2, but appending takes"},
                   {[](Call* c) { c->args.seqlen_new = -1; }, "seqlen_new is -1"},
                   {[](Call* c) { c->args.seqlen_new = 257; }, "seqlen_new is 257"},
                   {[](Call* c) { c->problem.cache.seqlens_k = nullptr; }, "seqlens_k is NULL"},
                   {[](Call* c) { c->problem.seqlens_k[1] = -1; }, "seqlens_k[1] is -1"},
                   {[](Call* c) { c->problem.seqlens_k[1] = 187; },
                    "seqlens_k[1] is 187, but must be from 0 to 186, the room of"},
                   {[](Call* c) { c->problem.seqlens_k[0] = kMost; }, "seqlens_k[0] is 2147483647"},
                   {[](Call* c) { c->problem.order[1] = 3; }, "batch_index[1] is 3"},
                   {[](Call* c) { c->problem.order[1] = c->problem.order[0]; },
                    "is that of batch_index[0], too"},
                   {[](Call* c) { c->args.k.data = nullptr; }, "k.data is NULL"},
                   {[](Call* c) { c->args.v.data = nullptr; }, "v.data is NULL"},
                   {[](Call* c) { c->args.k_new.data = nullptr; }, "k_new.data is NULL"},
                   {[](Call* c) { c->args.v_new.data = nullptr; }, "v_new.data is NULL"},
                   {[](Call* c) { c->args.k.stride_seq = 127; }, "k.stride_seq is 127"},
                   {[](Call* c) { c->args.k_new = c->args.k; }, "share"},
               });
}

TEST(AppendRefusalTest, Pages) {
  expect_refusals(
      paged(),
      {
          {[](Call* c) { c->problem.order[1] = 9; }, "block_table[1] is 9"},
          {[](Call* c) { c->problem.order[2] = -1; }, "block_table[2] is -1"},
          // Beyond what is written.
          {[](Call* c) { c->problem.seqlens_k[0] = 187; }, "seqlens_k[0] is 187"},
          {[](Call* c) { c->problem.order[5] = c->problem.order[1]; }, "block_table[1], too"},
          {[](Call* c) { c->problem.cache.block_table = nullptr; }, "block_table is NULL"},
          {[](Call* c) {
             c->problem.cache.block_table = nullptr;
             c->problem.cache.page_indptr = c->problem.cache.page_indices = c->problem.order.data();
           },
           "block_table is not given"},
          {[](Call* c) { c->problem.cache.block_table_stride = 3; }, "seqlen_k is 256"},
      });
}

TEST(AppendRefusalTest, Rotary) {
  expect_refusals(
      in_place(),
      {
          {[](Call* c) { c->args.rotary = 3; }, "rotary is 3"},
          {[](Call* c) { c->args.rotary_size = 0; }, "rotary_size is 0"},
          {[](Call* c) { c->args.rotary_size = 24; }, "rotary_size is 24"},
          {[](Call* c) { c->args.rotary_size = 80; }, "rotary_size is 80"},
          {[](Call* c) { c->args.rotary_length = 255; }, "rotary_length is 255"},
          {[](Call* c) { c->args.rotary_cos = nullptr; }, "rotary_cos is NULL"},
          {[](Call* c) { c->args.rotary_sin = nullptr; }, "rotary_sin is NULL"},
          {[](Call* c) { c->args.rotary_sin = static_cast<const char*>(c->args.rotary_sin) + 1; },
           "must be aligned to 2 bytes"},
          {[](Call* c) { c->args.q.data = nullptr; }, "q.data is NULL"},
          {[](Call* c) { c->args.q.data = c->args.k_new.data; }, "share"},
          {[](Call* c) { c->args.rotary_cos = c->args.q.data; }, "share"},
          // Tokens are those of all queries with a mask.
          {[](Call* c) {
             c->problem.problem.mask = ATTN_MASK_BOTTOM_RIGHT;
             c->problem.problem.seqlen_q = 71;
             c->problem.seqlens_k[0] = 186;
           },
           "rotary_length is 256, but tokens up to 257 are rotated: the 186 of sequence 0"},
      });
  Call call(in_place());
  const auto table = [&](const char* field, const void* attn_append_kv_args::* member) {
    Call other(plain());
    other.args.*member = call.args.rotary_cos;
    EXPECT_EQ(attn_append_kv(&other.args), ATTN_ERROR_INVALID_ARGUMENT);
    EXPECT_THAT(attn_last_error(), HasSubstr(std::string(field) + " is set, but rotary is 0"));
  };
  table("rotary_cos", &attn_append_kv_args::rotary_cos);
  table("rotary_sin", &attn_append_kv_args::rotary_sin);
  expect_refusals(plain(),
                  {
                      {[](Call* c) { c->args.q = c->args.k; }, "q.data is set, but rotary is 0"},
                      {[](Call* c) { c->args.rotary_size = 16; }, "rotary_size is set"},
                      {[](Call* c) { c->args.rotary_length = 16; }, "rotary_length is set"},
                  });
}

// Tables end with the room although queries outnumber the new keys: no token lies beyond them.
TEST(AppendTest, TablesAsLongAsTheRoom) {
  AppendShape shape = in_place();
  shape.seqlen_new = 3;
  for (const attn_device_type device : {ATTN_DEVICE_CPU, ATTN_DEVICE_ROCM}) {
    Call call(shape, device);
    call.problem.problem.mask = ATTN_MASK_BOTTOM_RIGHT;
    call.problem.seqlens_k[0] = 256 - 70;
    EXPECT_EQ(attn_append_kv(&call.args), ATTN_OK) << attn_last_error();
  }
}

TEST(AppendRefusalTest, OfTheGpuAlone) {
  expect_refusals(
      in_place(),
      {
          {[](Call* c) { c->args.rotary_sin = static_cast<const char*>(c->args.rotary_sin) + 2; },
           "must be aligned to 16 bytes"},
          {[](Call* c) { c->args.rotary_length = 1 << 27; }, "a GPU kernel addresses 67108863"},
          {[](Call* c) { c->args.k_new.stride_seq = -128; }, "k_new.stride_seq is -128"},
          {[](Call* c) { c->problem.problem.dtype = ATTN_DTYPE_FP32; }, "dtype is fp32",
           ATTN_ERROR_UNSUPPORTED},
          {[](Call* c) { c->problem.problem.dtype = ATTN_DTYPE_BF16; },
           "no fwd_appendkv kernel in this build", ATTN_ERROR_UNSUPPORTED},
      },
      ATTN_DEVICE_ROCM);
}

TEST(AppendRefusalTest, PagesThatATileOfNewKeysExceeds) {
  AppendShape shape = paged();
  shape.page_size = 32;
  Call call(shape, ATTN_DEVICE_ROCM);
  EXPECT_EQ(attn_append_kv(&call.args), ATTN_ERROR_UNSUPPORTED);
  EXPECT_THAT(attn_last_error(), HasSubstr("pages of 32, 70 new keys"));
  EXPECT_THAT(attn_last_error(), HasSubstr("is for pages of 63 keys or more"));
  // A tile that begins with the last key of a page has 33 more.
  call.args.seqlen_new = 33;
  call.problem.problem.seqlen_q = 1;
  EXPECT_EQ(attn_append_kv(&call.args), ATTN_OK) << attn_last_error();
  // The CPU serves all.
  Call on_cpu(shape);
  EXPECT_EQ(attn_append_kv(&on_cpu.args), ATTN_OK) << attn_last_error();
}

std::string launched(Call* call) {
  const Recorder recorder;
  EXPECT_EQ(attn_append_kv(&call->args), ATTN_OK) << attn_last_error();
  const std::vector<RecordedCall> calls = recorder.of(kRecordedLaunch);
  return calls.size() == 1 ? calls[0].symbol : std::to_string(calls.size()) + " launches";
}

TEST(AppendLaunchTest, EveryKindHasItsKernel) {
  const char* const rotaries[] = {"", "_halves", "_interleaved"};
  for (const int page_size : {0, 64}) {
    for (const attn_rotary rotary :
         {ATTN_ROTARY_NONE, ATTN_ROTARY_HALVES, ATTN_ROTARY_INTERLEAVED}) {
      for (const int head_size : {64, 80}) {
        AppendShape shape = paged();
        shape.page_size = page_size;
        shape.rotary = rotary;
        shape.rotary_size = rotary == ATTN_ROTARY_NONE ? 0 : 32;
        shape.shape.head_size_qk = shape.shape.head_size_v = head_size;
        Call call(shape, ATTN_DEVICE_ROCM);
        // 70 queries do not fill a tile: without rotation they do not matter.
        const bool pad = head_size != 64 || rotary != ATTN_ROTARY_NONE;
        EXPECT_EQ(launched(&call), std::string(head_size == 64 ? "append_d64" : "append_d128") +
                                       "_fp16" + (page_size == 0 ? "" : "_paged") +
                                       rotaries[rotary] + (pad ? "_pad" : ""));
      }
    }
  }
}

TEST(AppendLaunchTest, Arguments) {
  Call call(paged(), ATTN_DEVICE_ROCM);
  call.problem.problem.mask = ATTN_MASK_BOTTOM_RIGHT;
  call.problem.problem.window_right = 0;
  // Attention's alone.
  call.problem.problem.bias = ATTN_BIAS_ALIBI;
  const Recorder recorder;
  EXPECT_EQ(attn_append_kv(&call.args), ATTN_OK) << attn_last_error();
  const RecordedCall made = recorder.all().back();
  EXPECT_EQ(made.grid[0], 2u);
  EXPECT_EQ(made.grid[1], 4u);
  EXPECT_EQ(made.grid[2], 2u);
  EXPECT_EQ(made.stream, kStream);
  const auto got = kernarg_of<LaunchArgs>(made);
  const auto same = [](const attn_tensor& a, const attn_tensor& b) {
    return std::memcmp(&a, &b, sizeof(a)) == 0;
  };
  EXPECT_TRUE(same(got.q, call.args.q));
  EXPECT_TRUE(same(got.k, call.args.k));
  EXPECT_TRUE(same(got.v, call.args.v));
  const kernels::Features& f = got.features;
  EXPECT_TRUE(same(f.k_new, call.args.k_new));
  EXPECT_TRUE(same(f.v_new, call.args.v_new));
  EXPECT_EQ(f.seqlen_new, 70);
  EXPECT_EQ(f.seqlens_k, call.problem.seqlens_k.data());
  EXPECT_EQ(f.block_table, call.problem.order.data());
  EXPECT_EQ(f.block_table_stride, 4);
  EXPECT_EQ(f.page_size, 64);
  EXPECT_EQ(f.rotary_size, 64);
  EXPECT_EQ(f.rotary_cos, call.args.rotary_cos);
  EXPECT_EQ(f.rotary_sin, call.args.rotary_sin);
  EXPECT_EQ(got.problem.mask, ATTN_MASK_BOTTOM_RIGHT);
}

TEST(AppendLaunchTest, WithoutRotaryAWorkgroupPerKeyHead) {
  Call call(plain(), ATTN_DEVICE_ROCM);
  const Recorder recorder;
  EXPECT_EQ(attn_append_kv(&call.args), ATTN_OK) << attn_last_error();
  const RecordedCall made = recorder.all().back();
  EXPECT_EQ(made.grid[1], 2u);
  const auto got = kernarg_of<LaunchArgs>(made);
  EXPECT_EQ(got.features.batch_index, call.problem.order.data());
  EXPECT_EQ(got.problem.seqlen_q, 0);
}

TEST(AppendLaunchTest, NothingToDoLaunchesNothing) {
  AppendShape shape = plain();
  shape.seqlen_new = 0;
  Call none(shape, ATTN_DEVICE_ROCM);
  EXPECT_EQ(launched(&none), "0 launches");
  shape = plain();
  shape.shape.batch = 0;
  shape.seqlens_k = {};
  Call empty(shape, ATTN_DEVICE_ROCM);
  EXPECT_EQ(launched(&empty), "0 launches");
  uint32_t count = 7;
  EXPECT_EQ(attn_plan_append_kv(&empty.args, "gfx942", nullptr, &count), ATTN_OK);
  EXPECT_EQ(count, 0u);
  const char* text = nullptr;
  EXPECT_EQ(attn_explain_append_kv(&empty.args, "gfx942", &text), ATTN_OK);
  EXPECT_THAT(text, HasSubstr("no kernel: nothing is appended"));
}

// The instance loads 16 bytes of a head at a time.
TEST(AppendLaunchTest, UnpaddedHeadsAreAligned) {
  Call call(plain(), ATTN_DEVICE_ROCM);
  call.args.k_new.data = static_cast<char*>(call.args.k_new.data) + 2;
  EXPECT_EQ(attn_append_kv(&call.args), ATTN_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(attn_last_error(), HasSubstr("k_new.data is"));
  EXPECT_THAT(attn_last_error(), HasSubstr("loads 16 bytes at a time"));
}

TEST(AppendPlanTest, WithoutAnyPointer) {
  Call call(paged(), ATTN_DEVICE_ROCM);
  for (attn_tensor attn_append_kv_args::* tensor :
       {&attn_append_kv_args::q, &attn_append_kv_args::k, &attn_append_kv_args::v,
        &attn_append_kv_args::k_new, &attn_append_kv_args::v_new}) {
    (call.args.*tensor).data = nullptr;
  }
  call.args.rotary_cos = call.args.rotary_sin = nullptr;
  call.problem.cache.seqlens_k = call.problem.cache.block_table = nullptr;
  uint32_t kernel = 0, count = 1;
  ASSERT_EQ(attn_plan_append_kv(&call.args, "gfx950", &kernel, &count), ATTN_OK)
      << attn_last_error();
  EXPECT_EQ(count, 1u);
  attn_kernel_info_t info = {};
  info.struct_size = sizeof(info);
  ASSERT_EQ(attn_kernel_info(kernel, &info), ATTN_OK);
  EXPECT_EQ(std::string(info.name), "append_d64_fp16_paged_halves_pad");
  EXPECT_EQ(std::string(info.kind), "fwd_appendkv");
  EXPECT_EQ(std::string(info.arch), "gfx950");
  const char* text = nullptr;
  ASSERT_EQ(attn_explain_append_kv(&call.args, "gfx950", &text), ATTN_OK);
  EXPECT_THAT(text, HasSubstr("append: fp16, head size 64, keys and values in pages, rotation of "
                              "halves, pages of 64, 70 new keys, 70 queries"));
  EXPECT_THAT(text, HasSubstr("for interleaved rotation"));
}

// An attention call that appends first, of the same cache.
struct Both {
  explicit Both(const AppendShape& shape, attn_device_type device = ATTN_DEVICE_CPU)
      : append(shape, device), o(append.problem.q.extents(), ATTN_DTYPE_FP16) {
    append.problem.problem.mask = ATTN_MASK_BOTTOM_RIGHT;
    append.problem.problem.window_right = 0;
    for (const int32_t length : append.problem.seqlens_k)
      lengths.push_back(length + shape.seqlen_new);
    cache = append.problem.cache;
    cache.seqlens_k = lengths.data();
    args.struct_size = sizeof(args);
    args.problem = &append.problem.problem;
    args.cache = &cache;
    args.append = &append.args;
    args.q = append.problem.q.tensor();
    args.k = append.args.k;
    args.v = append.args.v;
    args.o = o.tensor();
    args.splits = 1;
    alignas(256) static char workspace[1 << 18];
    args.workspace = workspace;
    args.workspace_size = sizeof(workspace);
  }

  Call append;
  std::vector<int32_t> lengths;
  attn_kvcache cache;
  Buffer o;
  attn_kvcache_fwd_args args = {};
};

TEST(AppendFirstTest, OneCallIsAsTwo) {
  for (const int page_size : {0, 64}) {
    AppendShape shape = paged();
    shape.page_size = page_size;
    Both one(shape), two(shape);
    for (Both* both : {&one, &two}) {
      std::mt19937 random(5);
      AppendProblem& p = both->append.problem;
      for (Buffer* buffer : {&p.k, &p.v, &p.q, &p.k_new, &p.v_new, &p.cos, &p.sin}) {
        buffer->randomise(&random);
      }
    }
    ASSERT_EQ(attn_kvcache_fwd(&one.args), ATTN_OK) << attn_last_error();
    two.args.append = nullptr;
    ASSERT_EQ(attn_append_kv(&two.append.args), ATTN_OK) << attn_last_error();
    ASSERT_EQ(attn_kvcache_fwd(&two.args), ATTN_OK) << attn_last_error();
    for (int b = 0; b < 2; ++b) {
      for (int i = 0; i < 70; ++i) {
        for (int h = 0; h < 4; ++h) {
          for (int c = 0; c < 64; ++c) ASSERT_EQ(one.o.get(b, i, h, c), two.o.get(b, i, h, c));
        }
      }
    }
  }
}

TEST(AppendFirstTest, BothAreCheckedBeforeAnythingIsWritten) {
  struct Case {
    std::function<void(Both*)> change;
    const char* message;
    const char* field;
  };
  static float slopes[4];
  const Case cases[] = {
      {[](Both* b) { b->args.o.data = nullptr; }, "o.data is NULL", "o.data"},
      {[](Both* b) { b->append.args.seqlen_new = -1; }, "seqlen_new is -1", "seqlen_new"},
      {[](Both* b) {
         b->append.problem.problem.bias = ATTN_BIAS_ALIBI;
         b->args.alibi_slopes = reinterpret_cast<float*>(reinterpret_cast<char*>(slopes) + 1);
       },
       "alibi_slopes is 0x", "alibi_slopes"},
      {[](Both* b) { b->args.k.stride_head += 8; }, "append.k.data is 0x", "append.k.data"},
      {[](Both* b) { b->args.problem = nullptr; }, "attn_problem is NULL", ""},
      {[](Both* b) {
         static attn_problem other;
         other = b->append.problem.problem;
         b->append.args.problem = &other;
       },
       "append.problem is another", "append.problem"},
      // New keys go where attention reads another array.
      {[](Both* b) {
         b->append.problem.problem.bias = ATTN_BIAS_ALIBI;
         b->args.alibi_slopes = static_cast<const float*>(b->args.k.data);
       },
       "k overlaps alibi_slopes", "k"},
      {[](Both* b) { b->args.q = b->args.v; }, "v overlaps q", "v"},
      {[](Both* b) { b->cache.seqlens_k = static_cast<const int32_t*>(b->args.v.data); },
       "v overlaps seqlens_k", "v"},
      // Attention's outputs lie over appended keys.
      {[](Both* b) { b->args.o = b->append.args.k_new; }, "o overlaps k_new", "o"},
  };
  AppendShape shape = in_place();
  shape.rotary = ATTN_ROTARY_NONE;
  shape.rotary_size = 0;
  shape.shape.heads_q = 2;
  for (const attn_device_type device : {ATTN_DEVICE_CPU, ATTN_DEVICE_ROCM}) {
    for (const Case& wrong : cases) {
      Both both(shape, device);
      both.append.problem.k_new.fill(1);
      wrong.change(&both);
      const Recorder recorder;
      EXPECT_EQ(attn_kvcache_fwd(&both.args), ATTN_ERROR_INVALID_ARGUMENT) << wrong.message;
      EXPECT_THAT(attn_last_error(), ::testing::StartsWith(wrong.message));
      EXPECT_EQ(std::string(attn_last_error_field()), wrong.field);
      EXPECT_EQ(recorder.order(), "");
      EXPECT_EQ(both.append.problem.k.get(both.append.problem.entry(1, 0), 0, 0, 0), 0)
          << wrong.message;
    }
  }
}

// The instance of attention loads 16 bytes of q at a time, that of appending does not read q.
TEST(AppendFirstTest, AlignmentForBothKernelsIsCheckedFirst) {
  Both both(plain(), ATTN_DEVICE_ROCM);
  both.args.q.data = static_cast<char*>(both.args.q.data) + 2;
  const Recorder recorder;
  EXPECT_EQ(attn_kvcache_fwd(&both.args), ATTN_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(attn_last_error(), HasSubstr("loads 16 bytes at a time"));
  EXPECT_EQ(std::string(attn_last_error_field()), "q.data");
  EXPECT_EQ(recorder.of(kRecordedLaunch).size(), 0u);
}

TEST(AppendFirstTest, PlansAndLaunchesBoth) {
  Both both(paged(), ATTN_DEVICE_ROCM);
  const Recorder recorder;
  ASSERT_EQ(attn_kvcache_fwd(&both.args), ATTN_OK) << attn_last_error();
  const std::vector<RecordedCall> calls = recorder.of(kRecordedLaunch);
  ASSERT_EQ(calls.size(), 3u);
  uint32_t kernels[3], count = 3;
  ASSERT_EQ(attn_plan_kvcache_fwd(&both.args, "gfx942", kernels, &count), ATTN_OK)
      << attn_last_error();
  ASSERT_EQ(count, 3u);
  for (uint32_t i = 0; i < 3; ++i) {
    attn_kernel_info_t info = {};
    info.struct_size = sizeof(info);
    ASSERT_EQ(attn_kernel_info(kernels[i], &info), ATTN_OK);
    EXPECT_EQ(std::string(info.name), std::string(calls[i].symbol));
  }
  const char* text = nullptr;
  ASSERT_EQ(attn_explain_kvcache_fwd(&both.args, "gfx942", &text), ATTN_OK);
  EXPECT_THAT(text, ::testing::StartsWith("append: "));
  EXPECT_THAT(text, HasSubstr("\nforward over a cache: "));
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::attention
