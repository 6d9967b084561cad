// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "kernels/sum_heads/sum_heads_kernel.h"

extern "C" __global__ __launch_bounds__(sum_heads::kBlockSize) void attn_sum_heads_fp16(
    sum_heads::Args args) {
  sum_heads::sum_heads<_Float16>(args);
}
