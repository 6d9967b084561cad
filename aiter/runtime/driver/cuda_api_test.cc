// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The hand-written declarations against CUDA's own header: a difference does not compile.
#include "aiter/runtime/driver/cuda_api.h"

#include <cuda.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string_view>
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

// cuda.h has newer versions of functions under their names, by macros (cuX is cuX_v2); the library
// looks for the name itself.
#define TEXT(name) #name
#define EXPECT_SAME(type, name)                        \
  static_assert(same<ours::type, decltype(&name)>);    \
  static_assert(std::string_view(TEXT(name)) == #name, \
                "bind the versioned name in cuda.cc, or declare the older version here")

EXPECT_SAME(Init, cuInit);
EXPECT_SAME(GetErrorName, cuGetErrorName);
EXPECT_SAME(GetErrorString, cuGetErrorString);
EXPECT_SAME(DriverGetVersion, cuDriverGetVersion);
EXPECT_SAME(DeviceGetCount, cuDeviceGetCount);
EXPECT_SAME(DeviceGetAttribute, cuDeviceGetAttribute);
EXPECT_SAME(DevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain);
EXPECT_SAME(CtxGetCurrent, cuCtxGetCurrent);
EXPECT_SAME(CtxSetCurrent, cuCtxSetCurrent);
EXPECT_SAME(ThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode);
EXPECT_SAME(ModuleLoadData, cuModuleLoadData);
EXPECT_SAME(ModuleGetFunction, cuModuleGetFunction);
EXPECT_SAME(FuncSetAttribute, cuFuncSetAttribute);
EXPECT_SAME(OccupancyMaxActiveBlocks, cuOccupancyMaxActiveBlocksPerMultiprocessor);
EXPECT_SAME(OccupancyMaxActiveClusters, cuOccupancyMaxActiveClusters);
EXPECT_SAME(LaunchKernelEx, cuLaunchKernelEx);
EXPECT_SAME(MemsetD2D8Async, cuMemsetD2D8Async);
EXPECT_SAME(MemsetD32Async, cuMemsetD32Async);

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
