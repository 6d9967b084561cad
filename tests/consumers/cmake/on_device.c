/* Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
 *
 * Attention forward and backward on a GPU from C: fp16, batch mode, the causal mask. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "aiter/attn.h"

/* Contiguous arrays on the current device, [heads] between rows and elements; those of keys have as
 * many heads as those of queries. */
struct arrays {
  void *q, *k, *v, *o, *dout, *dq, *dk, *dv;
  float* lse;
};

static attn_tensor rows(void* data, int length, int heads, int size) {
  attn_tensor tensor = {data, (int64_t)length * heads * size, (int64_t)heads * size, size};
  return tensor;
}

/* An attn_status. allocate gives memory of the device. */
__attribute__((visibility("default"))) int attend(const struct arrays* a, int batch, int heads,
                                                  int seqlen_q, int seqlen_k, int size, float scale,
                                                  void* (*allocate)(size_t bytes), void* stream) {
  attn_problem problem;
  memset(&problem, 0, sizeof(problem));
  problem.struct_size = sizeof(problem);
  problem.mode = ATTN_MODE_BATCH;
  problem.device_type = ATTN_DEVICE_ROCM;
  problem.stream = stream;
  problem.dtype = ATTN_DTYPE_FP16;
  problem.batch = batch;
  problem.heads_q = problem.heads_k = heads;
  problem.head_size_qk = problem.head_size_v = size;
  problem.seqlen_q = seqlen_q;
  problem.seqlen_k = seqlen_k;
  problem.softmax_scale = scale;
  problem.mask = ATTN_MASK_BOTTOM_RIGHT;
  problem.window_left = -1;

  attn_fwd_args fwd;
  memset(&fwd, 0, sizeof(fwd));
  fwd.struct_size = sizeof(fwd);
  fwd.problem = &problem;
  fwd.q = rows(a->q, seqlen_q, heads, size);
  fwd.k = rows(a->k, seqlen_k, heads, size);
  fwd.v = rows(a->v, seqlen_k, heads, size);
  fwd.o = rows(a->o, seqlen_q, heads, size);
  fwd.lse = a->lse;
  attn_status status = attn_fwd(&fwd);

  attn_bwd_args bwd;
  memset(&bwd, 0, sizeof(bwd));
  bwd.struct_size = sizeof(bwd);
  bwd.problem = &problem;
  bwd.q = fwd.q;
  bwd.k = fwd.k;
  bwd.v = fwd.v;
  bwd.o = fwd.o;
  bwd.lse = a->lse;
  bwd.dout = rows(a->dout, seqlen_q, heads, size);
  bwd.dq = rows(a->dq, seqlen_q, heads, size);
  bwd.dk = rows(a->dk, seqlen_k, heads, size);
  bwd.dv = rows(a->dv, seqlen_k, heads, size);
  if (status == ATTN_OK) status = attn_bwd_workspace_size(&bwd, &bwd.workspace_size);
  if (status == ATTN_OK) {
    if (bwd.workspace_size != 0) bwd.workspace = allocate(bwd.workspace_size);
    status = attn_bwd(&bwd);
  }
  if (status != ATTN_OK) fprintf(stderr, "%s\n", attn_last_error());
  return status;
}
