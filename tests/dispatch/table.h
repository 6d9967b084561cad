// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The launch table of a variant set, in place of //kernels:launch_table: the rows are those of a
// library that is built of the set, their code objects are tiny ELF files.
#pragma once

#include <string>
#include <vector>

#include "kernels/launch_table/launch_table.h"

namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity {

// In the order of their numbers in the table: write_parity.py defines it.
const std::vector<kernels::MakeLaunch>& launches();

// Ahead of the first call. Throws std::runtime_error.
void read_table(const std::string& path);

}  // namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity
