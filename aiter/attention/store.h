// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The library's own store, by the launch table's rows.
#pragma once

#include <cstdint>

#include "aiter/runtime/store/store.h"
#include "kernels/launch_table/launch_table.h"

namespace AITER_ATTN_NAMESPACE::attention {

runtime::Digest digest(const uint8_t (&bytes)[32]);

// What a row knows of a code object.
runtime::CodeObjectRef code_object_ref(const kernels::CodeObjectRow& object);

// What is embedded in the library. Throws kCorrupt where that is damaged.
const runtime::Store& library_store();

// Bytes that a code object takes in the library; 0: it is not in it.
uint64_t embedded_size(const runtime::Digest& key);

}  // namespace AITER_ATTN_NAMESPACE::attention
