// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The choice between Composable Kernel's and AITER's forward kernels, on a launch table that has
// both: a table of calls, AITER's own rules over random calls, the preference and its words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "aiter/attention/dispatch.h"
#include "aiter/attn.h"
#include "kernels/launch_table/launch_table.h"
#include "tests/support/attention/asm_calls.h"
#include "tests/support/attention/problems.h"
#include "tests/support/attention/table_builder.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using kernels::Bias;
using kernels::Dtype;
using kernels::Hazard;
using kernels::Kind;
using kernels::LaunchTable;
using kernels::Rounding;
using kernels::Row;
using kernels::Schedule;
using ::testing::AllOf;
using testing::asm_objects;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::is_asm;
using testing::kAsmRoundings;
using testing::Shape;
using testing::TableBuilder;

constexpr const char* kSchedules[] = {"gfx950", "mi300", "mi308"};

// As launch.py names them; schedule 0 is gfx950's.
std::string asm_name(bool mask, int rounding, bool group, int schedule, int head_size_qk = 128) {
  std::string name = head_size_qk == 128 ? "fmha_fwd_hd128_bf16" : "fmha_fwd_hd192_hd128_bf16";
  if (mask) name += "_causal";
  if (schedule != 0) name += kAsmRoundings[rounding];
  return name + (group ? "_group_" : "_") + kSchedules[schedule];
}

// Of one of AITER's kernels, with the defects that defects.toml has of it.
void add_asm(TableBuilder* builder, uint8_t number, bool mask, bool group, int rounding,
             int schedule, uint16_t head_size_qk = 128) {
  Row row = {};
  row.head_size_alignment = 8;
  row.tile_seqlen_q = head_size_qk == 128 ? 256 : 128;
  row.tile_seqlen_k = 32;
  row.tile_head_size_qk = head_size_qk;
  row.tile_head_size_v = 128;
  kernels::Traits& t = row.traits;
  t.kind = Kind::kFwdAsm;
  t.dtype = Dtype::kBf16;
  t.head_size_qk = head_size_qk;
  t.head_size_v = 128;
  t.group_mode = group;
  t.mask = mask;
  t.rounding = static_cast<Rounding>(rounding);
  t.schedule = static_cast<Schedule>(schedule);
  t.pad_seqlen_q = t.pad_seqlen_k = true;
  uint32_t hazards = mask ? 0 : bit(Hazard::kNoKeys);
  if (schedule == 0 && mask) hazards |= bit(Hazard::kTwoTiles);
  if (head_size_qk != 128) hazards |= bit(Hazard::kAlways);
  builder->add(asm_name(mask, rounding, group, schedule, head_size_qk), row,
               testing::make_no_launch,
               asm_objects(number, {size_t{schedule == 0 ? 2u : 1u}}, hazards));
}

// Of Composable Kernel one kernel for each dtype, mode, mask and feature, for any size up to 256.
LaunchTable make_table(TableBuilder* builder) {
  uint8_t number = 1;
  const auto add_ck = [&](const char* feature, Dtype dtype, bool group, bool mask, Bias bias,
                          bool dropout, bool cap, bool skip) {
    for (const bool lse : {true, false}) {
      Row row = {};
      row.head_size_alignment = 1;
      row.tile_seqlen_q = row.tile_seqlen_k = 64;
      row.tile_head_size_qk = row.tile_head_size_v = 256;
      kernels::Traits& t = row.traits;
      t.kind = Kind::kFwd;
      t.dtype = dtype;
      t.head_size_qk = t.head_size_v = 256;
      t.group_mode = group;
      t.mask = mask;
      t.bias = bias;
      t.dropout = dropout;
      t.logits_soft_cap = cap;
      t.skip_min_seqlen_q = skip;
      t.lse = lse;
      t.pad_seqlen_q = t.pad_seqlen_k = t.pad_head_size_qk = t.pad_head_size_v = true;
      builder->add(std::string("ck_") + feature + (group ? "_group" : "_batch") +
                       (mask ? "_mask" : "") + (lse ? "" : "_nlse"),
                   row, testing::make_no_launch, asm_objects(number++, {0, 1, 2}));
    }
  };
  for (const bool group : {false, true}) {
    for (const bool mask : {false, true}) {
      add_ck("bf16", Dtype::kBf16, group, mask, Bias::kNone, false, false, false);
      add_ck("fp16", Dtype::kFp16, group, mask, Bias::kNone, false, false, false);
      add_ck("bias", Dtype::kBf16, group, mask, Bias::kElementwise, false, false, false);
      add_ck("alibi", Dtype::kBf16, group, mask, Bias::kAlibi, false, false, false);
      add_ck("dropout", Dtype::kBf16, group, mask, Bias::kNone, true, false, false);
      add_ck("cap", Dtype::kBf16, group, mask, Bias::kNone, false, true, false);
      if (group) add_ck("skip", Dtype::kBf16, group, mask, Bias::kNone, false, false, true);
    }
  }
  for (const bool mask : {false, true}) {
    for (const bool group : {false, true}) {
      for (int rounding = 0; rounding < 3; ++rounding) {
        for (const int schedule : {1, 2}) {
          add_asm(builder, number++, mask, group, rounding, schedule);
        }
      }
      for (const uint16_t head_size_qk : {128, 192}) {
        add_asm(builder, number++, mask, group, 0, 0, head_size_qk);
      }
    }
  }
  Row row = {};
  row.head_size_alignment = 8;
  row.traits.kind = Kind::kNoKeys;
  row.traits.dtype = Dtype::kBf16;
  row.traits.group_mode = true;
  builder->add("attn_no_keys_bf16", row, testing::make_no_launch, asm_objects(number++, {0, 1, 2}));
  return builder->build("both");
}

float some_lse;

// bf16, 128 elements, 300 x 300, causal, with an lse.
struct Call : testing::AsmCall<attn_fwd_args> {
  explicit Call(bool group = false, const Shape& shape = {2, 8, 2, 300, 300, 128, 128})
      : AsmCall(group, shape) {
    args.lse = &some_lse;
    lay_out({&args.q}, shape.seqlen_q, shape.heads_q, shape.head_size_qk);
    lay_out({&args.k}, shape.seqlen_k, shape.heads_k, shape.head_size_qk);
    lay_out({&args.v}, shape.seqlen_k, shape.heads_k, shape.head_size_v);
    lay_out({&args.o}, shape.seqlen_q, shape.heads_q, shape.head_size_v);
  }
};

// Of used rows, or their numbers.
constexpr int32_t kSums[] = {0, 0, 0};

TEST(AsmTest, ATableOfCalls) {
  const char* const causal = "fmha_fwd_hd128_bf16_causal_rtne_mi300";
  const char* const plain = "fmha_fwd_hd128_bf16_rtne_mi300";
  const char* const causal_group = "fmha_fwd_hd128_bf16_causal_rtne_group_mi300";
  const char* const plain_group = "fmha_fwd_hd128_bf16_rtne_group_mi300";
  const testing::AsmCase<Call> cases[] = {
      {"causal", [](Call*) {}, causal, causal},
      {"no mask", [](Call* c) { c->remove_mask(); }, plain, plain},
      {"causal, group", [](Call*) {}, causal_group, causal_group, true},
      {"no mask, group", [](Call* c) { c->remove_mask(); }, plain_group, plain_group, true},
      {"without lse", [](Call* c) { c->args.lse = nullptr; }, causal, causal},
      {"fp16", [](Call* c) { c->problem.dtype = ATTN_DTYPE_FP16; }, "ck_fp16_batch_mask", ""},
      {"head size 64", [](Call* c) { c->problem.head_size_qk = c->problem.head_size_v = 64; },
       "ck_bf16_batch_mask", ""},
      {"head sizes 128 and 64", [](Call* c) { c->problem.head_size_v = 64; }, "ck_bf16_batch_mask",
       ""},
      {"bias", [](Call* c) { c->problem.bias = ATTN_BIAS_ELEMENTWISE; }, "ck_bias_batch_mask", ""},
      {"ALiBi", [](Call* c) { c->problem.bias = ATTN_BIAS_ALIBI; }, "ck_alibi_batch_mask", ""},
      {"dropout", [](Call* c) { c->problem.dropout_p = .5f; }, "ck_dropout_batch_mask", ""},
      {"soft cap", [](Call* c) { c->problem.logits_soft_cap = 30; }, "ck_cap_batch_mask", ""},
      {"soft cap, group", [](Call* c) { c->problem.logits_soft_cap = 30; }, "ck_cap_group_mask", "",
       true},
      {"sums of used rows, group", [](Call* c) { c->problem.cu_seqused_k = kSums; }, causal_group,
       causal_group, true},
      {"sums of used rows, group, no mask",
       [](Call* c) { c->remove_mask(), c->problem.cu_seqused_q = kSums; }, "ck_bf16_group", "",
       true},
      {"numbers of used rows, group", [](Call* c) { c->problem.seqused_k = kSums; },
       "ck_bf16_group_mask", "", true},
      {"sums of used rows", [](Call* c) { c->problem.cu_seqused_k = kSums; }, "ck_bf16_batch_mask",
       ""},
      {"sequences left out", [](Call* c) { c->args.min_seqlen_q = 4; }, "ck_skip_group_mask", "",
       true},
      {"window", [](Call* c) { c->problem.window_left = 40; }, "ck_bf16_batch_mask", ""},
      {"window as wide as all lengths", [](Call* c) { c->problem.window_left = 600; }, causal,
       causal},
      {"future keys", [](Call* c) { c->problem.window_right = 1; }, "ck_bf16_batch_mask", ""},
      {"top left, equal lengths", [](Call* c) { c->problem.mask = ATTN_MASK_TOP_LEFT; }, causal,
       causal},
      {"top left, other lengths",
       [](Call* c) { c->problem.mask = ATTN_MASK_TOP_LEFT, c->problem.seqlen_k = 299; },
       "ck_bf16_batch_mask", ""},
      {"top left, group", [](Call* c) { c->problem.mask = ATTN_MASK_TOP_LEFT; },
       "ck_bf16_group_mask", "", true},
      {"128 queries", [](Call* c) { c->problem.seqlen_q = 128; }, "ck_bf16_batch_mask", causal},
      {"129 queries", [](Call* c) { c->problem.seqlen_q = 129; }, causal, causal},
      {"one query, group", [](Call* c) { c->problem.seqlen_q = 1, c->problem.total_q = 2; },
       causal_group, causal_group, true},
      {"4 GiB of q", [](Call* c) { c->args.q.stride_batch = int64_t{1} << 30; },
       "ck_bf16_batch_mask", ""},
      {"2 GiB and a half of q", [](Call* c) { c->args.q.stride_batch = int64_t{5} << 27; }, causal,
       causal},
      {"4 GiB of the tiles of k",
       [](Call* c) { c->args.k.stride_seq = (int64_t{1} << 31) / (300 + 512); },
       "ck_bf16_batch_mask", ""},
      {"rows of v that overlap",
       [](Call* c) { c->args.v.stride_seq = 120, c->args.v.stride_head = 300 * 128; },
       "ck_bf16_batch_mask", ""},
      {"strides that are not 16 bytes", [](Call* c) { c->args.k.stride_head = 132; },
       "ck_bf16_batch_mask", ""},
      {"data that is not at 16 bytes",
       [](Call* c) { c->args.v.data = reinterpret_cast<void*>(uintptr_t{0x1008}); },
       "ck_bf16_batch_mask", ""},
  };
  for (const auto& each : cases) expect_served(each);
}

TEST(AsmTest, APlanWithoutTensors) {
  Call call;
  call.args.q = call.args.k = call.args.v = call.args.o = {};
  EXPECT_EQ(call.chosen(), "fmha_fwd_hd128_bf16_causal_rtne_mi300");
  call.problem.seqlen_k = 1 << 24;  // k and v of 16 GiB
  call.problem.mask = ATTN_MASK_BOTTOM_RIGHT;
  EXPECT_EQ(call.chosen(), "ck_bf16_batch_mask");
}

TEST(AsmTest, TheScheduleIsOfTheComputeUnits) {
  Call call;
  for (const auto& [count, name] : std::map<uint32_t, const char*>{
           {304, "mi300"}, {228, "mi300"}, {80, "mi308"}, {64, "mi308"}, {38, "mi300"}}) {
    EXPECT_EQ(call.chosen("gfx942", count), std::string("fmha_fwd_hd128_bf16_causal_rtne_") + name)
        << count;
  }
}

TEST(AsmTest, AnArchWithoutObjects) {
  Call call;
  EXPECT_EQ(call.chosen("gfx90a", 104), "ck_bf16_batch_mask");
  EXPECT_THAT(call.explained(ATTN_OK, "gfx90a"),
              HasSubstr("asm passed over: it has no kernels for gfx90a\n"));
  call.problem.kernels = ATTN_KERNELS_ASM;
  EXPECT_THAT(call.explained(ATTN_ERROR_UNSUPPORTED, "gfx90a"),
              HasSubstr("AITER's assembly, which kernels (asm) asks for, was passed over: it has "
                        "no kernels for gfx90a"));
}

Call without_mask(bool group, const Shape& shape = {2, 8, 2, 300, 300, 128, 128}) {
  Call call(group, shape);
  call.remove_mask();
  return call;
}

// Calls that may meet a defect are Composable Kernel's, unless asm is asked for by name.
TEST(AsmTest, DefectsOfGfx950) {
  const Shape one_tile = {2, 8, 2, 256, 300, 128, 128}, two_tiles = {2, 8, 2, 257, 300, 128, 128};
  const Shape two_sizes = {2, 8, 2, 200, 300, 192, 128};
  const auto expect = [](Call call, const char* fastest, const char* by_name) {
    // Any number of compute units: those of an MI350X, and of a quarter of one.
    for (const uint32_t count : {256, 64}) {
      EXPECT_EQ(call.chosen("gfx950", count), fastest) << by_name;
      call.problem.kernels = ATTN_KERNELS_ASM;
      EXPECT_EQ(call.chosen("gfx950", count), by_name);
      call.problem.kernels = ATTN_KERNELS_FASTEST;
    }
  };
  const char* const causal = "fmha_fwd_hd128_bf16_causal_gfx950";
  const char* const plain = "fmha_fwd_hd128_bf16_gfx950";
  expect(Call(false, one_tile), causal, causal);
  expect(Call(false, two_tiles), "ck_bf16_batch_mask", causal);
  expect(Call(true, one_tile), "fmha_fwd_hd128_bf16_causal_group_gfx950",
         "fmha_fwd_hd128_bf16_causal_group_gfx950");
  expect(Call(true, two_tiles), "ck_bf16_group_mask", "fmha_fwd_hd128_bf16_causal_group_gfx950");
  expect(without_mask(false, two_tiles), plain, plain);
  expect(without_mask(true, two_tiles), "fmha_fwd_hd128_bf16_group_gfx950",
         "fmha_fwd_hd128_bf16_group_gfx950");
  expect(without_mask(false, two_sizes), "ck_bf16_batch", "fmha_fwd_hd192_hd128_bf16_gfx950");
  expect(Call(false, two_sizes), "ck_bf16_batch_mask", "fmha_fwd_hd192_hd128_bf16_causal_gfx950");
}

TEST(AsmTest, ExplanationsTellTheDefect) {
  EXPECT_THAT(
      Call().explained(ATTN_OK, "gfx950"),
      HasSubstr("asm passed over: results of fmha_fwd_hd128_bf16_causal_gfx950 may be wrong "
                "where a workgroup takes two tiles: with a causal mask, of a sequence "
                "longer than a tile (docs/asm-findings.md)\n"));
  EXPECT_THAT(without_mask(false, {2, 8, 2, 200, 300, 192, 128}).explained(ATTN_OK, "gfx950"),
              HasSubstr("results of fmha_fwd_hd192_hd128_bf16_gfx950 may be wrong on every problem "
                        "(docs/asm-findings.md)\n"));
}

TEST(AsmTest, HeadsOfTwoSizesAreGfx950s) {
  Call call = without_mask(false, {2, 8, 2, 200, 300, 192, 128});
  EXPECT_EQ(call.chosen(), "ck_bf16_batch");
  EXPECT_THAT(call.explained(), HasSubstr("asm passed over: it has no such kernel\n"));
  call.problem.kernels = ATTN_KERNELS_ASM;
  EXPECT_EQ(call.chosen(), "");
}

// Roundings are gfx942's.
TEST(AsmTest, Gfx950RoundsAsItsHardware) {
  Call call = without_mask(false);
  call.problem.rounding = ATTN_ROUNDING_TOWARD_ZERO;
  EXPECT_EQ(call.chosen("gfx950", 256), "");
  EXPECT_THAT(call.explained(ATTN_ERROR_UNSUPPORTED, "gfx950"),
              HasSubstr("which rounding asks for, was passed over: it has no such kernel"));
}

TEST(AsmTest, ARoundingNeedsAsm) {
  Call call;
  call.problem.rounding = ATTN_ROUNDING_NEAREST_AWAY;
  EXPECT_EQ(call.chosen(), "fmha_fwd_hd128_bf16_causal_rtna_mi300");
  call.problem.rounding = ATTN_ROUNDING_TOWARD_ZERO;
  EXPECT_EQ(call.chosen(), "fmha_fwd_hd128_bf16_causal_rtz_mi300");
  call.problem.dtype = ATTN_DTYPE_FP16;
  EXPECT_EQ(call.chosen(), "");
  EXPECT_THAT(call.explained(ATTN_ERROR_UNSUPPORTED),
              HasSubstr("which rounding asks for, was passed over: its kernels are for bf16"));
  call.problem.kernels = ATTN_KERNELS_CK;
  EXPECT_THAT(call.explained(ATTN_ERROR_INVALID_ARGUMENT),
              HasSubstr("rounding is 2, but is AITER's alone"));
  call.problem.kernels = 0;
  call.problem.rounding = 3;
  EXPECT_THAT(call.explained(ATTN_ERROR_INVALID_ARGUMENT), HasSubstr("rounding is 3, but must be"));

  attn_dropout_mask_args mask = {};
  mask.struct_size = sizeof(mask);
  mask.problem = &call.problem;
  call.problem.rounding = ATTN_ROUNDING_NEAREST_AWAY;
  EXPECT_EQ(attn_dropout_mask(&mask), ATTN_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(attn_last_error(), HasSubstr("rounding is 1, but belongs to attn_fwd and attn_bwd"));
}

TEST(AsmTest, APreferenceThatDoesNotExist) {
  Call call;
  call.problem.kernels = 4;
  EXPECT_THAT(call.explained(ATTN_ERROR_INVALID_ARGUMENT),
              HasSubstr("kernels is 4, but must be 0 (default), 1 (fastest), 2 (ck) or 3 (asm)"));
  EXPECT_EQ(attn_set_kernels("assembly"), ATTN_ERROR_INVALID_ARGUMENT);
  EXPECT_THAT(attn_last_error(),
              HasSubstr("kernels is 'assembly', but must be fastest, ck or asm"));
  EXPECT_STREQ(attn_last_error_field(), "kernels");
  EXPECT_EQ(attn_set_kernels("default"), ATTN_ERROR_INVALID_ARGUMENT);
}

TEST(AsmTest, TheProcessPreferenceStandsInForTheDefault) {
  Call call;
  call.problem.kernels = ATTN_KERNELS_DEFAULT;
  EXPECT_THAT(call.explained(), HasSubstr("fwd_asm: fmha_fwd_hd128_bf16_causal_rtne_mi300\n"));
  ASSERT_EQ(attn_set_kernels("ck"), ATTN_OK);
  EXPECT_THAT(call.explained(), AllOf(HasSubstr("fwd: ck_bf16_batch_mask\n"),
                                      HasSubstr("kernels ck (the call: default; attn_set_kernels: "
                                                "ck; AITER_ATTN_KERNELS: not set)"),
                                      HasSubstr("asm passed over: kernels is ck\n")));
  call.problem.kernels = ATTN_KERNELS_FASTEST;
  EXPECT_THAT(call.explained(), AllOf(HasSubstr("  provider asm\n"),
                                      HasSubstr("(the call: fastest; attn_set_kernels: ck;"),
                                      HasSubstr("ck passed over: asm is taken where AITER")));
  ASSERT_EQ(attn_set_kernels(nullptr), ATTN_OK);
}

TEST(AsmTest, ExplanationsTellWhyAsmIsPassedOver) {
  Call call = without_mask(/*group=*/true);
  call.problem.logits_soft_cap = 30;
  EXPECT_THAT(call.explained(), HasSubstr("asm passed over: its kernels have no soft cap\n"));
  call.problem.kernels = ATTN_KERNELS_ASM;
  EXPECT_THAT(call.explained(ATTN_ERROR_UNSUPPORTED), HasSubstr("have no soft cap. With kernels"));
}

// A sequence may lack keys where the host does not know the lengths: its rows are filled behind.
TEST(AsmTest, RowsWithoutKeysAreFilledInGroupModeWithoutAMask) {
  const auto kinds = [](Call call, const char* arch) {
    std::vector<Kind> found;
    for (const Step& step : call.plan(arch)) found.push_back(step.kind);
    return found;
  };
  EXPECT_THAT(kinds(without_mask(true), "gfx942"), ElementsAre(Kind::kFwdAsm, Kind::kNoKeys));
  EXPECT_THAT(kinds(without_mask(true), "gfx950"), ElementsAre(Kind::kFwdAsm, Kind::kNoKeys));
  EXPECT_THAT(kinds(without_mask(false), "gfx942"), ElementsAre(Kind::kFwdAsm));
  EXPECT_THAT(kinds(Call(true), "gfx942"), ElementsAre(Kind::kFwdAsm));
  EXPECT_THAT(kinds(without_mask(true), "gfx90a"), ElementsAre(Kind::kFwd));
  EXPECT_THAT(without_mask(true).explained(),
              AllOf(HasSubstr("fwd_asm: fmha_fwd_hd128_bf16_rtne_group_mi300\n"),
                    HasSubstr("no_keys: attn_no_keys_bf16\n")));
}

TEST(AsmTest, KernelInfoNamesTheProvider) {
  std::set<std::string> providers;
  for (uint32_t i = 0; i < attn_kernel_count(); ++i) {
    attn_kernel_info_t info = {};
    info.struct_size = sizeof(info);
    ASSERT_EQ(attn_kernel_info(i, &info), ATTN_OK);
    const std::string prefix = std::string(info.name).substr(0, 4);
    EXPECT_STREQ(info.provider, prefix == "fmha" ? "asm" : prefix == "attn" ? "own" : "ck");
    providers.insert(info.provider);
  }
  EXPECT_THAT(providers, ElementsAre("asm", "ck", "own"));
}

// ---- AITER's own choice

// A device of a call.
struct Device {
  const char* arch;
  uint32_t compute_units;
  bool is_gfx950() const { return std::string(arch) == "gfx950"; }
};

// The object that AITER's forward selects, by its Python checks (mha.py) and those of its C++
// (asm_mha_fwd); "": its choice is Composable Kernel.
std::string aiter_object(const Call& call, const Device& device) {
  const attn_problem& p = call.problem;
  const bool group = p.mode == ATTN_MODE_GROUP;
  const bool open = p.window_left == -1 && p.window_right == -1;
  const bool causal = p.window_left == -1 && p.window_right == 0;
  if (p.dtype != ATTN_DTYPE_BF16 || p.head_size_v != 128) return "";
  if (p.head_size_qk != 128 && !(device.is_gfx950() && p.head_size_qk == 192)) return "";
  if (p.bias != ATTN_BIAS_NONE || p.dropout_p > 0) return "";
  if (!group && p.seqlen_q <= 128) return "";
  if (!group && p.logits_soft_cap > 0) return "";  // its batch function has no cap at all
  const bool none = p.mask == ATTN_MASK_NONE && open;
  const bool bottom_right =
      causal && (p.mask == ATTN_MASK_BOTTOM_RIGHT ||
                 (p.mask == ATTN_MASK_TOP_LEFT && !group && p.seqlen_q == p.seqlen_k));
  if (!none && !bottom_right) return "";
  if (device.is_gfx950()) return asm_name(bottom_right, 0, group, 0, p.head_size_qk);
  const uint32_t count = device.compute_units;
  if (count != 304 && count != 80 && count != 64) return "";
  return asm_name(bottom_right, p.rounding, group, count == 304 ? 1 : 2);
}

// The reason of a difference; "": there is none.
std::string reason(const Call& call, const Device& device, const std::string& ours,
                   const std::string& theirs) {
  const attn_problem& p = call.problem;
  const bool group = p.mode == ATTN_MODE_GROUP;
  const bool we_take = is_asm(ours);
  if (we_take && theirs.empty()) {
    if (!device.is_gfx950() && (device.compute_units == 228 || device.compute_units == 20)) {
      return "a device that AITER has no kernel for";
    }
    if (p.mask != ATTN_MASK_NONE && p.window_left >= p.seqlen_q + p.seqlen_k) {
      return "a window as wide as the sequences";
    }
    if (p.rounding != 0 && !group && p.seqlen_q <= 128) return "few queries, with a rounding";
    return "";
  }
  if (we_take) return "";
  if (group && p.logits_soft_cap > 0) return "a soft cap, which AITER drops";
  if (device.is_gfx950()) {
    if (p.rounding != 0) return "a rounding that gfx950's kernels do not have";
    if (p.head_size_qk == 192) return "a defect of heads of 192 and 128";
    if (p.mask != ATTN_MASK_NONE && p.seqlen_q > 256) return "a defect of two tiles";
  }
  for (const attn_tensor* t : {&call.args.q, &call.args.k, &call.args.v, &call.args.o}) {
    if (t->stride_batch * p.batch * 2 >= int64_t{1} << 32) return "tensors of 4 GiB";
    if (t->stride_head % 8 != 0) return "strides that are not 16 bytes";
  }
  return "";
}

TEST(AsmTest, RandomCallsAreServedAsAiterServesThem) {
  testing::AsmRandom random(7);
  testing::AsmComparison comparison;
  for (int i = 0; i < 100000; ++i) {
    Shape shape = random.shape({1, 100, 128, 129, 300, 1000, 20000});
    shape.head_size_qk = shape.head_size_v = 128;
    Call call(random.one_in(2), shape);
    attn_problem& p = call.problem;
    random.change(&p);
    random.change_strides(&call.args);
    if (random.one_in(8)) p.head_size_v = random.any32({64, 96, 128});
    if (random.one_in(8)) p.head_size_qk = random.any32({64, 120, 128, 192});
    if (random.one_in(8)) p.logits_soft_cap = 20;
    if (random.one_in(4)) call.args.lse = nullptr;
    const Device device = {random.one_in(3) ? "gfx950" : "gfx942",
                           static_cast<uint32_t>(random.any({304, 80, 64, 228, 20}))};
    const std::string ours = call.chosen(device.arch, device.compute_units);
    const std::string theirs = aiter_object(call, device);
    comparison.add(ours, theirs, p, [&] { return reason(call, device, ours, theirs); });
    if (HasFatalFailure()) return;
  }
  comparison.expect(
      {"a defect of heads of 192 and 128", "a defect of two tiles",
       "a device that AITER has no kernel for", "a rounding that gfx950's kernels do not have",
       "a soft cap, which AITER drops", "a window as wide as the sequences",
       "few queries, with a rounding", "strides that are not 16 bytes", "tensors of 4 GiB"});
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::attention

namespace AITER_ATTN_NAMESPACE::kernels {

const LaunchTable& launch_table() {
  static auto* const builder =
      new testing::TableBuilder({std::begin(testing::kAsmArchs), std::end(testing::kAsmArchs)});
  static const LaunchTable table = attention::make_table(builder);
  return table;
}

}  // namespace AITER_ATTN_NAMESPACE::kernels
