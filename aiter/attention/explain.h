// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Dispatch in words: for attn_explain_*, and for the message when nothing serves.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "aiter/attention/dispatch.h"

namespace AITER_ATTN_NAMESPACE::attention {

// The instances that serve the request, and per group of the others why they do not. The plan is
// dispatch's answer to the request, and complete.
std::string explain(const kernels::LaunchTable& table, Request request, const Plan& plan);

// Why an incomplete plan's kinds have no instance for the request, the instances of this build, and
// the setting that builds more.
std::string explain_unserved(const kernels::LaunchTable& table, Request request, const Plan& plan);

// The setting that adds an arch to a build that has code for others, or the archs that can be
// built.
std::string how_to_build(std::vector<std::string_view> built, std::string_view arch);

}  // namespace AITER_ATTN_NAMESPACE::attention
