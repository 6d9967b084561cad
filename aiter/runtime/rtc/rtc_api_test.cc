// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The hand-written declarations against NVRTC's own header: a difference does not compile.
#include "aiter/runtime/rtc/rtc_api.h"

#include <gtest/gtest.h>
#include <nvrtc.h>

#include <type_traits>

namespace {

namespace ours = AITER_ATTN_NAMESPACE::runtime::rtc;

// Enums are ints in the ABI; pointers to opaque structs are pointers.
template <typename T>
struct AbiOf {
  using type = std::conditional_t<std::is_enum_v<T>, int, T>;
};
template <>
struct AbiOf<nvrtcProgram> {
  using type = void*;
};
template <>
struct AbiOf<nvrtcProgram*> {
  using type = void**;
};
template <typename T>
using Abi = typename AbiOf<T>::type;

template <typename F>
struct Signature;
template <typename R, typename... P>
struct Signature<R (*)(P...)> {
  using type = Abi<R>(Abi<P>...);
};

template <typename Ours, typename Theirs>
constexpr bool same =
    std::is_same_v<typename Signature<Ours>::type, typename Signature<Theirs>::type>;

static_assert(same<ours::GetErrorString, decltype(&nvrtcGetErrorString)>);
static_assert(same<ours::Version, decltype(&nvrtcVersion)>);
static_assert(same<ours::CreateProgram, decltype(&nvrtcCreateProgram)>);
static_assert(same<ours::CompileProgram, decltype(&nvrtcCompileProgram)>);
static_assert(same<ours::DestroyProgram, decltype(&nvrtcDestroyProgram)>);
static_assert(same<ours::GetSize, decltype(&nvrtcGetProgramLogSize)>);
static_assert(same<ours::GetBytes, decltype(&nvrtcGetProgramLog)>);
static_assert(same<ours::GetSize, decltype(&nvrtcGetCUBINSize)>);
static_assert(same<ours::GetBytes, decltype(&nvrtcGetCUBIN)>);
static_assert(same<ours::GetSize, decltype(&nvrtcGetPTXSize)>);
static_assert(same<ours::GetBytes, decltype(&nvrtcGetPTX)>);
static_assert(same<ours::GetNumSupportedArchs, decltype(&nvrtcGetNumSupportedArchs)>);
static_assert(same<ours::GetSupportedArchs, decltype(&nvrtcGetSupportedArchs)>);

TEST(RtcApi, ResultsAreNvrtcs) {
  EXPECT_EQ(ours::kSuccess, NVRTC_SUCCESS);
  EXPECT_EQ(ours::kErrorOutOfMemory, NVRTC_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(ours::kErrorInvalidOption, NVRTC_ERROR_INVALID_OPTION);
  EXPECT_EQ(ours::kErrorCompilation, NVRTC_ERROR_COMPILATION);
  EXPECT_EQ(ours::kErrorBuiltinOperation, NVRTC_ERROR_BUILTIN_OPERATION_FAILURE);
}

}  // namespace
