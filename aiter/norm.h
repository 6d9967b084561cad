/* Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
 *
 * The C ABI of the norms: LayerNorm, RMSNorm and softmax over the rows of matrices, forward and
 * backward. The rules of attn.h hold here as well; attn_rows takes the place of attn_tensor.
 *
 * On the CPU they are computed in double, and each result is rounded once to its type. On NVIDIA
 * GPUs from sm_70 on and on AMD GPUs of the gfx9 family they are computed in float, by kernels that
 * are compiled at the first call of a shape (operation, dtypes, hidden size, alignment): by NVRTC
 * or hipRTC, where they are not in a cache. Rows may hold any number, infinity or NaN.
 *
 * On a GPU, any alignment of elements is served; rows of a multiple of 16 bytes that start at
 * multiples of 16 bytes are the fastest.
 */
#ifndef AITER_NORM_H_
#define AITER_NORM_H_

#include "aiter/attn.h"

#define attn_norm_fwd ATTN_SYMBOL(norm_fwd)
#define attn_norm_bwd ATTN_SYMBOL(norm_bwd)
#define attn_norm_bwd_workspace_size ATTN_SYMBOL(norm_bwd_workspace_size)
#define attn_softmax_fwd ATTN_SYMBOL(softmax_fwd)
#define attn_softmax_bwd ATTN_SYMBOL(softmax_bwd)

#ifdef __cplusplus
extern "C" {
#endif

typedef enum attn_norm_kind {
  ATTN_NORM_LAYER = 1, /* (x - mean) * rstd * gamma + beta */
  ATTN_NORM_RMS = 2    /* x * rstd * gamma */
} attn_norm_kind;

/* Scales that a forward pass makes for an fp8 y: y is the number stored times its scale. NaN takes
 * no part in them. */
typedef enum attn_norm_scales {
  ATTN_NORM_SCALES_NONE = 0,
  /* float [rows]: the largest |y| of a row becomes the largest number of the type. At least 2^-100.
   */
  ATTN_NORM_SCALES_ROWS = 1,
  /* uint8_t [rows, hidden / 32], contiguous: MXFP8. The exponent, with 127 added (E8M0), of the
   * least power of two by which each number of a block of 32 columns can be divided for the type to
   * have it. hidden is a multiple of 32. */
  ATTN_NORM_SCALES_BLOCKS = 2
} attn_norm_scales;

typedef enum attn_softmax_mask {
  ATTN_SOFTMAX_MASK_NONE = 0,
  /* Where the mask is 1 the scaled score is -10000; a row whose largest score is that gives
   * zeros, and a NaN that is not masked makes its row NaN. */
  ATTN_SOFTMAX_MASK_EXPLICIT = 1,
  /* Query q has the first q + columns - queries + 1 columns; the others give zeros and are not
   * read. With queries = columns this is the upper-triangular mask. */
  ATTN_SOFTMAX_MASK_CAUSAL = 2
} attn_softmax_mask;

/* A matrix: rows are `stride` elements apart, columns are contiguous. Inputs may have any stride
 * from 0 on; rows of outputs do not overlap. Outputs share no byte with anything else of the call;
 * but of attn_norm_fwd y may be x and sum may be residual: the same data, stride and size of
 * elements. Elements are aligned to their size. data may be NULL where there are no rows. This
 * struct is frozen. */
typedef struct attn_rows {
  void* data;
  int64_t stride;
} attn_rows;

/* Bytes of a barrier: memory of a GPU by which the workgroups of a kernel share long rows out as
 * they come. It is aligned to 4 bytes, is zeros before the first call that gets it, and is zeros
 * again when the work of a call is done. Calls whose work may run at the same time need one each:
 * keep one per stream. A graph keeps the barrier of the calls captured into it: give such calls one
 * that nothing else has, of which no two replays run at a time, or NULL. Without one (NULL) rows
 * are dealt in advance: results are the same, and some shapes take a little longer. Ignored on the
 * CPU. */
#define ATTN_NORM_BARRIER_SIZE 8

/* The part that forward and backward share. */
typedef struct attn_norm_problem {
  uint32_t struct_size;
  int32_t kind;         /* attn_norm_kind */
  int32_t device_type;  /* attn_device_type */
  int32_t device_id;    /* 0 for the CPU */
  void* stream;         /* ignored on the CPU */
  int64_t rows;         /* from 0 to 2^31 - 2^20 */
  int64_t hidden;       /* columns of a row: from 1 to 2^31 - 1, on an NVIDIA GPU to 2^31 - 2^20,
                         * on an AMD GPU to 2^27 - 8 */
  int32_t x_dtype;      /* attn_dtype of x, residual, sum, dx and dh */
  int32_t weight_dtype; /* attn_dtype of gamma, beta and their gradients */
  int32_t y_dtype;      /* attn_dtype of y and dy; fp8 is for y alone */
  int32_t zero_centred; /* 1: gamma is stored less 1; 0: as it is */
  float epsilon;        /* 0 or more, and finite */
  uint32_t reserved;    /* 0 */
} attn_norm_problem;

/* h = x + residual, rounded to its type and stored in sum; without a residual h = x.
 * mean = mean(h) (LayerNorm), rstd = 1 / sqrt(mean((h - mean)^2) + epsilon), with mean = 0 for
 * RMSNorm. y = (h - mean) * rstd * gamma + beta. gamma NULL: 1 (then zero_centred is 0). */
typedef struct attn_norm_fwd_args {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  const attn_norm_problem* problem;
  attn_rows x, y;
  attn_rows residual, sum; /* both, or neither: data NULL */
  const void* gamma;       /* [hidden], contiguous, as beta; NULL: none */
  const void* beta;        /* LayerNorm; NULL: none */
  float* mean;             /* [rows], LayerNorm; NULL: not wanted */
  float* rstd;             /* [rows]; NULL: not wanted */
  /* fp8 outputs: y is multiplied by *scale (NULL: 1) before it is rounded, and *amax becomes the
   * largest |y| before that, or stays as it is if that is larger; NULL: not wanted. */
  const float* scale;
  float* amax;
  void* barrier; /* ATTN_NORM_BARRIER_SIZE */
  /* In place of scale and amax, which are NULL then: attn_norm_scales, and their memory. */
  void* scales;
  int32_t scales_kind;
  uint32_t reserved2; /* 0 */
} attn_norm_fwd_args;

/* xhat = (x - mean) * rstd, wdy = dy * gamma:
 * dx = (wdy - mean(wdy * xhat) * xhat - mean(wdy)) * rstd + dh, for RMSNorm without mean(wdy);
 * dgamma = sum over rows of dy * xhat; dbeta = sum over rows of dy. gamma NULL: 1. */
typedef struct attn_norm_bwd_args {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  const attn_norm_problem* problem;
  attn_rows x, dy, dx; /* x: sum, where there was a residual */
  attn_rows dh;        /* the gradient of the residual stream; data NULL: none */
  const void* gamma;
  const float* mean; /* LayerNorm; as attn_norm_fwd wrote it */
  const float* rstd;
  void* dgamma; /* NULL: not wanted, as where there is no gamma */
  void* dbeta;  /* LayerNorm; NULL: not wanted */
  /* attn_norm_bwd_workspace_size bytes on the device, 256-byte aligned; NULL where that is 0. */
  void* workspace;
  uint64_t workspace_size;
} attn_norm_bwd_args;

typedef struct attn_softmax_problem {
  uint32_t struct_size;
  int32_t mask_kind; /* attn_softmax_mask */
  int32_t device_type;
  int32_t device_id;
  void* stream;
  int64_t rows;        /* a multiple of queries, from 0 to 2^31 - 2^20 */
  int64_t columns;     /* as hidden */
  int64_t queries;     /* rows of one attention matrix; without a mask any number from 1 on */
  int64_t mask_repeat; /* explicit mask: matrices, one after the other, that share one; else 0 */
  int32_t dtype;       /* attn_dtype */
  float scale;         /* finite */
} attn_softmax_problem;

/* y = exp(s - max(s)) / sum(exp(s - max(s))) over each row of s = scale * x, masked. */
typedef struct attn_softmax_fwd_args {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  const attn_softmax_problem* problem;
  attn_rows x, y;
  /* Explicit mask: [rows / queries / mask_repeat, queries, columns], contiguous; else NULL. */
  const uint8_t* mask;
  void* barrier; /* ATTN_NORM_BARRIER_SIZE */
} attn_softmax_fwd_args;

/* dx = scale * y * (dy - sum(y * dy)), with the y of attn_softmax_fwd. */
typedef struct attn_softmax_bwd_args {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  const attn_softmax_problem* problem;
  attn_rows y, dy, dx;
  void* barrier; /* ATTN_NORM_BARRIER_SIZE */
} attn_softmax_bwd_args;

ATTN_API attn_status attn_norm_fwd(const attn_norm_fwd_args* args);
ATTN_API attn_status attn_norm_bwd(const attn_norm_bwd_args* args);
/* Bytes of workspace that attn_norm_bwd needs for args, as it will get them but for the workspace.
 * 0 on the CPU, and on a GPU for few rows or where neither dgamma nor dbeta is wanted, unless rows
 * are longer than registers hold. The size follows from how many workgroups the device holds at a
 * time: the kernels are compiled, if they are not yet. */
ATTN_API attn_status attn_norm_bwd_workspace_size(const attn_norm_bwd_args* args, uint64_t* bytes);
ATTN_API attn_status attn_softmax_fwd(const attn_softmax_fwd_args* args);
ATTN_API attn_status attn_softmax_bwd(const attn_softmax_bwd_args* args);

#ifdef __cplusplus
}
#endif
#endif /* AITER_NORM_H_ */
