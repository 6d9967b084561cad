// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Selection and its explanations, on a launch table by hand.
#include "aiter/dispatch.h"

#include <string>
#include <vector>

#include "aiter/attn.h"
#include "aiter/error.h"
#include "aiter/testing/problems.h"
#include "aiter/testing/test_launch_table.h"
#include "aiter/testing/testing.h"

namespace aiter_attn::testing {
namespace {

Request request() {
  return {ATTN_DTYPE_BF16, Mode::kBatch, 128, 128, 256, 256, true, true, false, "gfx942"};
}

std::string fwd(const Request& r) { return select_fwd(launch_table(), r).fwd->name; }

std::string refusal(const Request& r, bool forward = true) {
  try {
    forward ? (void)select_fwd(launch_table(), r) : (void)select_bwd(launch_table(), r);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ATTN_ERROR_UNSUPPORTED);
    return error.what();
  }
  return "nothing refused";
}

TEST(fewest_bounds_checks_first) {
  Request r = request();
  EXPECT_EQ(fwd(r), "fwd_d128_bf16_batch_mask_npad");
  r.seqlen_k = 255;
  EXPECT_EQ(fwd(r), "fwd_d128_bf16_batch_mask_psk");
  r.seqlen_k = 0;
  EXPECT_EQ(fwd(r), "fwd_d128_bf16_batch_mask_psk");
}

TEST(smallest_bucket_first) {
  Request r = request();
  r.head_size_qk = r.head_size_v = 64;
  EXPECT_EQ(fwd(r), "fwd_d64_bf16_batch_mask_npad");
  r.head_size_v = 72;
  EXPECT_EQ(fwd(r), "fwd_d128_bf16_batch_mask_npad");
  r.head_size_qk = r.head_size_v = 8;
  EXPECT_EQ(fwd(r), "fwd_d64_bf16_batch_mask_npad");
}

TEST(a_padded_instance_serves_multiples_where_it_is_all_there_is) {
  Request r = request();
  EXPECT_EQ(select_bwd(launch_table(), r).dq_dk_dv->name,
            std::string("dq_dk_dv_d128_bf16_batch_mask"));
}

TEST(backward_kernels_come_from_one_bucket) {
  Request r = request();
  r.head_size_qk = 128;
  r.head_size_v = 64;
  const BwdPlan plan = select_bwd(launch_table(), r);
  EXPECT_EQ(plan.dot_do_o->name, std::string("dot_do_o_d128_bf16_batch_pd"));
  EXPECT_EQ(plan.dq_dk_dv->name, std::string("dq_dk_dv_d128_bf16_batch_mask_pd"));
  EXPECT_EQ(plan.convert_dq->name, std::string("convert_dq_d128_bf16_batch"));
  EXPECT(plan.sum_heads == nullptr);
}

// The 64 bucket has no padded heads in backward: 56 is served by 128.
TEST(larger_buckets_are_tried) {
  Request r = request();
  r.head_size_qk = r.head_size_v = 56;
  EXPECT_EQ(select_bwd(launch_table(), r).dq_dk_dv->name,
            std::string("dq_dk_dv_d128_bf16_batch_mask_pd"));
}

TEST(what_no_request_asks_for_is_not_chosen) {
  for (auto set :
       {+[](Traits* t) { t->bias = Bias::kAlibi; }, +[](Traits* t) { t->dropout = true; },
        +[](Traits* t) { t->logits_soft_cap = true; },
        +[](Traits* t) { t->skip_min_seqlen_q = true; },
        +[](Traits* t) { t->deterministic = true; }, +[](Traits* t) { t->bias_grad = true; }}) {
    Instance instance = *find_instance("fwd_d128_bf16_batch_mask_npad");
    EXPECT_EQ(static_cast<int>(mismatch(instance, request())), static_cast<int>(Mismatch::kNone));
    set(&instance.traits);
    EXPECT_EQ(static_cast<int>(mismatch(instance, request())),
              static_cast<int>(Mismatch::kFeature));
  }
}

TEST(refusals_name_the_nearest_and_what_is_there) {
  Request r = request();
  r.lse = false;
  std::string text = refusal(r);
  EXPECT_CONTAINS(text,
                  "no fwd kernel in this build for bf16, head size 128, batch mode, mask, "
                  "no lse, seqlen 256 x 256, on gfx942");
  EXPECT_CONTAINS(text, "lse wanted (pass an lse buffer)");
  EXPECT_CONTAINS(text, "In the build: bf16, fp16; head sizes up to 64, 128; batch, group mode");
  EXPECT_CONTAINS(text, "--//kernels:variants=test");

  r = request();
  r.head_size_qk = 192;
  text = refusal(r);
  EXPECT_CONTAINS(text, "head sizes 192 (q, k) and 128 (v)");
  EXPECT_CONTAINS(text, "head size 128 at most");

  r = request();
  r.head_size_qk = 100;
  EXPECT_CONTAINS(refusal(r), "is for head sizes in multiples of 8 (q, k) and 8 (v)");

  r = request();
  r.head_size_qk = 200;
  EXPECT_CONTAINS(refusal(r, false), "no bwd_dot_do_o, bwd_dq_dk_dv, bwd_convert_dq kernel");
}

TEST(refusals_name_archs) {
  Request r = request();
  r.arch = "gfx90a";
  EXPECT_CONTAINS(refusal(r), "It has code for gfx942, gfx950 only");
  EXPECT_CONTAINS(refusal(r), "--//kernels:archs=gfx942,gfx950,gfx90a");
  // The build has code for gfx950, but not of this instance.
  r = request();
  r.mode = Mode::kGroup;
  EXPECT_EQ(fwd(r), "fwd_d128_bf16_group_mask_psk");
  r.arch = "gfx950";
  EXPECT_CONTAINS(refusal(r), "fwd_d128_bf16_group_mask_psk, is for gfx942");
}

TEST(explanations_tell_the_choice_and_the_others) {
  attn_fwd_args args = {};
  args.struct_size = sizeof(args);
  args.problem = make_problem(Shape{1, 4, 4, 256, 256, 128, 128}, ATTN_DTYPE_BF16);
  args.problem.mask = ATTN_MASK_BOTTOM_RIGHT;
  args.problem.device_type = ATTN_DEVICE_ROCM;
  float lse = 0;
  args.lse = &lse;
  const char* text = nullptr;
  EXPECT_EQ(attn_explain_fwd(&args, "gfx942", &text), ATTN_OK);
  EXPECT_CONTAINS(text, "forward: bf16, head size 128, batch mode, mask, lse");
  EXPECT_CONTAINS(text, "fwd: fwd_d128_bf16_batch_mask_npad\n");
  EXPECT_CONTAINS(text, find_instance("fwd_d128_bf16_batch_mask_npad")->code_objects[0].key);
  EXPECT_CONTAINS(text, "for fp16");
  EXPECT_CONTAINS(text, "for group mode");
  EXPECT_CONTAINS(text, "for no mask");
  EXPECT_CONTAINS(text, "for head size 64 at most");
  EXPECT_CONTAINS(text, "bounds checks that are not needed here");

  args.lse = nullptr;
  EXPECT_EQ(attn_explain_fwd(&args, "gfx942", &text), ATTN_ERROR_UNSUPPORTED);
  EXPECT(text == nullptr);

  attn_bwd_args bwd = {};
  bwd.struct_size = sizeof(bwd);
  bwd.problem = args.problem;
  bwd.problem.heads_k = 2;
  EXPECT_EQ(attn_explain_bwd(&bwd, "gfx950", &text), ATTN_OK);
  for (const char* part : {"backward: ", "shared key heads", "bwd_dot_do_o: dot_do_o_d128_bf16",
                           "bwd_dq_dk_dv: dq_dk_dv_d128_bf16_batch_mask\n",
                           "bwd_convert_dq: ", "sum_heads: attn_sum_heads_bf16\n"}) {
    EXPECT_CONTAINS(text, part);
  }

  bwd.problem.device_type = ATTN_DEVICE_CPU;
  EXPECT_EQ(attn_explain_bwd(&bwd, nullptr, &text), ATTN_OK);
  EXPECT_CONTAINS(text, "CPU reference");
}

}  // namespace
}  // namespace aiter_attn::testing
