// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The hand-written declarations against CUDA's own header: what differs does not compile.
#include "aiter/runtime/driver/cuda_api.h"

#include <cuda.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

namespace {

namespace ours = AITER_ATTN_NAMESPACE::runtime::cuda;

// Our types are CUDA's but for enums, which are ints in the ABI, and pointers, which are pointers.
// CUdeviceptr is unsigned long long, of which uint64_t is not always a name.
template <typename T>
using Abi = std::conditional_t<
    std::is_enum_v<T>, int,
    std::conditional_t<std::is_pointer_v<T>, void*,
                       std::conditional_t<std::is_same_v<T, CUdeviceptr>, uint64_t, T>>>;

template <typename F>
struct Signature;
template <typename R, typename... P>
struct Signature<R (*)(P...)> {
  using type = Abi<R>(Abi<P>...);
};

template <typename Ours, typename Theirs>
constexpr bool same =
    std::is_same_v<typename Signature<Ours>::type, typename Signature<Theirs>::type>;

static_assert(same<ours::Init, decltype(&cuInit)>);
static_assert(same<ours::GetErrorName, decltype(&cuGetErrorName)>);
static_assert(same<ours::GetErrorString, decltype(&cuGetErrorString)>);
static_assert(same<ours::DriverGetVersion, decltype(&cuDriverGetVersion)>);
static_assert(same<ours::DeviceGetCount, decltype(&cuDeviceGetCount)>);
static_assert(same<ours::DeviceGetAttribute, decltype(&cuDeviceGetAttribute)>);
static_assert(same<ours::DevicePrimaryCtxRetain, decltype(&cuDevicePrimaryCtxRetain)>);
static_assert(same<ours::CtxGetCurrent, decltype(&cuCtxGetCurrent)>);
static_assert(same<ours::CtxSetCurrent, decltype(&cuCtxSetCurrent)>);
static_assert(
    same<ours::ThreadExchangeStreamCaptureMode, decltype(&cuThreadExchangeStreamCaptureMode)>);
static_assert(same<ours::ModuleLoadData, decltype(&cuModuleLoadData)>);
static_assert(same<ours::ModuleGetFunction, decltype(&cuModuleGetFunction)>);
static_assert(same<ours::FuncSetAttribute, decltype(&cuFuncSetAttribute)>);
static_assert(
    same<ours::OccupancyMaxActiveBlocks, decltype(&cuOccupancyMaxActiveBlocksPerMultiprocessor)>);
static_assert(same<ours::OccupancyMaxActiveClusters, decltype(&cuOccupancyMaxActiveClusters)>);
static_assert(same<ours::LaunchKernelEx, decltype(&cuLaunchKernelEx)>);
static_assert(same<ours::MemsetD2D8Async, decltype(&cuMemsetD2D8Async)>);
static_assert(same<ours::MemsetD32Async, decltype(&cuMemsetD32Async)>);

static_assert(ours::kSuccess == CUDA_SUCCESS);
static_assert(ours::kErrorOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(ours::kErrorNoDevice == CUDA_ERROR_NO_DEVICE);
static_assert(ours::kErrorInvalidImage == CUDA_ERROR_INVALID_IMAGE);
static_assert(ours::kErrorNoBinaryForGpu == CUDA_ERROR_NO_BINARY_FOR_GPU);
static_assert(ours::kErrorInvalidPtx == CUDA_ERROR_INVALID_PTX);
static_assert(ours::kErrorUnsupportedPtxVersion == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
static_assert(ours::kErrorInvalidClusterSize == CUDA_ERROR_INVALID_CLUSTER_SIZE);
static_assert(ours::kMultiprocessorCount == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(ours::kComputeCapabilityMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(ours::kComputeCapabilityMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(ours::kMaxSharedMemoryPerBlockOptin ==
              CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
static_assert(ours::kMaxDynamicSharedSizeBytes == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(ours::kNonPortableClusterSizeAllowed ==
              CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
static_assert(ours::kStreamCaptureModeRelaxed == CU_STREAM_CAPTURE_MODE_RELAXED);

using OurAttribute = ours::LaunchAttribute;
static_assert(OurAttribute::kProgrammaticStreamSerialization ==
              CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
static_assert(sizeof(OurAttribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(OurAttribute, id) == offsetof(CUlaunchAttribute, id));
static_assert(offsetof(OurAttribute, value) == offsetof(CUlaunchAttribute, value));
static_assert(offsetof(CUlaunchAttributeValue, programmaticStreamSerializationAllowed) == 0);

using OurConfig = ours::LaunchConfig;
static_assert(sizeof(OurConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(OurConfig, grid_x) == offsetof(CUlaunchConfig, gridDimX));
static_assert(offsetof(OurConfig, grid_z) == offsetof(CUlaunchConfig, gridDimZ));
static_assert(offsetof(OurConfig, block_x) == offsetof(CUlaunchConfig, blockDimX));
static_assert(offsetof(OurConfig, block_z) == offsetof(CUlaunchConfig, blockDimZ));
static_assert(offsetof(OurConfig, shared_bytes) == offsetof(CUlaunchConfig, sharedMemBytes));
static_assert(offsetof(OurConfig, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(OurConfig, attributes) == offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(OurConfig, attribute_count) == offsetof(CUlaunchConfig, numAttrs));

// Casts to pointers cannot be compared at compile time.
TEST(CudaApi, LaunchParametersAreCudas) {
  EXPECT_EQ(ours::kLaunchParamBufferPointer, CU_LAUNCH_PARAM_BUFFER_POINTER);
  EXPECT_EQ(ours::kLaunchParamBufferSize, CU_LAUNCH_PARAM_BUFFER_SIZE);
  EXPECT_EQ(ours::kLaunchParamEnd, CU_LAUNCH_PARAM_END);
}

}  // namespace
