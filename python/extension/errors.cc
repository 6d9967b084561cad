// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "python/extension/errors.h"

#include <cctype>
#include <cstdint>
#include <string>
#include <string_view>

#include "python/extension/given.h"

namespace AITER_ATTN_NAMESPACE::python {
namespace {

// Set when the package is imported.
PyObject* classes = nullptr;
PyObject* other_class = nullptr;

bool IsWordAt(std::string_view text, size_t i) {
  return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_');
}

// Wrong arguments are named by the C ABI's fields. Those are the package's arguments too, but for
// o, which is out there.
std::string WithPythonNames(std::string_view text) {
  std::string named;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_o =
        text[i] == 'o' && (i == 0 || !IsWordAt(text, i - 1)) && !IsWordAt(text, i + 1);
    is_o ? named += "out" : named += text[i];
  }
  return named;
}

}  // namespace

void SetErrors(const py::dict& by_status, const py::object& other) {
  classes = py::dict(by_status).release().ptr();
  other_class = py::object(other).release().ptr();
}

void Raise(attn_status status) {
  const char* const message = attn_last_error();
  const py::str text =
      status == ATTN_ERROR_INVALID_ARGUMENT ? WithPythonNames(message) : std::string(message);
  const std::string field(PythonName(attn_last_error_field()));
  const int64_t index = attn_last_error_index();
  PyObject* kind = PyDict_GetItem(classes, py::int_(static_cast<int>(status)).ptr());
  if (kind == nullptr) kind = other_class;
  const py::object error = py::reinterpret_borrow<py::object>(kind)(text);
  error.attr("field") = field;
  error.attr("index") = index;
  PyErr_SetObject(kind, error.ptr());
  throw py::error_already_set();
}

}  // namespace AITER_ATTN_NAMESPACE::python
