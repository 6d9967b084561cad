// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A kernel that uses what attention kernels use of the toolchain: HIP's headers, the C++ library,
// device libraries (expf), the arch's matrix unit and an assertion with a path in it.
#include <hip/hip_runtime.h>

#include <cassert>
#include <type_traits>

using Vector4 = __attribute__((__vector_size__(4 * sizeof(float)))) float;
using Vector8 = __attribute__((__vector_size__(8 * sizeof(float)))) float;
using Halves8 = __attribute__((__vector_size__(8 * sizeof(_Float16)))) _Float16;

struct ScaleArguments {
  const float* in;
  float* out;
  float factor;
};

extern "C" __global__ void scale(ScaleArguments a) {
  static_assert(std::is_trivially_copyable_v<ScaleArguments>);
  assert(a.in != nullptr && __FILE__[0] != '/');
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
#if defined(__GFX12__)
  Halves8 in, factor;
  for (int k = 0; k < 8; ++k) in[k] = a.in[i], factor[k] = a.factor;
  Vector8 sum = {};
  sum = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(in, factor, sum);
#else
  Vector4 sum = {};
  sum = __builtin_amdgcn_mfma_f32_16x16x4f32(a.in[i], a.factor, sum, 0, 0, 0);
#endif
  a.out[i] = expf(sum[0]) + __AMDGCN_WAVEFRONT_SIZE;
}
