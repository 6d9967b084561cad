// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The few declarations of Composable Kernel's ck_tile that callers of aiter::mha_fwd and mha_bwd
// use. Where Composable Kernel's own headers come first among the include directories, theirs
// are taken, and serve as well.
#pragma once

#include <cstdint>

#if defined(__HIP__) || defined(__HIP_PLATFORM_AMD__)
#include <hip/hip_runtime.h>
#else
typedef struct ihipStream_t* hipStream_t;  // as HIP declares it
#endif

namespace ck_tile {

using index_t = int32_t;
using long_index_t = int64_t;

struct stream_config {
  hipStream_t stream_id_ = nullptr;
  bool time_kernel_ = false;  // the call is timed, waits for its end, and returns milliseconds
  int log_level_ = 0;         // not read
  int cold_niters_ = 3;       // with time_kernel_: runs before those that are timed
  int nrepeat_ = 10;          // with time_kernel_: runs of which the mean is returned
  bool is_gpu_timer_ = true;  // not read: events of the GPU are the clock
  bool flush_cache_ = false;  // not read
  int rotating_count_ = 1;    // not read
};

#if defined(__HIP__)
using half_t = _Float16;
using bf16_t = uint16_t;

__host__ __device__ inline float bf16_to_float(bf16_t x) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(x) << 16);
}

// To nearest, ties to even; a NaN stays one.
__host__ __device__ inline bf16_t float_to_bf16(float x) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<bf16_t>(bits >> 16 | 0x40u);
  return static_cast<bf16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
#endif

}  // namespace ck_tile
