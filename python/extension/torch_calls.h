// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Calls with torch's tensors that lie as those of a call before do. torch is asked by functions of
// its own, which Python gives: this extension is built without it.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace AITER_ATTN_NAMESPACE::python {

namespace py = pybind11;

// Whether anything of torch but autograd would notice a call (aiter_attn/torch/_watched.py).
class Watcher {
 public:
  // functions: by the names of the members below.
  explicit Watcher(const py::dict& functions);

  // Whether something watches this thread's calls.
  bool WatchesThread() const;
  // Whether a tensor, or None, is one that something watches. by_class: its class alone is looked
  // at.
  bool Watches(py::handle tensor, bool by_class) const;
  // Whether autograd records calls with tensors that require gradients.
  bool Records() const;

 private:
  py::object modes_, thread_keys_, plain_threads_, forward_ad_, is_profiled_;
  py::object keys_, plain_, is_plain_, is_grad_enabled_;
  py::tuple classes_;
};

// A pass of a norm or of softmax for all tensors of one signature.
class PreparedRows {
 public:
  // made: of each array that a call makes (shape, strides, dtype), or None where it makes none.
  // results: the first of those, which a call gives; it drops the others. index: of a GPU;
  // negative: in host memory. functions: memory(shape, strides, dtype), on the current device, or
  // None; new(lead, shape, strides, dtype); and of a GPU current_device(), stream(index),
  // is_capturing(), of the current device's stream, and barrier(lead, stream), or None.
  PreparedRows(const py::sequence& made, size_t results, int index, const py::dict& functions);
  virtual ~PreparedRows() = default;
  PreparedRows(const PreparedRows&) = delete;
  PreparedRows& operator=(const PreparedRows&) = delete;

  // The results, of tensors or Nones in their order; the first is a tensor.
  py::tuple ResultsOf(const py::handle* given, size_t count);

 private:
  // Addresses, 0 for none: of what is given, of what is made, and of a barrier where there is one.
  virtual void Run(const std::vector<uintptr_t>& addresses, uintptr_t stream) const = 0;
  uintptr_t Barrier(py::handle lead, uintptr_t stream, bool is_current);

  std::vector<py::object> made_;
  size_t results_;
  int index_;
  py::object memory_, new_, current_device_, stream_, is_capturing_, barrier_;
  // Of streams: the framework keeps them for good.
  std::unordered_map<uintptr_t, uintptr_t> barriers_;
};

// The passes of one operation that were prepared.
class PreparedCalls {
 public:
  // watcher: NULL where torch cannot be asked, and all is watched. kept: prepared passes by
  // signature, of all operations. name: of this one. tensors: how many of
  // a call's arguments are tensors or None; they come first. by_class: places of those of which the
  // class alone is looked at. differentiable: what is called where autograd records; None: nothing.
  PreparedCalls(std::shared_ptr<const Watcher> watcher, py::dict kept, py::str name, size_t tensors,
                const py::sequence& by_class, py::object differentiable);

  // All of a call but its tensors' addresses and contents.
  py::tuple Signature(const py::args& given) const;
  // The results of a prepared pass; None where none is known.
  py::object Run(const py::args& given) const;
  // Run(), but None, too, where something watches.
  py::object RunUnwatched(const py::args& given) const;

 private:
  std::shared_ptr<const Watcher> watcher_;
  py::dict kept_;
  py::str name_;
  std::vector<bool> by_class_;
  py::object differentiable_;
};

void BindTorchCalls(py::module_& module);

}  // namespace AITER_ATTN_NAMESPACE::python
