// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The archs' facts, for the library: README.md explains them.
#pragma once

#include <cstdint>
#include <string_view>

namespace AITER_ATTN_NAMESPACE::kernels {

// The format of fp8 E4M3 that matrix instructions compute with.
enum class ArchFp8 { kNone, kE4m3, kE4m3Fnuz };

struct ArchFacts {
  std::string_view name;  // "gfx942"
  int32_t wave_size;      // work-items
  ArchFp8 fp8;
  bool executed;          // by this project's tests; else its kernels are built and not executed
  int32_t compute_units;  // of the largest product
  int64_t lds;            // of a compute unit, bytes
};

// The archs that a build can have code for, the values of --//kernels:archs, by name.
inline constexpr ArchFacts kArchs[] = {
#include "kernels/archs/records.inc"
};

// NULL: no build can have code for it.
constexpr const ArchFacts* find_arch(std::string_view name) {
  for (const ArchFacts& arch : kArchs) {
    if (arch.name == name) return &arch;
  }
  return nullptr;
}

}  // namespace AITER_ATTN_NAMESPACE::kernels
