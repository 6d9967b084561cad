// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "fill.h"

extern "C" __global__ __launch_bounds__(project::kBlockSize) void fill(float* values, float value) {
  project::fill(values, value);
}
