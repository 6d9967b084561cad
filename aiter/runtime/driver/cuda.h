// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The CUDA driver: libcuda, found at run time.
#pragma once

#include <memory>

#include "aiter/runtime/driver/driver.h"

namespace AITER_ATTN_NAMESPACE::runtime {

// The environment variable that names the CUDA driver's file, instead of looking for it.
inline constexpr char kCudaLibraryVariable[] = "AITER_ATTN_CUDA_LIBRARY";

// Opens the CUDA driver: the file that AITER_ATTN_CUDA_LIBRARY names, else libcuda.so.1. Throws
// Status::kDriver where there is none, or where it lacks a function or a device.
std::unique_ptr<Driver> open_cuda();

}  // namespace AITER_ATTN_NAMESPACE::runtime
