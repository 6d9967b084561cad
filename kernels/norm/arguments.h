// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
// The arguments of the norm and softmax kernels, for devices and for the hosts that launch them. It
// includes nothing, as the kernels do.
//
// Strides are in elements. x, gamma and y are of the types NORM_X, NORM_W and NORM_Y.
#pragma once

// CUDA and HIP have functions of the name `norm`.
namespace row_kernels {

/// A matrix, rows `stride` elements apart; at most 2^31 - 2^20 rows, so that a row's number and the
/// next ones are ints.
struct Matrix {
  const void* data;
  long long stride;
};

/// In device memory: zeros before the first launch, and again after every launch.
struct TurnCounter {
  unsigned dealt, retired;
};

struct NormForwardArguments {
  Matrix x, residual;
  void* y;
  long long y_stride;
  void* sum;  // x + residual, with NORM_ADD
  long long sum_stride;
  const void* gamma;  // not read with NORM_GAMMA 0
  const void* beta;
  float* mean;  // of LayerNorm; may be null, as rstd and amax may be
  float* rstd;
  const float* scale;
  float* amax;  // with NORM_SCALES: the scales, float of rows or a byte of blocks
  int rows;
  float epsilon;
  int groups;            // clusters of the grid
  TurnCounter* counter;  // with ROW_ON_DEMAND; null otherwise
};

struct NormBackwardArguments {
  Matrix x, dy, dh;  // dh with NORM_ADD, of the type of x
  void* dx;
  long long dx_stride;
  const void* gamma;
  const float* mean;  // of LayerNorm
  const float* rstd;
  void* dgamma;  // parts: groups x ROW_HIDDEN floats; with NORM_FEW_ROWS the sums, as gamma is
  void* dbeta;   // the same of LayerNorm; the sums may be null
  int rows;
  int groups;  // clusters of the grid that take rows
  // NVRTC makes slower code of a kernel that has more than 128 bytes of arguments.
};
static_assert(sizeof(NormBackwardArguments) <= 128, "");

struct NormLongArguments {
  Matrix x, dy, dh;  // dh with NORM_ADD, of the type of x
  void* dx;
  long long dx_stride;
  const void* gamma;
  const float* mean;  // of LayerNorm
  const float* rstd;
  float* slices;        // rows x slices of 2048 columns x 1, of LayerNorm 2
  float* dgamma_parts;  // grid.y x ROW_HIDDEN, with NORM_SUMS
  float* dbeta_parts;   // the same of LayerNorm
  int rows;
  int rows_per_part;
};

struct NormReduceArguments {
  const float* parts[2];  // of dgamma and dbeta: count x ROW_HIDDEN
  void* sum[2];           // ROW_HIDDEN elements of the type of gamma
  int count;
  int side;  // threads that share a column: a power of two
};

struct SoftmaxForwardArguments {
  Matrix x;
  void* y;
  long long y_stride;
  const unsigned char* mask;  // with EXPLICIT_MASK: (mask_batches, queries, ROW_HIDDEN), contiguous
  int queries;                // rows of one attention matrix
  int mask_repeat;            // attention matrices that share a mask, one after the other
  int rows;
  float scale;
  int groups;            // clusters of the grid
  TurnCounter* counter;  // with ROW_ON_DEMAND; null otherwise
};

struct SoftmaxBackwardArguments {
  Matrix y, dy;
  void* dx;
  long long dx_stride;
  int queries;  // rows of one attention matrix
  int rows;
  float scale;
  int groups;            // clusters of the grid
  TurnCounter* counter;  // with ROW_ON_DEMAND; null otherwise
};

}  // namespace row_kernels
