// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The limit on the size of a folder of code objects that were made at run time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace AITER_ATTN_NAMESPACE::runtime {

inline constexpr char kCacheSizeVariable[] = "AITER_ATTN_CACHE_MAX_SIZE";
inline constexpr uint64_t kDefaultCacheSize = uint64_t{1} << 30;

// The variable's value, or kDefaultCacheSize. Throws Status::kInvalidArgument where
// it is no size, or too small a one.
uint64_t cache_max_size();

// The names of a folder's files: KEY.object, KEY.new and KEY.new.DIGITS while it is made
// (new_file.h), KEY.refused where it was not
// believed, KEY.failed where it could not be made (failure.h).
inline constexpr std::string_view kObjectSuffix = ".object";
inline constexpr std::string_view kNewSuffix = ".new";
inline constexpr std::string_view kRefusedSuffix = ".refused";
inline constexpr std::string_view kFailedSuffix = ".failed";

// For make_room(): KEY.object was used.
void mark_as_used(int fd);

// Removes objects of this user's from the folder, files of refused ones and of failures first, then
// the least recently used,
// until those that are left have at most max_size bytes; and the files that killed processes left
// behind. An object that another thread or process is making, or has just used, stays. Several may
// do it at a time.
void make_room(const std::string& folder, uint64_t max_size);

}  // namespace AITER_ATTN_NAMESPACE::runtime
