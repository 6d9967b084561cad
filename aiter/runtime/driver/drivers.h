// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The drivers: each is in a file of its name.
#pragma once

#include <cstdint>
#include <memory>

#include "aiter/runtime/driver/driver.h"

namespace AITER_ATTN_NAMESPACE::runtime {

// The environment variable that names the runtime's file, instead of looking for it.
inline constexpr char kCudaLibraryVariable[] = "AITER_ATTN_CUDA_LIBRARY";

// Opens the CUDA driver: the file that AITER_ATTN_CUDA_LIBRARY names, else libcuda.so.1. Throws
// Status::kDriver where there is none, or where it lacks a function or a device.
std::unique_ptr<Driver> open_cuda();

// Opens the HIP runtime: the file that AITER_ATTN_HIP_LIBRARY names; else the libamdhip64 that the
// process has loaded already; else the newest of hip_versions.h's. Throws Status::kDriver where
// there is none, or where it lacks a function or a device.
std::unique_ptr<Driver> open_hip();

struct KnownDriver {
  int32_t device_type;  // DLDeviceType
  const char* name;
  std::unique_ptr<Driver> (*open)();
};

inline constexpr KnownDriver kDrivers[] = {
    {2, "CUDA", open_cuda},  // kDLCUDA
    {10, "HIP", open_hip},   // kDLROCM
};

}  // namespace AITER_ATTN_NAMESPACE::runtime
