// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// One array borrowed from Python: a DLPack capsule or a buffer, held until the Tensor dies.
#pragma once

#include <dlpack/dlpack.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "aiter/attn.h"

namespace AITER_ATTN_NAMESPACE::python {

namespace py = pybind11;

// Nothing is copied: data() points into the producer's memory, which stays alive (the capsule's
// deleter is not called, the buffer is not released) as long as the Tensor. Not copyable. Made and
// destroyed with the GIL held.
class Tensor {
 public:
  // Takes a capsule "dltensor" or "dltensor_versioned" (major version 1) over and renames it, as
  // DLPack's protocol asks. Throws py::type_error for anything else, py::value_error for a version
  // that is not known.
  static std::unique_ptr<Tensor> FromDlpack(const py::capsule& capsule);

  // Host memory of an object with the buffer protocol, for producers whose dtype DLPack export
  // refuses (numpy: bfloat16, read-only arrays before 2.1). `dtype` is taken at its word.
  // Throws py::value_error where a stride is no multiple of the item size.
  static std::unique_ptr<Tensor> FromBuffer(const py::buffer& buffer, std::string dtype);

  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  void* data() const { return data_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  const std::vector<int64_t>& strides() const { return strides_; }  // in elements
  const std::string& dtype() const { return dtype_; }               // "float16", "bfloat16", ...
  bool read_only() const { return read_only_; }
  uint64_t size_bytes() const;
  // Whether the last `dimensions` dimensions lie densely in memory, rows first. Strides of
  // dimensions with one entry do not matter, nor any stride of a tensor without entries.
  bool is_contiguous(size_t dimensions) const;

  // [batch, seqlen, heads, head_size] or [total, heads, head_size]. Throws py::value_error for
  // another rank.
  attn_tensor AsAttnTensor() const;

 private:
  Tensor() = default;

  void* data_ = nullptr;
  std::vector<int64_t> shape_;
  std::vector<int64_t> strides_;
  std::string dtype_;
  uint64_t item_bits_ = 0;
  bool read_only_ = false;
  std::shared_ptr<void> owner_;  // gives the memory back to its producer
};

}  // namespace AITER_ATTN_NAMESPACE::python
