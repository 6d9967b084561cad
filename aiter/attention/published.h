// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The published variant set that serves a call which this build does not.
#pragma once

#include <string_view>
#include <vector>

#include "aiter/attention/dispatch.h"

namespace AITER_ATTN_NAMESPACE::attention {

// The published set with the fewest kernels that has all of the plan's for the request on its arch.
// Empty: none has.
std::string_view smallest_published_set(const Request& request, const Plan& plan);

// The archs on which a published set would serve the request.
std::vector<std::string_view> archs_served_by_published_sets(Request request, const Plan& plan);

}  // namespace AITER_ATTN_NAMESPACE::attention
