// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A DLTensor's description of its memory, checked. No Python in here.
#pragma once

#include <dlpack/dlpack.h>

#include <cstdint>
#include <string>
#include <vector>

namespace AITER_ATTN_NAMESPACE::python {

// An array's memory: every entry's offset in bytes fits 64 bits, and its address does not wrap.
struct ArrayView {
  void* data = nullptr;  // the first entry; NULL only where there is no entry
  DLDevice device{kDLCPU, 0};
  std::vector<int64_t> shape;    // 0 or more each
  std::vector<int64_t> strides;  // in elements, as many as shape has
  std::string dtype;             // "float16", "bfloat16", ..., "opaque16" for a kind without a name
  uint64_t item_bits = 0;
};

// Reads no memory but the fields, shape and strides. Throws std::invalid_argument, whose text names
// the field, its value and what is allowed.
ArrayView ReadDlpack(const DLTensor& tensor);

}  // namespace AITER_ATTN_NAMESPACE::python
