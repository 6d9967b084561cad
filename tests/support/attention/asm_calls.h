// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Calls that Composable Kernel's or AITER's kernels serve, and launch tables by hand that have
// both: the common part of the tests of that choice, of either pass.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "aiter/attention/dispatch.h"
#include "aiter/attention/passes/passes.h"
#include "aiter/attention/preference.h"
#include "aiter/attn.h"
#include "kernels/launch_table/launch_table.h"
#include "tests/support/attention/problems.h"

namespace AITER_ATTN_NAMESPACE::testing {

// The tables' archs.
inline constexpr const char* kAsmArchs[] = {"gfx90a", "gfx942", "gfx950"};
inline constexpr const char* kAsmRoundings[] = {"_rtne", "_rtna", "_rtz"};

inline void make_no_launch(const kernels::LaunchArgs&, kernels::Launch*) {}

// For these of the tables' archs; number: of the row.
inline std::vector<kernels::CodeObjectRow> asm_objects(uint32_t number,
                                                       const std::set<size_t>& archs,
                                                       uint32_t hazards = 0) {
  std::vector<kernels::CodeObjectRow> rows(std::size(kAsmArchs));
  for (const size_t arch : archs) {
    std::fill(std::begin(rows[arch].key), std::end(rows[arch].key), uint8_t{1});
    rows[arch].key[0] = static_cast<uint8_t>(arch);
    rows[arch].key[1] = static_cast<uint8_t>(number);
    rows[arch].key[2] = static_cast<uint8_t>(number >> 8);
    rows[arch].hazards = static_cast<uint16_t>(hazards);
  }
  return rows;
}

inline bool is_asm(const std::string& name) { return name.substr(0, 4) == "fmha"; }

inline attn_status explain(const attn_fwd_args& args, const char* arch, const char** text) {
  return attn_explain_fwd(&args, arch, text);
}
inline attn_status explain(const attn_bwd_args& args, const char* arch, const char** text) {
  return attn_explain_bwd(&args, arch, text);
}

// A call on a GPU: bf16, causal from the bottom right, tensors without data.
template <typename Args>
struct AsmCall {
  attn_problem problem;
  Args args = {};

  AsmCall(bool group, const Shape& shape) : problem(make_problem(shape, ATTN_DTYPE_BF16)) {
    problem.device_type = ATTN_DEVICE_ROCM;
    problem.mask = ATTN_MASK_BOTTOM_RIGHT;
    problem.window_right = 0;
    problem.kernels = ATTN_KERNELS_FASTEST;
    if (group) {
      problem.mode = ATTN_MODE_GROUP;
      problem.total_q = shape.batch * shape.seqlen_q;
      problem.total_k = shape.batch * shape.seqlen_k;
    }
    args.struct_size = sizeof(args);
  }

  // Contiguous tensors of so many tokens.
  static void lay_out(std::initializer_list<attn_tensor*> tensors, int64_t seqlen, int64_t heads,
                      int64_t head_size) {
    for (attn_tensor* t : tensors) {
      *t = {nullptr, seqlen * heads * head_size, heads * head_size, head_size};
    }
  }

  void remove_mask() { problem.mask = ATTN_MASK_NONE, problem.window_right = -1; }

  attention::Plan plan(const char* arch = "gfx942", uint32_t compute_units = 304) {
    args.problem = &problem;
    attention::Problem p = attention::read(&args, attention::Pointers::kIgnored);
    p.preference = attention::preferred_kernels(p.kernels);
    p.most_parts = 1;
    return attention::dispatch(kernels::launch_table(),
                               attention::make_request(p, arch, compute_units));
  }

  // The names of its kernels; none where it is refused.
  std::vector<std::string> all(const char* arch = "gfx942", uint32_t compute_units = 304) {
    const attention::Plan made = plan(arch, compute_units);
    std::vector<std::string> names;
    if (!made.is_complete()) return names;
    for (const attention::Step& step : made) {
      names.emplace_back(kernels::launch_table().name(*step.row));
    }
    return names;
  }

  // That of the main kernel; "" where it is refused.
  std::string chosen(const char* arch = "gfx942", uint32_t compute_units = 304) {
    const attention::Plan made = plan(arch, compute_units);
    if (!made.is_complete()) return "";
    return std::string(kernels::launch_table().name(*made.main_row()));
  }

  std::string explained(attn_status expected = ATTN_OK, const char* arch = "gfx942") {
    args.problem = &problem;
    const char* text = nullptr;
    EXPECT_EQ(explain(args, arch, &text), expected) << attn_last_error();
    return text ? text : attn_last_error();
  }
};

// A call, and the main kernels that serve it.
template <typename Call>
struct AsmCase {
  const char* what;
  void (*change)(Call*);
  const char* fastest;
  const char* by_name;  // with kernels = asm; "" where it is refused
  bool group = false;
};

template <typename Call>
void expect_served(const AsmCase<Call>& each) {
  Call call(each.group);
  each.change(&call);
  EXPECT_EQ(call.chosen(), each.fastest) << each.what;
  call.problem.kernels = ATTN_KERNELS_ASM;
  EXPECT_EQ(call.chosen(), each.by_name) << each.what;
  call.problem.kernels = ATTN_KERNELS_CK;
  EXPECT_EQ(call.chosen().substr(0, 3), "ck_") << each.what;
}

// Random numbers, and some of a problem's members at random.
class AsmRandom {
 public:
  explicit AsmRandom(uint32_t seed) : random_(seed) {}

  bool one_in(uint32_t count) { return random_() % count == 0; }
  int64_t any(std::initializer_list<int64_t> choices) {
    return choices.begin()[random_() % choices.size()];
  }
  int32_t any32(std::initializer_list<int64_t> choices) {
    return static_cast<int32_t>(any(choices));
  }
  Shape shape(std::initializer_list<int64_t> seqlens_q) {
    Shape shape;
    shape.batch = any32({1, 2, 3});
    shape.heads_k = any32({1, 2, 4});
    shape.heads_q = shape.heads_k * any32({1, 3, 8});
    shape.seqlen_q = any32(seqlens_q);
    shape.seqlen_k = one_in(2) ? shape.seqlen_q : any32({1, 77, 300, 4096});
    return shape;
  }
  // Dtype, bias, dropout, mask and rounding.
  void change(attn_problem* p) {
    if (one_in(8)) p->dtype = ATTN_DTYPE_FP16;
    if (one_in(8)) p->bias = any32({1, 2});
    if (one_in(8)) p->dropout_p = .25f;
    p->mask = any32({0, 1, 2, 2});
    p->window_left = -1;
    p->window_right = p->mask == 0 ? -1 : any32({0, 0, 0, 5, -1});
    if (p->mask != 0 && one_in(4)) p->window_left = any32({10, 1 << 20});
    if (one_in(4)) p->rounding = any32({1, 2});
  }
  // Strides that these kernels do not take.
  template <typename Args>
  void change_strides(Args* args) {
    if (one_in(16)) args->k.stride_head += 4;
    if (one_in(16)) args->q.stride_batch = int64_t{3} << 29;
  }

 private:
  std::mt19937 random_;
};

// The choice for 100,000 random calls, beside that of AITER.
class AsmComparison {
 public:
  // why: the reason of a difference; "": none is known.
  template <typename Why>
  void add(const std::string& ours, const std::string& theirs, const attn_problem& p, Why&& why) {
    (is_asm(ours) ? taken_ : left_) += 1;
    // Composable Kernel's are as good as a refusal here: a rounding may be in their way.
    if (is_asm(ours) ? ours == theirs : theirs.empty()) return;
    const std::string reason = why();
    ASSERT_NE(reason, "") << "ours " << ours << ", AITER's " << theirs << ", mode " << p.mode
                          << ", mask " << p.mask << ", window " << p.window_left << ", "
                          << p.window_right << ", seqlens " << p.seqlen_q << ", " << p.seqlen_k
                          << ", head size " << p.head_size_qk << ", rounding " << p.rounding;
    ++differences_[reason];
  }

  void expect(const std::vector<std::string>& reasons) const {
    std::printf("%d taken by AITER's kernels, %d not\n", taken_, left_);
    std::vector<std::string> found;
    for (const auto& [why, count] : differences_) {
      std::printf("  %s: %d\n", why.c_str(), count);
      found.push_back(why);
    }
    EXPECT_THAT(found, ::testing::ElementsAreArray(reasons));
    EXPECT_GT(taken_, 1000);
  }

 private:
  std::map<std::string, int> differences_;
  int taken_ = 0, left_ = 0;
};

}  // namespace AITER_ATTN_NAMESPACE::testing
