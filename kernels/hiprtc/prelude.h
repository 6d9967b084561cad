// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The beginning of a kernel's source where hipRTC compiles it.
//
// Sources and upstream's headers are written for clang, with the C++ library and HIP's host API.
// hipRTC has neither: it puts a header of its own before the source, which has HIP for the device,
// and types of the C++ library by the same names. hiprtc.cc renames those on the command line.
#pragma once

#undef std
#undef dim3
#undef int64_t
#undef uint64_t

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <sstream>

// Those of a kernel do nothing where upstream is compiled for release.
#undef assert
#define assert(condition)

namespace std {
// libstdc++ has them from GCC 14 on; clang's own headers for HIP give them otherwise.
using ::acosf;
using ::asinf;
using ::atanf;
using ::ceilf;
using ::cosf;
using ::coshf;
using ::exp2f;
using ::expf;
using ::floorf;
using ::logf;
using ::powf;
using ::sinf;
using ::sinhf;
using ::tanf;
using ::tanhf;
}  // namespace std

// Of HIP's host API, as much as upstream's headers name in host functions. None is called or
// linked: the device has no such functions.
struct dim3 {
  unsigned x, y, z;
  constexpr __host__ __device__ dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1)
      : x(x_), y(y_), z(z_) {}
};
struct hipDeviceProp_t {
  char gcnArchName[256];
  int major, minor, multiProcessorCount;
};
enum hipError_t { hipSuccess };
using hipEvent_t = struct ihipEvent_t*;
using hipStream_t = struct ihipStream_t*;

hipError_t __hipPushCallConfiguration(dim3, dim3, size_t, hipStream_t);
hipError_t hipDeviceSynchronize();
hipError_t hipEventCreate(hipEvent_t*);
hipError_t hipEventDestroy(hipEvent_t);
hipError_t hipEventElapsedTime(float*, hipEvent_t, hipEvent_t);
hipError_t hipEventRecord(hipEvent_t, hipStream_t);
hipError_t hipEventSynchronize(hipEvent_t);
hipError_t hipGetDevice(int*);
hipError_t hipGetDeviceProperties(hipDeviceProp_t*, int);
const char* hipGetErrorString(hipError_t);
hipError_t hipGetLastError();
hipError_t hipMemset(void*, int, size_t);
hipError_t hipMemsetAsync(void*, int, size_t, hipStream_t);
hipError_t hipPeekAtLastError();
hipError_t hipStreamSynchronize(hipStream_t);

namespace ck_tile {
// Host functions that upstream leaves out for hipRTC, and calls.
bool is_gfx11_supported();
bool is_gfx12_supported();
}  // namespace ck_tile
