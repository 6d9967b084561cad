// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// fp16 (IEEE binary16) and bf16 as bit patterns: to float, which holds all of them exactly, and
// from double, rounded once, to nearest, ties to even. NaN stays NaN, overflow becomes infinity.
#pragma once

#include <cstdint>

namespace AITER_ATTN_NAMESPACE::runtime {

float fp16_to_float(uint16_t bits);
float bf16_to_float(uint16_t bits);
uint16_t fp16_from_double(double value);
uint16_t bf16_from_double(double value);

}  // namespace AITER_ATTN_NAMESPACE::runtime
