// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// aiter_attn._C: the C ABI (aiter/attn.h, aiter/norm.h) for Python, one function each. Checks that
// name the caller's arguments are the package's (aiter_attn/_problem.py, _call.py, _norm.py); what
// the library itself refuses arrives here as a status and leaves as an exception of
// aiter_attn._errors.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "aiter/attn.h"
#include "python/extension/caches.h"
#include "python/extension/errors.h"
#include "python/extension/functions.h"
#include "python/extension/gil.h"
#include "python/extension/norms.h"
#include "python/extension/problem.h"
#include "python/extension/tensor.h"

namespace AITER_ATTN_NAMESPACE::python {
namespace {

using namespace pybind11::literals;

// The problem's numbers, and each args struct's tensors, by their names in Python.
template <typename Struct, typename Value>
struct Field {
  const char* name;
  Value Struct::* member;
};

constexpr Field<attn_problem, int32_t> kProblemFields[] = {
    {"mode", &attn_problem::mode},
    {"dtype", &attn_problem::dtype},
    {"batch", &attn_problem::batch},
    {"heads_q", &attn_problem::heads_q},
    {"heads_k", &attn_problem::heads_k},
    {"head_size_qk", &attn_problem::head_size_qk},
    {"head_size_v", &attn_problem::head_size_v},
    {"seqlen_q", &attn_problem::seqlen_q},
    {"seqlen_k", &attn_problem::seqlen_k},
    {"total_q", &attn_problem::total_q},
    {"total_k", &attn_problem::total_k},
    {"mask", &attn_problem::mask},
    {"window_left", &attn_problem::window_left},
    {"window_right", &attn_problem::window_right},
    {"bias", &attn_problem::bias},
};

constexpr Field<attn_problem, float> kProblemNumbers[] = {
    {"softmax_scale", &attn_problem::softmax_scale},
    {"logits_soft_cap", &attn_problem::logits_soft_cap},
    {"dropout_p", &attn_problem::dropout_p},
};

constexpr Field<Problem, int32_t> kPassFields[] = {
    {"min_seqlen_q", &Problem::min_seqlen_q}, {"bias_grad", &Problem::bias_grad},
    {"dbias_sums", &Problem::dbias_sums},     {"deterministic", &Problem::deterministic},
    {"v_layout", &Problem::v_layout},
};

constexpr Field<Problem, float> kPassNumbers[] = {
    {"descale_q", &Problem::descale_q},
    {"descale_k", &Problem::descale_k},
    {"descale_v", &Problem::descale_v},
    {"scale_o", &Problem::scale_o},
};

constexpr Field<attn_fwd_args, attn_tensor> kFwdTensors[] = {
    {"q", &attn_fwd_args::q},
    {"k", &attn_fwd_args::k},
    {"v", &attn_fwd_args::v},
    {"out", &attn_fwd_args::o},
};

constexpr Field<attn_bwd_args, attn_tensor> kBwdTensors[] = {
    {"q", &attn_bwd_args::q},       {"k", &attn_bwd_args::k},   {"v", &attn_bwd_args::v},
    {"out", &attn_bwd_args::o},     {"dq", &attn_bwd_args::dq}, {"dk", &attn_bwd_args::dk},
    {"dout", &attn_bwd_args::dout}, {"dv", &attn_bwd_args::dv},
};

constexpr const auto& TensorsOf(const attn_fwd_args&) { return kFwdTensors; }
constexpr const auto& TensorsOf(const attn_bwd_args&) { return kBwdTensors; }

// NULL where no field has the name.
template <typename Struct, typename Value, size_t N>
Value* Find(Struct& object, const Field<Struct, Value> (&fields)[N], std::string_view name) {
  for (const auto& field : fields) {
    if (name == field.name) return &(object.*field.member);
  }
  return nullptr;
}

Problem MakeProblem(const py::kwargs& fields) {
  Problem problem{};
  problem.struct_size = sizeof(attn_problem);
  problem.device_type = ATTN_DEVICE_CPU;
  attn_problem& numbers = problem;
  for (const auto& given : fields) {
    const auto name = py::cast<std::string_view>(given.first);
    if (int32_t* field = Find(numbers, kProblemFields, name)) {
      *field = py::cast<int32_t>(given.second);
    } else if (float* number = Find(numbers, kProblemNumbers, name)) {
      *number = py::cast<float>(given.second);
    } else if (int32_t* of_pass = Find(problem, kPassFields, name)) {
      *of_pass = py::cast<int32_t>(given.second);
    } else if (float* scale = Find(problem, kPassNumbers, name)) {
      *scale = py::cast<float>(given.second);
    } else {
      throw py::type_error("Problem() has no field \"" + std::string(name) + '"');
    }
  }
  return problem;
}

Problem OnDevice(Problem problem, int32_t device_type, int32_t device_id, uintptr_t stream) {
  problem.device_type = device_type;
  problem.device_id = device_id;
  problem.stream = reinterpret_cast<void*>(stream);  // NOLINT(performance-no-int-to-ptr)
  return problem;
}

Problem WithDropout(Problem problem, uint64_t seed, uint64_t offset) {
  problem.dropout_seed = seed;
  problem.dropout_offset = offset;
  return problem;
}

void SetPass(const Problem& problem, attn_fwd_args* args) {
  args->min_seqlen_q = problem.min_seqlen_q;
  args->v_layout = problem.v_layout;
  args->descale_q = problem.descale_q;
  args->descale_k = problem.descale_k;
  args->descale_v = problem.descale_v;
  args->scale_o = problem.scale_o;
}

void SetPass(const Problem& problem, attn_bwd_args* args) {
  args->bias_grad = problem.bias_grad;
  args->dbias_sums = problem.dbias_sums;
  args->deterministic = problem.deterministic;
}

bool IsByColumns(const attn_fwd_args& args) { return args.v_layout == ATTN_V_COLUMNS; }
bool IsByColumns(const attn_bwd_args&) { return false; }

// An args struct and the problem it points to.
template <typename Args>
class Call {
 public:
  explicit Call(const Problem& problem) : problem_(problem) {
    args_.struct_size = sizeof args_;
    args_.problem = &problem_;
    SetPass(problem, &args_);
  }

  Call(const Problem& problem, const py::dict& arrays) : Call(problem) {
    for (const auto& array : arrays) {
      Set(py::cast<std::string_view>(array.first), py::cast<const Tensor&>(array.second));
    }
  }

  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  Args& args() { return args_; }

 private:
  void Set(std::string_view name, const Tensor& array) {
    if (name == "v" && IsByColumns(args_)) {
      args_.v = array.AsColumns();
    } else if (attn_tensor* tensor = Find(args_, TensorsOf(args_), name)) {
      *tensor = array.AsAttnTensor();
    } else if (name == "lse") {
      args_.lse = static_cast<float*>(array.data());
    } else if (name == "cu_seqlens_q") {
      problem_.cu_seqlens_q = static_cast<const int32_t*>(array.data());
    } else if (name == "cu_seqlens_k") {
      problem_.cu_seqlens_k = static_cast<const int32_t*>(array.data());
    } else if (name == "rng_state") {
      problem_.rng_state = static_cast<const uint64_t*>(array.data());
    } else if (name == "bias") {
      args_.bias = array.AsScores();
    } else if (name == "alibi_slopes") {
      args_.alibi_slopes = static_cast<const float*>(array.data());
      args_.alibi_stride_batch = array.shape().size() == 2 ? array.strides()[0] : 0;
    } else if (name == "workspace" || name == "dbias") {
      SetOfBackward(name, array);
    } else {
      throw py::type_error("no array of this call is named \"" + std::string(name) + '"');
    }
  }

  void SetOfBackward(std::string_view name, const Tensor& array) {
    if constexpr (std::is_same_v<Args, attn_bwd_args>) {
      if (name == "dbias") {
        args_.dbias = array.AsScores();
        return;
      }
      // The library wants 256-byte alignment, which not every allocator gives.
      void* data = array.data();
      size_t space = array.size_bytes();
      args_.workspace = std::align(256, 0, data, space);
      args_.workspace_size = args_.workspace == nullptr ? 0 : space;
    }
  }

  attn_problem problem_;
  Args args_{};
};

template <typename Args, attn_status (*kRun)(const Args*)>
void Run(const Problem& problem, const py::dict& arrays) {
  Call<Args> call(problem, arrays);
  Compute([&] { return kRun(&call.args()); });
}

// A forward pass whose problem and strides are known, and whose arrays are others each time.
class PreparedForward {
 public:
  PreparedForward(const Problem& problem, const py::dict& arrays) : call_(problem, arrays) {}

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

// A backward pass likewise.
class PreparedBackward {
 public:
  PreparedBackward(const Problem& problem, const py::dict& arrays) : call_(problem, arrays) {}

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
    args.workspace = nullptr;
    args.workspace_size = 0;
    if (workspace_bytes > 0) {
      void* data = reinterpret_cast<void*>(workspace);
      args.workspace = std::align(256, 0, data, workspace_bytes);
      args.workspace_size = args.workspace == nullptr ? 0 : workspace_bytes;
    }
    Compute([&] { return attn_bwd(&args); });
  }

 private:
  Call<attn_bwd_args> call_;
};

void DropoutMask(Problem problem, const py::dict& arrays) {
  const auto find = [&](const char* name) -> void* {
    return arrays.contains(name) ? py::cast<const Tensor&>(arrays[name]).data() : nullptr;
  };
  problem.cu_seqlens_q = static_cast<const int32_t*>(find("cu_seqlens_q"));
  problem.cu_seqlens_k = static_cast<const int32_t*>(find("cu_seqlens_k"));
  problem.rng_state = static_cast<const uint64_t*>(find("rng_state"));
  attn_dropout_mask_args args{};
  args.struct_size = sizeof args;
  args.problem = &problem;
  args.kept = static_cast<uint8_t*>(find("kept"));
  Compute([&] { return attn_dropout_mask(&args); });
}

uint64_t WorkspaceSize(const Problem& problem) {
  Call<attn_bwd_args> call(problem);
  uint64_t bytes = 0;
  CheckUnlocked([&] { return attn_bwd_workspace_size(&call.args(), &bytes); });
  return bytes;
}

// What the package's own calls ask for: they always take the lse, but with fp8, whose kernels have
// none. Nothing is written there.
template <typename Args>
void WantLse(const Problem& problem, Args& args) {
  static float lse;
  const bool fp8 =
      problem.dtype == ATTN_DTYPE_FP8_E4M3 || problem.dtype == ATTN_DTYPE_FP8_E4M3_FNUZ;
  args.lse = fp8 ? nullptr : &lse;
}

template <typename Args, attn_status (*kPlan)(const Args*, const char*, uint32_t*, uint32_t*)>
std::vector<uint32_t> Plan(const Problem& problem, const std::optional<std::string>& arch) {
  Call<Args> call(problem);
  WantLse(problem, call.args());
  const char* name = arch ? arch->c_str() : nullptr;
  uint32_t count = 0;
  CheckUnlocked([&] { return kPlan(&call.args(), name, nullptr, &count); });
  std::vector<uint32_t> kernels(count);
  CheckUnlocked([&] { return kPlan(&call.args(), name, kernels.data(), &count); });
  return kernels;
}

template <typename Args, attn_status (*kExplain)(const Args*, const char*, const char**)>
std::string Explain(const Problem& problem, const std::optional<std::string>& arch) {
  Call<Args> call(problem);
  WantLse(problem, call.args());
  const char* text = "";
  CheckUnlocked([&] { return kExplain(&call.args(), arch ? arch->c_str() : nullptr, &text); });
  return text;
}

py::dict KernelInfo(uint32_t index) {
  attn_kernel_info_t info{};
  info.struct_size = sizeof info;
  CheckUnlocked([&] { return attn_kernel_info(index, &info); });
  return py::dict("name"_a = info.name, "arch"_a = info.arch, "key"_a = py::str(info.key),
                  "kind"_a = info.kind, "code_object_size"_a = info.code_object_size,
                  "embedded_size"_a = info.embedded_size);
}

py::bytes CodeObject(const std::string& key) {
  void* data = nullptr;
  uint64_t size = 0;
  CheckUnlocked([&] { return attn_code_object(key.c_str(), &data, &size); });
  const std::unique_ptr<void, void (*)(void*)> owned(data, attn_code_object_free);
  return py::bytes(static_cast<const char*>(data), size);
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

void BindProblem(py::module_& module) {
  py::class_<Problem> problem(module, "Problem", py::module_local());
  problem.def(py::init(&MakeProblem))
      .def("on", &OnDevice, "device_type"_a, "device_id"_a, "stream"_a)
      .def("with_dropout", &WithDropout, "seed"_a, "offset"_a);
  for (const auto& field : kProblemFields) problem.def_readonly(field.name, field.member);
  for (const auto& field : kProblemNumbers) problem.def_readonly(field.name, field.member);
  for (const auto& field : kPassFields) problem.def_readonly(field.name, field.member);
  for (const auto& field : kPassNumbers) problem.def_readonly(field.name, field.member);
}

}  // namespace

PYBIND11_MODULE_EXEC(_C, module) {
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
  module.def("dropout_mask", &DropoutMask, "problem"_a, "arrays"_a);
  module.def("bwd_workspace_size", &WorkspaceSize, "problem"_a);
  module.def("plan_fwd", &Plan<attn_fwd_args, attn_plan_fwd>, "problem"_a, "arch"_a);
  module.def("plan_bwd", &Plan<attn_bwd_args, attn_plan_bwd>, "problem"_a, "arch"_a);
  module.def("explain_fwd", &Explain<attn_fwd_args, attn_explain_fwd>, "problem"_a, "arch"_a);
  module.def("explain_bwd", &Explain<attn_bwd_args, attn_explain_bwd>, "problem"_a, "arch"_a);
  module.def("kernel_count", &attn_kernel_count);
  module.def("kernel_info", &KernelInfo, "index"_a);
  module.def("code_object", &CodeObject, "key"_a);
  module.def("driver_info", &DriverInfo, "device_type"_a);
}

namespace {

// Before anything of pybind11's, which in a subinterpreter can wait for a GIL that its own thread
// holds.
int ExecInMainInterpreter(PyObject* module) {
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(PyExc_ImportError,
                    "aiter_attn: this is a subinterpreter, and the package works in the main "
                    "interpreter only; allowed: a process of its own, for mod_wsgi "
                    "WSGIApplicationGroup %{GLOBAL}");
    return -1;
  }
  return pybind11_exec__C(module);
}

}  // namespace

// What PYBIND11_MODULE would define, which calls pybind11 before the check.
extern "C" PYBIND11_EXPORT PyObject* PyInit__C() {  // NOLINT(bugprone-reserved-identifier)
  PYBIND11_CHECK_PYTHON_VERSION
  static PyModuleDef_Slot slots[] = {
      {Py_mod_exec, reinterpret_cast<void*>(&ExecInMainInterpreter)},
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
