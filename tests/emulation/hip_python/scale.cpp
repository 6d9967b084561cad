// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// An application's own kernel, before this library's on the same stream.
#ifndef __HIPCC_RTC__  // which has all of it built in
#include <hip/hip_runtime.h>
#endif

extern "C" __global__ void scale(_Float16* x, float factor, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) x[i] = static_cast<_Float16>(static_cast<float>(x[i]) * factor);
}
