// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A list of the kernels that runs asked for: a line "ARCH NAME" for each, sorted, without
// duplicates. Processes that write to one file at a time add to it.
#pragma once

#include <string>

namespace AITER_ATTN_NAMESPACE::runtime {

inline constexpr char kRecordVariable[] = "AITER_ATTN_RECORD";

// The file that the variable names, "" where it is not set. Throws Status::kInvalidArgument where
// it is relative.
std::string record_file();

// Adds a line. The file is replaced as a whole. The reason why it could not be; "": it is there.
std::string record(const std::string& file, const std::string& line);

}  // namespace AITER_ATTN_NAMESPACE::runtime
