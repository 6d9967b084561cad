// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The common part of the handlers: the C ABI, where a call computes, and how its operands, results
// and attributes are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "aiter/attn.h"
#include "aiter/fields.h"
#include "aiter/norm.h"
#include "xla/ffi/api/ffi.h"

namespace AITER_ATTN_NAMESPACE::jax {

namespace ffi = ::xla::ffi;

// The functions of the C ABI that are called here, by their names without attn_.
#define ATTN_JAX_FUNCTIONS(X)   \
  X(last_error)                 \
  X(fwd)                        \
  X(bwd)                        \
  X(bwd_workspace_size)         \
  X(dropout_mask)               \
  X(kvcache_fwd)                \
  X(kvcache_fwd_workspace_size) \
  X(norm_fwd)                   \
  X(norm_bwd)                   \
  X(norm_bwd_workspace_size)    \
  X(softmax_fwd)                \
  X(softmax_bwd)

struct Library {
// NOLINTNEXTLINE(bugprone-macro-parentheses): it is the name that is declared.
#define ATTN_JAX_MEMBER(name) decltype(&attn_##name) name;
  ATTN_JAX_FUNCTIONS(ATTN_JAX_MEMBER)
#undef ATTN_JAX_MEMBER
};

// Of the extension module, once attn_jax_bind has taken them.
extern Library library;

// Where a call computes. scratch: where memory comes from, on a GPU.
struct Place {
  attn_device_type type = ATTN_DEVICE_CPU;
  int32_t ordinal = 0;
  void* stream = nullptr;
  ffi::ScratchAllocator* scratch = nullptr;
};

// The attn_dtype of a buffer; 0, which is none, where there is none for it: the library's refusal
// lists the allowed ones.
int32_t DtypeOf(const ffi::AnyBuffer& buffer);

// A status and its message, in XLA's form.
ffi::Error ErrorOf(attn_status status);

// Memory for the time of a call, aligned as the library wants it. XLA gives it to others behind
// what is queued on the stream by then.
ffi::Error Workspace(const Place& place, uint64_t size, void*& workspace);

using Shape = std::vector<int64_t>;

// Reads operands, results and attributes of a call, and checks them: a program may have been made
// by anyone. The first failure is kept.
class Frame {
 public:
  Frame(ffi::RemainingArgs operands, ffi::RemainingRets results, ffi::Dictionary attributes)
      : operands_(operands), results_(results), attributes_(attributes) {}

  // The next operand, of any shape and dtype, which its reader checks.
  ffi::AnyBuffer Operand(const char* name);
  // The next operand or result, of this shape and dtype.
  ffi::AnyBuffer Operand(const char* name, const Shape& shape, ffi::DataType dtype);
  ffi::AnyBuffer Result(const char* name, const Shape& shape, ffi::DataType dtype);

  void Check(const char* name, const ffi::AnyBuffer& buffer, const Shape& shape,
             ffi::DataType dtype);

  // The first failure; operands, results and attributes that nothing took are one.
  ffi::Error Finish();

  // 0 where there is none.
  template <typename Number>
  void Attribute(const char* name, Number& number) {
    if (!attributes_.contains(name)) return;
    ++attribute_;
    const auto found = attributes_.get<Number>(name);
    if (found.has_value()) {
      number = found.value();
    } else if (error_.success()) {
      error_ = found.error();
    }
  }

  // The options of a struct: attributes by the names of its fields.
  template <typename Struct>
  void Options(Struct& object) {
    fields::for_each_field<Struct>([&](auto kind, const char* name, auto member) {
      if constexpr (decltype(kind)::value == fields::Kind::kOption) Attribute(name, object.*member);
    });
  }

 private:
  void Fail(const std::string& message);

  ffi::RemainingArgs operands_;
  ffi::RemainingRets results_;
  ffi::Dictionary attributes_;
  size_t operand_ = 0;
  size_t result_ = 0;
  size_t attribute_ = 0;
  ffi::Error error_ = ffi::Error::Success();
};

template <ffi::Error (*kPass)(const Place&, Frame)>
ffi::Error OnCpu(ffi::RemainingArgs operands, ffi::RemainingRets results,
                 ffi::Dictionary attributes) {
  return kPass({}, Frame(operands, results, attributes));
}

template <ffi::Error (*kPass)(const Place&, Frame)>
ffi::Error OnRocm(void* stream, int32_t ordinal, ffi::ScratchAllocator scratch,
                  ffi::RemainingArgs operands, ffi::RemainingRets results,
                  ffi::Dictionary attributes) {
  return kPass({ATTN_DEVICE_ROCM, ordinal, stream, &scratch}, Frame(operands, results, attributes));
}

// The handlers of a pass: attn_jax_NAME_cpu and attn_jax_NAME_rocm.
#define ATTN_JAX_HANDLERS(name, pass)                                                      \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(attn_jax_##name##_cpu, OnCpu<pass>,                        \
                                ffi::Ffi::Bind().RemainingArgs().RemainingRets().Attrs()); \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(attn_jax_##name##_rocm, OnRocm<pass>,                      \
                                ffi::Ffi::Bind()                                           \
                                    .Ctx<ffi::PlatformStream<void*>>()                     \
                                    .Ctx<ffi::DeviceOrdinal>()                             \
                                    .Ctx<ffi::ScratchAllocator>()                          \
                                    .RemainingArgs()                                       \
                                    .RemainingRets()                                       \
                                    .Attrs())

}  // namespace AITER_ATTN_NAMESPACE::jax
