// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The preference among providers of kernels: the call's, the process's, the environment's.
#pragma once

#include <cstdint>
#include <string>

namespace AITER_ATTN_NAMESPACE::attention {

// The process's from now on, by its name; NULL: none. Throws kInvalidArgument for another name.
void set_kernels(const char* name);

// attn_kernels, but for the default: that of a problem, or what stands in for its default. Throws
// kInvalidArgument where the environment has a name that there is not.
int32_t preferred_kernels(int32_t of_problem);

// "fastest (the call: default; attn_set_kernels: ck; AITER_ATTN_KERNELS: not set)". Throws as
// preferred_kernels.
std::string describe_preference(int32_t of_problem);

}  // namespace AITER_ATTN_NAMESPACE::attention
