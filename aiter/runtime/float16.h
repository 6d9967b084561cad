// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// fp16 (IEEE binary16) and bf16 as bit patterns: to float, which holds all of them exactly, and
// from double, rounded once, to nearest, ties to even. NaN stays NaN, overflow becomes infinity.
#pragma once

#include <cstdint>
#include <cstring>

namespace AITER_ATTN_NAMESPACE::runtime {

inline float float_from_bits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Both ways are taken and one is chosen, so that loops over it become vectors. No number on the way
// is subnormal, which a processor may be told to take for 0.
inline float fp16_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fff) << 13;
  // The exponent's bias grows from 15 to 127; that of infinity and NaN to all bits set.
  const uint32_t bias = (127 - 15) << 23;
  const uint32_t normal = magnitude + bias + ((bits & 0x7c00) == 0x7c00 ? bias : 0);
  const float subnormal = static_cast<float>(static_cast<int32_t>(bits & 0x3ff)) * 0x1p-24f;
  const float value = (bits & 0x7c00) == 0 ? subnormal : float_from_bits(normal);
  return sign ? -value : value;
}

inline float bf16_to_float(uint16_t bits) {
  return float_from_bits(static_cast<uint32_t>(bits) << 16);
}

namespace float16 {
// Of any number: the way of those that are not normal in the format.
uint16_t fp16_from_any_double(double value);
uint16_t bf16_from_any_double(double value);

// A 16-bit format with a sign, kExponentBits of biased exponent and the rest mantissa.
template <int kExponentBits, uint16_t (*kFromAny)(double)>
uint16_t from_double(double value) {
  constexpr int kDropped = 52 - (15 - kExponentBits);
  constexpr uint64_t kBias = (1 << (kExponentBits - 1)) - 1;
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint64_t magnitude = bits & ~(uint64_t{1} << 63);
  const uint64_t exponent = magnitude >> 52;
  if (exponent < 1024 - kBias || exponent > 1023 + kBias) return kFromAny(value);
  // A carry out of the mantissa counts up the exponent, in the end to infinity's.
  const uint64_t is_odd = magnitude >> kDropped & 1;
  const uint64_t rounded = (magnitude + (uint64_t{1} << (kDropped - 1)) - 1 + is_odd) >> kDropped;
  return static_cast<uint16_t>((bits >> 63) << 15 |
                               (rounded - ((1023 - kBias) << (52 - kDropped))));
}
}  // namespace float16

inline uint16_t fp16_from_double(double value) {
  return float16::from_double<5, float16::fp16_from_any_double>(value);
}
inline uint16_t bf16_from_double(double value) {
  return float16::from_double<8, float16::bf16_from_any_double>(value);
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
