// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Selection in words: for attn_explain_*, and for the message when nothing serves.
#pragma once

#include <string>
#include <vector>

#include "aiter/dispatch.h"

namespace aiter_attn {

// The instances that serve the request, and per group of the others why they do not. Throws what
// select_* throws.
std::string explain_fwd(const LaunchTable& table, const Request& request);
std::string explain_bwd(const LaunchTable& table, const Request& request);

// Why the kinds in `missing` have no instance for the request, what this build has, and how to
// build more.
std::string explain_unsupported(const LaunchTable& table, const std::vector<Kind>& missing,
                                const Request& request);

}  // namespace aiter_attn
