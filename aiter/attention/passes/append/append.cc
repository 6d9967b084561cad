// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/passes/append/append.h"

#include <cstring>
#include <string>
#include <vector>

#include "aiter/attention/dispatch.h"
#include "aiter/attention/launch.h"
#include "aiter/attention/problem/error.h"
#include "aiter/attention/problem/memory.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

constexpr KernelSequence kKernels = {kernels::Kind::kFwdAppendkv, {kernels::Kind::kFwdAppendkv}, 1};

class Append final : public Pass {
 public:
  constexpr Append()
      : Pass("append", nullptr, false, "no kernel: nothing is appended or rotated\n") {}

  Operands operands(const Problem& p) const override {
    const Extents added = {p.batch, p.seqlen_new, p.heads_k, p.head_size_qk, p.seqlen_new};
    Extents added_value = added;
    added_value.head_size = p.head_size_v;
    const Extents key = cache_extents(p, p.head_size_qk), value = cache_extents(p, p.head_size_v);
    Operands all;
    all.add({"k", &Problem::k, key, false, Access::kUpdated});
    all.add({"v", &Problem::v, value, true, Access::kUpdated});
    all.add({"k_new", &Problem::k_new, added, false, Access::kRead});
    all.add({"v_new", &Problem::v_new, added_value, true, Access::kRead});
    if (has_rotary(p)) {
      all.add({"q", &Problem::q, query_extents(p, p.head_size_qk), false, Access::kUpdated});
    }
    return all;
  }

  bool has_work(const Problem& p) const override {
    return p.batch != 0 && (p.seqlen_new != 0 || (has_rotary(p) && p.seqlen_q != 0));
  }

  std::vector<Array> arrays(const Problem& p) const override {
    if (!has_rotary(p)) return {};
    const auto element = dtype_size(p.dtype);
    const int64_t pairs = p.rotary_size / 2;
    return {{"rotary_cos", false, p.rotary_cos, {p.rotary_length, pairs, element}},
            {"rotary_sin", false, p.rotary_sin, {p.rotary_length, pairs, element}}};
  }

  void ask(const Problem& p, Request* request) const override {
    request->traits.rotary = static_cast<kernels::Rotary>(p.rotary);
    request->seqlen_new = p.seqlen_new;
    if (!has_rotary(p)) request->seqlen_q = 0;  // queries are not touched
  }

  Plan plan(const kernels::LaunchTable& table, const Request& request) const override {
    return plan_kernels(table, kKernels, request);
  }

  std::string lengths(const Request& r) const override {
    return concat(r.seqlen_new, " new keys, ", r.seqlen_q, " queries");
  }

  void launch(const Problem& p, const Plan& plan, Queue* queue) const override {
    kernels::LaunchArgs args = launch_args(p);
    kernels::Features& f = args.features;
    f.seqlen_new = p.seqlen_new;
    f.k_new = p.k_new;
    f.v_new = p.v_new;
    f.rotary_size = p.rotary_size;
    f.rotary_cos = p.rotary_cos;
    f.rotary_sin = p.rotary_sin;
    if (!has_rotary(p)) {
      // No query is touched; a workgroup is for a head of q, of which one per key head will do.
      args.problem.seqlen_q = 0;
      args.problem.heads_q = p.heads_k;
    }
    queue->launch(plan, args);
  }

  void compute(const Problem& p) const override { compute_append(p); }
};

void require_same(const char* name, const attn_tensor& appended, const attn_tensor& read) {
  if (std::memcmp(&appended, &read, sizeof(read)) == 0) return;
  refuse(concat("append.", name, ".data"), appended.data, "must be ", name, " of the call, ",
         read.data, ", with the same strides");
}

}  // namespace

const Pass& append_pass() {
  static constexpr Append pass;
  return pass;
}

void validate_ahead(const Problem& append, const Problem& attention) {
  require_same("k", append.k, attention.k);
  require_same("v", append.v, attention.v);
  if (has_rotary(append)) require_same("q", append.q, attention.q);
  validate_apart(append, attention);
}

}  // namespace AITER_ATTN_NAMESPACE::attention
