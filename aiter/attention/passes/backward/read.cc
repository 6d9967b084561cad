// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/passes/backward/backward.h"
#include "aiter/attention/passes/backward/compute.h"
#include "aiter/attention/problem/checks.h"
#include "aiter/attention/problem/validate.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

void validate_flag(const char* field, int32_t value) {
  if (value != 0 && value != 1) refuse(field, value, "must be 0 or 1");
}

void validate_dbias(const Problem& p) {
  if (p.bias_grad && p.bias != ATTN_BIAS_ELEMENTWISE) {
    refuse("bias_grad", 1, "must be 0, as the problem's bias is not ATTN_BIAS_ELEMENTWISE");
  }
  if (!p.bias_grad) {
    require_unset("dbias.data", p.dbias_matrix.data,
                  "bias_grad is 0: leave it zero, or set bias_grad to 1");
  }
  constexpr int32_t kAll = ATTN_DBIAS_SUM_BATCH | ATTN_DBIAS_SUM_HEADS | ATTN_DBIAS_SUM_QUERIES;
  if (p.dbias_sums & ~kAll) {
    refuse("dbias_sums", p.dbias_sums, "must be a sum of ", int{ATTN_DBIAS_SUM_BATCH}, " (batch), ",
           int{ATTN_DBIAS_SUM_HEADS}, " (heads) and ", int{ATTN_DBIAS_SUM_QUERIES}, " (queries)");
  }
  if (p.bias_grad && is_padded(p) && p.device_type != ATTN_DEVICE_CPU) {
    fail(Status::kUnsupported, Field("bias_grad"), " is 1 with padded sequences, but on the GPU ",
         "dbias is written whole: pass sequences without padding, or arrays in host memory");
  }
  if (p.dbias_sums && !p.bias_grad) {
    refuse("dbias_sums", p.dbias_sums, "must be 0, as bias_grad is 0");
  }
  if (is_group(p) && sums_dbias(p, ATTN_DBIAS_SUM_BATCH)) {
    refuse("dbias_sums", p.dbias_sums, "must be without ", int{ATTN_DBIAS_SUM_BATCH},
           " (batch) in group mode, whose dbias has no entry for each sequence");
  }
}

void validate_cap(const Problem& p) {
  if (p.logits_soft_cap > 0 && p.device_type != ATTN_DEVICE_CPU) {
    fail(Status::kUnsupported, Field("logits_soft_cap"), " is ", p.logits_soft_cap,
         ", but Composable Kernel has no backward kernel with a cap: pass arrays in host memory, ",
         "or compute without a cap");
  }
}

// The other gradients take it from o and lse.
void validate_dsink(const Problem& p) {
  if (!p.sink) require_unset("dsink", p.dsink, "sink is NULL: leave dsink NULL, or set sink");
  require_aligned("dsink", p.dsink, alignof(float));
}

}  // namespace

Problem read(const attn_bwd_args* given, Pointers pointers) {
  Problem p = read_problem(given, backward_pass());
  validate_flag("bias_grad", p.bias_grad);
  validate_flag("deterministic", p.deterministic);
  validate_problem(&p, pointers);
  validate_bias(p);
  validate_dbias(p);
  validate_dsink(p);
  refuse_fp8(p);
  validate_cap(p);
  if (pointers == Pointers::kRequired && !p.lse && query_rows(p) > 0) {
    refuse("lse", "NULL", "backward needs the lse of forward");
  }
  make_canonical(&p);
  return p;
}

}  // namespace AITER_ATTN_NAMESPACE::attention
