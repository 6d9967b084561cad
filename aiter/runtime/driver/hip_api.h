// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The few declarations of HIP's stable C ABI that the driver uses, so that neither building nor
// loading this library needs ROCm. hip_api_test.cc compares them with HIP's own header.
#pragma once

#include <cstddef>

namespace AITER_ATTN_NAMESPACE::runtime::hip {

using Error = int;  // hipError_t
inline constexpr Error kSuccess = 0;
inline constexpr Error kErrorOutOfMemory = 2;
inline constexpr Error kErrorNoDevice = 100;

// The keys of hipModuleLaunchKernel's `extra`.
inline void* const kLaunchParamBufferPointer = reinterpret_cast<void*>(1);
inline void* const kLaunchParamBufferSize = reinterpret_cast<void*>(2);
inline void* const kLaunchParamEnd = reinterpret_cast<void*>(3);

// hipDeviceProp_tR0600, of which these few fields are read. The struct has kept its size and
// layout under this name since ROCm 6.0; the room behind it is for later growth.
struct DeviceProperties {
  static constexpr size_t kSize = 1472;
  static constexpr size_t kArchNameOffset = 1160;
  static constexpr size_t kArchNameSize = 256;
  static constexpr size_t kMultiprocessorsOffset = 388;
  static constexpr size_t kLdsOffset = 296;
  alignas(16) char bytes[4096];
};

using GetErrorName = const char* (*)(Error);
using GetErrorString = const char* (*)(Error);
using GetLastError = Error (*)();
using RuntimeGetVersion = Error (*)(int*);  // 60240100: HIP 6.2
using GetDeviceCount = Error (*)(int*);
using GetDevice = Error (*)(int*);
using SetDevice = Error (*)(int);
using GetDeviceProperties = Error (*)(DeviceProperties*, int);
using ModuleLoadData = Error (*)(void** module, const void* image);
using ModuleGetFunction = Error (*)(void** function, void* module, const char* name);
using ModuleLaunchKernel = Error (*)(void* function, unsigned grid_x, unsigned grid_y,
                                     unsigned grid_z, unsigned block_x, unsigned block_y,
                                     unsigned block_z, unsigned shared_bytes, void* stream,
                                     void** params, void** extra);
using ModuleOccupancy = Error (*)(int* workgroups, void* function, int threads, size_t dynamic_lds);
using Memset2DAsync = Error (*)(void* data, size_t pitch, int value, size_t width, size_t height,
                                void* stream);
using MemsetD32Async = Error (*)(void* data, int value, size_t count, void* stream);

}  // namespace AITER_ATTN_NAMESPACE::runtime::hip
