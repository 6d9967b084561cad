// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// XLA FFI handlers of aiter_attn.jax: attention in compiled programs, on the CPU and on AMD GPUs.
// They call the C ABI of the extension module, which Python has loaded: attn_jax_bind finds it.
//
// Operands, in this order; those in brackets where the attributes say so, or q has three dimensions
//   forward:  q k v [cu_seqlens_q cu_seqlens_k] [bias | alibi_slopes] -> out lse
//   backward: dout q k v out lse [cu_seqlens_q cu_seqlens_k] [bias | alibi_slopes]
//             -> dq dk dv [dbias]
// All are contiguous. Attributes are those of attn_problem and of the args structs, by their names.
#include <dlfcn.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

#include "aiter/attn.h"
#include "xla/ffi/api/ffi.h"

namespace AITER_ATTN_NAMESPACE::jax {
namespace {

namespace ffi = ::xla::ffi;

constexpr size_t kWorkspaceAlignment = 256;

// The functions of the C ABI that are called here.
struct Library {
  decltype(&attn_last_error) last_error;
  decltype(&attn_fwd) fwd;
  decltype(&attn_bwd) bwd;
  decltype(&attn_bwd_workspace_size) bwd_workspace_size;
};

Library library;

// Where a call computes.
struct Place {
  attn_device_type type = ATTN_DEVICE_CPU;
  int32_t ordinal = 0;
  void* stream = nullptr;
};

ffi::Error ErrorOf(attn_status status) {
  switch (status) {
    case ATTN_OK:
      return ffi::Error::Success();
    case ATTN_ERROR_INVALID_ARGUMENT:
      return ffi::Error(ffi::ErrorCode::kInvalidArgument, library.last_error());
    case ATTN_ERROR_UNSUPPORTED:
      return ffi::Error(ffi::ErrorCode::kUnimplemented, library.last_error());
    case ATTN_ERROR_OUT_OF_MEMORY:
      return ffi::Error(ffi::ErrorCode::kResourceExhausted, library.last_error());
    default:
      return ffi::Error(ffi::ErrorCode::kInternal, library.last_error());
  }
}

// Reads operands, results and attributes of a call; the first failure is kept.
class Frame {
 public:
  Frame(ffi::RemainingArgs operands, ffi::RemainingRets results, ffi::Dictionary attributes)
      : operands_(operands), results_(results), attributes_(attributes) {}

  const ffi::Error& error() const { return error_; }

  ffi::AnyBuffer Operand() { return Keep(operands_.get<ffi::AnyBuffer>(operand_++)); }

  ffi::AnyBuffer Result() {
    auto result = results_.get<ffi::AnyBuffer>(result_++);
    if (!result.has_value()) return Keep(ffi::ErrorOr<ffi::AnyBuffer>(result.error()));
    return *result.value();
  }

  template <typename Number>
  void Attribute(const char* name, Number& number) {
    auto found = attributes_.get<Number>(name);
    if (found.has_value()) {
      number = found.value();
    } else if (error_.success()) {
      error_ = found.error();
    }
  }

 private:
  ffi::AnyBuffer Keep(ffi::ErrorOr<ffi::AnyBuffer> buffer) {
    if (buffer.has_value()) return buffer.value();
    if (error_.success()) error_ = buffer.error();
    static XLA_FFI_Buffer nothing{};
    return ffi::AnyBuffer(&nothing);
  }

  ffi::RemainingArgs operands_;
  ffi::RemainingRets results_;
  ffi::Dictionary attributes_;
  size_t operand_ = 0;
  size_t result_ = 0;
  ffi::Error error_ = ffi::Error::Success();
};

// [batch, seqlen, heads, head size], or without batch.
attn_tensor TensorOf(const ffi::AnyBuffer& buffer) {
  const auto dims = buffer.dimensions();
  attn_tensor tensor{buffer.untyped_data(), 0, 0, 0};
  if (dims.size() < 3) return tensor;
  const size_t last = dims.size() - 1;
  tensor.stride_head = dims[last];
  tensor.stride_seq = tensor.stride_head * dims[last - 1];
  if (dims.size() == 4) tensor.stride_batch = tensor.stride_seq * dims[1];
  return tensor;
}

// [batch, heads, queries, keys], or without batch: repeated along each dimension of size 1.
attn_tensor ScoresOf(const ffi::AnyBuffer& buffer) {
  const auto dims = buffer.dimensions();
  attn_tensor tensor{buffer.untyped_data(), 0, 0, 0};
  if (dims.size() < 3) return tensor;
  const size_t last = dims.size() - 1;
  int64_t stride = dims[last];
  int64_t* const strides[] = {&tensor.stride_seq, &tensor.stride_head, &tensor.stride_batch};
  for (size_t i = 0; i < last; ++i) {
    const int64_t size = dims[last - 1 - i];
    *strides[i] = size == 1 ? 0 : stride;
    stride *= size;
  }
  return tensor;
}

int32_t DtypeOf(const ffi::AnyBuffer& buffer) {
  switch (buffer.element_type()) {
    case ffi::DataType::F16:
      return ATTN_DTYPE_FP16;
    case ffi::DataType::BF16:
      return ATTN_DTYPE_BF16;
    case ffi::DataType::F32:
      return ATTN_DTYPE_FP32;
    default:
      return 0;  // no dtype: the library says what is allowed
  }
}

// The problem of q, k and v; seqlen_q and seqlen_k are attributes, the greatest ones in group mode.
attn_problem ProblemOf(const ffi::AnyBuffer& q, const ffi::AnyBuffer& k, const ffi::AnyBuffer& v,
                       const Place& place, Frame& frame) {
  attn_problem p{};
  p.struct_size = sizeof p;
  p.device_type = place.type;
  p.device_id = place.ordinal;
  p.stream = place.stream;
  p.dtype = DtypeOf(q);
  const auto of_q = q.dimensions(), of_k = k.dimensions(), of_v = v.dimensions();
  const size_t rank = of_q.size();
  const auto size = [](const auto& dims, size_t from_last) {
    return from_last < dims.size() ? static_cast<int32_t>(dims[dims.size() - 1 - from_last]) : 0;
  };
  p.mode = rank == 3 ? ATTN_MODE_GROUP : ATTN_MODE_BATCH;
  p.heads_q = size(of_q, 1);
  p.heads_k = size(of_k, 1);
  p.head_size_qk = size(of_q, 0);
  p.head_size_v = size(of_v, 0);
  if (p.mode == ATTN_MODE_GROUP) {
    p.total_q = size(of_q, 2);
    p.total_k = size(of_k, 2);
  } else {
    p.batch = size(of_q, 3);
  }
  frame.Attribute("seqlen_q", p.seqlen_q);
  frame.Attribute("seqlen_k", p.seqlen_k);
  frame.Attribute("softmax_scale", p.softmax_scale);
  frame.Attribute("mask", p.mask);
  frame.Attribute("window_left", p.window_left);
  frame.Attribute("window_right", p.window_right);
  frame.Attribute("bias", p.bias);
  frame.Attribute("logits_soft_cap", p.logits_soft_cap);
  frame.Attribute("dropout_p", p.dropout_p);
  int64_t seed = 0, offset = 0;  // the same bits
  frame.Attribute("dropout_seed", seed);
  frame.Attribute("dropout_offset", offset);
  p.dropout_seed = static_cast<uint64_t>(seed);
  p.dropout_offset = static_cast<uint64_t>(offset);
  return p;
}

// The operands behind those that every call has.
template <typename Args>
void TakeOptional(Frame& frame, attn_problem& p, Args& args) {
  if (p.mode == ATTN_MODE_GROUP) {
    const ffi::AnyBuffer starts_q = frame.Operand(), starts_k = frame.Operand();
    p.cu_seqlens_q = static_cast<const int32_t*>(starts_q.untyped_data());
    p.cu_seqlens_k = static_cast<const int32_t*>(starts_k.untyped_data());
    const auto entries = starts_q.dimensions();
    p.batch = entries.size() == 1 ? static_cast<int32_t>(entries[0]) - 1 : -1;
  }
  if (p.bias == ATTN_BIAS_ELEMENTWISE) {
    args.bias = ScoresOf(frame.Operand());
  } else if (p.bias == ATTN_BIAS_ALIBI) {
    const ffi::AnyBuffer slopes = frame.Operand();
    args.alibi_slopes = static_cast<const float*>(slopes.untyped_data());
    if (slopes.dimensions().size() == 2) args.alibi_stride_batch = slopes.dimensions()[1];
  }
}

ffi::Error Forward(const Place& place, Frame frame) {
  attn_fwd_args args{};
  args.struct_size = sizeof args;
  const ffi::AnyBuffer q = frame.Operand(), k = frame.Operand(), v = frame.Operand();
  attn_problem problem = ProblemOf(q, k, v, place, frame);
  args.problem = &problem;
  args.q = TensorOf(q);
  args.k = TensorOf(k);
  args.v = TensorOf(v);
  TakeOptional(frame, problem, args);
  args.o = TensorOf(frame.Result());
  args.lse = static_cast<float*>(frame.Result().untyped_data());
  if (frame.error().failure()) return frame.error();
  return ErrorOf(library.fwd(&args));
}

ffi::Error Backward(const Place& place, Frame frame, ffi::ScratchAllocator* scratch) {
  attn_bwd_args args{};
  args.struct_size = sizeof args;
  args.dout = TensorOf(frame.Operand());
  const ffi::AnyBuffer q = frame.Operand(), k = frame.Operand(), v = frame.Operand();
  attn_problem problem = ProblemOf(q, k, v, place, frame);
  args.problem = &problem;
  args.q = TensorOf(q);
  args.k = TensorOf(k);
  args.v = TensorOf(v);
  args.o = TensorOf(frame.Operand());
  args.lse = static_cast<const float*>(frame.Operand().untyped_data());
  frame.Attribute("bias_grad", args.bias_grad);
  frame.Attribute("deterministic", args.deterministic);
  TakeOptional(frame, problem, args);
  args.dq = TensorOf(frame.Result());
  args.dk = TensorOf(frame.Result());
  args.dv = TensorOf(frame.Result());
  if (args.bias_grad != 0) args.dbias = ScoresOf(frame.Result());
  if (frame.error().failure()) return frame.error();
  if (attn_status failed = library.bwd_workspace_size(&args, &args.workspace_size)) {
    return ErrorOf(failed);
  }
  if (args.workspace_size != 0) {
    // XLA aligns to less than the library wants, and gives the memory to others behind what is
    // queued on the stream by then.
    size_t space = args.workspace_size + kWorkspaceAlignment;
    const std::optional<void*> memory = scratch->Allocate(space);
    if (!memory.has_value()) {
      return ffi::Error(ffi::ErrorCode::kResourceExhausted,
                        "workspace: no " + std::to_string(args.workspace_size) +
                            " bytes of device memory; allowed here: a smaller batch");
    }
    args.workspace = *memory;
    std::align(kWorkspaceAlignment, args.workspace_size, args.workspace, space);
  }
  return ErrorOf(library.bwd(&args));
}

ffi::Error ForwardOnCpu(ffi::RemainingArgs operands, ffi::RemainingRets results,
                        ffi::Dictionary attributes) {
  return Forward({}, Frame(operands, results, attributes));
}

ffi::Error BackwardOnCpu(ffi::RemainingArgs operands, ffi::RemainingRets results,
                         ffi::Dictionary attributes) {
  return Backward({}, Frame(operands, results, attributes), nullptr);
}

ffi::Error ForwardOnRocm(void* stream, int32_t ordinal, ffi::RemainingArgs operands,
                         ffi::RemainingRets results, ffi::Dictionary attributes) {
  return Forward({ATTN_DEVICE_ROCM, ordinal, stream}, Frame(operands, results, attributes));
}

ffi::Error BackwardOnRocm(void* stream, int32_t ordinal, ffi::ScratchAllocator scratch,
                          ffi::RemainingArgs operands, ffi::RemainingRets results,
                          ffi::Dictionary attributes) {
  return Backward({ATTN_DEVICE_ROCM, ordinal, stream}, Frame(operands, results, attributes),
                  &scratch);
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(attn_jax_fwd_cpu, ForwardOnCpu,
                              ffi::Ffi::Bind().RemainingArgs().RemainingRets().Attrs());

XLA_FFI_DEFINE_HANDLER_SYMBOL(attn_jax_bwd_cpu, BackwardOnCpu,
                              ffi::Ffi::Bind().RemainingArgs().RemainingRets().Attrs());

XLA_FFI_DEFINE_HANDLER_SYMBOL(attn_jax_fwd_rocm, ForwardOnRocm,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<void*>>()
                                  .Ctx<ffi::DeviceOrdinal>()
                                  .RemainingArgs()
                                  .RemainingRets()
                                  .Attrs());

XLA_FFI_DEFINE_HANDLER_SYMBOL(attn_jax_bwd_rocm, BackwardOnRocm,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<void*>>()
                                  .Ctx<ffi::DeviceOrdinal>()
                                  .Ctx<ffi::ScratchAllocator>()
                                  .RemainingArgs()
                                  .RemainingRets()
                                  .Attrs());

#define ATTN_TEXT_(name) #name
#define ATTN_TEXT(name) ATTN_TEXT_(name)

// Finds the C ABI in a library that the process has loaded. Returns NULL, or why it cannot; the
// text lives until the next call.
extern "C" const char* attn_jax_bind(const char* path) {
  static std::string error;
  error.clear();
  void* const handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (handle == nullptr) {
    error = std::string(path) + " is not loaded in this process";
    return error.c_str();
  }
  const auto find = [&](auto& function, const char* name) {
    void* const address = dlsym(handle, name);
    if (address == nullptr) error = std::string(path) + " has no " + name;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
  };
  find(library.last_error, ATTN_TEXT(attn_last_error));
  find(library.fwd, ATTN_TEXT(attn_fwd));
  find(library.bwd, ATTN_TEXT(attn_bwd));
  find(library.bwd_workspace_size, ATTN_TEXT(attn_bwd_workspace_size));
  return error.empty() ? nullptr : error.c_str();
}

}  // namespace AITER_ATTN_NAMESPACE::jax
