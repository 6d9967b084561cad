// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The HIP driver: libamdhip64, found at run time.
#pragma once

#include <memory>

#include "aiter/runtime/driver/driver.h"

namespace AITER_ATTN_NAMESPACE::runtime {

// The environment variable that names the HIP runtime's file, instead of looking for it.
inline constexpr char kHipLibraryVariable[] = "AITER_ATTN_HIP_LIBRARY";

// Opens the HIP runtime: the file that AITER_ATTN_HIP_LIBRARY names; else the libamdhip64 that the
// process has loaded already; else the newest of libamdhip64.so.7 and .6. Throws Status::kDriver
// where there is none, or where it lacks a function or a device.
std::unique_ptr<Driver> open_hip();

}  // namespace AITER_ATTN_NAMESPACE::runtime
