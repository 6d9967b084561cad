// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <utility>

#include "aiter/attention/passes/forward/forward.h"
#include "aiter/attention/problem/error.h"
#include "aiter/attention/problem/validate.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

// The scales of fp8, and v's layout.
void validate_fp8(const Problem& p) {
  if (p.v_layout != ATTN_V_ROWS && p.v_layout != ATTN_V_COLUMNS) {
    refuse("v_layout", p.v_layout, "must be ", static_cast<int>(ATTN_V_ROWS), " (rows) or ",
           static_cast<int>(ATTN_V_COLUMNS), " (columns)");
  }
  const bool fp8 = is_fp8(p.dtype);
  if (p.v_layout == ATTN_V_COLUMNS && (!fp8 || is_group(p))) {
    refuse("v_layout", p.v_layout, "columns are for fp8 in batch mode: set it to ",
           static_cast<int>(ATTN_V_ROWS), " (rows)");
  }
  for (const auto& [field, scale] :
       {std::pair("descale_q", p.descale_q), std::pair("descale_k", p.descale_k),
        std::pair("descale_v", p.descale_v), std::pair("scale_o", p.scale_o)}) {
    if (fp8 && !(std::isfinite(scale) && scale > 0)) {
      refuse(field, scale, "fp8 needs a positive and finite scale: 1 where there is none");
    }
    if (!fp8 && scale != 0) refuse(field, scale, "belongs to fp8: leave it 0");
  }
  if (!fp8) return;
  const auto require_normal = [](const char* product, double value) {
    if (value < std::numeric_limits<float>::min() || value > std::numeric_limits<float>::max()) {
      refuse(product, value, "must be a normal number in fp32: choose other scales");
    }
  };
  require_normal("softmax_scale * descale_q * descale_k", score_scale(p));
  require_normal("descale_v * scale_o", output_scale(p));
  if (p.device_type != ATTN_DEVICE_CPU && p.v_layout != ATTN_V_COLUMNS) {
    fail(Status::kUnsupported, Field("v_layout"), " is ", p.v_layout,
         " (rows), but Composable Kernel's fp8 ",
         "kernels take columns: pass v as [batch, heads_k, head_size_v, seqlen_k] with v_layout ",
         static_cast<int>(ATTN_V_COLUMNS));
  }
}

}  // namespace

Problem read(const attn_fwd_args* given, Pointers pointers) {
  const attn_fwd_args args = read_struct(given);
  require_zero<attn_fwd_args>("reserved", args.reserved);
  Problem p = {read_struct(args.problem), &forward_pass(), args.q, args.k, args.v, args.o};
  p.lse = args.lse;
  p.bias_matrix = args.bias;
  p.alibi_slopes = args.alibi_slopes;
  p.alibi_stride_batch = args.alibi_stride_batch;
  p.min_seqlen_q = args.min_seqlen_q;
  p.v_layout = args.v_layout;
  p.descale_q = args.descale_q;
  p.descale_k = args.descale_k;
  p.descale_v = args.descale_v;
  p.scale_o = args.scale_o;
  p.workspace = args.workspace;
  p.workspace_size = args.workspace_size;
  validate_problem(&p, pointers);
  validate_bias(p);
  validate_fp8(p);
  validate_min_seqlen_q(p);
  p.spare_lse =
      !p.lse && p.device_type != ATTN_DEVICE_CPU && (p.workspace || pointers == Pointers::kIgnored);
  make_canonical(&p);
  return p;
}

}  // namespace AITER_ATTN_NAMESPACE::attention
