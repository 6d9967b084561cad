// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "kernels/dropout_mask/dropout_mask_kernel.h"

extern "C" __global__ __launch_bounds__(dropout_mask::kBlockSize) void attn_dropout_mask_u8(
    dropout_mask::Args args) {
  dropout_mask::write_mask(args);
}
