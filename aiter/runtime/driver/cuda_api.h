// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The few declarations of the CUDA driver's stable C ABI that are used, so that neither building
// nor loading this library needs CUDA. cuda_api_test.cc compares them with CUDA's own header.
#pragma once

#include <cstddef>
#include <cstdint>

namespace AITER_ATTN_NAMESPACE::runtime::cuda {

using Error = int;   // CUresult
using Device = int;  // CUdevice
inline constexpr Error kSuccess = 0;
inline constexpr Error kErrorOutOfMemory = 2;
inline constexpr Error kErrorNoDevice = 100;
inline constexpr Error kErrorInvalidImage = 200;
inline constexpr Error kErrorNoBinaryForGpu = 209;
inline constexpr Error kErrorInvalidPtx = 218;
inline constexpr Error kErrorUnsupportedPtxVersion = 222;
inline constexpr Error kErrorInvalidClusterSize = 912;

// CUdevice_attribute
inline constexpr int kMultiprocessorCount = 16;
inline constexpr int kComputeCapabilityMajor = 75;
inline constexpr int kComputeCapabilityMinor = 76;
inline constexpr int kMaxSharedMemoryPerBlockOptin = 97;

// CUfunction_attribute
inline constexpr int kMaxDynamicSharedSizeBytes = 8;
inline constexpr int kNonPortableClusterSizeAllowed = 14;

inline constexpr int kEarlyStartsInGraphs = 12030;   // of cuDriverGetVersion: 12.3
inline constexpr int kStreamCaptureModeRelaxed = 2;  // CUstreamCaptureMode

// The same of all devices, by the CUDA C++ Programming Guide, "Compute Capabilities".
inline constexpr unsigned kGreatestGrid[3] = {0x7fffffff, 65535, 65535};

// The keys of a launch's `extra`.
inline void* const kLaunchParamEnd = nullptr;
inline void* const kLaunchParamBufferPointer = reinterpret_cast<void*>(1);
inline void* const kLaunchParamBufferSize = reinterpret_cast<void*>(2);

// CUlaunchAttribute, of which one id is used.
struct LaunchAttribute {
  static constexpr int kProgrammaticStreamSerialization = 6;
  int id;
  union alignas(8) {
    char bytes[64];
    int allowed;
  } value;
};

// CUlaunchConfig
struct LaunchConfig {
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned shared_bytes;
  void* stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

using Init = Error (*)(unsigned flags);
using GetErrorName = Error (*)(Error, const char** name);
using GetErrorString = Error (*)(Error, const char** text);
using DriverGetVersion = Error (*)(int*);
using DeviceGetCount = Error (*)(int*);
using DeviceGetAttribute = Error (*)(int* value, int attribute, Device);
using DevicePrimaryCtxRetain = Error (*)(void** context, Device);
using CtxGetCurrent = Error (*)(void** context);
using CtxSetCurrent = Error (*)(void* context);
using ThreadExchangeStreamCaptureMode = Error (*)(int* mode);
using ModuleLoadData = Error (*)(void** module, const void* image);
using ModuleGetFunction = Error (*)(void** function, void* module, const char* name);
using FuncSetAttribute = Error (*)(void* function, int attribute, int value);
using OccupancyMaxActiveBlocks = Error (*)(int* blocks, void* function, int threads,
                                           size_t dynamic_shared_bytes);
using OccupancyMaxActiveClusters = Error (*)(int* clusters, void* function, const LaunchConfig*);
using LaunchKernelEx = Error (*)(const LaunchConfig*, void* function, void** params, void** extra);
using MemsetD2D8Async = Error (*)(uint64_t data, size_t pitch, unsigned char value, size_t width,
                                  size_t height, void* stream);
using MemsetD32Async = Error (*)(uint64_t data, unsigned value, size_t count, void* stream);

}  // namespace AITER_ATTN_NAMESPACE::runtime::cuda
