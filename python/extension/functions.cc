// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "python/extension/functions.h"

#include <string_view>

#include "aiter/attn.h"
#include "aiter/functions.h"
#include "aiter/norm.h"

namespace AITER_ATTN_NAMESPACE::python {

const void* FindFunction(const char* name) {
  struct Function {
    std::string_view name;
    const void* address;
  };
#define ATTN_FUNCTION(name) {#name, reinterpret_cast<const void*>(&ATTN_SYMBOL(name))},
  static const Function functions[] = {ATTN_FUNCTIONS(ATTN_FUNCTION)};
  for (const Function& function : functions) {
    if (function.name == name) return function.address;
  }
  return nullptr;
}

}  // namespace AITER_ATTN_NAMESPACE::python
