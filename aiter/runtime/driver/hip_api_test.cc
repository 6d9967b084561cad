// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The hand-written declarations against HIP's own header: a difference does not compile.
#include "aiter/runtime/driver/hip_api.h"

#include <gtest/gtest.h>
#include <hip/hip_runtime_api.h>

#include <cstddef>
#include <type_traits>

namespace {

namespace ours = AITER_ATTN_NAMESPACE::runtime::hip;

// Our types are HIP's but for enums, which are ints in the ABI, and pointers to opaque structs,
// which are pointers.
template <typename T>
using Abi =
    std::conditional_t<std::is_enum_v<T>, int, std::conditional_t<std::is_pointer_v<T>, void*, T>>;

template <typename F>
struct Signature;
template <typename R, typename... P>
struct Signature<R (*)(P...)> {
  using type = Abi<R>(Abi<P>...);
};

template <typename Ours, typename Theirs>
constexpr bool same =
    std::is_same_v<typename Signature<Ours>::type, typename Signature<Theirs>::type>;

static_assert(same<ours::GetErrorName, decltype(&hipGetErrorName)>);
static_assert(same<ours::GetErrorString, decltype(&hipGetErrorString)>);
static_assert(same<ours::GetLastError, decltype(&hipGetLastError)>);
static_assert(same<ours::RuntimeGetVersion, decltype(&hipRuntimeGetVersion)>);
static_assert(same<ours::GetDeviceCount, decltype(&hipGetDeviceCount)>);
static_assert(same<ours::GetDevice, decltype(&hipGetDevice)>);
static_assert(same<ours::SetDevice, decltype(&hipSetDevice)>);
static_assert(same<ours::GetDeviceProperties, hipError_t (*)(hipDeviceProp_tR0600*, int)>);
static_assert(same<ours::ModuleLoadData, decltype(&hipModuleLoadData)>);
static_assert(same<ours::ModuleGetFunction, decltype(&hipModuleGetFunction)>);
static_assert(same<ours::ModuleLaunchKernel, decltype(&hipModuleLaunchKernel)>);
static_assert(
    same<ours::ModuleOccupancy, decltype(&hipModuleOccupancyMaxActiveBlocksPerMultiprocessor)>);
static_assert(same<ours::Memset2DAsync, decltype(&hipMemset2DAsync)>);
static_assert(same<ours::MemsetD32Async, decltype(&hipMemsetD32Async)>);

static_assert(ours::kSuccess == hipSuccess);
static_assert(ours::kErrorOutOfMemory == hipErrorOutOfMemory);
static_assert(ours::kErrorNoDevice == hipErrorNoDevice);

using Properties = hipDeviceProp_tR0600;
static_assert(ours::DeviceProperties::kSize == sizeof(Properties));
static_assert(ours::DeviceProperties::kArchNameOffset == offsetof(Properties, gcnArchName));
static_assert(ours::DeviceProperties::kArchNameSize == sizeof(Properties::gcnArchName));
static_assert(ours::DeviceProperties::kMultiprocessorsOffset ==
              offsetof(Properties, multiProcessorCount));
static_assert(ours::DeviceProperties::kLdsOffset == offsetof(Properties, sharedMemPerBlock));
static_assert(sizeof(ours::DeviceProperties) >= sizeof(Properties));
static_assert(alignof(ours::DeviceProperties) >= alignof(Properties));

// Casts to pointers cannot be compared at compile time.
TEST(HipApi, LaunchParametersAreHips) {
  EXPECT_EQ(ours::kLaunchParamBufferPointer, HIP_LAUNCH_PARAM_BUFFER_POINTER);
  EXPECT_EQ(ours::kLaunchParamBufferSize, HIP_LAUNCH_PARAM_BUFFER_SIZE);
  EXPECT_EQ(ours::kLaunchParamEnd, HIP_LAUNCH_PARAM_END);
}

}  // namespace
