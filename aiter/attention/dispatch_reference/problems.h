// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Problems for both dispatchers, and the launch table of theirs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "aiter/attention/dispatch.h"
#include "aiter/attention/dispatch_reference/upstream_dispatch.h"
#include "kernels/launch_table/launch_table.h"

namespace AITER_ATTN_NAMESPACE::attention::dispatch_reference {

// Every dtype, mode, mask and lse, with head sizes and lengths on, beside and between tiles.
std::vector<UpstreamProblem> all_problems();

Request request_of(const UpstreamProblem& problem, Direction direction);

// The table in a file, for the life of the process. Throws std::runtime_error.
kernels::LaunchTable read_table(const std::string& path);

}  // namespace AITER_ATTN_NAMESPACE::attention::dispatch_reference
