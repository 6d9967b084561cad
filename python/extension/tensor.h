// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// One array borrowed from Python: a DLPack capsule or a buffer, held until the Tensor dies.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aiter/attn.h"
#include "aiter/norm.h"
#include "python/extension/dlpack_reader.h"

namespace AITER_ATTN_NAMESPACE::python {

namespace py = pybind11;

// Nothing is copied: data() points into the producer's memory, which stays alive (the capsule's
// deleter is not called, the buffer is not released) as long as the Tensor. Not copyable. Made and
// destroyed with the GIL held.
class Tensor {
 public:
  // Takes a capsule "dltensor" or "dltensor_versioned" (major version 1) over and renames it, as
  // DLPack's protocol asks. Throws py::type_error for anything else, py::value_error for a version
  // that is not known or for fields that make no array (dlpack_reader.h).
  static std::unique_ptr<Tensor> FromDlpack(const py::object& capsule);

  // Host memory of an object with the buffer protocol, for producers whose dtype DLPack export
  // refuses (numpy: bfloat16, read-only arrays before 2.1). The buffer's items must have the size
  // of `dtype`'s, "float16", "bfloat16", "float32", "int32", "int64", "uint64" or one of "float8_";
  // others are for messages.
  // Throws py::value_error, also where a stride is no multiple of the item size.
  static std::unique_ptr<Tensor> FromBuffer(const py::buffer& buffer, std::string dtype);

  // The same memory, whose items of 8 bits are a dtype's that a producer could not say ("uint8":
  // fp8). Throws py::value_error where they have another size.
  std::unique_ptr<Tensor> SeenAs(std::string dtype) const;

  // One entry of a dimension, which the result lacks; it is part of this one's memory. Throws
  // py::index_error where there is none.
  std::unique_ptr<Tensor> Entry(size_t dimension, int64_t index) const;

  // One number of a contiguous int32 array of one dimension in host memory. Throws py::index_error
  // where there is none.
  int32_t Number(int64_t index) const;

  // The value of all entries of a float32 array in host memory; none where they differ or there is
  // none.
  std::optional<float> OnlyNumber() const;

  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  void* data() const { return view_.data; }
  const DLDevice& device() const { return view_.device; }
  const std::vector<int64_t>& shape() const { return view_.shape; }
  const std::vector<int64_t>& strides() const { return view_.strides; }  // in elements
  const std::string& dtype() const { return view_.dtype; }
  bool read_only() const { return read_only_; }
  uintptr_t address() const { return reinterpret_cast<uintptr_t>(data()); }
  uint64_t size_bytes() const;
  // Whether it shares a byte with the other. The last dimensions of both are contiguous.
  bool Overlaps(const Tensor& other) const;
  // Whether the last `dimensions` dimensions lie densely in memory, rows first. Strides of
  // dimensions with one entry do not matter, nor any stride of a tensor without entries.
  bool is_contiguous(size_t dimensions) const;
  // Whether it has that shape and dtype, is_contiguous(dimensions), and can be written if it is to.
  // One question, as a call asks it of most of its arrays.
  bool Fits(const py::tuple& shape, std::string_view dtype, size_t dimensions, bool written) const;

  // [batch, seqlen, heads, head_size] or [total, heads, head_size]. Throws py::value_error for
  // another rank.
  attn_tensor AsAttnTensor() const;

  // [batch, seqlen, heads, head_size] whose keys are contiguous, as v of ATTN_V_COLUMNS. Throws
  // py::value_error for another rank.
  attn_tensor AsColumns() const;

  // [batch, heads, queries, keys] or [heads, queries, keys], where one entry stands for all: its
  // stride is 0. Throws py::value_error for another rank.
  attn_tensor AsScores() const;

  // [..., columns]: all dimensions but the last as rows. Throws py::value_error where there is
  // none, or rows are not equally far from each other.
  attn_rows AsRows() const;

 private:
  Tensor() = default;
  // The bytes of a row, which has the entries of the last dimension.
  uintptr_t RowWidth() const;
  // All that the tensor has lies in [first, second).
  std::pair<uintptr_t, uintptr_t> Span() const;
  // Where each row begins, in order.
  std::vector<uintptr_t> Rows() const;

  ArrayView view_;
  bool read_only_ = false;
  std::shared_ptr<void> owner_;  // gives the memory back to its producer
};

}  // namespace AITER_ATTN_NAMESPACE::python
