// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// aiter_attn._C: the C ABI (aiter/attn.h, aiter/norm.h) for Python, one function each. Checks that
// name the caller's arguments are the package's (aiter_attn/_core); what
// the library itself refuses arrives here as a status and leaves as an exception of
// aiter_attn._core.errors.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aiter/attn.h"
#include "python/extension/caches.h"
#include "python/extension/call.h"
#include "python/extension/errors.h"
#include "python/extension/functions.h"
#include "python/extension/gil.h"
#include "python/extension/given.h"
#include "python/extension/norms.h"
#include "python/extension/problem.h"
#include "python/extension/tensor.h"

namespace AITER_ATTN_NAMESPACE::python {
namespace {

using namespace pybind11::literals;

Problem MakeProblem(const py::kwargs& given) {
  Problem made;
  made.problem.struct_size = sizeof made.problem;
  made.problem.device_type = ATTN_DEVICE_CPU;
  TakeNumbers(given, made.problem, made.fwd, made.bwd);
  return made;
}

Problem OnDevice(Problem problem, int32_t device_type, int32_t device_id, uintptr_t stream) {
  problem.problem.device_type = device_type;
  problem.problem.device_id = device_id;
  problem.problem.stream = reinterpret_cast<void*>(stream);  // NOLINT(performance-no-int-to-ptr)
  return problem;
}

Problem WithDropout(Problem problem, uint64_t seed, uint64_t offset) {
  problem.problem.dropout_seed = seed;
  problem.problem.dropout_offset = offset;
  return problem;
}

template <typename Args, attn_status (*kRun)(const Args*)>
void Run(const Problem& problem, const py::dict& arrays) {
  Call<Args> call(problem);
  call.Take(arrays);
  Compute([&] { return kRun(&call.args()); });
}

// A forward pass whose problem and strides are known, and whose arrays are others each time.
class PreparedForward {
 public:
  PreparedForward(const Problem& problem, const py::dict& arrays) : call_(problem) {
    call_.Take(arrays);
  }

  // Addresses of arrays that lie as the ones did which it was prepared with, and the stream.
  void Run(uintptr_t q, uintptr_t k, uintptr_t v, uintptr_t out, uintptr_t lse, uintptr_t stream) {
    // Several threads may run it at the same time.
    attn_fwd_args args = call_.args();
    attn_problem problem = *args.problem;
    problem.stream = reinterpret_cast<void*>(stream);
    args.problem = &problem;
    args.q.data = reinterpret_cast<void*>(q);
    args.k.data = reinterpret_cast<void*>(k);
    args.v.data = reinterpret_cast<void*>(v);
    args.o.data = reinterpret_cast<void*>(out);
    args.lse = reinterpret_cast<float*>(lse);
    Compute([&] { return attn_fwd(&args); });
  }

 private:
  Call<attn_fwd_args> call_;
};

// The same of a backward pass.
class PreparedBackward {
 public:
  PreparedBackward(const Problem& problem, const py::dict& arrays) : call_(problem) {
    call_.Take(arrays);
  }

  // inputs: addresses of q, k, v, out, lse and dout; gradients: of dq, dk and dv. The workspace has
  // as many bytes as given, from any address.
  void Run(const std::array<uintptr_t, 6>& inputs, const std::array<uintptr_t, 3>& gradients,
           uintptr_t workspace, size_t workspace_bytes, uintptr_t stream) {
    attn_bwd_args args = call_.args();
    attn_problem problem = *args.problem;
    problem.stream = reinterpret_cast<void*>(stream);
    args.problem = &problem;
    args.q.data = reinterpret_cast<void*>(inputs[0]);
    args.k.data = reinterpret_cast<void*>(inputs[1]);
    args.v.data = reinterpret_cast<void*>(inputs[2]);
    args.o.data = reinterpret_cast<void*>(inputs[3]);
    args.lse = reinterpret_cast<float*>(inputs[4]);
    args.dout.data = reinterpret_cast<void*>(inputs[5]);
    args.dq.data = reinterpret_cast<void*>(gradients[0]);
    args.dk.data = reinterpret_cast<void*>(gradients[1]);
    args.dv.data = reinterpret_cast<void*>(gradients[2]);
    SetWorkspace(reinterpret_cast<void*>(workspace), workspace_bytes, args.workspace,
                 args.workspace_size);
    Compute([&] { return attn_bwd(&args); });
  }

 private:
  Call<attn_bwd_args> call_;
};

uint64_t WorkspaceSize(const Problem& problem) {
  Call<attn_bwd_args> call(problem);
  uint64_t bytes = 0;
  CheckUnlocked([&] { return attn_bwd_workspace_size(&call.args(), &bytes); });
  return bytes;
}

// The outputs of the package's own calls: they always take the lse, but with fp8, whose kernels
// have none. Nothing is written there.
template <typename Args>
void WantLse(const Problem& problem, Args& args) {
  static float lse;
  const bool fp8 = problem.problem.dtype == ATTN_DTYPE_FP8_E4M3 ||
                   problem.problem.dtype == ATTN_DTYPE_FP8_E4M3_FNUZ;
  args.lse = fp8 ? nullptr : &lse;
}

// A sink, and of a backward pass its gradient. Nothing is read or written there.
template <typename Args>
void AnnounceSink(Args& args) {
  static float sink, dsink;
  args.sink = &sink;
  if constexpr (std::is_same_v<Args, attn_bwd_args>) args.dsink = &dsink;
}

template <typename Args, attn_status (*kPlan)(const Args*, const char*, uint32_t*, uint32_t*)>
std::vector<uint32_t> Plan(const Problem& problem, const std::optional<std::string>& arch,
                           bool sink) {
  Call<Args> call(problem);
  WantLse(problem, call.args());
  if (sink) AnnounceSink(call.args());
  return PlanOf<Args, kPlan>(call.args(), arch);
}

template <typename Args, attn_status (*kExplain)(const Args*, const char*, const char**)>
std::string Explain(const Problem& problem, const std::optional<std::string>& arch, bool sink) {
  Call<Args> call(problem);
  WantLse(problem, call.args());
  if (sink) AnnounceSink(call.args());
  return ExplanationOf<Args, kExplain>(call.args(), arch);
}

py::dict KernelInfo(uint32_t index) {
  attn_kernel_info_t info{};
  info.struct_size = sizeof info;
  CheckUnlocked([&] { return attn_kernel_info(index, &info); });
  py::dict answer;
  fields::for_each_field<attn_kernel_info_t>([&](auto kind, const char* name, auto member) {
    if constexpr (decltype(kind)::value == Kind::kAnswer) answer[name] = py::cast(info.*member);
  });
  return answer;
}

py::bytes CodeObject(const std::string& key) {
  void* data = nullptr;
  uint64_t size = 0;
  CheckUnlocked([&] { return attn_code_object(key.c_str(), &data, &size); });
  const std::unique_ptr<void, void (*)(void*)> owned(data, attn_code_object_free);
  return py::bytes(static_cast<const char*>(data), size);
}

bool FetchCodeObject(const std::string& key) {
  uint32_t is_there = 0;
  CheckUnlocked([&] { return attn_fetch_code_object(key.c_str(), &is_there); });
  return is_there != 0;
}

// The first provider that has it (None: none has), and a line for each.
py::tuple FindCodeObject(const std::string& key) {
  const char* provider = "";
  const char* text = "";
  CheckUnlocked([&] { return attn_find_code_object(key.c_str(), &provider, &text); });
  const py::object named = *provider ? py::object(py::str(provider)) : py::none();
  return py::make_tuple(named, text);
}

void SetCacheDir(const std::optional<std::string>& folder) {
  CheckUnlocked([&] { return attn_set_cache_dir(folder ? folder->c_str() : nullptr); });
}

std::string CacheDir() {
  const char* text = "";
  CheckUnlocked([&] { return attn_cache_dir(&text); });
  return text;
}

void WarmUp(const std::vector<uint32_t>& kernels) {
  CheckUnlocked(
      [&] { return attn_warm_up(kernels.data(), static_cast<uint32_t>(kernels.size())); });
}

// The number of kernels that are still to be made.
uint32_t WaitForWarmUp(const std::vector<uint32_t>& kernels, int64_t milliseconds) {
  uint32_t pending = 0;
  Compute([&] {
    return attn_warm_up_wait(kernels.data(), static_cast<uint32_t>(kernels.size()), milliseconds,
                             &pending);
  });
  return pending;
}

void SetKernels(const std::optional<std::string>& kernels) {
  CheckUnlocked([&] { return attn_set_kernels(kernels ? kernels->c_str() : nullptr); });
}

std::string DriverInfo(int32_t device_type) {
  const char* text = "";
  CheckUnlocked([&] { return attn_driver_info(device_type, &text); });
  return text;
}

py::tuple AsTuple(const std::vector<int64_t>& numbers) {
  py::tuple tuple(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) tuple[i] = numbers[i];
  return tuple;
}

void BindTensor(py::module_& module) {
  py::class_<Tensor>(module, "Tensor", py::module_local())
      .def_static("from_dlpack", &Tensor::FromDlpack, "capsule"_a)
      .def_static("from_buffer", &Tensor::FromBuffer, "buffer"_a, "dtype"_a)
      .def("seen_as", &Tensor::SeenAs, "dtype"_a)
      .def_property_readonly("shape", [](const Tensor& t) { return AsTuple(t.shape()); })
      .def_property_readonly("strides", [](const Tensor& t) { return AsTuple(t.strides()); })
      .def_property_readonly("dtype", &Tensor::dtype)
      .def_property_readonly("read_only", &Tensor::read_only)
      .def_property_readonly("address", &Tensor::address)
      .def_property_readonly("size_bytes", &Tensor::size_bytes)
      .def("overlaps", &Tensor::Overlaps, "other"_a)
      .def_property_readonly("device",
                             [](const Tensor& t) {
                               return py::make_tuple(static_cast<int>(t.device().device_type),
                                                     t.device().device_id);
                             })
      .def("entry", &Tensor::Entry, "dimension"_a, "index"_a)
      .def("number", &Tensor::Number, "index"_a)
      .def("only_number", &Tensor::OnlyNumber)
      .def("is_contiguous", &Tensor::is_contiguous, "dimensions"_a)
      .def("fits", &Tensor::Fits, "shape"_a, "dtype"_a, "dimensions"_a, "written"_a);
}

// The options of attn_problem alone, by their names.
py::dict OptionsOf(const Problem& problem) {
  py::dict options;
  fields::for_each_field<attn_problem>([&](auto kind, const char* name, auto member) {
    if constexpr (decltype(kind)::value == Kind::kOption) {
      options[name] = py::cast(problem.problem.*member);
    }
  });
  return options;
}

// Extents and options, to be read.
template <typename Struct>
void BindNumbers(py::class_<Problem>& bound, Struct Problem::* part) {
  fields::for_each_field<Struct>([&](auto kind, const char* name, auto member) {
    constexpr Kind kKind = decltype(kind)::value;
    if constexpr (kKind == Kind::kExtent || kKind == Kind::kOption) {
      bound.def_property_readonly(name, [=](const Problem& p) { return p.*part.*member; });
    }
  });
}

void BindProblem(py::module_& module) {
  py::class_<Problem> problem(module, "Problem", py::module_local());
  problem.def(py::init(&MakeProblem))
      .def("options", &OptionsOf)
      .def("on", &OnDevice, "device_type"_a, "device_id"_a, "stream"_a)
      .def("with_dropout", &WithDropout, "seed"_a, "offset"_a);
  BindNumbers(problem, &Problem::problem);
  BindNumbers(problem, &Problem::fwd);
  BindNumbers(problem, &Problem::bwd);
}

void BindAll(py::module_& module) {
  module.doc() =
      "The C ABI of aiter-attn (aiter/attn.h, aiter/norm.h); use the functions of aiter_attn "
      "instead.";
  BindTensor(module);
  BindProblem(module);
  BindCaches(module);
  BindNorms(module);

  module.attr("DEVICE_CPU") = static_cast<int>(ATTN_DEVICE_CPU);
  module.attr("DEVICE_CUDA") = static_cast<int>(ATTN_DEVICE_CUDA);
  module.attr("DEVICE_ROCM") = static_cast<int>(ATTN_DEVICE_ROCM);
  module.attr("MODE_BATCH") = static_cast<int>(ATTN_MODE_BATCH);
  module.attr("MODE_GROUP") = static_cast<int>(ATTN_MODE_GROUP);
  module.attr("DTYPES") = py::dict("float16"_a = static_cast<int>(ATTN_DTYPE_FP16),
                                   "bfloat16"_a = static_cast<int>(ATTN_DTYPE_BF16),
                                   "float32"_a = static_cast<int>(ATTN_DTYPE_FP32));
  module.attr("FORWARD_FP8_DTYPES") =
      py::dict("float8_e4m3fn"_a = static_cast<int>(ATTN_DTYPE_FP8_E4M3),
               "float8_e4m3fnuz"_a = static_cast<int>(ATTN_DTYPE_FP8_E4M3_FNUZ));
  module.attr("V_ROWS") = static_cast<int>(ATTN_V_ROWS);
  module.attr("V_COLUMNS") = static_cast<int>(ATTN_V_COLUMNS);
  module.attr("MASK_NONE") = static_cast<int>(ATTN_MASK_NONE);
  module.attr("MASK_BOTTOM_RIGHT") = static_cast<int>(ATTN_MASK_BOTTOM_RIGHT);
  module.attr("BIASES") = py::dict("none"_a = static_cast<int>(ATTN_BIAS_NONE),
                                   "elementwise"_a = static_cast<int>(ATTN_BIAS_ELEMENTWISE),
                                   "alibi"_a = static_cast<int>(ATTN_BIAS_ALIBI));
  // By the first dimensions of a bias in batch mode.
  module.attr("DBIAS_SUMS") =
      py::make_tuple(static_cast<int>(ATTN_DBIAS_SUM_BATCH), static_cast<int>(ATTN_DBIAS_SUM_HEADS),
                     static_cast<int>(ATTN_DBIAS_SUM_QUERIES));
  module.attr("STATUS") =
      py::dict("invalid_argument"_a = static_cast<int>(ATTN_ERROR_INVALID_ARGUMENT),
               "unsupported"_a = static_cast<int>(ATTN_ERROR_UNSUPPORTED),
               "driver"_a = static_cast<int>(ATTN_ERROR_DRIVER),
               "out_of_memory"_a = static_cast<int>(ATTN_ERROR_OUT_OF_MEMORY),
               "corrupt"_a = static_cast<int>(ATTN_ERROR_CORRUPT));

  module.def("set_errors", &SetErrors, "by_status"_a, "other"_a);
  module.attr("FIND_FUNCTION") = reinterpret_cast<uintptr_t>(&FindFunction);
  module.def("version", &attn_version);
  module.def("abi_version", &attn_abi_version);
  module.def("fwd", &Run<attn_fwd_args, attn_fwd>, "problem"_a, "arrays"_a);
  module.def("bwd", &Run<attn_bwd_args, attn_bwd>, "problem"_a, "arrays"_a);
  py::class_<PreparedForward>(module, "PreparedForward")
      .def(py::init<const Problem&, const py::dict&>(), "problem"_a, "arrays"_a)
      .def("run", &PreparedForward::Run, "q"_a, "k"_a, "v"_a, "out"_a, "lse"_a, "stream"_a);
  py::class_<PreparedBackward>(module, "PreparedBackward")
      .def(py::init<const Problem&, const py::dict&>(), "problem"_a, "arrays"_a)
      .def("run", &PreparedBackward::Run, "inputs"_a, "gradients"_a, "workspace"_a,
           "workspace_bytes"_a, "stream"_a);
  module.def("dropout_mask", &Run<attn_dropout_mask_args, attn_dropout_mask>, "problem"_a,
             "arrays"_a);
  module.def("bwd_workspace_size", &WorkspaceSize, "problem"_a);
  module.def("plan_fwd", &Plan<attn_fwd_args, attn_plan_fwd>, "problem"_a, "arch"_a,
             "sink"_a = false);
  module.def("plan_bwd", &Plan<attn_bwd_args, attn_plan_bwd>, "problem"_a, "arch"_a,
             "sink"_a = false);
  module.def("explain_fwd", &Explain<attn_fwd_args, attn_explain_fwd>, "problem"_a, "arch"_a,
             "sink"_a = false);
  module.def("explain_bwd", &Explain<attn_bwd_args, attn_explain_bwd>, "problem"_a, "arch"_a,
             "sink"_a = false);
  module.def("kernel_count", &attn_kernel_count);
  module.def("kernel_info", &KernelInfo, "index"_a);
  module.def("code_object", &CodeObject, "key"_a);
  module.def("fetch_code_object", &FetchCodeObject, "key"_a);
  module.def("find_code_object", &FindCodeObject, "key"_a);
  module.def("set_cache_dir", &SetCacheDir, "folder"_a);
  module.def("cache_dir", &CacheDir);
  module.def("warm_up", &WarmUp, "kernels"_a);
  module.def("warm_up_wait", &WaitForWarmUp, "kernels"_a, "milliseconds"_a);
  module.def("driver_info", &DriverInfo, "device_type"_a);
  module.def("set_kernels", &SetKernels, "kernels"_a);
}

// This extension's module, once it is complete. pybind11 keeps one for a name, which the extension
// of another wheel has, too.
PyObject* complete = nullptr;

// Before anything of pybind11's, which in a subinterpreter can wait for a GIL that its own thread
// holds.
PyObject* CreateInMainInterpreter(PyObject* spec, PyModuleDef*) {
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(PyExc_ImportError,
                    "aiter_attn: this is a subinterpreter, and the package works in the main "
                    "interpreter only; allowed: a process of its own, for mod_wsgi "
                    "WSGIApplicationGroup %{GLOBAL}");
    return nullptr;
  }
  if (complete) return Py_NewRef(complete);
  PyObject* const name = PyObject_GetAttrString(spec, "name");
  PyObject* const module = name ? PyModule_NewObject(name) : nullptr;
  Py_XDECREF(name);
  return module;
}

int Execute(PyObject* module) {
  if (module == complete) return 0;
  try {
    py::detail::ensure_internals();
    auto made = py::reinterpret_borrow<py::module_>(module);
    BindAll(made);
    complete = Py_NewRef(module);
    return 0;
  }
  PYBIND11_CATCH_INIT_EXCEPTIONS
  return -1;
}

}  // namespace

// The function that PYBIND11_MODULE would define, which calls pybind11 before the check.
extern "C" PYBIND11_EXPORT PyObject* PyInit__C() {  // NOLINT(bugprone-reserved-identifier)
  PYBIND11_CHECK_PYTHON_VERSION
  static PyModuleDef_Slot slots[] = {
      {Py_mod_create, reinterpret_cast<void*>(&CreateInMainInterpreter)},
      {Py_mod_exec, reinterpret_cast<void*>(&Execute)},
#ifdef Py_mod_multiple_interpreters
      // So that the refusal is the one above in every kind of subinterpreter.
      {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
      {0, nullptr},
  };
  static PyModuleDef definition = {
      PyModuleDef_HEAD_INIT, "_C", nullptr, 0, nullptr, slots, nullptr, nullptr, nullptr};
  return PyModuleDef_Init(&definition);
}

}  // namespace AITER_ATTN_NAMESPACE::python
