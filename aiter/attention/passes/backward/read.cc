// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/passes/backward/backward.h"
#include "aiter/attention/passes/backward/dbias.h"
#include "aiter/attention/problem/error.h"
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
  if (!p.bias_grad && p.dbias.data) {
    fail(Status::kInvalidArgument, Field("dbias.data"),
         " is set, but bias_grad is 0: leave it zero, or set bias_grad to 1");
  }
  constexpr int32_t kAll = ATTN_DBIAS_SUM_BATCH | ATTN_DBIAS_SUM_HEADS | ATTN_DBIAS_SUM_QUERIES;
  if (p.dbias_sums & ~kAll) {
    refuse("dbias_sums", p.dbias_sums, "must be a sum of ", int{ATTN_DBIAS_SUM_BATCH}, " (batch), ",
           int{ATTN_DBIAS_SUM_HEADS}, " (heads) and ", int{ATTN_DBIAS_SUM_QUERIES}, " (queries)");
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

}  // namespace

Problem read(const attn_bwd_args* given, Pointers pointers) {
  const attn_bwd_args args = read_struct(given);
  require_zero<attn_bwd_args>("reserved", args.reserved);
  require_zero<attn_bwd_args>("reserved2", args.reserved2);
  const attn_problem problem = read_struct(args.problem);
  validate_flag("bias_grad", args.bias_grad);
  validate_flag("deterministic", args.deterministic);
  Problem p = {problem, &backward_pass(), args.q,  args.k,  args.v,
               args.o,  args.dout,        args.dq, args.dk, args.dv};
  p.lse = const_cast<float*>(args.lse);  // read only, in this pass
  p.workspace = args.workspace;
  p.workspace_size = args.workspace_size;
  p.bias_matrix = args.bias;
  p.alibi_slopes = args.alibi_slopes;
  p.alibi_stride_batch = args.alibi_stride_batch;
  p.dbias = args.dbias;
  p.bias_grad = args.bias_grad != 0;
  p.dbias_sums = args.dbias_sums;
  p.deterministic = args.deterministic != 0;
  validate_problem(&p, pointers);
  validate_bias(p);
  validate_dbias(p);
  refuse_fp8(p);
  validate_cap(p);
  make_canonical(&p);
  return p;
}

}  // namespace AITER_ATTN_NAMESPACE::attention
