// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The functions of the C ABI for other native code of the package: the module exports none.
#pragma once

namespace AITER_ATTN_NAMESPACE::python {

// The address of attn_NAME; NULL where the C ABI has no such function.
const void* FindFunction(const char* name);

}  // namespace AITER_ATTN_NAMESPACE::python
