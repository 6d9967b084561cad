// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "kernels/no_keys/no_keys_kernel.h"

extern "C" __global__ __launch_bounds__(no_keys::kBlockSize) void attn_no_keys_bf16(
    no_keys::Args args) {
  no_keys::fill(args);
}
