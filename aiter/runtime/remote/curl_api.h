// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The few declarations of libcurl's stable C ABI (soname 4) that are used here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace AITER_ATTN_NAMESPACE::runtime::curl {

using Easy = void*;    // CURL*
using Result = int;    // CURLcode
using Option = int;    // CURLoption: the kind of the argument in ten thousands, and a number
using Off = int64_t;   // curl_off_t
using Integer = long;  // what curl_easy_setopt reads of a number: NOLINT(runtime/int)

inline constexpr Result kOk = 0;
inline constexpr Result kUnsupportedProtocol = 1;
inline constexpr Result kWriteError = 23;
inline constexpr Result kOperationTimedOut = 28;
inline constexpr Result kAbortedByCallback = 42;
inline constexpr Result kUnknownOption = 48;

inline constexpr Option kLowSpeedLimit = 19;
inline constexpr Option kLowSpeedTime = 20;
inline constexpr Option kNoProgress = 43;
inline constexpr Option kNetrc = 51;
inline constexpr Option kFollowLocation = 52;
inline constexpr Option kMaxRedirs = 68;
inline constexpr Option kNoSignal = 99;
inline constexpr Option kTimeoutMs = 155;
inline constexpr Option kConnectTimeoutMs = 156;
inline constexpr Option kProtocols = 181;
inline constexpr Option kRedirProtocols = 182;
inline constexpr Option kWriteData = 10001;
inline constexpr Option kUrl = 10002;
inline constexpr Option kErrorBuffer = 10010;
inline constexpr Option kUserAgent = 10018;
inline constexpr Option kXferInfoData = 10057;
inline constexpr Option kCaInfo = 10065;
inline constexpr Option kCaPath = 10097;
inline constexpr Option kWriteFunction = 20011;
inline constexpr Option kXferInfoFunction = 20219;
inline constexpr Option kResumeFromLarge = 30116;

inline constexpr Integer kNetrcOptional = 1;
inline constexpr Integer kHttpAndHttps = 1 | 2;
inline constexpr size_t kErrorSize = 256;
inline constexpr Integer kGlobalAll = 3;
inline constexpr int kInfoResponseCode = 0x200000 + 2;

using GlobalInit = Result (*)(Integer flags);
using EasyInit = Easy (*)();
using EasySetopt = Result (*)(Easy, Option, ...);
using EasyPerform = Result (*)(Easy);
using EasyGetinfo = Result (*)(Easy, int info, ...);
using EasyCleanup = void (*)(Easy);
using EasyStrerror = const char* (*)(Result);

using Write = size_t (*)(char* bytes, size_t size, size_t count, void* context);
using XferInfo = int (*)(void* context, Off, Off, Off, Off);

}  // namespace AITER_ATTN_NAMESPACE::runtime::curl
