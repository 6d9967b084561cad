// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Values that Python gives by names, into the fields of structs (aiter/fields.h).
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "aiter/fields.h"
#include "python/extension/tensor.h"

namespace AITER_ATTN_NAMESPACE::python {

using fields::Kind;

constexpr bool IsNumber(Kind kind) {
  return kind == Kind::kPlace || kind == Kind::kExtent || kind == Kind::kOption ||
         kind == Kind::kRandom || kind == Kind::kStride;
}

constexpr bool IsArray(Kind kind) {
  return kind == Kind::kTensor || kind == Kind::kScores || kind == Kind::kRows ||
         kind == Kind::kArray || kind == Kind::kWorkspace;
}

// The name of a field in Python.
constexpr std::string_view PythonName(std::string_view field) {
  return field == "o" ? "out" : field;
}

template <typename Number>
void SetNumber(Number& field, const py::handle& value) {
  field = py::cast<Number>(value);
}
inline void SetNumber(void*& stream, const py::handle& value) {
  stream =
      reinterpret_cast<void*>(py::cast<uintptr_t>(value));  // NOLINT(performance-no-int-to-ptr)
}

// As the library wants it: aligned to 256 bytes, which not every allocator gives.
inline void SetWorkspace(void* data, size_t bytes, void*& workspace, uint64_t& size) {
  workspace = bytes == 0 ? nullptr : std::align(256, 0, data, bytes);
  size = workspace == nullptr ? 0 : bytes;
}

template <Kind kKind, typename Struct, typename Field>
void SetArray(Struct& object, Field& field, const Tensor& array) {
  if constexpr (kKind == Kind::kTensor) {
    field = array.AsAttnTensor();
  } else if constexpr (kKind == Kind::kScores) {
    field = array.AsScores();
  } else if constexpr (kKind == Kind::kRows) {
    field = array.AsRows();
  } else if constexpr (kKind == Kind::kWorkspace) {
    SetWorkspace(array.data(), array.size_bytes(), field, object.workspace_size);
  } else {
    field = static_cast<Field>(array.data());
  }
}

// Whether the struct has a number of that name, which it has been given then.
template <typename Struct>
bool TakeNumber(Struct& object, std::string_view name, const py::handle& value) {
  bool taken = false;
  fields::for_each_field<Struct>([&](auto kind, std::string_view field, auto member) {
    if constexpr (IsNumber(decltype(kind)::value)) {
      if (taken || name != field) return;
      SetNumber(object.*member, value);
      taken = true;
    }
  });
  return taken;
}

template <typename Struct>
bool TakeArray(Struct& object, std::string_view name, const Tensor& array) {
  bool taken = false;
  fields::for_each_field<Struct>([&](auto kind, std::string_view field, auto member) {
    if constexpr (IsArray(decltype(kind)::value)) {
      if (taken || name != PythonName(field)) return;
      SetArray<decltype(kind)::value>(object, object.*member, array);
      taken = true;
    }
  });
  return taken;
}

// Fields that are not given stay as they are. Throws py::type_error for a name that no struct has,
// py::value_error for an array that is none of the field's.
template <typename... Structs>
void TakeNumbers(const py::dict& given, Structs&... objects) {
  for (const auto& [key, value] : given) {
    const auto name = py::cast<std::string_view>(key);
    if (!(TakeNumber(objects, name, value) || ...)) {
      throw py::type_error("no number of this call is named \"" + std::string(name) + '"');
    }
  }
}

template <typename... Structs>
void TakeArrays(const py::dict& given, Structs&... objects) {
  for (const auto& [key, value] : given) {
    const auto name = py::cast<std::string_view>(key);
    const auto& array = py::cast<const Tensor&>(value);
    bool taken = false;
    try {
      taken = (TakeArray(objects, name, array) || ...);
    } catch (const py::value_error& error) {
      throw py::value_error(std::string(name) + ": " + error.what());
    }
    if (!taken) {
      throw py::type_error("no array of this call is named \"" + std::string(name) + '"');
    }
  }
}

}  // namespace AITER_ATTN_NAMESPACE::python
