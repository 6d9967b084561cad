// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/passes/dropout_mask/dropout_mask.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "aiter/attention/dispatch.h"
#include "aiter/attention/launch.h"
#include "aiter/attention/problem/error.h"
#include "aiter/attention/problem/validate.h"
#include "aiter/attention/reference/dropout.h"
#include "aiter/attention/reference/heads.h"
#include "aiter/attention/reference/sequence.h"
#include "aiter/runtime/parallel.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

class DropoutMask final : public Pass {
 public:
  constexpr DropoutMask() : Pass("dropout mask", nullptr) {}

  Operands operands(const Problem&) const override { return {}; }

  bool has_work(const Problem& p) const override { return query_rows(p) != 0 && p.seqlen_k != 0; }

  bool takes_padding() const override { return true; }

  std::vector<Array> arrays(const Problem& p) const override {
    return {{"kept", true, p.kept, {query_rows(p), p.heads_q, p.seqlen_k}}};
  }

  // One kernel, for all dtypes and head sizes.
  Plan plan(const kernels::LaunchTable& table, const Request& request) const override {
    Plan plan;
    plan.main = kernels::Kind::kDropoutMask;
    plan.add(plan.main, pick_kernel(table, plan.main, request));
    return plan;
  }

  void launch(const Problem& p, const Plan& plan, Queue* queue) const override {
    kernels::LaunchArgs args = launch_args(p);
    args.kept = p.kept;
    queue->launch(plan, args);
  }

  void compute(const Problem& p) const override {
    const double steps = 1.0 * query_rows(p) * p.heads_q * p.seqlen_k;
    const Scratch scratch(p, int64_t{p.head_size_qk} + p.head_size_v);
    for_each_head(
        p, {p.heads_q, steps, scratch},
        [&](const Problem&, const Sequence& s, int64_t head, QueryRange, runtime::Pulse& pulse) {
          const Dropout dropout(p, s.batch, head);
          for (int64_t i = 0; i < s.queries; ++i) {
            uint8_t* const row = p.kept + s.lse(head, i) * p.seqlen_k;
            std::fill(row, row + p.seqlen_k, uint8_t{0});
            for (int64_t j = 0; j < s.keys; ++j) {
              row[j] = dropout.keeps(i, j);
              pulse(1);
            }
          }
        });
  }
};

}  // namespace

const Pass& dropout_mask_pass() {
  static constexpr DropoutMask pass;
  return pass;
}

Problem read(const attn_dropout_mask_args* given, Pointers pointers) {
  Problem p = read_problem(given, dropout_mask_pass());
  validate_problem(&p, pointers);
  p.bias = ATTN_BIAS_NONE;  // attention's alone
  if (pointers == Pointers::kRequired && !p.kept && p.pass->has_work(p)) {
    refuse("kept", "NULL", "this problem has ", p.heads_q, " heads of ", query_rows(p), " rows of ",
           p.seqlen_k, " bytes");
  }
  return p;
}

}  // namespace AITER_ATTN_NAMESPACE::attention
