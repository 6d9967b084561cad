// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The few declarations of NVRTC's and hipRTC's stable C ABIs that are used here. They are the same
// for both but for the functions' prefix. rtc_api_test.cc compares them with NVRTC's own header.
#pragma once

#include <cstddef>

namespace AITER_ATTN_NAMESPACE::runtime::rtc {

using Result = int;  // nvrtcResult, hiprtcResult
inline constexpr Result kSuccess = 0;
inline constexpr Result kErrorOutOfMemory = 1;
inline constexpr Result kErrorInvalidOption = 5;
inline constexpr Result kErrorCompilation = 6;
inline constexpr Result kErrorBuiltinOperation = 7;

using Program = void*;  // nvrtcProgram, hiprtcProgram

using GetErrorString = const char* (*)(Result);
using Version = Result (*)(int* major, int* minor);
// The arrays are NVRTC's `const char* const*`; hipRTC 6 has `const char**`, the same in the ABI.
using CreateProgram = Result (*)(Program* program, const char* source, const char* name,
                                 int header_count, const char* const* headers,
                                 const char* const* header_names);
using CompileProgram = Result (*)(Program program, int option_count, const char* const* options);
using DestroyProgram = Result (*)(Program* program);
using GetSize = Result (*)(Program program, size_t* size);  // of the log, of the code
using GetBytes = Result (*)(Program program, char* bytes);

// NVRTC's alone.
using GetNumSupportedArchs = Result (*)(int* count);
using GetSupportedArchs = Result (*)(int* archs);  // 90: compute capability 9.0; rising

}  // namespace AITER_ATTN_NAMESPACE::runtime::rtc
