// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/norm/validate.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>

#include "aiter/runtime/abi.h"
#include "aiter/runtime/regions.h"

ATTN_ABI_STRUCT(attn_norm_problem, 64);
ATTN_ABI_STRUCT(attn_norm_fwd_args, 128);
ATTN_ABI_STRUCT(attn_norm_bwd_args, 120);
ATTN_ABI_STRUCT(attn_softmax_problem, 64);
ATTN_ABI_STRUCT(attn_softmax_fwd_args, 56);
ATTN_ABI_STRUCT(attn_softmax_bwd_args, 64);
static_assert(sizeof(attn_rows) == 16, "frozen");

namespace AITER_ATTN_NAMESPACE::norm {
namespace {

using runtime::kMostAddress;
using runtime::Region;

constexpr int64_t kMostRows = (int64_t{1} << 31) - (1 << 20);
constexpr int64_t kMostColumns = (int64_t{1} << 31) - 1;
constexpr uint64_t kWorkspaceAlignment = 256;
constexpr int64_t kScaleBlock = 32;  // columns, of ATTN_NORM_SCALES_BLOCKS

void require_from_to(const char* field, int64_t value, int64_t least, int64_t most) {
  if (value < least || value > most) refuse(field, value, "must be from ", least, " to ", most);
}

// Whichever of the two is missing, the caller meant something else.
void require_null(const char* field, const void* data, const char* why) {
  if (data)
    fail(Status::kInvalidArgument, runtime::Field(field), " is not NULL, but ", why, ": pass NULL");
}

void require_device(int32_t device_type, int32_t device_id) {
  if (device_type == ATTN_DEVICE_CUDA || device_type == ATTN_DEVICE_ROCM) {
    if (device_id < 0) refuse("device_id", device_id, "must be 0 or greater");
    return;
  }
  if (device_type != ATTN_DEVICE_CPU) {
    refuse("device_type", device_type, "must be ", static_cast<int>(ATTN_DEVICE_CPU), " (CPU), ",
           static_cast<int>(ATTN_DEVICE_CUDA), " (CUDA) or ", static_cast<int>(ATTN_DEVICE_ROCM),
           " (ROCm)");
  }
  if (device_id != 0) refuse("device_id", device_id, "must be 0 on the CPU");
}

// Kernels count columns in 32 bits, some beyond the row's end. HIP counts the work-items of a grid
// in 32 bits, and norm_backward_reduce has 256 for every 8 columns.
int64_t most_columns(int32_t device_type) {
  if (device_type == ATTN_DEVICE_ROCM) return (int64_t{1} << 27) - 8;
  return device_type == ATTN_DEVICE_CPU ? kMostColumns : kMostRows;
}

void require_dtype(const char* field, int32_t dtype, bool may_be_fp8 = false) {
  const bool known = dtype == ATTN_DTYPE_FP16 || dtype == ATTN_DTYPE_BF16 ||
                     dtype == ATTN_DTYPE_FP32 || (may_be_fp8 && is_fp8(dtype));
  if (known) return;
  refuse(field, dtype, "must be ", static_cast<int>(ATTN_DTYPE_FP16), " (fp16), ",
         static_cast<int>(ATTN_DTYPE_BF16), " (bf16) or ", static_cast<int>(ATTN_DTYPE_FP32),
         " (fp32)",
         may_be_fp8 ? concat(", ", static_cast<int>(ATTN_DTYPE_FP8_E4M3), " (fp8 e4m3) or ",
                             static_cast<int>(ATTN_DTYPE_FP8_E5M2), " (fp8 e5m2)")
                    : std::string());
}

// All memory of a call, and which of it is written.
class Memory {
 public:
  // [rows, columns]. Throws for NULL, misaligned elements, and strides that no memory has.
  void add_matrix(const char* name, bool is_output, const attn_rows& m, int64_t rows,
                  int64_t columns, int64_t element) {
    if (rows == 0) return;
    require_data(name, m.data, element);
    if (rows > 1 && m.stride < 0) refuse(concat(name, ".stride"), m.stride, "must be at least 0");
    if (rows > 1 && is_output && m.stride < columns) {
      refuse(concat(name, ".stride"), m.stride,
             "rows of an output must not overlap: it must be at least ", columns);
    }
    int64_t reach = 0;
    if (__builtin_mul_overflow(rows > 1 ? m.stride : 0, (rows - 1) * element, &reach) ||
        reach > kMostAddress - columns * element) {
      refuse(concat(name, ".stride"), m.stride, "over ", rows,
             " rows it exceeds the address space");
    }
    Region region = {};
    region.width = columns * element;
    region.end = reach;
    if (rows > 1) region.steps[region.step_count++] = {m.stride * element, rows};
    add(region, name, is_output, m.data);
  }

  // [count], contiguous. A NULL that is allowed is not to be added.
  void add_vector(const char* name, bool is_output, const void* data, int64_t count,
                  int64_t element) {
    if (count == 0) return;
    require_data(name, data, element);
    Region region = {};
    region.width = count * element;
    add(region, name, is_output, data);
  }

  // A barrier, if there is one; the CPU needs none.
  void add_barrier(const void* data, int32_t device_type) {
    if (!data || device_type == ATTN_DEVICE_CPU) return;
    if (reinterpret_cast<uintptr_t>(data) % sizeof(uint32_t) != 0) {
      refuse("barrier", data, "must be aligned to ", sizeof(uint32_t), " bytes");
    }
    add_vector("barrier", true, data, ATTN_NORM_BARRIER_SIZE, 1);
  }

  // The workspace, if there is one; the CPU needs none.
  void add_workspace(const void* data, uint64_t size, int32_t device_type) {
    if (!data || device_type == ATTN_DEVICE_CPU) return;
    if (reinterpret_cast<uintptr_t>(data) % kWorkspaceAlignment != 0) {
      refuse("workspace", data, "must be aligned to ", kWorkspaceAlignment, " bytes");
    }
    if (size > static_cast<uint64_t>(kMostAddress)) {
      refuse("workspace_size", size, "with its address it exceeds the address space");
    }
    add_vector("workspace", true, data, static_cast<int64_t>(size), 1);
  }

  // The output that was added last may be the input of that name, if it is all of it.
  void may_be(const char* name, const attn_rows& input, const attn_rows& output, int64_t rows,
              int64_t element, int64_t output_element) {
    if (rows == 0 || input.data != output.data || element != output_element) return;
    if (rows > 1 && input.stride != output.stride) return;
    for (size_t j = 0; j + 1 < count_; ++j) {
      if (std::strcmp(regions_[j].name, name) == 0) in_place_[count_ - 1] = j;
    }
  }

  // Throws where an output shares a byte with anything else.
  void require_separate() const {
    for (size_t i = 0; i < count_; ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (!is_output_[i] && !is_output_[j]) continue;
        if (in_place_[i] == j) continue;
        runtime::refuse_sharing(regions_[is_output_[i] ? i : j], regions_[is_output_[i] ? j : i]);
      }
    }
  }

 private:
  static void require_data(const char* name, const void* data, int64_t element) {
    if (!data) fail(Status::kInvalidArgument, runtime::Field(name), " is NULL: pass its data");
    if (reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(element) != 0) {
      refuse(name, data, "must be a multiple of ", element, ", the size of its elements");
    }
  }

  void add(Region region, const char* name, bool is_output, const void* data) {
    const auto address = reinterpret_cast<uintptr_t>(data);
    if (address > static_cast<uintptr_t>(kMostAddress) ||
        region.end + region.width > kMostAddress - static_cast<int64_t>(address)) {
      refuse(name, data, "with its size it exceeds the address space");
    }
    region.name = name;
    region.first = static_cast<int64_t>(address);
    region.begin = region.first;
    region.end += region.first + region.width;
    regions_[count_] = region;
    in_place_[count_] = count_;
    is_output_[count_++] = is_output;
  }

  std::array<Region, 12> regions_;
  std::array<bool, 12> is_output_;
  std::array<size_t, 12> in_place_;  // of which input an output is all; its own number: of none
  size_t count_ = 0;
};

template <typename Args>
void require_reserved(const Args& args) {
  if (args.reserved != 0) {
    fail(Status::kAbiMismatch, runtime::AbiStruct<Args>::kName, ".reserved is ", args.reserved,
         ", but must be 0: zero the struct before you fill it in");
  }
}

// The caller's structs, of this library's size.
template <typename Call, typename Args>
Call read(const Args* given) {
  Call call = {};
  static_cast<Args&>(call) = runtime::read_struct(given);
  require_reserved(static_cast<Args&>(call));
  call.p = runtime::read_struct(call.problem);
  return call;
}

void validate_problem(const attn_norm_problem& p, bool is_forward) {
  if (p.kind != ATTN_NORM_LAYER && p.kind != ATTN_NORM_RMS) {
    refuse("kind", p.kind, "must be ", static_cast<int>(ATTN_NORM_LAYER), " (LayerNorm) or ",
           static_cast<int>(ATTN_NORM_RMS), " (RMSNorm)");
  }
  require_device(p.device_type, p.device_id);
  require_from_to("rows", p.rows, 0, kMostRows);
  require_from_to("hidden", p.hidden, 1, most_columns(p.device_type));
  require_dtype("x_dtype", p.x_dtype);
  require_dtype("weight_dtype", p.weight_dtype);
  require_dtype("y_dtype", p.y_dtype, is_forward);
  require_from_to("zero_centred", p.zero_centred, 0, 1);
  if (!(p.epsilon >= 0) || std::isinf(p.epsilon)) {
    refuse("epsilon", p.epsilon, "must be a finite number from 0 on");
  }
  require_reserved(p);
}

// gamma + 1 of no gamma would be 2, or 1.
void require_gamma_if_centred(const void* gamma, const attn_norm_problem& p) {
  if (!gamma && p.zero_centred != 0) {
    refuse("zero_centred", p.zero_centred, "must be 0 where gamma is NULL");
  }
}

void validate_problem(const attn_softmax_problem& p) {
  require_from_to("mask_kind", p.mask_kind, ATTN_SOFTMAX_MASK_NONE, ATTN_SOFTMAX_MASK_CAUSAL);
  require_device(p.device_type, p.device_id);
  require_from_to("rows", p.rows, 0, kMostRows);
  require_from_to("columns", p.columns, 1, most_columns(p.device_type));
  require_from_to("queries", p.queries, 1, kMostColumns);
  require_dtype("dtype", p.dtype);
  if (!std::isfinite(p.scale)) refuse("scale", p.scale, "must be finite");
  const bool is_explicit = p.mask_kind == ATTN_SOFTMAX_MASK_EXPLICIT;
  if (!is_explicit && p.mask_repeat != 0) {
    refuse("mask_repeat", p.mask_repeat, "must be 0 without an explicit mask");
  }
  if (p.mask_kind != ATTN_SOFTMAX_MASK_NONE && p.rows % p.queries != 0) {
    refuse("rows", p.rows, "must be a multiple of queries (", p.queries, ")");
  }
  if (is_explicit) {
    require_from_to("mask_repeat", p.mask_repeat, 1, kMostRows);
    if (p.rows / p.queries % p.mask_repeat != 0) {
      refuse("mask_repeat", p.mask_repeat, "must divide rows / queries (", p.rows / p.queries, ")");
    }
  }
}

}  // namespace

NormForward validated(const attn_norm_fwd_args* given) {
  auto call = read<NormForward>(given);
  if (call.reserved2 != 0) {
    fail(Status::kAbiMismatch, "attn_norm_fwd_args.reserved2 is ", call.reserved2,
         ", but must be 0: zero the struct before you fill it in");
  }
  const attn_norm_problem& p = call.p;
  validate_problem(p, /*is_forward=*/true);
  const bool layer = p.kind == ATTN_NORM_LAYER;
  if (!layer) {
    require_null("beta", call.beta, "RMSNorm has none");
    require_null("mean", call.mean, "RMSNorm has none");
  }
  if (!is_fp8(p.y_dtype)) {
    require_null("scale", call.scale, "only fp8 outputs are scaled");
    require_null("amax", call.amax, "only fp8 outputs have it");
    require_null("scales", call.scales, "only fp8 outputs have them");
  }
  require_from_to("scales_kind", call.scales_kind, ATTN_NORM_SCALES_NONE, ATTN_NORM_SCALES_BLOCKS);
  if (call.scales_kind == ATTN_NORM_SCALES_NONE) {
    require_null("scales", call.scales, "scales_kind is 0 (none)");
  } else {
    if (!is_fp8(p.y_dtype)) {
      refuse("scales_kind", call.scales_kind, "must be 0 (none): only fp8 outputs have scales");
    }
    require_null("scale", call.scale, "the pass makes the scales itself");
    require_null("amax", call.amax, "the pass makes the scales itself");
  }
  const bool blocks = call.scales_kind == ATTN_NORM_SCALES_BLOCKS;
  if (blocks && p.hidden % kScaleBlock != 0) {
    refuse("hidden", p.hidden, "must be a multiple of ", kScaleBlock, ", as each block of so many ",
           "columns has a scale");
  }
  require_gamma_if_centred(call.gamma, p);
  const int64_t x = dtype_size(p.x_dtype), w = dtype_size(p.weight_dtype);
  Memory memory;
  memory.add_matrix("x", false, call.x, p.rows, p.hidden, x);
  memory.add_matrix("y", true, call.y, p.rows, p.hidden, dtype_size(p.y_dtype));
  memory.may_be("x", call.x, call.y, p.rows, x, dtype_size(p.y_dtype));
  if (call.residual.data || call.sum.data) {
    memory.add_matrix("residual", false, call.residual, p.rows, p.hidden, x);
    memory.add_matrix("sum", true, call.sum, p.rows, p.hidden, x);
    memory.may_be("residual", call.residual, call.sum, p.rows, x, x);
  }
  if (call.gamma) memory.add_vector("gamma", false, call.gamma, p.hidden, w);
  if (call.beta) memory.add_vector("beta", false, call.beta, p.hidden, w);
  if (call.mean) memory.add_vector("mean", true, call.mean, p.rows, sizeof(float));
  if (call.rstd) memory.add_vector("rstd", true, call.rstd, p.rows, sizeof(float));
  if (call.scale) memory.add_vector("scale", false, call.scale, 1, sizeof(float));
  if (call.amax) memory.add_vector("amax", true, call.amax, 1, sizeof(float));
  if (call.scales_kind == ATTN_NORM_SCALES_ROWS) {
    memory.add_vector("scales", true, call.scales, p.rows, sizeof(float));
  } else if (blocks) {
    memory.add_vector("scales", true, call.scales, p.rows * (p.hidden / kScaleBlock), 1);
  }
  memory.add_barrier(call.barrier, p.device_type);
  memory.require_separate();
  return call;
}

NormBackward validated(const attn_norm_bwd_args* given) {
  auto call = read<NormBackward>(given);
  const attn_norm_problem& p = call.p;
  validate_problem(p, /*is_forward=*/false);
  const bool layer = p.kind == ATTN_NORM_LAYER;
  if (!layer) {
    require_null("mean", call.mean, "RMSNorm has none");
    require_null("dbeta", call.dbeta, "RMSNorm has none");
  }
  require_gamma_if_centred(call.gamma, p);
  if (!call.gamma) {
    require_null("dgamma", call.dgamma, "gamma is NULL, and what is not there has no gradient");
  }
  const int64_t x = dtype_size(p.x_dtype), w = dtype_size(p.weight_dtype);
  Memory memory;
  memory.add_matrix("x", false, call.x, p.rows, p.hidden, x);
  memory.add_matrix("dy", false, call.dy, p.rows, p.hidden, dtype_size(p.y_dtype));
  memory.add_matrix("dx", true, call.dx, p.rows, p.hidden, x);
  if (call.dh.data) memory.add_matrix("dh", false, call.dh, p.rows, p.hidden, x);
  if (call.gamma) memory.add_vector("gamma", false, call.gamma, p.hidden, w);
  if (layer) memory.add_vector("mean", false, call.mean, p.rows, sizeof(float));
  memory.add_vector("rstd", false, call.rstd, p.rows, sizeof(float));
  if (call.dgamma) memory.add_vector("dgamma", true, call.dgamma, p.hidden, w);
  if (call.dbeta) memory.add_vector("dbeta", true, call.dbeta, p.hidden, w);
  memory.add_workspace(call.workspace, call.workspace_size, p.device_type);
  memory.require_separate();
  return call;
}

SoftmaxForward validated(const attn_softmax_fwd_args* given) {
  auto call = read<SoftmaxForward>(given);
  const attn_softmax_problem& p = call.p;
  validate_problem(p);
  const int64_t element = dtype_size(p.dtype);
  Memory memory;
  memory.add_matrix("x", false, call.x, p.rows, p.columns, element);
  memory.add_matrix("y", true, call.y, p.rows, p.columns, element);
  if (p.mask_kind == ATTN_SOFTMAX_MASK_EXPLICIT) {
    memory.add_vector("mask", false, call.mask, p.rows / p.mask_repeat * p.columns, 1);
  } else {
    require_null("mask", call.mask, "the problem has no explicit mask");
  }
  memory.add_barrier(call.barrier, p.device_type);
  memory.require_separate();
  return call;
}

SoftmaxBackward validated(const attn_softmax_bwd_args* given) {
  auto call = read<SoftmaxBackward>(given);
  const attn_softmax_problem& p = call.p;
  validate_problem(p);
  const int64_t element = dtype_size(p.dtype);
  Memory memory;
  memory.add_matrix("y", false, call.y, p.rows, p.columns, element);
  memory.add_matrix("dy", false, call.dy, p.rows, p.columns, element);
  memory.add_matrix("dx", true, call.dx, p.rows, p.columns, element);
  memory.add_barrier(call.barrier, p.device_type);
  memory.require_separate();
  return call;
}

}  // namespace AITER_ATTN_NAMESPACE::norm
