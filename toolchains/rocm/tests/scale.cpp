// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A kernel that uses what attention kernels use of the toolchain: HIP's headers, the C++ library,
// device libraries (expf), the matrix unit of gfx9 and an assertion with a path in it.
#include <hip/hip_runtime.h>

#include <cassert>
#include <type_traits>

using Vector4 = __attribute__((__vector_size__(4 * sizeof(float)))) float;

struct ScaleArguments {
  const float* in;
  float* out;
  float factor;
};

extern "C" __global__ void scale(ScaleArguments a) {
  static_assert(std::is_trivially_copyable_v<ScaleArguments>);
  assert(a.in != nullptr && __FILE__[0] != '/');
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  Vector4 sum = {};
  sum = __builtin_amdgcn_mfma_f32_16x16x4f32(a.in[i], a.factor, sum, 0, 0, 0);
  a.out[i] = expf(sum[0]) + __AMDGCN_WAVEFRONT_SIZE;
}
