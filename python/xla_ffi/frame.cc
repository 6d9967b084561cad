// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "python/xla_ffi/frame.h"

#include <dlfcn.h>

#include <memory>
#include <optional>
#include <string>
#include <type_traits>

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

ffi::AnyBuffer Frame::Operand() { return Keep(operands_.get<ffi::AnyBuffer>(operand_++)); }

ffi::AnyBuffer Frame::Result() {
  auto result = results_.get<ffi::AnyBuffer>(result_++);
  if (!result.has_value()) return Keep(ffi::ErrorOr<ffi::AnyBuffer>(result.error()));
  return *result.value();
}

ffi::AnyBuffer Frame::Keep(const ffi::ErrorOr<ffi::AnyBuffer>& buffer) {
  if (buffer.has_value()) return buffer.value();
  if (error_.success()) error_ = buffer.error();
  static const XLA_FFI_Buffer nothing{};
  return ffi::AnyBuffer(&nothing);
}

#define ATTN_TEXT_(name) #name
#define ATTN_TEXT(name) ATTN_TEXT_(name)

// Finds the C ABI in a library that the process has loaded. Returns NULL, or why it cannot; the
// text lives until the next call.
extern "C" const char* attn_jax_bind(const char* path) {
  static std::string error;
  error.clear();
  void* const handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (handle == nullptr) {
    error = std::string(path) + " is not loaded in this process";
    return error.c_str();
  }
  const auto find = [&](auto& function, const char* name) {
    void* const address = dlsym(handle, name);
    if (address == nullptr) error = std::string(path) + " has no " + name;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
  };
  find(library.last_error, ATTN_TEXT(attn_last_error));
  find(library.fwd, ATTN_TEXT(attn_fwd));
  find(library.bwd, ATTN_TEXT(attn_bwd));
  find(library.bwd_workspace_size, ATTN_TEXT(attn_bwd_workspace_size));
  find(library.dropout_mask, ATTN_TEXT(attn_dropout_mask));
  find(library.norm_fwd, ATTN_TEXT(attn_norm_fwd));
  find(library.norm_bwd, ATTN_TEXT(attn_norm_bwd));
  find(library.norm_bwd_workspace_size, ATTN_TEXT(attn_norm_bwd_workspace_size));
  return error.empty() ? nullptr : error.c_str();
}

}  // namespace AITER_ATTN_NAMESPACE::jax
