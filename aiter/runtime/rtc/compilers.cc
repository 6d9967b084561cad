// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/rtc/compilers.h"

#include <mutex>

namespace AITER_ATTN_NAMESPACE::runtime {

const Compiler& Compilers::for_arch(const std::string& arch) {
  Slot& slot = arch.compare(0, 3, "gfx") == 0 ? amd_ : nvidia_;
  const std::lock_guard<OpeningMutex> lock(slot.mutex);
  if (!slot.compiler) slot.compiler = open_(arch);
  return *slot.compiler;
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
