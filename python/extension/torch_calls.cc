// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "python/extension/torch_calls.h"

#include <string>
#include <utility>

namespace AITER_ATTN_NAMESPACE::python {
namespace {

using namespace pybind11::literals;

// Attributes of torch's objects. Interned, and kept for good.
struct Names {
  PyObject* const current_level = PyUnicode_InternFromString("_current_level");
  PyObject* const data_ptr = PyUnicode_InternFromString("data_ptr");
  PyObject* const device = PyUnicode_InternFromString("device");
  PyObject* const dtype = PyUnicode_InternFromString("dtype");
  PyObject* const raw_repr = PyUnicode_InternFromString("raw_repr");
  PyObject* const requires_grad = PyUnicode_InternFromString("requires_grad");
  PyObject* const shape = PyUnicode_InternFromString("shape");
  PyObject* const stride = PyUnicode_InternFromString("stride");
};

const Names& names() {
  static const Names made;
  return made;
}

py::object Checked(PyObject* made) {
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

py::object Ask(const py::object& function) { return Checked(PyObject_CallNoArgs(function.ptr())); }

py::object Ask(const py::object& function, py::handle argument) {
  return Checked(PyObject_CallOneArg(function.ptr(), argument.ptr()));
}

py::object Method(py::handle object, PyObject* name) {
  return Checked(PyObject_CallMethodNoArgs(object.ptr(), name));
}

py::object Attribute(py::handle object, PyObject* name) {
  return Checked(PyObject_GetAttr(object.ptr(), name));
}

bool IsTrue(const py::object& value) {
  const int is_true = PyObject_IsTrue(value.ptr());
  if (is_true < 0) throw py::error_already_set();
  return is_true != 0;
}

int64_t Number(const py::object& value) {
  const int64_t number = PyLong_AsLongLong(value.ptr());
  if (number == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
  return number;
}

uintptr_t Address(const py::object& value) {
  const uintptr_t address = PyLong_AsSize_t(value.ptr());
  if (address == static_cast<uintptr_t>(-1) && PyErr_Occurred() != nullptr) {
    throw py::error_already_set();
  }
  return address;
}

uintptr_t AddressOf(py::handle tensor) {
  return tensor.is_none() ? 0 : Address(Method(tensor, names().data_ptr));
}

bool Contains(const py::object& all, const py::object& one) {
  const int contains = PySequence_Contains(all.ptr(), one.ptr());
  if (contains < 0) throw py::error_already_set();
  return contains != 0;
}

py::handle At(const py::args& given, size_t place) {
  return PyTuple_GET_ITEM(given.ptr(), static_cast<Py_ssize_t>(place));
}

py::object Entry(const py::dict& functions, const char* name) {
  if (!functions.contains(name)) {
    throw py::type_error("no function is named \"" + std::string(name) + '"');
  }
  return functions[name];
}

}  // namespace

Watcher::Watcher(const py::dict& functions)
    : modes_(Entry(functions, "modes")),
      thread_keys_(Entry(functions, "thread_keys")),
      plain_threads_(Entry(functions, "plain_threads")),
      forward_ad_(Entry(functions, "forward_ad")),
      is_profiled_(Entry(functions, "is_profiled")),
      keys_(Entry(functions, "keys")),
      plain_(Entry(functions, "plain")),
      is_plain_(Entry(functions, "is_plain")),
      is_grad_enabled_(Entry(functions, "is_grad_enabled")),
      classes_(Entry(functions, "classes")) {}

bool Watcher::WatchesThread() const {
  return Number(Ask(modes_)) > 0 ||
         !Contains(plain_threads_, Method(Ask(thread_keys_), names().raw_repr)) ||
         Number(Attribute(forward_ad_, names().current_level)) >= 0 || IsTrue(Ask(is_profiled_));
}

bool Watcher::Watches(py::handle tensor, bool by_class) const {
  if (tensor.is_none()) return false;
  const py::handle kind = py::type::handle_of(tensor);
  bool is_known = false;
  for (const py::handle& known : classes_) is_known = is_known || kind.is(known);
  if (!is_known || by_class) return !is_known;
  return !Contains(plain_, Method(Ask(keys_, tensor), names().raw_repr)) &&
         !IsTrue(Ask(is_plain_, tensor));
}

bool Watcher::Records() const { return IsTrue(Ask(is_grad_enabled_)); }

PreparedRows::PreparedRows(const py::sequence& made, size_t results, int index,
                           const py::dict& functions)
    : results_(results),
      index_(index),
      memory_(Entry(functions, "memory")),
      new_(Entry(functions, "new")) {
  for (const py::handle& result : made) {
    if (!result.is_none() && !(py::isinstance<py::tuple>(result) && py::len(result) == 3)) {
      throw py::type_error("made: a tuple of shape, strides and dtype, or None");
    }
    made_.push_back(py::reinterpret_borrow<py::object>(result));
  }
  if (results_ > made_.size()) throw py::value_error("results: more than are made");
  if (index_ < 0) return;
  current_device_ = Entry(functions, "current_device");
  stream_ = Entry(functions, "stream");
  is_capturing_ = Entry(functions, "is_capturing");
  barrier_ = Entry(functions, "barrier");
}

py::tuple PreparedRows::ResultsOf(const py::handle* given, size_t count) {
  const bool is_on_gpu = index_ >= 0;
  const bool is_current = !is_on_gpu || Number(Ask(current_device_)) == index_;
  std::vector<uintptr_t> addresses;
  addresses.reserve(count + made_.size() + 1);
  for (size_t i = 0; i < count; ++i) addresses.push_back(AddressOf(given[i]));
  py::tuple results(made_.size());
  for (size_t i = 0; i < made_.size(); ++i) {
    py::object made = made_[i];
    if (!made.is_none()) {
      PyObject* const* const like = &PyTuple_GET_ITEM(made.ptr(), 0);
      PyObject* const arguments[] = {given[0].ptr(), like[0], like[1], like[2]};
      made = is_current && !memory_.is_none()
                 ? Checked(PyObject_Vectorcall(memory_.ptr(), arguments + 1, 3, nullptr))
                 : Checked(PyObject_Vectorcall(new_.ptr(), arguments, 4, nullptr));
      addresses.push_back(AddressOf(made));
    }
    results[i] = std::move(made);
  }
  uintptr_t stream = 0;
  if (is_on_gpu) {
    stream = Address(Ask(stream_, py::int_(index_)));
    if (!barrier_.is_none()) addresses.push_back(Barrier(given[0], stream, is_current));
  }
  Run(addresses, stream);
  if (results_ == made_.size()) return results;
  return results[py::slice(0, static_cast<py::ssize_t>(results_), 1)];
}

uintptr_t PreparedRows::Barrier(py::handle lead, uintptr_t stream, bool is_current) {
  // Each captured call gets a barrier of its own.
  const bool is_kept = is_current && !IsTrue(Ask(is_capturing_));
  if (is_kept) {
    const auto found = barriers_.find(stream);
    if (found != barriers_.end()) return found->second;
  }
  const uintptr_t address = AddressOf(barrier_(lead, stream));
  if (is_kept && address != 0) barriers_.emplace(stream, address);
  return address;
}

PreparedCalls::PreparedCalls(std::shared_ptr<const Watcher> watcher, py::dict kept, py::str name,
                             size_t tensors, const py::sequence& by_class,
                             py::object differentiable)
    : watcher_(std::move(watcher)),
      kept_(std::move(kept)),
      name_(std::move(name)),
      by_class_(tensors),
      differentiable_(std::move(differentiable)) {
  for (const py::handle& place : by_class) by_class_.at(py::cast<size_t>(place)) = true;
}

py::tuple PreparedCalls::Signature(const py::args& given) const {
  const size_t tensors = by_class_.size();
  if (given.size() < tensors) {
    throw py::type_error(std::to_string(tensors) + " tensors come first; given: " +
                         std::to_string(given.size()) + " arguments");
  }
  // One flat tuple: four entries to a tensor.
  py::tuple signature(1 + 4 * tensors + given.size() - tensors);
  size_t place = 0;
  const auto add = [&](py::object entry) {
    PyTuple_SET_ITEM(signature.ptr(), static_cast<Py_ssize_t>(place++), entry.release().ptr());
  };
  add(name_);
  for (size_t i = 0; i < given.size(); ++i) {
    const py::handle value = At(given, i);
    if (i >= tensors) {
      add(py::reinterpret_borrow<py::object>(value));
    } else if (value.is_none()) {
      for (int entry = 0; entry < 4; ++entry) add(py::none());
    } else {
      add(Attribute(value, names().shape));
      add(Method(value, names().stride));
      add(Attribute(value, names().dtype));
      add(Attribute(value, names().device));
    }
  }
  return signature;
}

py::object PreparedCalls::Run(const py::args& given) const {
  PyObject* const found = PyDict_GetItemWithError(kept_.ptr(), Signature(given).ptr());
  if (found == nullptr) {
    if (PyErr_Occurred() != nullptr) throw py::error_already_set();
    return py::none();
  }
  // Another thread may drop it meanwhile.
  const auto prepared = py::reinterpret_borrow<py::object>(found);
  std::vector<py::handle> tensors;
  tensors.reserve(by_class_.size());
  for (size_t i = 0; i < by_class_.size(); ++i) tensors.push_back(At(given, i));
  return py::cast<PreparedRows&>(prepared).ResultsOf(tensors.data(), tensors.size());
}

py::object PreparedCalls::RunUnwatched(const py::args& given) const {
  const size_t tensors = by_class_.size();
  // Numbers of other types are read, or refused, by the long way.
  for (size_t i = tensors; i < given.size(); ++i) {
    const py::handle number = At(given, i);
    if (!PyBool_Check(number.ptr()) && !PyFloat_CheckExact(number.ptr())) return py::none();
  }
  if (watcher_ == nullptr || watcher_->WatchesThread()) return py::none();
  for (size_t i = 0; i < tensors && i < given.size(); ++i) {
    if (watcher_->Watches(At(given, i), by_class_[i])) return py::none();
  }
  if (watcher_->Records()) {
    for (size_t i = 0; i < tensors && i < given.size(); ++i) {
      const py::handle tensor = At(given, i);
      if (tensor.is_none() || !IsTrue(Attribute(tensor, names().requires_grad))) continue;
      if (differentiable_.is_none()) return py::none();
      return Checked(PyObject_CallObject(differentiable_.ptr(), given.ptr()));
    }
  }
  return Run(given);
}

void BindTorchCalls(py::module_& module) {
  py::class_<Watcher, std::shared_ptr<Watcher>>(module, "Watcher")
      .def(py::init([](const py::kwargs& functions) { return Watcher(functions); }))
      .def(
          "watches",
          [](const Watcher& watcher, const py::sequence& tensors) {
            if (watcher.WatchesThread()) return true;
            for (const py::handle& tensor : tensors) {
              if (watcher.Watches(tensor, false)) return true;
            }
            return false;
          },
          "tensors"_a);
  const py::class_<PreparedRows, std::shared_ptr<PreparedRows>> rows(module, "PreparedRows");
  py::class_<PreparedCalls>(module, "PreparedCalls")
      .def(py::init<std::shared_ptr<Watcher>, py::dict, py::str, size_t, const py::sequence&,
                    py::object>(),
           "watcher"_a, "kept"_a, "name"_a, "tensors"_a, "by_class"_a, "differentiable"_a)
      .def("signature", &PreparedCalls::Signature)
      .def("run", &PreparedCalls::Run)
      .def("run_unwatched", &PreparedCalls::RunUnwatched);
}

}  // namespace AITER_ATTN_NAMESPACE::python
