/* Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
 *
 * Attention forward and backward on the CPU from C. With one key o is v, dv is dout, and no score
 * matters: dq and dk are 0. */
#include <aiter/attn.h>
#include <aiter/norm.h>
#include <stdio.h>
#include <string.h>

enum { kHeadSize = 4 };

static attn_tensor row(float* data) {
  attn_tensor tensor = {data, kHeadSize, kHeadSize, kHeadSize};
  return tensor;
}

static int failed(void) {
  fprintf(stderr, "%s\n", attn_last_error());
  return 1;
}

int main(void) {
  float q[kHeadSize] = {1, -2, 3, 4}, k[kHeadSize] = {2, 3, 5, 7}, v[kHeadSize] = {4, 3, 2, 1};
  float dout[kHeadSize] = {1, 2, 4, 8}, zero[kHeadSize] = {0};
  float o[kHeadSize], dq[kHeadSize], dk[kHeadSize], dv[kHeadSize], lse[1];

  attn_problem problem;
  memset(&problem, 0, sizeof(problem));
  problem.struct_size = sizeof(problem);
  problem.mode = ATTN_MODE_BATCH;
  problem.device_type = ATTN_DEVICE_CPU;
  problem.dtype = ATTN_DTYPE_FP32;
  problem.batch = problem.heads_q = problem.heads_k = problem.seqlen_q = problem.seqlen_k = 1;
  problem.head_size_qk = problem.head_size_v = kHeadSize;
  problem.softmax_scale = 0.5F;
  problem.window_left = problem.window_right = -1;

  attn_fwd_args fwd;
  memset(&fwd, 0, sizeof(fwd));
  fwd.struct_size = sizeof(fwd);
  fwd.problem = &problem;
  fwd.q = row(q);
  fwd.k = row(k);
  fwd.v = row(v);
  fwd.o = row(o);
  fwd.lse = lse;
  if (attn_fwd(&fwd) != ATTN_OK) return failed();

  attn_bwd_args bwd;
  memset(&bwd, 0, sizeof(bwd));
  bwd.struct_size = sizeof(bwd);
  bwd.problem = &problem;
  bwd.q = row(q);
  bwd.k = row(k);
  bwd.v = row(v);
  bwd.o = row(o);
  bwd.dout = row(dout);
  bwd.lse = lse;
  bwd.dq = row(dq);
  bwd.dk = row(dk);
  bwd.dv = row(dv);
  if (attn_bwd(&bwd) != ATTN_OK) return failed();

  if (memcmp(o, v, sizeof(o)) != 0 || memcmp(dv, dout, sizeof(dv)) != 0) return 2;
  if (memcmp(dq, zero, sizeof(dq)) != 0 || memcmp(dk, zero, sizeof(dk)) != 0) return 3;
  /* 0.5 q k = 0.5 (2 - 6 + 15 + 28) */
  if (lse[0] != 19.5F) return 4;
  printf("right; %d kernels\n", (int)attn_kernel_count());
  return 0;
}
