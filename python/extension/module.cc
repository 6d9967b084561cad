// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// aiter_attn._C: the C ABI (aiter/attn.h) for Python, one function each. Checks that name the
// caller's arguments are the package's (aiter_attn/_attention.py); what the library itself refuses
// arrives here as a status and leaves as an exception of aiter_attn._errors.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <string>

#include "aiter/attn.h"
#include "python/extension/tensor.h"

namespace aiter_attn::python {
namespace {

using namespace pybind11::literals;

[[noreturn]] void Raise(attn_status status) {
  py::object error = py::module_::import("aiter_attn._errors")
                         .attr("from_status")(static_cast<int>(status), attn_last_error());
  PyErr_SetObject(py::type::handle_of(error).ptr(), error.ptr());
  throw py::error_already_set();
}

void Check(attn_status status) {
  if (status != ATTN_OK) Raise(status);
}

// Other threads may run Python while the library computes or queues; its message is thread-local.
template <typename Call>
void CheckUnlocked(const Call& call) {
  attn_status status;
  {
    py::gil_scoped_release unlocked;
    status = call();
  }
  Check(status);
}

template <typename T>
T* Pointer(const Tensor* tensor) {
  return tensor == nullptr ? nullptr : static_cast<T*>(tensor->data());
}

attn_problem WithSequences(attn_problem problem, const Tensor* cu_seqlens_q,
                           const Tensor* cu_seqlens_k) {
  problem.cu_seqlens_q = Pointer<const int32_t>(cu_seqlens_q);
  problem.cu_seqlens_k = Pointer<const int32_t>(cu_seqlens_k);
  return problem;
}

void Forward(const attn_problem& problem, const Tensor& q, const Tensor& k, const Tensor& v,
             const Tensor& out, const Tensor* lse, const Tensor* cu_seqlens_q,
             const Tensor* cu_seqlens_k) {
  attn_fwd_args args{};
  args.struct_size = sizeof args;
  args.problem = WithSequences(problem, cu_seqlens_q, cu_seqlens_k);
  args.q = q.AsAttnTensor();
  args.k = k.AsAttnTensor();
  args.v = v.AsAttnTensor();
  args.o = out.AsAttnTensor();
  args.lse = Pointer<float>(lse);
  const bool varlen = cu_seqlens_q != nullptr;
  CheckUnlocked([&] { return varlen ? attn_varlen_fwd(&args) : attn_fwd(&args); });
}

attn_bwd_args BackwardArgs(const attn_problem& problem, const Tensor& dout, const Tensor& q,
                           const Tensor& k, const Tensor& v, const Tensor& out, const Tensor& lse,
                           const Tensor& dq, const Tensor& dk, const Tensor& dv,
                           const Tensor* cu_seqlens_q, const Tensor* cu_seqlens_k) {
  attn_bwd_args args{};
  args.struct_size = sizeof args;
  args.problem = WithSequences(problem, cu_seqlens_q, cu_seqlens_k);
  args.q = q.AsAttnTensor();
  args.k = k.AsAttnTensor();
  args.v = v.AsAttnTensor();
  args.o = out.AsAttnTensor();
  args.dout = dout.AsAttnTensor();
  args.lse = Pointer<const float>(&lse);
  args.dq = dq.AsAttnTensor();
  args.dk = dk.AsAttnTensor();
  args.dv = dv.AsAttnTensor();
  return args;
}

void Backward(const attn_problem& problem, const Tensor& dout, const Tensor& q, const Tensor& k,
              const Tensor& v, const Tensor& out, const Tensor& lse, const Tensor& dq,
              const Tensor& dk, const Tensor& dv, const Tensor* cu_seqlens_q,
              const Tensor* cu_seqlens_k, const Tensor* workspace) {
  attn_bwd_args args =
      BackwardArgs(problem, dout, q, k, v, out, lse, dq, dk, dv, cu_seqlens_q, cu_seqlens_k);
  if (workspace != nullptr) {
    // The library wants 256-byte alignment, which not every allocator gives.
    void* data = workspace->data();
    size_t space = workspace->size_bytes();
    args.workspace = std::align(256, 0, data, space);
    args.workspace_size = args.workspace == nullptr ? 0 : space;
  }
  const bool varlen = cu_seqlens_q != nullptr;
  CheckUnlocked([&] { return varlen ? attn_varlen_bwd(&args) : attn_bwd(&args); });
}

uint64_t BackwardWorkspaceSize(const attn_problem& problem, const Tensor& dout, const Tensor& q,
                               const Tensor& k, const Tensor& v, const Tensor& out,
                               const Tensor& lse, const Tensor& dq, const Tensor& dk,
                               const Tensor& dv, const Tensor* cu_seqlens_q,
                               const Tensor* cu_seqlens_k) {
  const attn_bwd_args args =
      BackwardArgs(problem, dout, q, k, v, out, lse, dq, dk, dv, cu_seqlens_q, cu_seqlens_k);
  uint64_t bytes = 0;
  Check(attn_bwd_workspace_size(&args, &bytes));
  return bytes;
}

py::list Kernels() {
  py::list rows;
  for (uint32_t i = 0; i < attn_kernel_count(); ++i) {
    attn_kernel_info_t info{};
    info.struct_size = sizeof info;
    Check(attn_kernel_info(i, &info));
    rows.append(py::dict("name"_a = info.name, "arch"_a = info.arch, "key"_a = info.key,
                         "symbol"_a = info.symbol, "kind"_a = info.kind,
                         "code_object_size"_a = info.code_object_size,
                         "embedded_size"_a = info.embedded_size));
  }
  return rows;
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

void BindTensor(py::module_& module) {
  py::class_<Tensor>(module, "Tensor")
      .def_static("from_dlpack", &Tensor::FromDlpack, "capsule"_a)
      .def_static("from_buffer", &Tensor::FromBuffer, "buffer"_a, "dtype"_a)
      .def_property_readonly("shape",
                             [](const Tensor& t) { return py::tuple(py::cast(t.shape())); })
      .def_property_readonly("strides",
                             [](const Tensor& t) { return py::tuple(py::cast(t.strides())); })
      .def_property_readonly("dtype", &Tensor::dtype)
      .def_property_readonly(
          "device", [](const Tensor& t) { return py::make_tuple(t.device_type(), t.device_id()); })
      .def_property_readonly("read_only", &Tensor::read_only)
      .def_property_readonly("data",
                             [](const Tensor& t) { return reinterpret_cast<uintptr_t>(t.data()); });
}

void BindProblem(py::module_& module) {
  py::class_<attn_problem>(module, "Problem")
      .def(py::init([] { return attn_problem{}; }))
      .def_readwrite("device_type", &attn_problem::device_type)
      .def_readwrite("device_id", &attn_problem::device_id)
      .def_property(
          "stream",
          [](const attn_problem& problem) { return reinterpret_cast<uintptr_t>(problem.stream); },
          [](attn_problem& problem, uintptr_t stream) {
            problem.stream = reinterpret_cast<void*>(stream);
          })
      .def_readwrite("dtype", &attn_problem::dtype)
      .def_readwrite("batch", &attn_problem::batch)
      .def_readwrite("heads_q", &attn_problem::heads_q)
      .def_readwrite("heads_k", &attn_problem::heads_k)
      .def_readwrite("head_size_qk", &attn_problem::head_size_qk)
      .def_readwrite("head_size_v", &attn_problem::head_size_v)
      .def_readwrite("seqlen_q", &attn_problem::seqlen_q)
      .def_readwrite("seqlen_k", &attn_problem::seqlen_k)
      .def_readwrite("total_q", &attn_problem::total_q)
      .def_readwrite("total_k", &attn_problem::total_k)
      .def_readwrite("softmax_scale", &attn_problem::softmax_scale)
      .def_readwrite("mask", &attn_problem::mask)
      .def_readwrite("window_left", &attn_problem::window_left)
      .def_readwrite("window_right", &attn_problem::window_right);
}

}  // namespace

PYBIND11_MODULE(_C, module) {
  module.doc() = "The C ABI of aiter-attn (aiter/attn.h); use the functions of aiter_attn instead.";
  BindTensor(module);
  BindProblem(module);

  module.attr("DEVICE_CPU") = static_cast<int>(ATTN_DEVICE_CPU);
  module.attr("DEVICE_ROCM") = static_cast<int>(ATTN_DEVICE_ROCM);
  module.attr("DTYPES") = py::dict("float16"_a = static_cast<int>(ATTN_DTYPE_FP16),
                                   "bfloat16"_a = static_cast<int>(ATTN_DTYPE_BF16),
                                   "float32"_a = static_cast<int>(ATTN_DTYPE_FP32));
  module.attr("MASK_NONE") = static_cast<int>(ATTN_MASK_NONE);
  module.attr("MASK_BOTTOM_RIGHT") = static_cast<int>(ATTN_MASK_BOTTOM_RIGHT);
  module.attr("STATUS") =
      py::dict("invalid_argument"_a = static_cast<int>(ATTN_ERROR_INVALID_ARGUMENT),
               "unsupported"_a = static_cast<int>(ATTN_ERROR_UNSUPPORTED),
               "abi_mismatch"_a = static_cast<int>(ATTN_ERROR_ABI_MISMATCH),
               "driver"_a = static_cast<int>(ATTN_ERROR_DRIVER),
               "out_of_memory"_a = static_cast<int>(ATTN_ERROR_OUT_OF_MEMORY),
               "corrupt"_a = static_cast<int>(ATTN_ERROR_CORRUPT),
               "internal"_a = static_cast<int>(ATTN_ERROR_INTERNAL));

  module.def("version", &attn_version);
  module.def("abi_version", &attn_abi_version);
  module.def("fwd", &Forward, "problem"_a, "q"_a, "k"_a, "v"_a, "out"_a, "lse"_a, "cu_seqlens_q"_a,
             "cu_seqlens_k"_a);
  module.def("bwd", &Backward, "problem"_a, "dout"_a, "q"_a, "k"_a, "v"_a, "out"_a, "lse"_a, "dq"_a,
             "dk"_a, "dv"_a, "cu_seqlens_q"_a, "cu_seqlens_k"_a, "workspace"_a);
  module.def("bwd_workspace_size", &BackwardWorkspaceSize, "problem"_a, "dout"_a, "q"_a, "k"_a,
             "v"_a, "out"_a, "lse"_a, "dq"_a, "dk"_a, "dv"_a, "cu_seqlens_q"_a, "cu_seqlens_k"_a);
  module.def("kernels", &Kernels);
  module.def("code_object", &CodeObject, "key"_a);
  module.def("driver_info", &DriverInfo, "device_type"_a);
}

}  // namespace aiter_attn::python
