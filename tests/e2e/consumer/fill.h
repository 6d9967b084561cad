// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hip/hip_runtime.h>

namespace project {

constexpr int kBlockSize = 64;

__device__ inline void fill(float* values, float value) { values[threadIdx.x] = value; }

}  // namespace project
