// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "toolchains/llvm/tests/throws.h"

#include <stdexcept>
#include <string>

void ThrowOutOfRange(int value) {
  throw std::out_of_range(std::to_string(value) + " is out of range");
}
