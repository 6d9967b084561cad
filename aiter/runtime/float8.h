// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// fp8 as bit patterns: to float, which holds all of it exactly, and from double, rounded once, to
// nearest, ties to even. NaN stays NaN; numbers beyond the largest become it, infinities too.
#pragma once

#include <cstdint>

namespace AITER_ATTN_NAMESPACE::runtime {

enum class Fp8 {
  kE4m3,      // OCP: no infinity; NaN where all bits but the sign are set; largest 448
  kE4m3Fnuz,  // no infinity, no negative zero, whose bits are NaN; largest 240
  kE5m2,      // OCP: infinities and NaN as in IEEE 754; largest 57344
};

float fp8_to_float(uint8_t bits, Fp8 format);
float fp8_largest(Fp8 format);
uint8_t fp8_from_double(double value, Fp8 format);

}  // namespace AITER_ATTN_NAMESPACE::runtime
