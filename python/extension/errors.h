// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A status of the library as an exception of Python.
#pragma once

#include <pybind11/pybind11.h>

#include "aiter/attn.h"

namespace AITER_ATTN_NAMESPACE::python {

namespace py = pybind11;

// The exceptions' classes by status, and that of all other statuses. They are kept for good, so
// that Raise runs no Python code, in which a thread could be ended when the interpreter is.
void SetErrors(const py::dict& by_status, const py::object& other);

// Throws the exception for a status other than ATTN_OK, of this thread's last call: with its
// message, and its field and index as attributes.
[[noreturn]] void Raise(attn_status status);

}  // namespace AITER_ATTN_NAMESPACE::python
