// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "python/extension/dlpack_reader.h"

#include <algorithm>
#include <stdexcept>

namespace AITER_ATTN_NAMESPACE::python {
namespace {

// numpy's limit, which is the greatest of all producers'.
constexpr int32_t kMaxDimensions = 64;

// The codes of fp8, by DLPack 1.1: later than the header.
constexpr int kFloat8E4m3fn = 10, kFloat8E4m3fnuz = 11, kFloat8E5m2 = 12;

[[noreturn]] void Refuse(const std::string& field, const std::string& value,
                         const std::string& allowed) {
  throw std::invalid_argument(field + " is " + value + "; allowed: " + allowed);
}

std::string Indexed(const char* field, size_t index) {
  return std::string(field) + '[' + std::to_string(index) + ']';
}

std::string DtypeName(DLDataType dtype) {
  if (dtype.bits == 8) {
    if (dtype.code == kFloat8E4m3fn) return "float8_e4m3fn";
    if (dtype.code == kFloat8E4m3fnuz) return "float8_e4m3fnuz";
    if (dtype.code == kFloat8E5m2) return "float8_e5m2";
  }
  if (dtype.code == kDLBool && dtype.bits == 8) return "bool";
  const char* kind = "opaque";
  switch (dtype.code) {
    case kDLInt:
      kind = "int";
      break;
    case kDLUInt:
      kind = "uint";
      break;
    case kDLFloat:
      kind = "float";
      break;
    case kDLBfloat:
      kind = "bfloat";
      break;
    case kDLComplex:
      kind = "complex";
      break;
    case kDLBool:
      kind = "bool";
      break;
    default:  // a code of a later DLPack
      break;
  }
  return kind + std::to_string(dtype.bits);
}

std::vector<int64_t> ReadShape(const DLTensor& tensor) {
  if (tensor.ndim < 0 || tensor.ndim > kMaxDimensions) {
    Refuse("ndim", std::to_string(tensor.ndim), "0 to " + std::to_string(kMaxDimensions));
  }
  if (tensor.ndim == 0) return {};
  if (tensor.shape == nullptr) {
    Refuse("shape", "NULL", "ndim extents, here " + std::to_string(tensor.ndim));
  }
  std::vector<int64_t> shape(tensor.shape, tensor.shape + tensor.ndim);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0) Refuse(Indexed("shape", i), std::to_string(shape[i]), "0 or more");
  }
  return shape;
}

// Of a dense array, rows first.
std::vector<int64_t> RowMajorStrides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) {
    if (__builtin_mul_overflow(strides[i], shape[i], &strides[i - 1])) {
      Refuse(Indexed("shape", i), std::to_string(shape[i]), "extents whose product fits 64 bits");
    }
  }
  return strides;
}

// Checks the distance of the entries from data, in bytes to both sides.
void CheckReach(const ArrayView& view, const DLTensor& source) {
  const int64_t item = static_cast<int64_t>((view.item_bits + 7) / 8);
  int64_t before = 0, behind = item;
  for (size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i] <= 1) continue;
    int64_t reach;
    if (__builtin_mul_overflow(view.strides[i], view.shape[i] - 1, &reach) ||
        __builtin_mul_overflow(reach, item, &reach) ||
        __builtin_add_overflow(reach, reach < 0 ? before : behind, reach < 0 ? &before : &behind)) {
      Refuse(Indexed("strides", i), std::to_string(view.strides[i]),
             "strides that stay in the address space over " + std::to_string(view.shape[i]) +
                 " entries of " + std::to_string(item) + " bytes");
    }
  }
  uintptr_t start, end;
  if (__builtin_add_overflow(reinterpret_cast<uintptr_t>(source.data), source.byte_offset,
                             &start) ||
      start < uintptr_t{0} - static_cast<uintptr_t>(before) ||
      __builtin_add_overflow(start, static_cast<uintptr_t>(behind), &end)) {
    Refuse("byte_offset", std::to_string(source.byte_offset),
           "an offset from data with which all entries are in the address space");
  }
}

}  // namespace

ArrayView ReadDlpack(const DLTensor& tensor) {
  ArrayView view;
  view.device = tensor.device;
  view.shape = ReadShape(tensor);
  if (tensor.dtype.bits == 0) Refuse("dtype.bits", "0", "1 or more");
  if (tensor.dtype.lanes != 1) {
    Refuse("dtype.lanes", std::to_string(tensor.dtype.lanes), "1 (vectors are a dimension)");
  }
  view.dtype = DtypeName(tensor.dtype);
  view.item_bits = tensor.dtype.bits;
  // Without entries neither strides nor data mean anything.
  if (std::count(view.shape.begin(), view.shape.end(), 0) != 0) {
    view.strides.assign(view.shape.size(), 0);
    return view;
  }
  if (tensor.data == nullptr) Refuse("data", "NULL", "an address, as the array has entries");
  view.strides = tensor.strides == nullptr
                     ? RowMajorStrides(view.shape)
                     : std::vector<int64_t>(tensor.strides, tensor.strides + view.shape.size());
  CheckReach(view, tensor);
  view.data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  return view;
}

}  // namespace AITER_ATTN_NAMESPACE::python
