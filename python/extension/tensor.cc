// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "python/extension/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace AITER_ATTN_NAMESPACE::python {
namespace {

constexpr char kCapsule[] = "dltensor";
constexpr char kCapsuleVersioned[] = "dltensor_versioned";
constexpr char kUsedCapsule[] = "used_dltensor";
constexpr char kUsedCapsuleVersioned[] = "used_dltensor_versioned";
constexpr uint32_t kDlpackMajor = 1;

// Of the dtypes that the library reads or writes; 0: of another.
Py_ssize_t ItemSize(std::string_view dtype) {
  if (dtype == "float16" || dtype == "bfloat16") return 2;
  if (dtype == "float32" || dtype == "int32") return 4;
  if (dtype == "int64" || dtype == "uint64") return 8;
  if (dtype.substr(0, 7) == "float8_") return 1;
  return 0;
}

// A call of a Tensor's owner may run Python code that fails; it must not lose an exception
// that is already on its way.
template <typename Managed>
std::shared_ptr<void> Own(Managed* managed) {
  return std::shared_ptr<void>(managed, [](void* pointer) {
    auto* owned = static_cast<Managed*>(pointer);
    py::error_scope keep_pending_error;
    if (owned->deleter != nullptr) owned->deleter(owned);
  });
}

// The capsule's content, which is the caller's to give back from now on.
template <typename Managed>
Managed* Take(PyObject* capsule, const char* name, const char* used_name) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (managed == nullptr || PyCapsule_SetName(capsule, used_name) != 0) {
    throw py::error_already_set();
  }
  return managed;
}

}  // namespace

std::unique_ptr<Tensor> Tensor::FromDlpack(const py::object& capsule) {
  if (!PyCapsule_CheckExact(capsule.ptr())) {
    throw py::type_error(std::string(Py_TYPE(capsule.ptr())->tp_name) +
                         " is no DLPack capsule; allowed: one that the DLPack protocol exports");
  }
  std::unique_ptr<Tensor> tensor(new Tensor);
  const DLTensor* source = nullptr;
  const char* name = PyCapsule_GetName(capsule.ptr());
  if (name != nullptr && std::strcmp(name, kCapsuleVersioned) == 0) {
    auto* managed = static_cast<DLManagedTensorVersioned*>(
        PyCapsule_GetPointer(capsule.ptr(), kCapsuleVersioned));
    if (managed == nullptr) throw py::error_already_set();
    // The version is all that can be known of another major version's layout.
    if (managed->version.major != kDlpackMajor) {
      throw py::value_error("major version " + std::to_string(managed->version.major) +
                            "; allowed: " + std::to_string(kDlpackMajor));
    }
    tensor->owner_ = Own(
        Take<DLManagedTensorVersioned>(capsule.ptr(), kCapsuleVersioned, kUsedCapsuleVersioned));
    tensor->read_only_ = (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
    source = &managed->dl_tensor;
  } else if (name != nullptr && std::strcmp(name, kCapsule) == 0) {
    auto* managed = Take<DLManagedTensor>(capsule.ptr(), kCapsule, kUsedCapsule);
    tensor->owner_ = Own(managed);
    source = &managed->dl_tensor;
  } else {
    throw py::type_error(std::string("a capsule named \"") + (name == nullptr ? "" : name) +
                         "\" is no unused DLPack capsule (\"dltensor\", \"dltensor_versioned\")");
  }
  try {
    tensor->view_ = ReadDlpack(*source);
  } catch (const std::invalid_argument& error) {
    throw py::value_error(error.what());
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
  const Py_ssize_t item_size = ItemSize(dtype);
  if (item_size != 0 && held.itemsize != item_size) {
    throw py::value_error("its buffer has items of " + std::to_string(held.itemsize) +
                          " bytes; allowed: " + std::to_string(item_size) + ", as " + dtype +
                          " has");
  }
  ArrayView& made = tensor->view_;
  made.shape.reserve(held.ndim);
  made.strides.reserve(held.ndim);
  for (int i = 0; i < held.ndim; ++i) {
    if (held.itemsize == 0 || held.strides[i] % held.itemsize != 0) {
      throw py::value_error("the stride of dimension " + std::to_string(i) + " is " +
                            std::to_string(held.strides[i]) + " bytes, no multiple of the " +
                            std::to_string(held.itemsize) + "-byte elements");
    }
    made.shape.push_back(held.shape[i]);
    made.strides.push_back(held.strides[i] / held.itemsize);
  }
  made.dtype = std::move(dtype);
  made.item_bits = static_cast<uint64_t>(held.itemsize) * 8;
  made.data = held.buf;
  tensor->read_only_ = held.readonly != 0;
  return tensor;
}

std::unique_ptr<Tensor> Tensor::SeenAs(std::string dtype) const {
  if (view_.item_bits != 8) {
    throw py::value_error("its items have " + std::to_string(view_.item_bits) +
                          " bits; allowed: 8, as " + dtype + " has");
  }
  std::unique_ptr<Tensor> seen(new Tensor);
  seen->owner_ = owner_;
  seen->read_only_ = read_only_;
  seen->view_ = view_;
  seen->view_.dtype = std::move(dtype);
  return seen;
}

std::unique_ptr<Tensor> Tensor::Entry(size_t dimension, int64_t index) const {
  if (dimension >= shape().size() || index < 0 || index >= shape()[dimension]) {
    throw py::index_error("no entry " + std::to_string(index) + " of dimension " +
                          std::to_string(dimension));
  }
  std::unique_ptr<Tensor> part(new Tensor);
  part->owner_ = owner_;
  part->read_only_ = read_only_;
  part->view_ = view_;
  ArrayView& view = part->view_;
  if (size_bytes() != 0) {
    const auto item = static_cast<int64_t>(view.item_bits / 8);
    view.data = static_cast<char*>(view.data) + index * view.strides[dimension] * item;
  }
  const auto position = static_cast<std::ptrdiff_t>(dimension);
  view.shape.erase(view.shape.begin() + position);
  view.strides.erase(view.strides.begin() + position);
  return part;
}

int32_t Tensor::Number(int64_t index) const {
  if (device().device_type != kDLCPU || dtype() != "int32" || shape().size() != 1 ||
      !is_contiguous(1) || index < 0 || index >= shape()[0]) {
    throw py::index_error("no int32 " + std::to_string(index) + " in host memory");
  }
  return static_cast<const int32_t*>(data())[index];
}

std::optional<float> Tensor::OnlyNumber() const {
  if (device().device_type != kDLCPU || dtype() != "float32" || size_bytes() == 0) return {};
  const auto* const first = static_cast<const float*>(data());
  std::vector<int64_t> index(shape().size(), 0);
  for (;;) {
    int64_t offset = 0;
    for (size_t i = 0; i < index.size(); ++i) offset += index[i] * strides()[i];
    const bool both_nan = std::isnan(first[offset]) && std::isnan(*first);
    if (first[offset] != *first && !both_nan) return {};
    size_t i = index.size();
    while (i > 0 && ++index[i - 1] == shape()[i - 1]) index[--i] = 0;
    if (i == 0) return *first;
  }
}

uint64_t Tensor::size_bytes() const {
  uint64_t items = 1;
  for (int64_t extent : shape()) items *= static_cast<uint64_t>(extent);
  return items * view_.item_bits / 8;
}

uintptr_t Tensor::RowWidth() const {
  return static_cast<uintptr_t>(shape().empty() ? 1 : shape().back()) * view_.item_bits / 8;
}

std::pair<uintptr_t, uintptr_t> Tensor::Span() const {
  const auto item = static_cast<int64_t>(view_.item_bits / 8);
  uintptr_t begin = address(), end = begin + RowWidth();
  for (size_t dimension = 0; dimension + 1 < shape().size(); ++dimension) {
    const int64_t reach = strides()[dimension] * (shape()[dimension] - 1) * item;
    (reach < 0 ? begin : end) += static_cast<uintptr_t>(reach);
  }
  return {begin, end};
}

std::vector<uintptr_t> Tensor::Rows() const {
  const auto item = static_cast<int64_t>(view_.item_bits / 8);
  std::vector<uintptr_t> rows = {address()};
  for (size_t dimension = 0; dimension + 1 < shape().size(); ++dimension) {
    const size_t count = rows.size();
    for (int64_t i = 1; i < shape()[dimension]; ++i) {
      const auto step = static_cast<uintptr_t>(i * strides()[dimension] * item);
      for (size_t row = 0; row < count; ++row) rows.push_back(rows[row] + step);
    }
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

bool Tensor::Overlaps(const Tensor& other) const {
  if (size_bytes() == 0 || other.size_bytes() == 0) return false;
  const auto [begin, end] = Span();
  const auto [other_begin, other_end] = other.Span();
  if (end <= other_begin || other_end <= begin) return false;
  const std::vector<uintptr_t> rows = Rows(), others = other.Rows();
  for (size_t i = 0, j = 0; i < rows.size() && j < others.size();) {
    if (rows[i] + RowWidth() <= others[j]) {
      ++i;
    } else if (others[j] + other.RowWidth() <= rows[i]) {
      ++j;
    } else {
      return true;
    }
  }
  return false;
}

bool Tensor::is_contiguous(size_t dimensions) const {
  for (int64_t extent : shape()) {
    if (extent == 0) return true;
  }
  int64_t expected = 1;
  const size_t total = shape().size();
  for (size_t last = 1; last <= std::min(dimensions, total); ++last) {
    const size_t i = total - last;
    if (shape()[i] == 1) continue;
    if (strides()[i] != expected) return false;
    expected *= shape()[i];
  }
  return true;
}

bool Tensor::Fits(const py::tuple& shape, std::string_view dtype, size_t dimensions,
                  bool written) const {
  if (dtype != this->dtype() || (written && read_only_) || shape.size() != this->shape().size()) {
    return false;
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t extent = PyLong_AsLongLong(PyTuple_GET_ITEM(shape.ptr(), i));
    if (extent == -1 && PyErr_Occurred()) throw py::error_already_set();
    if (extent != this->shape()[i]) return false;
  }
  return is_contiguous(dimensions);
}

attn_tensor Tensor::AsAttnTensor() const {
  attn_tensor result{};
  result.data = data();
  switch (shape().size()) {
    case 4:
      result.stride_batch = strides()[0];
      result.stride_seq = strides()[1];
      result.stride_head = strides()[2];
      return result;
    case 3:
      result.stride_seq = strides()[0];
      result.stride_head = strides()[1];
      return result;
    default:
      throw py::value_error("an attention tensor has 3 or 4 dimensions, not " +
                            std::to_string(shape().size()));
  }
}

attn_tensor Tensor::AsColumns() const {
  if (shape().size() != 4) {
    throw py::value_error("v by columns has 4 dimensions, not " + std::to_string(shape().size()));
  }
  return {data(), strides()[0], strides()[3], strides()[2]};
}

attn_tensor Tensor::AsScores() const {
  const size_t rank = shape().size();
  if (rank != 3 && rank != 4) {
    throw py::value_error("a bias of scores has 3 or 4 dimensions, not " + std::to_string(rank));
  }
  const auto stride = [&](size_t from_last) {
    return shape()[rank - from_last] == 1 ? 0 : strides()[rank - from_last];
  };
  attn_tensor result{};
  result.data = data();
  result.stride_seq = stride(2);
  result.stride_head = stride(3);
  if (rank == 4) result.stride_batch = stride(4);
  return result;
}

attn_rows Tensor::AsRows() const {
  if (shape().empty()) throw py::value_error("a norm's array has at least 1 dimension, not 0");
  attn_rows result = {data(), shape().back()};
  if (size_bytes() == 0) return result;  // no stride of it matters
  bool is_known = false;
  int64_t expected = 0;
  for (size_t i = shape().size() - 1; i-- > 0;) {
    if (shape()[i] == 1) continue;
    if (!is_known) {
      result.stride = expected = strides()[i];
      is_known = true;
    } else if (strides()[i] != expected) {
      throw py::value_error("the stride of dimension " + std::to_string(i) + " is " +
                            std::to_string(strides()[i]) + " elements; allowed: " +
                            std::to_string(expected) + ", so that rows are equally far apart");
    }
    if (__builtin_mul_overflow(expected, shape()[i], &expected) && i > 0) {
      throw py::value_error("the stride of dimension " + std::to_string(i) + " is " +
                            std::to_string(strides()[i]) + " elements; " +
                            std::to_string(shape()[i]) + " of them exceed the address space");
    }
  }
  return result;
}

}  // namespace AITER_ATTN_NAMESPACE::python
