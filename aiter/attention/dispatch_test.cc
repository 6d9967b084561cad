// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Selection and its explanations, on a launch table by hand.
#include "aiter/attention/dispatch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "aiter/attention/explain.h"
#include "aiter/attention/passes/passes.h"
#include "aiter/attn.h"
#include "kernels/archs/archs.h"
#include "tests/support/attention/problems.h"
#include "tests/support/attention/table_builder.h"
#include "tests/support/attention/test_launch_table.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using namespace testing;
using kernels::kTraits;
using kernels::launch_table;
using kernels::Row;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

float some_lse;

// Forward with a mask and lse, or backward of it; 256 x 256, head size 128, bf16, batch mode.
Request request(const Pass& pass = forward_pass()) {
  Problem p = {};
  static_cast<attn_problem&>(p) = make_problem(Shape{1, 4, 4, 256, 256, 128, 128}, ATTN_DTYPE_BF16);
  p.pass = &pass;
  p.mask = ATTN_MASK_BOTTOM_RIGHT;
  p.lse = &some_lse;
  return make_request(p, "gfx942");
}

// The names of the plan's instances.
std::vector<std::string> chosen(const Request& r) {
  std::vector<std::string> names;
  for (const Step& step : dispatch(launch_table(), r)) {
    names.push_back(step.row ? std::string(launch_table().name(*step.row)) : "none");
  }
  return names;
}

std::string refusal(const Request& r) {
  const Plan plan = dispatch(launch_table(), r);
  EXPECT_FALSE(plan.is_complete());
  return explain_unserved(launch_table(), r, plan);
}

TEST(DispatchTest, FewestBoundsChecksFirst) {
  Request r = request();
  EXPECT_THAT(chosen(r), ElementsAre("fwd_d128_bf16_batch_mask_npad"));
  r.seqlen_k = 255;
  EXPECT_THAT(chosen(r), ElementsAre("fwd_d128_bf16_batch_mask_psk"));
  r.seqlen_k = 0;
  EXPECT_THAT(chosen(r), ElementsAre("fwd_d128_bf16_batch_mask_psk"));
}

TEST(DispatchTest, SmallestBucketFirst) {
  Request r = request();
  r.head_size_qk = r.head_size_v = 64;
  EXPECT_THAT(chosen(r), ElementsAre("fwd_d64_bf16_batch_mask_npad"));
  r.head_size_v = 72;
  EXPECT_THAT(chosen(r), ElementsAre("fwd_d128_bf16_batch_mask_npad"));
  r.head_size_qk = r.head_size_v = 8;
  EXPECT_THAT(chosen(r), ElementsAre("fwd_d64_bf16_batch_mask_npad"));
}

// Multiples of the tiles, where nothing but the padded instance is there.
TEST(DispatchTest, APaddedInstanceServesMultiples) {
  EXPECT_THAT(chosen(request(backward_pass())),
              ElementsAre("dot_do_o_d128_bf16_batch", "dq_dk_dv_d128_bf16_batch_mask",
                          "convert_dq_d128_bf16_batch"));
}

TEST(DispatchTest, BackwardKernelsComeFromOneBucket) {
  Request r = request(backward_pass());
  r.head_size_v = 64;
  EXPECT_THAT(chosen(r),
              ElementsAre("dot_do_o_d128_bf16_batch_pd", "dq_dk_dv_d128_bf16_batch_mask_pd",
                          "convert_dq_d128_bf16_batch"));
}

// The 64 bucket has no padded heads in backward: 56 is served by 128.
TEST(DispatchTest, LargerBucketsAreTried) {
  Request r = request(backward_pass());
  r.head_size_qk = r.head_size_v = 56;
  EXPECT_EQ(chosen(r)[1], "dq_dk_dv_d128_bf16_batch_mask_pd");
}

TEST(DispatchTest, SharedKeyHeadsAreSummedTwice) {
  Request r = request(backward_pass());
  r.sum_heads = true;
  const std::vector<std::string> names = chosen(r);
  ASSERT_EQ(names.size(), 5u);
  EXPECT_EQ(names[3], "attn_sum_heads_bf16");
  EXPECT_EQ(names[4], "attn_sum_heads_bf16");
}

TEST(DispatchTest, OneKernelMakesAllDropoutMasks) {
  Request r = request(dropout_mask_pass());
  for (const int32_t size : {8, 64, 500}) {
    r.head_size_qk = r.head_size_v = size;
    EXPECT_THAT(chosen(r), ElementsAre("attn_dropout_mask_u8"));
    r.traits.group_mode = !r.traits.group_mode;
  }
}

TEST(DispatchTest, ASumOfTheBiassGradientIsTheLast) {
  Request r = request(backward_pass());
  r.sum_bias = true;
  EXPECT_EQ(chosen(r).size(), 4u);
  EXPECT_EQ(chosen(r)[3], "attn_sum_heads_bf16");
  r.sum_heads = true;
  EXPECT_EQ(chosen(r).size(), 6u);
}

// One trait after the other is turned away from the request's: the row does not serve,
// and the trait is named. Dispatch by the index finds no row with it either.
TEST(DispatchTest, EveryExactTraitIsMatched) {
  const Row& row = test_row("fwd_d128_bf16_batch_mask_npad");
  EXPECT_EQ(mismatch(launch_table(), row, request()).reason, Mismatch::kNone);
  int exact = 0;
  for (size_t i = 0; i < std::size(kTraits); ++i) {
    const kernels::TraitInfo& trait = kTraits[i];
    if (trait.match != kernels::Match::kExact || !trait.of(kernels::Kind::kFwd)) continue;
    Request r = request();
    auto* const value = reinterpret_cast<unsigned char*>(&r.traits) + trait.offset;
    *value = *value == 1 ? 0 : 1;
    const Mismatch why = mismatch(launch_table(), row, r);
    EXPECT_EQ(why.reason, Mismatch::kTrait) << i;
    EXPECT_EQ(why.trait, i) << i;
    for (const Step& step : dispatch(launch_table(), r)) EXPECT_NE(step.row, &row) << i;
    ++exact;
  }
  EXPECT_GE(exact, 8);
}

// Over a cache with lse: 2 sequences of 1 query, 8 heads of 64, fp16, room for 4096 keys.
Request cache_request(int32_t page_size = 0) {
  static constexpr int32_t kLengths[2] = {};
  Problem p = {};
  static_cast<attn_problem&>(p) = make_problem(Shape{2, 8, 4, 1, 4096, 64, 64}, ATTN_DTYPE_FP16);
  p.pass = &kvcache_pass();
  p.lse = &some_lse;
  p.cache.page_size = page_size;
  p.cache.seqlens_k = kLengths;
  return make_request(p, "gfx942");
}

TEST(DispatchTest, PartsOfTheKeysAreCombined) {
  Request r = cache_request();
  EXPECT_THAT(chosen(r),
              ElementsAre("fwd_splitkv_d64_fp16_batch_nmask_psk", "combine_d64_fp16_batch_lse"));
  EXPECT_EQ(dispatch(launch_table(), r).splits, 7);
  EXPECT_EQ(most_parts(launch_table(), r), 7);
  r.splits = 3;
  EXPECT_EQ(dispatch(launch_table(), r).splits, 3);
  r.splits = 0;
  r.seqlen_k = 100;  // two tiles
  EXPECT_EQ(dispatch(launch_table(), r).splits, 2);
  r.seqlen_q = 64 * 40;
  r.query_rows = 2 * r.seqlen_q;
  EXPECT_EQ(dispatch(launch_table(), r).splits, 1);
  EXPECT_EQ(chosen(r)[1], "combine_d64_fp16_batch_lse") << "there is always something to combine";
  r.traits.lse = false;
  r.traits.group_mode = true;
  EXPECT_THAT(chosen(r),
              ElementsAre("fwd_splitkv_d64_fp16_group_nmask_psk", "combine_d64_fp16_group_nlse"));
}

// 5 sequences, of which one is long.
TEST(DispatchTest, ShortSequencesOfAGroupDoNotCountAsLong) {
  Request r = cache_request();
  r.traits.group_mode = true;
  r.batch = 5;
  r.seqlen_q = 640;
  r.query_rows = 644;
  EXPECT_EQ(dispatch(launch_table(), r).splits, 4);
  r.traits.group_mode = false;
  r.query_rows = 3200;
  EXPECT_EQ(dispatch(launch_table(), r).splits, 3);
}

// Lengths that only the device knows may not fill the tiles.
TEST(DispatchTest, LengthsOnTheDeviceNeedBoundsChecks) {
  Request r = cache_request();
  EXPECT_EQ(chosen(r)[0], "fwd_splitkv_d64_fp16_batch_nmask_psk");
  r.lengths_on_device = false;
  EXPECT_EQ(chosen(r)[0], "fwd_splitkv_d64_fp16_batch_nmask_npad");
  r.seqlen_k = 4095;
  EXPECT_EQ(chosen(r)[0], "fwd_splitkv_d64_fp16_batch_nmask_psk");
}

// The combining kernel has no tile of heads that would tell that it does not serve.
TEST(DispatchTest, PartsAreCombinedWithTheirOwnBoundsChecks) {
  Request r = cache_request();
  r.head_size_qk = r.head_size_v = 72;
  EXPECT_THAT(chosen(r), ElementsAre("fwd_splitkv_d128_fp16_batch_nmask_psk_pd",
                                     "combine_d128_fp16_batch_lse_pd"));
  r.head_size_qk = r.head_size_v = 128;
  EXPECT_THAT(chosen(r),
              ElementsAre("fwd_splitkv_d128_fp16_batch_nmask_psk", "combine_d128_fp16_batch_lse"));
}

TEST(DispatchTest, PagesThatAreNotSplitHaveAKernelOfTheirOwn) {
  Request r = cache_request(256);
  r.head_size_qk = r.head_size_v = 128;
  r.traits.lse = false;
  EXPECT_THAT(chosen(r), ElementsAre("fwd_splitkv_d128_fp16_batch_nmask_paged_psk",
                                     "combine_d128_fp16_batch_nlse"));
  r.splits = 1;
  EXPECT_THAT(chosen(r), ElementsAre("fwd_pagedkv_d128_fp16_batch_nmask"));
  EXPECT_EQ(dispatch(launch_table(), r).splits, 0) << "it needs no workspace";
  EXPECT_EQ(most_parts(launch_table(), r), 0);
  r.splits = 0;
  r.batch = 100;
  EXPECT_THAT(chosen(r), ElementsAre("fwd_pagedkv_d128_fp16_batch_nmask"));
  r.traits.lse = true;
  EXPECT_THAT(chosen(r), ElementsAre("fwd_splitkv_d128_fp16_batch_nmask_paged_psk",
                                     "combine_d128_fp16_batch_lse"));
  r.traits.lse = false;
  r.page_size = 192;
  r.splits = 3;
  EXPECT_THAT(refusal(r),
              HasSubstr("The nearest, fwd_splitkv_d128_fp16_batch_nmask_paged_psk_pd, is for "
                        "pages of a multiple of 128 keys."));
  EXPECT_THAT(
      refusal(r),
      HasSubstr("no fwd_splitkv, fwd_splitkv_combine kernel in this build for "
                "fp16, head size 128, batch mode, no mask, lse not wanted, keys "
                "and values in pages, pages of 192, 3 splits, seqlen 1 x 4096, on gfx942."));
}

TEST(DispatchTest, OnlyTheKernelOfPagesLeavesSequencesOut) {
  Request r = cache_request(128);
  r.head_size_qk = r.head_size_v = 128;
  r.traits.group_mode = true;
  r.traits.lse = false;
  r.traits.skip_min_seqlen_q = true;
  EXPECT_THAT(chosen(r), ElementsAre("fwd_pagedkv_d128_fp16_group_nmask_skip"));
  r.traits.lse = true;
  EXPECT_THAT(refusal(r), HasSubstr("no fwd_pagedkv kernel in this build"));
}

TEST(DispatchTest, RefusalsNameTheNearestAndWhatIsThere) {
  Request r = request();
  r.traits.lse = false;
  std::string text = refusal(r);
  EXPECT_THAT(text, HasSubstr("no fwd kernel in this build for bf16, head size 128, batch mode, "
                              "a mask, lse not wanted, seqlen 256 x 256, on gfx942"));
  EXPECT_THAT(text, HasSubstr("is for lse wanted."));
  EXPECT_THAT(text, HasSubstr("In the build: bf16, fp16, fp8, fp8bf16, fp8fp32; head sizes up to "
                              "64, 128; batch, group mode"));
  EXPECT_THAT(text, HasSubstr("--//kernels:variants=test"));

  r = request();
  r.traits.bias = kernels::Bias::kAlibi;
  r.traits.dropout = true;
  text = refusal(r);
  EXPECT_THAT(text, HasSubstr("a mask, ALiBi, lse wanted, dropout, seqlen"));
  EXPECT_THAT(text, HasSubstr("is for no bias."));

  r = request();
  r.head_size_qk = 192;
  text = refusal(r);
  EXPECT_THAT(text, HasSubstr("head sizes 192 (q, k) and 128 (v)"));
  EXPECT_THAT(text, HasSubstr("head size 128 at most"));

  r = request();
  r.head_size_qk = 100;
  EXPECT_THAT(refusal(r), HasSubstr("is for head sizes in multiples of 8 (q, k) and 8 (v)"));

  r = request(backward_pass());
  r.head_size_qk = 200;
  EXPECT_THAT(refusal(r), HasSubstr("no bwd_dot_do_o, bwd_dq_dk_dv, bwd_convert_dq kernel"));

  // Greater than any 16-bit trait.
  r = request();
  r.head_size_qk = 65536 + 64;
  EXPECT_THAT(refusal(r), HasSubstr("head sizes 65600 (q, k) and 128 (v)"));
}

struct Unserved {
  const char* what;
  void (*change)(Request*);
  const char* set;  // NULL: none
};

// Forward of 256 x 256, head size 128, bf16, batch mode, with a mask and lse, and a change.
constexpr Unserved kUnserved[] = {
    {"no lse", [](Request* r) { r->traits.lse = false; }, "inference"},
    {"dropout without lse", [](Request* r) { r->traits.lse = false, r->traits.dropout = true; },
     "jax"},
    {"dropout in group mode",
     [](Request* r) {
       r->traits.dropout = true, r->traits.group_mode = true, r->head_size_qk = 200;
     },
     "te"},
    {"ALiBi and dropout",
     [](Request* r) { r->traits.bias = kernels::Bias::kAlibi, r->traits.dropout = true; }, "te"},
    {"a bias in group mode",
     [](Request* r) {
       r->traits.bias = kernels::Bias::kElementwise, r->traits.group_mode = true;
       r->traits.dropout = true;
     },
     "full"},
    {"a soft cap", [](Request* r) { r->traits.lse = false, r->traits.logits_soft_cap = true; },
     "inference"},
    {"a soft cap and dropout",
     [](Request* r) { r->traits.logits_soft_cap = r->traits.dropout = true; }, "full"},
    {"head size 256", [](Request* r) { r->head_size_qk = r->head_size_v = 256; }, "inference"},
    {"head size 264", [](Request* r) { r->head_size_qk = r->head_size_v = 264; }, nullptr},
    {"an odd head size", [](Request* r) { r->head_size_qk = 100; }, "inference"},
    {"fp8 of head size 256",
     [](Request* r) {
       r->traits.dtype = kernels::Dtype::kFp8, r->traits.lse = false;
       r->traits.mask = false, r->head_size_qk = r->head_size_v = 256;
     },
     "full"},
    {"fp8 with an o of bf16",
     [](Request* r) {
       r->traits.dtype = kernels::Dtype::kFp8bf16, r->traits.lse = false;
       r->traits.group_mode = true, r->head_size_qk = r->head_size_v = 256;
     },
     "inference"},
    {"fp8 with an o of fp32 and head size 256",
     [](Request* r) {
       r->traits.dtype = kernels::Dtype::kFp8fp32, r->traits.lse = false;
       r->head_size_qk = r->head_size_v = 256;
     },
     nullptr},
    {"fp8 and dropout",
     [](Request* r) { r->traits.dtype = kernels::Dtype::kFp8, r->traits.dropout = true; }, nullptr},
    {"backward of head size 96 and dropout",
     [](Request* r) {
       r->pass = &backward_pass(), r->head_size_qk = r->head_size_v = 96;
       r->traits.dropout = r->traits.deterministic = true;
     },
     "te"},
    {"a cache in bf16",
     [](Request* r) { r->pass = &kvcache_pass(), r->traits.logits_soft_cap = true; }, "inference"},
    {"a cache in pages that no tile of keys fills",
     [](Request* r) { r->pass = &kvcache_pass(), r->traits.paged_kv = true, r->page_size = 48; },
     nullptr},
    {"a cache with a bias",
     [](Request* r) {
       r->pass = &kvcache_pass();
       r->traits.bias = kernels::Bias::kElementwise;
     },
     "full"},
    {"what appends, with rotation",
     [](Request* r) {
       r->pass = &append_pass(), r->seqlen_new = 1;
       r->traits.rotary = kernels::Rotary::kInterleaved;
       r->head_size_qk = r->head_size_v = 256;
     },
     "inference"},
};

TEST(DispatchTest, RefusalsNameTheSmallestSetThatServes) {
  for (const Unserved& unserved : kUnserved) {
    SCOPED_TRACE(unserved.what);
    Request r = request();
    unserved.change(&r);
    const std::string text = refusal(r);
    if (unserved.set) {
      EXPECT_THAT(text, EndsWith(std::string("Built with --//kernels:variants=test; build with "
                                             "--//kernels:variants=") +
                                 unserved.set));
    } else {
      EXPECT_THAT(
          text, EndsWith("; none of core, inference, te, jax, standard, full serves it: change the "
                         "call"));
    }
  }
}

// The build takes the value of a hint.
TEST(DispatchTest, HintsNameArchsThatCanBeBuilt) {
  for (const kernels::ArchFacts& known : kernels::kArchs) {
    const std::string_view arch = known.name;
    EXPECT_EQ(how_to_build({}, arch), ": build with --//kernels:archs=" + std::string(arch));
    EXPECT_EQ(how_to_build({"gfx000"}, arch),
              ": build with --//kernels:archs=gfx000," + std::string(arch));
    EXPECT_THAT(how_to_build({arch}, "gfx908"), HasSubstr(std::string(arch)));
  }
  EXPECT_TRUE(kernels::find_arch("gfx942"));
  EXPECT_THAT(how_to_build({"gfx942"}, "gfx908"), ::testing::StartsWith("; no build has code for"));
}

TEST(DispatchTest, RefusalsNameArchs) {
  Request r = request();
  r.arch = "gfx908";
  EXPECT_THAT(refusal(r), HasSubstr("It has code for gfx942, gfx950 only"));
  EXPECT_THAT(refusal(r), HasSubstr("no build has code for gfx908: --//kernels:archs= takes "));
  // The build has code for gfx950, but not of this instance.
  r = request();
  r.traits.group_mode = true;
  EXPECT_THAT(chosen(r), ElementsAre("fwd_d128_bf16_group_mask_psk"));
  r.arch = "gfx950";
  EXPECT_THAT(refusal(r), HasSubstr("fwd_d128_bf16_group_mask_psk, is for gfx942"));
}

// Forward on gfx950: kernels with transposed loads, for few queries and for any number, in
// front of those of every arch.
kernels::LaunchTable transposed_table(TableBuilder* builder, size_t archs = 2) {
  uint8_t number = 1;
  const auto add = [&](const std::string& name, Row row, bool transposed) {
    row.head_size_alignment = 8;
    row.tile_head_size_qk = row.tile_head_size_v = 128;
    row.tile_seqlen_k = 64;
    row.traits.kind = kernels::Kind::kFwd;
    row.traits.dtype = kernels::Dtype::kBf16;
    row.traits.head_size_qk = row.traits.head_size_v = 128;
    row.traits.mask = row.traits.lse = row.traits.pad_seqlen_q = true;
    row.traits.transposed_loads = transposed;
    std::vector<kernels::CodeObjectRow> objects(archs);
    for (size_t arch = transposed ? 1 : 0; arch < archs; ++arch) objects[arch].key[0] = number++;
    builder->add(name, row, [](const kernels::LaunchArgs&, kernels::Launch*) {}, objects);
  };
  for (const uint16_t queries : {16, 0}) {
    for (const bool pad_head : {false, true}) {
      Row row = {};
      row.tile_seqlen_q = queries ? queries : 128;
      row.traits.max_seqlen_q = queries;
      row.traits.pad_seqlen_k = true;
      row.traits.pad_head_size_qk = row.traits.pad_head_size_v = pad_head;
      add(std::string(queries ? "few" : "any") + (pad_head ? "_pd" : ""), row, true);
    }
  }
  for (const bool pad_k : {false, true}) {
    Row row = {};
    row.tile_seqlen_q = 128;
    row.traits.pad_seqlen_k = pad_k;
    row.traits.pad_head_size_qk = row.traits.pad_head_size_v = true;
    add(pad_k ? "plain_psk" : "plain", row, false);
  }
  return builder->build("transposed");
}

TEST(DispatchTest, TransposedLoadsAreFirstWhereTheArchHasThem) {
  TableBuilder builder({"gfx942", "gfx950"});
  const kernels::LaunchTable table = transposed_table(&builder);
  Request r = request();
  const auto chosen_row = [&] {
    const Row* const row = dispatch(table, r).main_row();
    return row ? std::string(table.name(*row)) : "none";
  };
  EXPECT_EQ(chosen_row(), "plain");
  r.arch = "gfx950";
  EXPECT_EQ(chosen_row(), "any");
  // Padded queries need bounds checks of each row, padded keys none.
  r.lengths_on_device = true;
  EXPECT_EQ(chosen_row(), "any");
  r.queries_on_device = true;
  EXPECT_EQ(chosen_row(), "plain_psk");
  r.lengths_on_device = false;
  EXPECT_EQ(chosen_row(), "plain");
  r.queries_on_device = false;
  // They take any lengths, at no cost in bounds checks.
  r.seqlen_q = 255, r.seqlen_k = 63;
  EXPECT_EQ(chosen_row(), "any");
  r.seqlen_q = 17;
  EXPECT_EQ(chosen_row(), "any");
  r.seqlen_q = 16;
  EXPECT_EQ(chosen_row(), "few");
  r.head_size_v = 120;
  EXPECT_EQ(chosen_row(), "few_pd");
  r.seqlen_q = 128;
  EXPECT_EQ(chosen_row(), "any_pd");
  // Copies are of whole vectors.
  r.head_size_v = 116;
  EXPECT_EQ(chosen_row(), "none");
  r.head_size_v = 128;
  r.traits.group_mode = true;
  EXPECT_EQ(chosen_row(), "none");
}

// One kernel that was built, which checks bounds, and two that were not: without these checks, and
// with a bias.
TEST(DispatchTest, KernelsThatWereNotBuiltServeWhatTheBuildDoesNot) {
  TableBuilder builder({"gfx942"});
  const auto add = [&](const std::string& name, bool pad, kernels::Bias bias, uint64_t size) {
    Row row = {};
    row.tile_seqlen_q = row.tile_seqlen_k = 128;
    row.tile_head_size_qk = row.tile_head_size_v = row.head_size_alignment = 128;
    row.traits.kind = kernels::Kind::kFwd;
    row.traits.dtype = kernels::Dtype::kBf16;
    row.traits.head_size_qk = row.traits.head_size_v = 128;
    row.traits.mask = row.traits.lse = true;
    row.traits.pad_seqlen_q = row.traits.pad_seqlen_k = pad;
    row.traits.bias = bias;
    kernels::CodeObjectRow object = {};
    object.key[0] = static_cast<uint8_t>(name.size());
    object.size = size;
    builder.add(name, row, [](const kernels::LaunchArgs&, kernels::Launch*) {}, {object});
  };
  add("built", true, kernels::Bias::kNone, 100);
  add("whole_tiles", false, kernels::Bias::kNone, 0);
  add("biased", true, kernels::Bias::kElementwise, 0);
  const kernels::LaunchTable table = builder.build("some");
  Request r = request();
  const auto explained = [&] {
    const Plan plan = dispatch(table, r);
    return plan.is_complete() ? explain(table, r, plan) : explain_unserved(table, r, plan);
  };
  EXPECT_THAT(explained(), HasSubstr("fwd: built\n"));
  EXPECT_THAT(explained(), HasSubstr("  not 1 for calls that no kernel of the build serves, e.g. "
                                     "whole_tiles\n"));
  r.traits.bias = kernels::Bias::kElementwise;
  EXPECT_THAT(explained(), HasSubstr("fwd: biased\n"));
  r.traits.bias = kernels::Bias::kAlibi;
  EXPECT_THAT(explained(), HasSubstr("no fwd kernel in this build"));
}

// Forward without an lse on gfx950: upstream's third version beside a kernel of every arch.
kernels::LaunchTable third_version_table(TableBuilder* builder) {
  const auto add = [&](const std::string& name, kernels::Kind kind, bool mask, uint8_t key) {
    Row row = {};
    row.tile_seqlen_q = kind == kernels::Kind::kFwdV3 ? 256 : 128;
    row.tile_head_size_qk = row.tile_head_size_v = row.head_size_alignment = 128;
    row.traits.kind = kind;
    row.traits.dtype = kernels::Dtype::kBf16;
    row.traits.head_size_qk = row.traits.head_size_v = 128;
    row.traits.mask = mask;
    row.traits.pad_seqlen_q = row.traits.pad_seqlen_k = true;
    std::vector<kernels::CodeObjectRow> objects(2);
    if (kind != kernels::Kind::kFwdV3) objects[0].key[0] = key;
    objects[1].key[0] = static_cast<uint8_t>(key + 1);
    builder->add(name, row, [](const kernels::LaunchArgs&, kernels::Launch*) {}, objects);
  };
  for (const bool mask : {false, true}) {
    add(mask ? "fwd_mask" : "fwd", kernels::Kind::kFwd, mask, mask ? 1 : 3);
    add(mask ? "v3_mask" : "v3", kernels::Kind::kFwdV3, mask, mask ? 5 : 7);
  }
  return builder->build("third_version");
}

TEST(DispatchTest, TheThirdVersionOfForwardIsTakenWhereItServes) {
  TableBuilder builder({"gfx942", "gfx950"});
  const kernels::LaunchTable table = third_version_table(&builder);
  Problem base = {};
  static_cast<attn_problem&>(base) =
      make_problem(Shape{1, 4, 4, 256, 256, 128, 128}, ATTN_DTYPE_BF16);
  base.pass = &forward_pass();
  base.window_left = base.window_right = -1;
  const auto chosen_row = [&](const Problem& p, const char* arch = "gfx950") {
    const Row* const row = dispatch(table, make_request(p, arch)).main_row();
    return row ? std::string(table.name(*row)) : "none";
  };
  EXPECT_EQ(chosen_row(base), "v3");
  EXPECT_EQ(chosen_row(base, "gfx942"), "fwd");

  Problem p = base;
  p.mask = ATTN_MASK_TOP_LEFT;
  p.window_right = 0;
  EXPECT_EQ(chosen_row(p), "v3_mask");
  p.window_left = 7;
  EXPECT_EQ(chosen_row(p), "fwd_mask");

  p = base;
  p.seqlen_q = 129, p.seqlen_k = 1;
  EXPECT_EQ(chosen_row(p), "v3");
  p.seqlen_q = 128;
  EXPECT_EQ(chosen_row(p), "fwd");

  p = base;
  const int32_t used[] = {100};
  p.seqused_k = used;
  EXPECT_EQ(chosen_row(p), "fwd");
  p = base;
  p.cu_seqused_k = used;
  EXPECT_EQ(chosen_row(p), "fwd");
  EXPECT_TRUE(make_request(p, "gfx950").lengths_on_device);
  EXPECT_FALSE(make_request(p, "gfx950").queries_on_device);
  p.cu_seqused_q = used;
  EXPECT_TRUE(make_request(p, "gfx950").queries_on_device);
  p = base;
  p.lse = &some_lse;
  EXPECT_EQ(chosen_row(p), "none");
}

// Backward of one bucket: kernels with transposed loads, for few queries, for few keys and for any
// number, in front of those of every arch; and, in a fixed order, what adds up sums of dq for every
// 128 keys, or every 192.
kernels::LaunchTable transposed_backward_table(TableBuilder* builder) {
  uint8_t number = 1;
  const auto add = [&](const std::string& name, kernels::Kind kind, Row row, bool group = false) {
    row.head_size_alignment = 1;
    row.tile_head_size_qk = row.tile_head_size_v = 128;
    row.traits.kind = kind;
    row.traits.dtype = kernels::Dtype::kBf16;
    row.traits.head_size_qk = row.traits.head_size_v = 128;
    row.traits.group_mode = group;
    const bool is_main = kind == kernels::Kind::kBwdDqDkDv;
    row.traits.head_size_step = is_main ? 1 : 0;
    row.traits.pad_seqlen_q = !is_main;
    std::vector<kernels::CodeObjectRow> objects(2);
    for (size_t arch = row.traits.transposed_loads ? 1 : 0; arch < 2; ++arch) {
      objects[arch].key[0] = number++;
    }
    builder->add(name, row, [](const kernels::LaunchArgs&, kernels::Launch*) {}, objects);
  };
  add("delta", kernels::Kind::kBwdDotDoO, {});
  add("delta_group", kernels::Kind::kBwdDotDoO, {}, true);
  const auto add_main = [&](const std::string& name, uint16_t keys, uint16_t most_q,
                            uint16_t most_k, bool transposed) {
    for (const bool deterministic : {false, true}) {
      for (const bool group : {false, true}) {
        if (group && (most_q || deterministic)) continue;
        Row row = {};
        row.tile_seqlen_q = 16;
        row.tile_seqlen_k = keys;
        row.traits.max_seqlen_q = most_q;
        row.traits.max_seqlen_k = most_k;
        row.traits.deterministic = deterministic;
        row.traits.transposed_loads = transposed;
        add(name + (group ? "_group" : "") + (deterministic ? "_det" : ""),
            kernels::Kind::kBwdDqDkDv, row, group);
      }
    }
  };
  add_main("few_queries", 16, 16, 0, true);
  add_main("few_keys", 128, 0, 256, true);
  add_main("any", 192, 0, 0, true);
  add_main("plain", 128, 0, 0, false);
  add("dq", kernels::Kind::kBwdConvertDq, {});
  add("dq_group", kernels::Kind::kBwdConvertDq, {}, true);
  for (const uint16_t keys : {192, 128}) {
    Row row = {};
    row.tile_seqlen_k = keys;
    row.traits.deterministic = true;
    add("dq" + std::to_string(keys), kernels::Kind::kBwdConvertDq, row);
  }
  return builder->build("transposed");
}

TEST(DispatchTest, TransposedLoadsOfBackwardGoByLengths) {
  TableBuilder builder({"gfx942", "gfx950"});
  const kernels::LaunchTable table = transposed_backward_table(&builder);
  Request r = request(backward_pass());
  r.traits.mask = false;
  const auto names = [&] {
    std::vector<std::string> found;
    for (const Step& step : dispatch(table, r)) {
      found.push_back(step.row ? std::string(table.name(*step.row)) : "none");
    }
    return found;
  };
  EXPECT_THAT(names(), ElementsAre("delta", "plain", "dq"));
  r.arch = "gfx950";
  EXPECT_THAT(names(), ElementsAre("delta", "few_keys", "dq"));
  r.seqlen_k = 257;
  EXPECT_THAT(names(), ElementsAre("delta", "any", "dq"));
  r.seqlen_q = 17;
  EXPECT_THAT(names(), ElementsAre("delta", "any", "dq"));
  // dq is written at once.
  r.seqlen_q = 16;
  EXPECT_THAT(names(), ElementsAre("delta", "few_queries"));
  EXPECT_TRUE(dispatch(table, r).is_complete());
  EXPECT_EQ(backward_pass().parts(r, dispatch(table, r)), 0);
  // The sums of dq are added up by the tiles that they were made by.
  r.traits.deterministic = true;
  EXPECT_THAT(names(), ElementsAre("delta", "few_queries_det"));
  r.seqlen_q = 256;
  EXPECT_THAT(names(), ElementsAre("delta", "any_det", "dq192"));
  r.seqlen_k = 200;
  EXPECT_THAT(names(), ElementsAre("delta", "few_keys_det", "dq128"));
  r.seqlen_k = 1000;
  EXPECT_EQ(backward_pass().parts(r, dispatch(table, r)), 6);
  // gfx942's kernel makes more of them: the workspace is for either.
  EXPECT_EQ(most_parts(table, r), 8);
  r.arch = "gfx942";
  EXPECT_THAT(names(), ElementsAre("delta", "plain_det", "dq128"));
}

TEST(DispatchTest, FewKeysAreThoseOfAllSequences) {
  TableBuilder builder({"gfx942", "gfx950"});
  const kernels::LaunchTable table = transposed_backward_table(&builder);
  Request r = request(backward_pass());
  r.arch = "gfx950";
  r.traits.group_mode = true;
  r.traits.mask = false;
  r.seqlen_k = 128;
  const auto main_row = [&] { return std::string(table.name(*dispatch(table, r).main_row())); };
  r.key_rows = 256;
  EXPECT_EQ(main_row(), "few_keys_group");
  EXPECT_THAT(explain(table, r, dispatch(table, r)), HasSubstr("few_keys_group"));
  r.key_rows = 257;
  EXPECT_EQ(main_row(), "any_group");
  EXPECT_THAT(explain(table, r, dispatch(table, r)),
              HasSubstr("for 256 keys at most, of all sequences"));
}

TEST(DispatchTest, ExplanationsNameTheMostQueries) {
  TableBuilder builder({"gfx942", "gfx950"});
  const kernels::LaunchTable table = transposed_table(&builder);
  Request r = request();
  r.arch = "gfx950";
  EXPECT_THAT(explain(table, r, dispatch(table, r)), HasSubstr("for 16 queries at most"));
  EXPECT_EQ(mismatch(table.row(0), r).reason, Mismatch::kQueries);
  r.arch = "gfx942";
  EXPECT_THAT(explain(table, r, dispatch(table, r)), HasSubstr("for gfx950"));
  r.seqlen_q = 16;
  EXPECT_EQ(mismatch(table.row(0), r).reason, Mismatch::kNone);
  TableBuilder of_one({"gfx942"});
  const kernels::LaunchTable small = transposed_table(&of_one, 1);
  EXPECT_THAT(explain(small, r, dispatch(small, r)),
              HasSubstr("for archs that are not in this build"));
}

TEST(DispatchTest, ExplanationsTellTheChoiceAndTheOthers) {
  attn_problem p = make_problem(Shape{1, 4, 4, 256, 256, 128, 128}, ATTN_DTYPE_BF16);
  p.mask = ATTN_MASK_BOTTOM_RIGHT;
  p.device_type = ATTN_DEVICE_ROCM;
  attn_fwd_args args = {};
  args.struct_size = sizeof(args);
  args.problem = &p;
  args.lse = &some_lse;
  const char* text = nullptr;
  EXPECT_EQ(attn_explain_fwd(&args, "gfx942", &text), ATTN_OK);
  for (const char* part :
       {"forward: bf16, head size 128, batch mode, a mask, lse wanted, seqlen 256 x 256, on gfx942",
        "fwd: fwd_d128_bf16_batch_mask_npad\n", "for fp16", "for group mode", "for no mask",
        "for head size 64 at most", "bounds checks that are not needed here"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, HasSubstr(test_key("fwd_d128_bf16_batch_mask_npad", "gfx942")));

  args.lse = nullptr;
  EXPECT_EQ(attn_explain_fwd(&args, "gfx942", &text), ATTN_OK);
  EXPECT_THAT(text, HasSubstr("a place for one in the workspace"));
  EXPECT_THAT(text, HasSubstr("fwd: fwd_d128_bf16_batch_mask_npad\n"));

  p.head_size_qk = 256;
  EXPECT_EQ(attn_explain_fwd(&args, "gfx942", &text), ATTN_ERROR_UNSUPPORTED);
  EXPECT_EQ(text, nullptr);
  p.head_size_qk = 128;

  attn_bwd_args bwd = {};
  bwd.struct_size = sizeof(bwd);
  bwd.problem = &p;
  p.heads_k = 2;
  EXPECT_EQ(attn_explain_bwd(&bwd, "gfx950", &text), ATTN_OK);
  for (const char* part : {"backward: ", "shared key heads", "bwd_dot_do_o: dot_do_o_d128_bf16",
                           "bwd_dq_dk_dv: dq_dk_dv_d128_bf16_batch_mask\n",
                           "bwd_convert_dq: ", "sum_heads: attn_sum_heads_bf16\n"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  const std::string once(text);
  EXPECT_EQ(once.find("sum_heads: "), once.rfind("sum_heads: "));

  attn_problem decoding = make_problem(Shape{1, 4, 4, 1, 512, 64, 64}, ATTN_DTYPE_FP16);
  decoding.device_type = ATTN_DEVICE_ROCM;
  attn_kvcache cache = {};
  cache.struct_size = sizeof(cache);
  cache.entries = 7;
  cache.page_size = 128;
  cache.block_table_stride = 4;
  attn_kvcache_fwd_args over_cache = {};
  over_cache.struct_size = sizeof(over_cache);
  over_cache.problem = &decoding;
  over_cache.cache = &cache;
  over_cache.lse = &some_lse;
  EXPECT_EQ(attn_explain_kvcache_fwd(&over_cache, "gfx942", &text), ATTN_OK) << attn_last_error();
  for (
      const char* part :
      {"forward over a cache: fp16, head size 64, batch mode, no mask, lse wanted, keys and values "
       "in pages, pages of 128, 8 splits, seqlen 1 x 512, on gfx942\n",
       "fwd_splitkv: fwd_splitkv_d64_fp16_batch_nmask_paged_npad\n", "for keys and values in place",
       "fwd_splitkv_combine: combine_d64_fp16_batch_lse\n", "for lse not wanted"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }

  p.seqlen_q = 0;
  EXPECT_EQ(attn_explain_bwd(&bwd, "gfx950", &text), ATTN_OK);
  EXPECT_THAT(text, HasSubstr("no kernel"));
  p.device_type = ATTN_DEVICE_CPU;
  EXPECT_EQ(attn_explain_bwd(&bwd, nullptr, &text), ATTN_OK);
  EXPECT_THAT(text, HasSubstr("CPU reference"));
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::attention
