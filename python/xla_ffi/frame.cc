// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "python/xla_ffi/frame.h"

#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

namespace AITER_ATTN_NAMESPACE::jax {

Library library;

int32_t DtypeOf(const ffi::AnyBuffer& buffer) {
  switch (buffer.element_type()) {
    case ffi::DataType::F16:
      return ATTN_DTYPE_FP16;
    case ffi::DataType::BF16:
      return ATTN_DTYPE_BF16;
    case ffi::DataType::F32:
      return ATTN_DTYPE_FP32;
    default:
      return 0;  // no dtype: the library says what is allowed
  }
}

ffi::Error ErrorOf(attn_status status) {
  switch (status) {
    case ATTN_OK:
      return ffi::Error::Success();
    case ATTN_ERROR_INVALID_ARGUMENT:
      return ffi::Error(ffi::ErrorCode::kInvalidArgument, library.last_error());
    case ATTN_ERROR_UNSUPPORTED:
      return ffi::Error(ffi::ErrorCode::kUnimplemented, library.last_error());
    case ATTN_ERROR_OUT_OF_MEMORY:
      return ffi::Error(ffi::ErrorCode::kResourceExhausted, library.last_error());
    default:
      return ffi::Error(ffi::ErrorCode::kInternal, library.last_error());
  }
}

ffi::Error Workspace(const Place& place, uint64_t size, void*& workspace) {
  workspace = nullptr;
  if (size == 0) return ffi::Error::Success();
  constexpr size_t kAlignment = 256;  // XLA aligns to less
  size_t space = size + kAlignment;
  const std::optional<void*> memory = place.scratch->Allocate(space);
  if (!memory.has_value()) {
    return ffi::Error(ffi::ErrorCode::kResourceExhausted,
                      "workspace: no " + std::to_string(space) +
                          " bytes of device memory; allowed here: a smaller batch");
  }
  workspace = *memory;
  std::align(kAlignment, size, workspace, space);
  return ffi::Error::Success();
}

ffi::AnyBuffer Frame::Operand(const char* name) {
  const auto operand = operands_.get<ffi::AnyBuffer>(operand_++);
  if (operand.has_value()) return operand.value();
  Fail(std::string(name) + ": no such operand");
  static const XLA_FFI_Buffer nothing{};
  return ffi::AnyBuffer(&nothing);
}

ffi::AnyBuffer Frame::Operand(const char* name, const Shape& shape, ffi::DataType dtype) {
  const ffi::AnyBuffer operand = Operand(name);
  Check(name, operand, shape, dtype);
  return operand;
}

ffi::AnyBuffer Frame::Result(const char* name, const Shape& shape, ffi::DataType dtype) {
  auto result = results_.get<ffi::AnyBuffer>(result_++);
  if (result.has_value()) {
    Check(name, *result.value(), shape, dtype);
    return *result.value();
  }
  Fail(std::string(name) + ": no such result");
  static const XLA_FFI_Buffer nothing{};
  return ffi::AnyBuffer(&nothing);
}

void Frame::Check(const char* name, const ffi::AnyBuffer& buffer, const Shape& shape,
                  ffi::DataType dtype) {
  const Shape given(buffer.dimensions().begin(), buffer.dimensions().end());
  if (given == shape && buffer.element_type() == dtype) return;
  std::ostringstream message;
  const auto say = [&](const Shape& dims, ffi::DataType type) {
    const char* comma = "";
    message << "shape [";
    for (const int64_t size : dims) message << std::exchange(comma, ", ") << size;
    message << "] and dtype " << type;
  };
  message << name << ": ";
  say(given, buffer.element_type());
  message << "; allowed here: ";
  say(shape, dtype);
  Fail(message.str());
}

ffi::Error Frame::Finish() {
  if (operand_ < operands_.size()) {
    Fail(std::to_string(operands_.size()) + " operands; allowed here: " + std::to_string(operand_));
  }
  if (result_ < results_.size()) {
    Fail(std::to_string(results_.size()) + " results; allowed here: " + std::to_string(result_));
  }
  if (attribute_ < attributes_.size()) {
    Fail(std::to_string(attributes_.size()) +
         " attributes; known here: " + std::to_string(attribute_));
  }
  return error_;
}

void Frame::Fail(const std::string& message) {
  if (error_.success()) error_ = ffi::Error::InvalidArgument(message);
}

// Takes the functions of the C ABI from the extension module: find gives a function by its name
// without attn_. Returns NULL, or why it cannot; the text lives until the next call.
extern "C" const char* attn_jax_bind(const void* (*find)(const char* name)) {
  static std::string error;
  error.clear();
  const auto bind = [&](auto& function, const char* name) {
    const void* const address = find(name);
    if (address == nullptr) error = std::string("the extension module has no attn_") + name;
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(const_cast<void*>(address));
  };
#define ATTN_JAX_BIND(name) bind(library.name, #name);
  ATTN_JAX_FUNCTIONS(ATTN_JAX_BIND)
#undef ATTN_JAX_BIND
  return error.empty() ? nullptr : error.c_str();
}

}  // namespace AITER_ATTN_NAMESPACE::jax
