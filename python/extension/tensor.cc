// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "python/extension/tensor.h"

#include <cstring>
#include <utility>

namespace AITER_ATTN_NAMESPACE::python {
namespace {

constexpr char kCapsule[] = "dltensor";
constexpr char kCapsuleVersioned[] = "dltensor_versioned";
constexpr char kUsedCapsule[] = "used_dltensor";
constexpr char kUsedCapsuleVersioned[] = "used_dltensor_versioned";
constexpr uint32_t kDlpackMajor = 1;

std::string DtypeName(DLDataType dtype) {
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
  }
  std::string name = kind + std::to_string(dtype.bits);
  if (dtype.lanes != 1) name += "x" + std::to_string(dtype.lanes);
  return name;
}

std::vector<int64_t> RowMajorStrides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

// Whatever a Tensor's owner calls may run Python code that fails; it must not lose an exception
// that is already on its way.
template <typename Managed>
std::shared_ptr<void> Own(Managed* managed) {
  return std::shared_ptr<void>(managed, [](void* pointer) {
    auto* owned = static_cast<Managed*>(pointer);
    py::error_scope keep_pending_error;
    if (owned->deleter != nullptr) owned->deleter(owned);
  });
}

}  // namespace

std::unique_ptr<Tensor> Tensor::FromDlpack(const py::capsule& capsule) {
  std::unique_ptr<Tensor> tensor(new Tensor);
  const DLTensor* source = nullptr;
  const char* name = PyCapsule_GetName(capsule.ptr());
  if (name != nullptr && std::strcmp(name, kCapsuleVersioned) == 0) {
    auto* managed = static_cast<DLManagedTensorVersioned*>(
        PyCapsule_GetPointer(capsule.ptr(), kCapsuleVersioned));
    if (managed == nullptr) throw py::error_already_set();
    if (managed->version.major != kDlpackMajor) {
      throw py::value_error("a DLPack capsule of major version " +
                            std::to_string(managed->version.major) + "; version " +
                            std::to_string(kDlpackMajor) + " is understood");
    }
    if (PyCapsule_SetName(capsule.ptr(), kUsedCapsuleVersioned) != 0) {
      throw py::error_already_set();
    }
    tensor->owner_ = Own(managed);
    tensor->read_only_ = (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
    source = &managed->dl_tensor;
  } else if (name != nullptr && std::strcmp(name, kCapsule) == 0) {
    auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kCapsule));
    if (managed == nullptr) throw py::error_already_set();
    if (PyCapsule_SetName(capsule.ptr(), kUsedCapsule) != 0) throw py::error_already_set();
    tensor->owner_ = Own(managed);
    source = &managed->dl_tensor;
  } else {
    throw py::type_error(std::string("a capsule named \"") + (name == nullptr ? "" : name) +
                         "\" is no unused DLPack capsule (\"dltensor\", \"dltensor_versioned\")");
  }

  tensor->shape_.assign(source->shape, source->shape + source->ndim);
  if (source->strides != nullptr) {
    tensor->strides_.assign(source->strides, source->strides + source->ndim);
  } else {
    tensor->strides_ = RowMajorStrides(tensor->shape_);
  }
  tensor->dtype_ = DtypeName(source->dtype);
  tensor->item_bits_ = uint64_t{source->dtype.bits} * source->dtype.lanes;
  if (source->data != nullptr) {
    tensor->data_ = static_cast<char*>(source->data) + source->byte_offset;
  }
  return tensor;
}

std::unique_ptr<Tensor> Tensor::FromBuffer(const py::buffer& buffer, std::string dtype) {
  std::unique_ptr<Tensor> tensor(new Tensor);
  auto view = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(buffer.ptr(), view.get(), PyBUF_STRIDED_RO) != 0) {
    throw py::error_already_set();
  }
  tensor->owner_ = std::shared_ptr<void>(view.release(), [](void* pointer) {
    auto* owned = static_cast<Py_buffer*>(pointer);
    py::error_scope keep_pending_error;
    PyBuffer_Release(owned);
    delete owned;
  });
  const auto& held = *static_cast<const Py_buffer*>(tensor->owner_.get());
  tensor->shape_.reserve(held.ndim);
  tensor->strides_.reserve(held.ndim);
  for (int i = 0; i < held.ndim; ++i) {
    if (held.itemsize == 0 || held.strides[i] % held.itemsize != 0) {
      throw py::value_error("the stride of dimension " + std::to_string(i) + " is " +
                            std::to_string(held.strides[i]) + " bytes, no multiple of the " +
                            std::to_string(held.itemsize) + "-byte elements");
    }
    tensor->shape_.push_back(held.shape[i]);
    tensor->strides_.push_back(held.strides[i] / held.itemsize);
  }
  tensor->dtype_ = std::move(dtype);
  tensor->item_bits_ = static_cast<uint64_t>(held.itemsize) * 8;
  tensor->data_ = held.buf;
  tensor->read_only_ = held.readonly != 0;
  return tensor;
}

uint64_t Tensor::size_bytes() const {
  uint64_t items = 1;
  for (int64_t extent : shape_) items *= static_cast<uint64_t>(extent);
  return items * item_bits_ / 8;
}

bool Tensor::is_contiguous(size_t dimensions) const {
  int64_t expected = 1;
  bool dense = true;
  for (size_t i = shape_.size(); i-- > 0;) {
    if (shape_[i] == 0) return true;
    if (i + dimensions < shape_.size()) continue;
    dense &= shape_[i] == 1 || strides_[i] == expected;
    expected *= shape_[i];
  }
  return dense;
}

attn_tensor Tensor::AsAttnTensor() const {
  attn_tensor result{};
  result.data = data_;
  switch (shape_.size()) {
    case 4:
      result.stride_batch = strides_[0];
      result.stride_seq = strides_[1];
      result.stride_head = strides_[2];
      return result;
    case 3:
      result.stride_seq = strides_[0];
      result.stride_head = strides_[1];
      return result;
    default:
      throw py::value_error("an attention tensor has 3 or 4 dimensions, not " +
                            std::to_string(shape_.size()));
  }
}

}  // namespace AITER_ATTN_NAMESPACE::python
