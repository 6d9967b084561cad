// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The choice between Composable Kernel's and AITER's backward kernels, on a launch table that has
// both: a table of calls, AITER's own rules over random calls, and the words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
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
using kernels::MaskShape;
using kernels::Rounding;
using kernels::Row;
using ::testing::AllOf;
using testing::asm_objects;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::is_asm;
using testing::kAsmArchs;
using testing::kAsmRoundings;
using testing::Shape;
using testing::TableBuilder;

constexpr const char* kMasks[] = {"", "_causal", "_causal_br"};

// AITER's names. rounding "" is gfx950's own kernels, and fp16.
std::string asm_name(const std::string& sizes, Dtype dtype, const std::string& mask,
                     const std::string& rounding, const std::string& padding, bool group) {
  return "fmha_bwd_hd" + sizes + "_" + name_of(dtype) + mask + "_a32" + rounding + padding +
         (group ? "_group" : "");
}

struct AsmRow {
  uint16_t size_qk, size_v;
  uint16_t tile_k;
  Dtype dtype;
  int mask, rounding;
  bool pads_heads, group;
  size_t arch;
  bool own;  // of gfx950: not gfx942's, recompiled
  bool whole = false;
};

// With the defects that defects.toml has of it.
void add_asm(TableBuilder* builder, uint32_t number, const AsmRow& r) {
  Row row = {};
  row.head_size_alignment = 8;
  row.tile_seqlen_q = 16;
  row.tile_seqlen_k = r.tile_k;
  row.tile_head_size_qk = r.size_qk;
  row.tile_head_size_v = r.size_v;
  kernels::Traits& t = row.traits;
  t.kind = r.whole ? Kind::kBwdAsmWhole : Kind::kBwdAsm;
  t.dtype = r.dtype;
  t.head_size_qk = r.size_qk;
  t.head_size_v = r.size_v;
  t.group_mode = r.group;
  t.mask_shape = static_cast<MaskShape>(r.mask);
  t.rounding = static_cast<Rounding>(r.rounding);
  t.pad_seqlen_q = t.pad_seqlen_k = !r.whole;
  t.pad_head_size_qk = t.pad_head_size_v = r.pads_heads;
  if (r.whole) row.tile_seqlen_q = row.tile_seqlen_k = 64;
  uint32_t hazards = r.group ? bit(Hazard::kNoQueries) : 0;
  if (r.whole) hazards |= bit(Hazard::kGapsInBatches);
  if (r.own && r.size_qk == 128) {
    hazards |= bit(Hazard::kGapsAfterPaddedHeads);
    if (r.mask != 0) hazards |= bit(Hazard::kTwoTiles);
  }
  std::string sizes = std::to_string(r.size_qk);
  if (r.size_v != r.size_qk) sizes += "_hd" + std::to_string(r.size_v);
  const bool one_rounding = r.own || r.dtype == Dtype::kFp16;
  const std::string name =
      asm_name(sizes, r.dtype, kMasks[r.mask], one_rounding ? "" : kAsmRoundings[r.rounding],
               r.whole        ? ""
               : r.pads_heads ? "_psskddv"
                              : "_pssk",
               r.group);
  builder->add(name + "_" + kAsmArchs[r.arch], row, testing::make_no_launch,
               asm_objects(number, {r.arch}, hazards));
}

// The kernels of kernels/aiter_asm that builds take, in the order of their head sizes.
void add_all_asm(TableBuilder* builder, uint32_t* number) {
  const auto add_family = [&](AsmRow r) {
    for (r.mask = 0; r.mask < (r.whole ? 2 : 3); ++r.mask) {
      r.dtype = Dtype::kBf16;
      for (r.rounding = 0; r.rounding < (r.own ? 1 : 3); ++r.rounding) {
        add_asm(builder, (*number)++, r);
      }
      r.dtype = Dtype::kFp16;
      r.rounding = r.own ? 0 : 2;
      add_asm(builder, (*number)++, r);
    }
  };
  for (const bool group : {false, true}) {
    for (const size_t arch : {1, 2}) add_family({64, 64, 192, {}, 0, 0, false, group, arch, false});
  }
  for (const bool group : {false, true}) {
    add_family({128, 128, 192, {}, 0, 0, true, group, 1, false});
    if (group) add_family({128, 128, 192, {}, 0, 0, false, group, 1, false});
    add_family({128, 128, 256, {}, 0, 0, true, group, 2, true});
  }
  for (const int mask : {0, 1}) {
    for (const Dtype dtype : {Dtype::kBf16, Dtype::kFp16}) {
      add_asm(builder, (*number)++, {192, 128, 192, dtype, mask, 0, false, false, 2, true});
    }
  }
  for (const bool group : {false, true}) {
    for (const size_t arch : {1, 2}) add_family({192, 192, 64, {}, 0, 0, true, group, arch, false});
  }
  add_family({128, 128, 192, {}, 0, 0, false, false, 1, false, true});
}

// Of Composable Kernel, for any size up to 256; delta and conversion also up to 128.
LaunchTable make_table(TableBuilder* builder) {
  uint32_t number = 1;
  const auto add_ck = [&](Kind kind, const std::string& name, kernels::Traits traits,
                          uint16_t size) {
    Row row = {};
    row.head_size_alignment = 1;
    row.tile_seqlen_q = row.tile_seqlen_k = 64;
    row.tile_head_size_qk = kind == Kind::kBwdDotDoO ? 0 : size;
    row.tile_head_size_v = kind == Kind::kBwdConvertDq ? 0 : size;
    row.traits = traits;
    row.traits.kind = kind;
    row.traits.head_size_qk = row.traits.head_size_v = size;
    builder->add(name, row, testing::make_no_launch, asm_objects(number++, {0, 1, 2}));
  };
  const auto each = [](const auto& body) {
    for (const Dtype dtype : {Dtype::kFp16, Dtype::kBf16}) {
      for (const bool group : {false, true}) {
        for (const bool deterministic : {false, true}) {
          kernels::Traits t = {};
          t.dtype = dtype;
          t.group_mode = group;
          t.deterministic = deterministic;
          t.pad_seqlen_q = true;
          body(t, std::string("_") + name_of(dtype) + (group ? "_group" : "_batch") +
                      (deterministic ? "_deterministic" : ""));
        }
      }
    }
  };
  for (const uint16_t size : {128, 256}) {
    each([&](kernels::Traits t, const std::string& name) {
      if (t.deterministic) return;
      t.pad_head_size_v = true;
      add_ck(Kind::kBwdDotDoO, "delta_d" + std::to_string(size) + name, t, size);
    });
  }
  each([&](kernels::Traits t, const std::string& name) {
    t.pad_seqlen_q = false;
    t.pad_head_size_qk = t.pad_head_size_v = true;
    t.head_size_step = 1;
    for (const bool mask : {false, true}) {
      for (const Bias bias : {Bias::kNone, Bias::kElementwise, Bias::kAlibi}) {
        for (const bool dropout : {false, true}) {
          t.mask = mask;
          t.bias = bias;
          t.dropout = dropout;
          add_ck(Kind::kBwdDqDkDv,
                 "ck" + name + (mask ? "_mask" : "") + "_" + name_of(bias) +
                     (dropout ? "_dropout" : ""),
                 t, 256);
        }
      }
    }
  });
  for (const uint16_t size : {128, 256}) {
    each([&](kernels::Traits t, const std::string& name) {
      t.pad_head_size_qk = true;
      add_ck(Kind::kBwdConvertDq, "convert_d" + std::to_string(size) + name, t, size);
    });
  }
  for (const Dtype dtype : {Dtype::kFp16, Dtype::kBf16}) {
    Row row = {};
    row.head_size_alignment = 1;
    row.traits.kind = Kind::kSumHeads;
    row.traits.dtype = dtype;
    builder->add(std::string("sum_heads_") + name_of(dtype), row, testing::make_no_launch,
                 asm_objects(number++, {0, 1, 2}));
  }
  add_all_asm(builder, &number);
  return builder->build("both");
}

// bf16, 128 elements, 300 x 400, causal from the bottom right.
struct Call : testing::AsmCall<attn_bwd_args> {
  explicit Call(bool group = false, const Shape& shape = {2, 8, 2, 300, 400, 128, 128})
      : AsmCall(group, shape) {
    lay_out({&args.q, &args.o, &args.dout, &args.dq}, shape.seqlen_q, shape.heads_q,
            shape.head_size_qk);
    lay_out({&args.k, &args.v, &args.dk, &args.dv}, shape.seqlen_k, shape.heads_k,
            shape.head_size_qk);
  }
};

TEST(AsmBackwardTest, DeltaBeforeAndConversionAfter) {
  EXPECT_THAT(
      Call().all(),
      ElementsAre("delta_d128_bf16_batch", "fmha_bwd_hd128_bf16_causal_br_a32_rtne_psskddv_gfx942",
                  "convert_d128_bf16_batch", "sum_heads_bf16", "sum_heads_bf16"));
  // Composable Kernel has other sizes.
  EXPECT_THAT(Call(true, {2, 4, 4, 300, 400, 192, 192}).all(),
              ElementsAre("delta_d256_bf16_group",
                          "fmha_bwd_hd192_bf16_causal_br_a32_rtne_psskddv_group_gfx942",
                          "convert_d256_bf16_group"));
}

void set_sizes(Call* call, int32_t qk, int32_t v) {
  const Shape shape = {2, 8, 2, 300, 400, qk, v};
  *call = Call(is_group(call->problem), shape);
}

TEST(AsmBackwardTest, ATableOfCalls) {
  const char* const causal = "fmha_bwd_hd128_bf16_causal_br_a32_rtne_psskddv_gfx942";
  const char* const top_left = "fmha_bwd_hd128_bf16_causal_a32_rtne_psskddv_gfx942";
  const char* const plain = "fmha_bwd_hd128_bf16_a32_rtne_psskddv_gfx942";
  const char* const ck = "ck_bf16_batch_mask_none";
  const testing::AsmCase<Call> cases[] = {
      {"causal", [](Call*) {}, causal, causal},
      {"from the top left", [](Call* c) { c->problem.mask = ATTN_MASK_TOP_LEFT; }, top_left,
       top_left},
      {"equal lengths", [](Call* c) { c->problem.seqlen_k = 300; }, top_left, top_left},
      {"no mask", [](Call* c) { c->remove_mask(); }, plain, plain},
      {"window", [](Call* c) { c->problem.window_left = 40; }, ck, ""},
      {"window as wide as all lengths", [](Call* c) { c->problem.window_left = 700; }, causal,
       causal},
      {"future keys", [](Call* c) { c->problem.window_right = 1; }, ck, ""},
      {"fp16 is rounded toward zero", [](Call* c) { c->problem.dtype = ATTN_DTYPE_FP16; },
       "ck_fp16_batch_mask_none", "fmha_bwd_hd128_fp16_causal_br_a32_psskddv_gfx942"},
      {"head size 64", [](Call* c) { set_sizes(c, 64, 64); },
       "fmha_bwd_hd64_bf16_causal_br_a32_rtne_pssk_gfx942",
       "fmha_bwd_hd64_bf16_causal_br_a32_rtne_pssk_gfx942"},
      {"head size 72", [](Call* c) { set_sizes(c, 72, 72); }, causal, causal},
      {"head size 136", [](Call* c) { set_sizes(c, 136, 136); },
       "fmha_bwd_hd192_bf16_causal_br_a32_rtne_psskddv_gfx942",
       "fmha_bwd_hd192_bf16_causal_br_a32_rtne_psskddv_gfx942"},
      {"head size 32", [](Call* c) { set_sizes(c, 32, 32); }, ck, ""},
      {"head size 200", [](Call* c) { set_sizes(c, 200, 200); }, ck, ""},
      {"head size 100", [](Call* c) { set_sizes(c, 100, 100); }, ck, ""},
      {"two head sizes", [](Call* c) { c->problem.head_size_v = 64; }, ck, ""},
      {"192 and 128", [](Call* c) { set_sizes(c, 192, 192), c->problem.head_size_v = 128; }, ck,
       ""},
      {"deterministic", [](Call* c) { c->args.deterministic = 1; },
       "ck_bf16_batch_deterministic_mask_none", ""},
      {"bias", [](Call* c) { c->problem.bias = ATTN_BIAS_ELEMENTWISE; },
       "ck_bf16_batch_mask_elementwise", ""},
      {"ALiBi", [](Call* c) { c->problem.bias = ATTN_BIAS_ALIBI; }, "ck_bf16_batch_mask_alibi", ""},
      {"dropout", [](Call* c) { c->problem.dropout_p = .5f; }, "ck_bf16_batch_mask_none_dropout",
       ""},
      {"16 queries", [](Call* c) { c->problem.seqlen_q = 16; }, ck, causal},
      {"17 queries", [](Call* c) { c->problem.seqlen_q = 17; }, causal, causal},
      {"4 GiB of q", [](Call* c) { c->args.q.stride_batch = int64_t{1} << 30; }, ck, ""},
      {"4 GiB of sums of dq", [](Call* c) { *c = Call(false, {2, 64, 2, 1 << 16, 400, 128, 128}); },
       ck, ""},
      {"4 GiB of dk for all query heads",
       [](Call* c) { *c = Call(false, {2, 64, 2, 300, 1 << 17, 128, 128}); }, ck, ""},
      {"strides that are not 16 bytes", [](Call* c) { c->args.dout.stride_head = 132; }, ck, ""},
      {"rows of v that overlap",
       [](Call* c) { c->args.v.stride_seq = 120, c->args.v.stride_head = 400 * 128; }, ck, ""},
  };
  for (const auto& each : cases) expect_served(each);
}

// The kernels for whole tiles, where the places that they make up are right.
TEST(AsmBackwardTest, WholeTiles) {
  const auto chosen = [](Shape shape, const auto& change, const char* arch = "gfx942") {
    Call call(false, shape);
    change(&call);
    return call.chosen(arch);
  };
  const auto nothing = [](Call*) {};
  const Shape shape = {2, 8, 2, 320, 320, 128, 128}, as_many = {2, 8, 8, 320, 320, 128, 128};
  const char* const whole = "fmha_bwd_hd128_bf16_causal_a32_rtne_gfx942";
  const char* const general = "fmha_bwd_hd128_bf16_causal_a32_rtne_psskddv_gfx942";
  EXPECT_EQ(chosen(shape, nothing), whole);
  EXPECT_EQ(chosen(as_many, nothing), whole);
  EXPECT_EQ(chosen(shape, [](Call* c) { c->remove_mask(); }),
            "fmha_bwd_hd128_bf16_a32_rtne_gfx942");
  EXPECT_EQ(chosen(shape, [](Call* c) { c->args = {c->args.struct_size}; }), whole) << "a plan";
  EXPECT_EQ(chosen({2, 8, 2, 330, 330, 128, 128}, nothing), general);
  EXPECT_EQ(chosen({2, 8, 2, 320, 320, 120, 120}, nothing), general);
  EXPECT_EQ(chosen({2, 8, 2, 320, 384, 128, 128}, nothing),
            "fmha_bwd_hd128_bf16_causal_br_a32_rtne_psskddv_gfx942");
  const auto gap = [](Call* c) { c->args.q.stride_batch = c->args.dout.stride_batch += 1024; };
  EXPECT_EQ(chosen(shape, gap), general) << "defect W";
  EXPECT_EQ(chosen({1, 8, 2, 320, 320, 128, 128}, gap), whole);
  EXPECT_EQ(chosen(shape, [](Call* c) { c->args.dout.stride_seq += 8; }), general);
  EXPECT_EQ(chosen(shape, [](Call* c) { c->args.v.stride_seq += 8; }), general);
  // dk and dv of all query heads are contiguous until they are summed.
  const auto gap_of_k = [](Call* c) { c->args.k.stride_head = c->args.v.stride_head = 136; };
  EXPECT_EQ(chosen(shape, gap_of_k), general);
  EXPECT_EQ(chosen(as_many, gap_of_k), general);
  EXPECT_EQ(chosen(as_many,
                   [](Call* c) {
                     for (attn_tensor* t : {&c->args.k, &c->args.v, &c->args.dk, &c->args.dv}) {
                       t->stride_head = 136;
                     }
                   }),
            whole);
  EXPECT_EQ(chosen(as_many, [](Call* c) { c->args.dk.stride_batch += 1024; }), general);
  // AITER names such kernels for gfx950 and has none.
  EXPECT_EQ(chosen({2, 8, 2, 192, 192, 128, 128}, nothing, "gfx950"),
            "fmha_bwd_hd128_bf16_causal_a32_psskddv_gfx950");
}

TEST(AsmBackwardTest, GroupMode) {
  Call call(true);
  EXPECT_EQ(call.chosen(), "fmha_bwd_hd128_bf16_causal_br_a32_rtne_pssk_group_gfx942");
  call.problem.mask = ATTN_MASK_TOP_LEFT;
  EXPECT_EQ(call.chosen(), "fmha_bwd_hd128_bf16_causal_a32_rtne_pssk_group_gfx942");
  // Lengths are on the device: the corners differ, and few queries are none too few.
  EXPECT_EQ(Call(true, {2, 8, 2, 16, 16, 128, 128}).chosen(),
            "fmha_bwd_hd128_bf16_causal_br_a32_rtne_pssk_group_gfx942");
  call.remove_mask();
  EXPECT_EQ(call.chosen(), "fmha_bwd_hd128_bf16_a32_rtne_pssk_group_gfx942");
  call.problem.kernels = ATTN_KERNELS_CK;
  EXPECT_EQ(call.chosen(), "ck_bf16_group_none");
  EXPECT_EQ(Call(true, {2, 8, 2, 300, 400, 104, 104}).chosen(),
            "fmha_bwd_hd128_bf16_causal_br_a32_rtne_psskddv_group_gfx942");
}

TEST(AsmBackwardTest, ARoundingNeedsAsm) {
  Call call;
  call.problem.rounding = ATTN_ROUNDING_NEAREST_AWAY;
  EXPECT_EQ(call.chosen(), "fmha_bwd_hd128_bf16_causal_br_a32_rtna_psskddv_gfx942");
  call.problem.rounding = ATTN_ROUNDING_TOWARD_ZERO;
  EXPECT_EQ(call.chosen(), "fmha_bwd_hd128_bf16_causal_br_a32_rtz_psskddv_gfx942");
  call.problem.dtype = ATTN_DTYPE_FP16;
  EXPECT_EQ(call.chosen(), "fmha_bwd_hd128_fp16_causal_br_a32_psskddv_gfx942");
  call.problem.rounding = ATTN_ROUNDING_NEAREST_AWAY;
  EXPECT_THAT(call.explained(ATTN_ERROR_UNSUPPORTED),
              HasSubstr("which rounding asks for, was passed over: its kernel rounds "
                        "probabilities toward zero"));
}

TEST(AsmBackwardTest, ExplanationsTellWhy) {
  Call call;
  EXPECT_THAT(call.explained(),
              AllOf(HasSubstr("the causal mask from the bottom right"),
                    HasSubstr("bwd_asm: fmha_bwd_hd128_bf16_causal_br_a32_rtne_psskddv_gfx942\n"),
                    HasSubstr("  provider asm\n"),
                    HasSubstr("ck passed over: asm is taken where AITER takes it\n")));
  call.args.deterministic = 1;
  EXPECT_THAT(call.explained(), HasSubstr("asm passed over: its kernels add to dq in any order, "
                                          "and the call is deterministic\n"));
  call.problem.kernels = ATTN_KERNELS_ASM;
  EXPECT_THAT(call.explained(ATTN_ERROR_UNSUPPORTED),
              HasSubstr("which kernels (asm) asks for, was passed over: its kernels add to dq in "
                        "any order"));
  call.args.deterministic = 0;
  call.problem.kernels = ATTN_KERNELS_FASTEST;
  call.problem.dtype = ATTN_DTYPE_FP16;
  EXPECT_THAT(call.explained(),
              HasSubstr("asm passed over: its kernel rounds probabilities toward zero\n"));
  call.problem.dtype = ATTN_DTYPE_BF16;
  EXPECT_THAT(call.explained(ATTN_OK, "gfx90a"),
              HasSubstr("asm passed over: it has no kernels for gfx90a\n"));
}

// Calls that may meet a defect are Composable Kernel's, unless asm is asked for by name.
TEST(AsmBackwardTest, Gfx950) {
  const auto expect = [](Call call, const char* fastest, const char* by_name) {
    EXPECT_EQ(call.chosen("gfx950"), fastest) << by_name;
    call.problem.kernels = ATTN_KERNELS_ASM;
    EXPECT_EQ(call.chosen("gfx950"), by_name);
  };
  const auto without_mask = [](Call call) {
    call.remove_mask();
    return call;
  };
  const char* const ck = "ck_bf16_batch_mask_none";
  const char* const causal = "fmha_bwd_hd128_bf16_causal_br_a32_psskddv_gfx950";
  const char* const plain = "fmha_bwd_hd128_bf16_a32_psskddv_gfx950";
  const char* const plain_group = "fmha_bwd_hd128_bf16_a32_psskddv_group_gfx950";
  expect(Call(false, {2, 8, 2, 300, 256, 128, 128}), causal, causal);
  expect(Call(false, {2, 8, 2, 300, 257, 128, 128}), ck, causal);
  expect(without_mask(Call()), plain, plain);
  expect(without_mask(Call(true)), plain_group, plain_group);
  // Heads that are smaller than the kernel's.
  expect(without_mask(Call(false, {2, 8, 2, 300, 400, 120, 120})), "ck_bf16_batch_none", plain);
  // Sizes for which AITER does not take them.
  expect(Call(false, {2, 8, 2, 300, 400, 64, 64}), ck,
         "fmha_bwd_hd64_bf16_causal_br_a32_rtne_pssk_gfx950");
  expect(Call(false, {2, 8, 2, 300, 400, 192, 192}), ck,
         "fmha_bwd_hd192_bf16_causal_br_a32_rtne_psskddv_gfx950");
  const char* const two_sizes = "fmha_bwd_hd192_hd128_bf16_a32_pssk_gfx950";
  expect(without_mask(Call(false, {2, 8, 2, 300, 400, 192, 128})), two_sizes, two_sizes);
  expect(Call(false, {2, 8, 2, 300, 300, 192, 128}), ck,
         "fmha_bwd_hd192_hd128_bf16_causal_a32_pssk_gfx950");
  expect(Call(false, {2, 8, 2, 300, 400, 192, 128}), ck, "");
  // They round to fp16 as the hardware does: to nearest.
  Call fp16 = without_mask(Call());
  fp16.problem.dtype = ATTN_DTYPE_FP16;
  expect(fp16, "fmha_bwd_hd128_fp16_a32_psskddv_gfx950", "fmha_bwd_hd128_fp16_a32_psskddv_gfx950");
  EXPECT_THAT(Call().explained(ATTN_OK, "gfx950"),
              HasSubstr("asm passed over: results of fmha_bwd_hd128_bf16_causal_br_a32_psskddv_"
                        "gfx950 may be wrong where a workgroup takes two tiles"));
}

// ---- AITER's own choice

// The object that AITER's backward selects on gfx942 with its default, sums of dq in float32, by
// its Python checks (mha.py) and those of its C++ (fmha_bwd_v3); "": its choice is Composable
// Kernel.
std::string object_of_gfx942(const Call& call) {
  const attn_problem& p = call.problem;
  const bool group = p.mode == ATTN_MODE_GROUP;
  const int32_t size = p.head_size_qk;
  if (p.bias != ATTN_BIAS_NONE || p.dropout_p > 0 || call.args.deterministic) return "";
  if (size != p.head_size_v || size < 64 || size > 192 || size % 8 != 0) return "";
  if (!group && p.seqlen_q <= 16) return "";
  const bool fp16 = p.dtype == ATTN_DTYPE_FP16;
  const Dtype dtype = fp16 ? Dtype::kFp16 : Dtype::kBf16;
  const std::string rounding = fp16 ? "" : kAsmRoundings[p.rounding];
  const bool causal = p.window_left == -1 && p.window_right == 0;
  const bool window = p.window_left > 0 || p.window_right > 0;
  std::string mask;
  if (p.mask != ATTN_MASK_NONE) {
    if (window) {
      if (group || size <= 64 || size > 128) return "";
      return asm_name("128", dtype, "_swa", rounding, "_psskddv", false);
    }
    if (!causal) return "";
    const bool from_top = p.mask == ATTN_MASK_TOP_LEFT || (!group && p.seqlen_q == p.seqlen_k);
    mask = from_top ? "_causal" : "_causal_br";
  }
  if (size == 64) return asm_name("64", dtype, mask, rounding, "_pssk", group);
  if (size > 128) return asm_name("192", dtype, mask, rounding, "_psskddv", group);
  if (group) {
    return asm_name("128", dtype, mask, rounding, size == 128 ? "_pssk" : "_psskddv", true);
  }
  const auto same = [](const attn_tensor& a, const attn_tensor& b) {
    return a.stride_batch == b.stride_batch && a.stride_seq == b.stride_seq &&
           a.stride_head == b.stride_head;
  };
  const attn_bwd_args& a = call.args;
  // dk and dv of all query heads are contiguous.
  const bool whole = size == 128 && p.seqlen_q == p.seqlen_k && p.seqlen_k % 64 == 0 &&
                     same(a.q, a.dout) && same(a.k, a.v) && a.k.stride_head == 128 &&
                     a.k.stride_batch == int64_t{p.seqlen_k} * p.heads_k * 128;
  return asm_name("128", dtype, mask, rounding, whole ? "" : "_psskddv", false);
}

// The same on gfx950, where the rounding does not matter, and one block of keys is summed in 16
// bits.
std::string object_of_gfx950(const Call& call) {
  const attn_problem& p = call.problem;
  const bool group = p.mode == ATTN_MODE_GROUP;
  const int32_t size = p.head_size_qk;
  const bool window = p.window_left > 0 || p.window_right > 0;
  if (p.bias != ATTN_BIAS_NONE || p.dropout_p > 0) return "";
  if (!group && p.seqlen_q <= 16) return "";
  const Dtype dtype = p.dtype == ATTN_DTYPE_FP16 ? Dtype::kFp16 : Dtype::kBf16;
  if (!group && size == 192 && p.head_size_v == 128) {
    const bool taken = p.mask == ATTN_MASK_NONE && !call.args.deterministic;
    return taken ? asm_name("192_hd128", dtype, "", "", "_pssk", false) : "";
  }
  if (size != p.head_size_v || size <= 64 || size > 128 || size % 8 != 0) return "";
  const bool one_block = !group && p.seqlen_k <= 256 && !window;
  if (call.args.deterministic && !one_block) return "";
  std::string mask;
  if (p.mask != ATTN_MASK_NONE) {
    if (window) {
      const std::string rounding = dtype == Dtype::kFp16 ? "" : kAsmRoundings[p.rounding];
      return group ? "" : asm_name("128", dtype, "_swa", rounding, "_psskddv", false);
    }
    if (p.window_left != -1 || p.window_right != 0) return "";
    mask = p.mask == ATTN_MASK_TOP_LEFT ? "_causal" : "_causal_br";
  }
  std::string name = asm_name("128", dtype, mask, "", "_psskddv", group);
  if (one_block) name.replace(name.find("_a32"), 4, "_a16");
  return name;
}

std::string aiter_object(const Call& call, const std::string& arch) {
  const std::string name = arch == "gfx942" ? object_of_gfx942(call) : object_of_gfx950(call);
  return name.empty() ? name : name + "_" + arch;
}

// Whether a name is another one without a part of it.
bool same_without(std::string name, const std::string& part, const std::string& other) {
  const size_t at = name.find(part);
  return at != std::string::npos && name.erase(at, part.size()) == other;
}

// The reason of a difference; "": there is none.
std::string reason(const Call& call, const std::string& ours, std::string theirs) {
  const attn_problem& p = call.problem;
  if (is_asm(ours)) {
    if (p.window_left >= p.seqlen_q + p.seqlen_k) return "a window as wide as the sequences";
    const bool square = p.mode == ATTN_MODE_BATCH && p.seqlen_q == p.seqlen_k;
    const size_t corner = theirs.find("_br");
    if (square && corner != std::string::npos) theirs.erase(corner, 3);
    const size_t width = theirs.find("_a16");
    if (width != std::string::npos) theirs.replace(width, 4, "_a32");
    if (width != std::string::npos && theirs == ours) return "sums of 16 bits";
    const bool has_one = p.batch == 1 || p.heads_k == 1;
    if (has_one && same_without(theirs, "_psskddv", ours)) {
      return "a stride of the only batch or head";
    }
    if (same_without(ours, "_psskddv", theirs)) {
      const bool gaps = call.args.q.stride_batch != int64_t{p.seqlen_q} * p.heads_q * 128;
      return p.batch > 1 && gaps ? "gaps between batches (defect W)" : "";
    }
    if (theirs.empty() && p.rounding != 0) return "a rounding, which asks for asm";
    return "";
  }
  if (theirs.find("_a16") != std::string::npos && call.args.deterministic) {
    return "sums of 16 bits";
  }
  if (p.mask != ATTN_MASK_NONE && (p.window_left > 0 || p.window_right > 0)) {
    return "windows (defect S)";
  }
  const bool gfx942 = theirs.find("_gfx942") != std::string::npos;
  if (gfx942 && p.dtype == ATTN_DTYPE_FP16 && p.rounding != ATTN_ROUNDING_TOWARD_ZERO) {
    return "fp16, which AITER rounds toward zero";
  }
  if (!gfx942 && p.rounding != 0) return "a rounding that gfx950's kernels do not have";
  if (!gfx942 && p.mask != ATTN_MASK_NONE && p.seqlen_k > 256) return "two tiles (defect Q)";
  if (!gfx942 && p.head_size_qk < 128) return "smaller heads (defect T)";
  for (const attn_tensor* t : {&call.args.q, &call.args.k, &call.args.v, &call.args.dout}) {
    if (t->stride_batch * p.batch * 2 >= int64_t{1} << 32) return "tensors of 4 GiB";
    if (t->stride_head % 8 != 0) return "strides that are not 16 bytes";
  }
  const int64_t rows = p.mode == ATTN_MODE_GROUP ? p.total_q : int64_t{p.batch} * p.seqlen_q;
  if (rows * p.heads_q * p.head_size_qk * 4 >= int64_t{1} << 32) return "tensors of 4 GiB";
  return "";
}

TEST(AsmBackwardTest, RandomCallsAreServedAsAiterServesThem) {
  testing::AsmRandom random(11);
  testing::AsmComparison comparison;
  for (int i = 0; i < 100000; ++i) {
    Shape shape = random.shape({1, 16, 17, 128, 300, 1024, 20000});
    shape.head_size_qk = shape.head_size_v =
        random.any32({32, 64, 64, 72, 96, 100, 104, 128, 128, 136, 192, 200});
    Call call(random.one_in(2), shape);
    attn_problem& p = call.problem;
    random.change(&p);
    random.change_strides(&call.args);
    if (random.one_in(8)) p.head_size_v = random.any32({32, 64, 128});
    if (random.one_in(8)) call.args.deterministic = 1;
    if (random.one_in(8)) call.args.q.stride_batch = call.args.dout.stride_batch += 1024;
    const char* const arch = random.one_in(2) ? "gfx950" : "gfx942";
    const std::string ours = call.chosen(arch), theirs = aiter_object(call, arch);
    comparison.add(ours, theirs, p, [&] { return reason(call, ours, theirs); });
    if (HasFatalFailure()) return;
  }
  comparison.expect({"a rounding that gfx950's kernels do not have",
                     "a rounding, which asks for asm", "a stride of the only batch or head",
                     "a window as wide as the sequences", "fp16, which AITER rounds toward zero",
                     "gaps between batches (defect W)", "smaller heads (defect T)",
                     "strides that are not 16 bytes", "sums of 16 bits", "tensors of 4 GiB",
                     "two tiles (defect Q)", "windows (defect S)"});
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
