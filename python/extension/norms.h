// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The norms' C ABI (aiter/norm.h) for Python, on host memory.
#pragma once

#include <pybind11/pybind11.h>

namespace AITER_ATTN_NAMESPACE::python {

namespace py = pybind11;

// Adds its functions, which take the fields of a problem and the arrays of a call by their names in
// the C ABI, and its constants.
void BindNorms(py::module_& module);

}  // namespace AITER_ATTN_NAMESPACE::python
