// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/passes/forward/forward.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "aiter/attention/dispatch.h"
#include "aiter/attention/launch.h"
#include "aiter/attention/passes/forward/asm.h"
#include "aiter/attention/problem/checks.h"
#include "aiter/attention/problem/validate.h"
#include "aiter/attention/problem/workspace.h"
#include "aiter/attention/reference/forward.h"
#include "aiter/runtime/float8.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using kernels::Kind;
using kernels::LaunchTable;

constexpr KernelSequence kKernels = {Kind::kFwd, {Kind::kFwd}, 1};
constexpr KernelSequence kV3Kernels = {Kind::kFwdV3, {Kind::kFwdV3}, 1};
constexpr KernelSequence kAsmKernels = {Kind::kFwdAsm, {Kind::kFwdAsm}, 1};

// AITER's kernel; where it has no mask, it leaves the rows of sequences without keys undefined,
// whose lengths are known on the device only.
Plan plan_asm(const LaunchTable& table, const Request& request) {
  Plan plan = plan_kernels(table, kAsmKernels, request);
  // An incomplete plan counts only where nothing else may serve the request.
  const bool counts = plan.is_complete() || needs_asm(request);
  if (counts && request.traits.group_mode && !request.traits.mask) {
    plan.add(Kind::kNoKeys, pick_kernel(table, Kind::kNoKeys, request));
  }
  return plan;
}

// Whether upstream's third version may serve a problem. Its tile has twice the queries of the
// others' greatest: fewer would leave half of it idle.
bool takes_v3(const Problem& p) {
  constexpr int32_t kMostQueriesBesideIt = 128;
  return p.seqlen_q > kMostQueriesBesideIt && !is_padded(p);
}

void validate_o_dtype(const Problem& p) {
  if (p.o_dtype == 0) return;
  if (!is_fp8(p.dtype)) {
    refuse("o_dtype", p.o_dtype, "o has another dtype than q with fp8 alone: leave it 0");
  }
  if (p.o_dtype == ATTN_DTYPE_BF16 || p.o_dtype == ATTN_DTYPE_FP32) return;
  refuse("o_dtype", p.o_dtype, "must be 0 (fp8, as dtype), ", static_cast<int>(ATTN_DTYPE_BF16),
         " (bf16) or ", static_cast<int>(ATTN_DTYPE_FP32), " (fp32)");
}

// Kernels take v in one layout: by columns where o is fp8, else by rows.
void validate_v_on_gpu(const Problem& p) {
  if (p.o_dtype == 0 && p.v_layout != ATTN_V_COLUMNS) {
    fail(Status::kUnsupported, Field("v_layout"), " is ", p.v_layout,
         " (rows), but Composable Kernel's fp8 ", "kernels take columns where o is fp8: pass v as ",
         "[batch, heads_k, head_size_v, seqlen_k] with v_layout ", static_cast<int>(ATTN_V_COLUMNS),
         ", or ask for an o of bf16 or fp32 by o_dtype");
  }
  if (p.o_dtype != 0 && p.v_layout != ATTN_V_ROWS) {
    fail(Status::kUnsupported, Field("v_layout"), " is ", p.v_layout,
         " (columns), but Composable Kernel's fp8 ",
         "kernels take rows where o is bf16 or fp32: pass v as ",
         "[batch, seqlen_k, heads_k, head_size_v] with v_layout ", static_cast<int>(ATTN_V_ROWS));
  }
}

// The scales of fp8, and v's layout.
void validate_fp8(const Problem& p) {
  require_one_of("v_layout", p.v_layout, {{ATTN_V_ROWS, "rows"}, {ATTN_V_COLUMNS, "columns"}});
  const bool fp8 = is_fp8(p.dtype);
  if (p.v_layout == ATTN_V_COLUMNS && (!fp8 || is_group(p))) {
    refuse("v_layout", p.v_layout, "columns are for fp8 in batch mode: set it to ",
           static_cast<int>(ATTN_V_ROWS), " (rows)");
  }
  const auto validate_scale = [](const char* field, float scale, bool has, const char* of) {
    if (has && !(std::isfinite(scale) && scale > 0)) {
      refuse(field, scale, "fp8 needs a positive and finite scale: 1 where there is none");
    }
    if (!has && scale != 0) refuse(field, scale, "belongs to ", of, ": leave it 0");
  };
  validate_scale("descale_q", p.descale_q, fp8, "fp8");
  validate_scale("descale_k", p.descale_k, fp8, "fp8");
  validate_scale("descale_v", p.descale_v, fp8, "fp8");
  validate_scale("scale_o", p.scale_o, fp8 && !p.o_dtype, fp8 ? "an o of fp8" : "fp8");
  if (!fp8) return;
  const auto require_normal = [](const char* product, double value) {
    if (value < std::numeric_limits<float>::min() || value > std::numeric_limits<float>::max()) {
      refuse(product, value, "must be a normal number in fp32: choose other scales");
    }
  };
  require_normal("softmax_scale * descale_q * descale_k", score_scale(p));
  require_normal(p.o_dtype ? "descale_v" : "descale_v * scale_o", output_scale(p));
  if (p.device_type != ATTN_DEVICE_CPU) validate_v_on_gpu(p);
}

// Its kernel takes o and lse as they have been written: those of fp8 write no lse.
void validate_sink(const Problem& p) {
  if (p.sink && is_fp8(p.dtype) && p.device_type != ATTN_DEVICE_CPU) {
    fail(Status::kUnsupported, Field("sink"),
         " is set, but on the GPU a sink needs q, k and v of fp16 or ",
         "bf16: quantise later, or leave sink NULL");
  }
}

class Forward final : public Pass {
 public:
  constexpr Forward() : Pass("forward", "attn_fwd_workspace_size", true) {}

  Operands operands(const Problem& p) const override {
    Operands all;
    Extents value = key_extents(p, p.heads_k, p.head_size_v);
    if (p.v_layout == ATTN_V_COLUMNS) {
      value = {p.batch, p.head_size_v, p.heads_k, p.seqlen_k, p.head_size_v};
    }
    all.add({"q", &Problem::q, query_extents(p, p.head_size_qk), false, Access::kRead});
    all.add({"k", &Problem::k, key_extents(p, p.heads_k, p.head_size_qk), false, Access::kRead});
    all.add({"v", &Problem::v, value, true, Access::kRead});
    all.add({"o", &Problem::o, query_extents(p, p.head_size_v), true, Access::kWritten});
    all.add_bias(p);
    return all;
  }

  bool has_work(const Problem& p) const override {
    // On a GPU only a kernel knows which sequences min_seqlen_q leaves out, which rows are padding,
    // and the sink.
    const bool kernel_knows = p.min_seqlen_q > 0 || p.sink || is_padded(p);
    return has_scores(p) || (kernel_knows && query_rows(p) != 0);
  }

  uint64_t workspace_size(const Problem& p) const override {
    WorkspaceLayout layout;
    return layout.add({p.most_parts, query_rows(p), p.heads_q, int64_t{sizeof(float)}}).size;
  }

  bool chooses_provider() const override { return true; }
  bool takes_padding() const override { return true; }
  bool takes_padded_batches() const override { return true; }

  void ask(const Problem& p, Request* request) const override {
    request->spare_lse = p.spare_lse;
    request->sink = p.sink != nullptr;
    request->traits.lse |= request->sink;
    request->takes_v3 = takes_v3(p);
    request->asm_main = Kind::kFwdAsm;
    request->not_asm = why_not_asm(p);
    if (!request->not_asm) request->asm_by_name = why_asm_by_name(p);
  }

  uint32_t hazards(const Request& request, const kernels::Row& row) const override {
    return asm_hazards(request, row);
  }

  Plan plan(const LaunchTable& table, const Request& request) const override {
    Plan plan = plan_by_provider(
        request, [&] { return plan_asm(table, request); }, [&] { return plan_ck(table, request); });
    if (request.sink) plan.add(Kind::kSink, pick_kernel(table, Kind::kSink, request));
    return plan;
  }

  Plan plan_ck(const LaunchTable& table, const Request& request) const {
    if (request.takes_v3) {
      const Plan v3 = plan_kernels(table, kV3Kernels, request);
      if (v3.is_complete()) return v3;
    }
    Plan plan = plan_kernels(table, kKernels, request);
    if (!plan.is_complete() && request.spare_lse) {
      Request with_lse = request;
      with_lse.traits.lse = true;
      Plan spare = plan_kernels(table, kKernels, with_lse);
      spare.spare_lse = true;
      if (spare.is_complete()) plan = spare;
    }
    return plan;
  }

  int64_t parts(const Request&, const Plan& plan) const override { return plan.spare_lse; }

  int64_t most_parts(const LaunchTable& table, const Problem& p) const override {
    if (!has_work(p)) return 0;
    if (keeps_lse(p)) return 1;
    if (!p.spare_lse) return 0;
    // Where assembly serves a call it needs no workspace: it takes any lse, or none.
    Request request = make_request(p, {});
    request.preference = ATTN_KERNELS_CK;
    request.traits.rounding = {};
    return attention::most_parts(table, request);
  }

  void launch(const Problem& p, const Plan& plan, Queue* queue) const override {
    kernels::LaunchArgs args = launch_args(p);
    if (plan.spare_lse || keeps_lse(p)) args.lse = static_cast<float*>(p.workspace);
    if (is_fp8(p.dtype)) {
      // Upstream's kernels round exp(score - greatest score), which is 1 at most, to fp8: as a
      // multiple that uses all of its range. Their sums are not divided by that again.
      kernels::Features& f = args.features;
      f.scale_p = runtime::fp8_largest(p.dtype == ATTN_DTYPE_FP8_E4M3 ? runtime::Fp8::kE4m3
                                                                      : runtime::Fp8::kE4m3Fnuz);
      f.scale_o = static_cast<float>(output_scale(p) / f.scale_p);
    }
    queue->launch(plan, args);
  }

  void compute(const Problem& p) const override { reference_fwd(p); }
};

}  // namespace

const Pass& forward_pass() {
  static constexpr Forward pass;
  return pass;
}

Problem read(const attn_fwd_args* given, Pointers pointers) {
  Problem p = read_problem(given, forward_pass());
  validate_problem(&p, pointers);
  validate_bias(p);
  validate_o_dtype(p);
  validate_fp8(p);
  validate_sink(p);
  validate_min_seqlen_q(p);
  p.spare_lse =
      !p.lse && p.device_type != ATTN_DEVICE_CPU && (p.workspace || pointers == Pointers::kIgnored);
  make_canonical(&p);
  return p;
}

}  // namespace AITER_ATTN_NAMESPACE::attention
