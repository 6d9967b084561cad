// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Code objects of the launch table, as the store knows them.
#pragma once

#include <cstdint>

#include "aiter/runtime/store/store.h"
#include "kernels/launch_table/launch_table.h"

namespace AITER_ATTN_NAMESPACE::attention {

runtime::Digest digest(const uint8_t (&bytes)[32]);

// The facts of a table's row about a code object. The table outlives it.
runtime::CodeObjectRef code_object_ref(const kernels::LaunchTable& table,
                                       const kernels::CodeObjectRow& object);

}  // namespace AITER_ATTN_NAMESPACE::attention
