// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The part of aiter/attn.h about key-value caches, for Python.
#pragma once

#include <pybind11/pybind11.h>

#include "aiter/attn.h"

namespace AITER_ATTN_NAMESPACE::python {

// After Problem and Tensor are bound.
void BindCaches(pybind11::module_& module);

}  // namespace AITER_ATTN_NAMESPACE::python
