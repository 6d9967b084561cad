// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Makes code objects whose source is in the process, with the compilers in the process.
#pragma once

#include <optional>
#include <string>

#include "aiter/runtime/rtc/compilers.h"
#include "aiter/runtime/store/store.h"

namespace AITER_ATTN_NAMESPACE::runtime {

class CompilingProvider : public Provider {
 public:
  // `compilers` must outlive it.
  explicit CompilingProvider(Compilers& compilers) : compilers_(compilers) {}
  std::string name() const override { return "the run-time compiler"; }
  bool may_have(const CodeObjectRef& ref) const override { return ref.spec && ref.source; }
  // Nothing where the source, the headers or the compiler are not those of the spec. Throws
  // CompileError, and what opening the compiler throws.
  std::optional<Bytes> get(const CodeObjectRef& ref) override;

 private:
  Compilers& compilers_;
};

}  // namespace AITER_ATTN_NAMESPACE::runtime
