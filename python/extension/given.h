// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// What Python gives by names, into the fields of a struct.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <string>

#include "python/extension/tensor.h"

namespace AITER_ATTN_NAMESPACE::python {

// Taken field by field.
class Given {
 public:
  explicit Given(const py::dict& all) : rest_(all.attr("copy")()) {}

  // Leaves the field as it is where the name is not given. Throws py::value_error for an array that
  // is none of the field's.
  template <typename Field>
  void Take(const char* name, Field& field) {
    if (!rest_.contains(name)) return;
    try {
      Set(field, rest_.attr("pop")(name));
    } catch (const py::value_error& error) {
      throw py::value_error(std::string(name) + ": " + error.what());
    }
  }

  // As the library wants it: aligned to 256 bytes, which not every allocator gives.
  void TakeWorkspace(void*& workspace, uint64_t& size) {
    if (!rest_.contains("workspace")) return;
    const py::object array = rest_.attr("pop")("workspace");
    const auto& lent = py::cast<const Tensor&>(array);
    size_t space = lent.size_bytes();
    workspace = lent.data();
    workspace = std::align(256, 0, workspace, space);
    size = workspace == nullptr ? 0 : space;
  }

  // Throws py::type_error for a name that no field took.
  void CheckAllTaken(const std::string& what) const {
    if (rest_.empty()) return;
    throw py::type_error("no " + what + " of this call is named \"" +
                         py::cast<std::string>(rest_.begin()->first) + '"');
  }

 private:
  static void Set(int32_t& field, const py::handle& value) { field = py::cast<int32_t>(value); }
  static void Set(int64_t& field, const py::handle& value) { field = py::cast<int64_t>(value); }
  static void Set(uint64_t& field, const py::handle& value) { field = py::cast<uint64_t>(value); }
  static void Set(float& field, const py::handle& value) { field = py::cast<float>(value); }
  static void Set(attn_rows& field, const py::handle& array) {
    field = py::cast<const Tensor&>(array).AsRows();
  }
  static void Set(attn_tensor& field, const py::handle& array) {
    field = py::cast<const Tensor&>(array).AsAttnTensor();
  }
  template <typename Element>
  static void Set(Element*& field, const py::handle& array) {
    field = static_cast<Element*>(py::cast<const Tensor&>(array).data());
  }

  py::dict rest_;
};

}  // namespace AITER_ATTN_NAMESPACE::python
