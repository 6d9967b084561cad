// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The C ABI of the norms called with structs of any content. On the CPU the pointers alone are
// right: each operand lies in memory of exactly the bytes that its extents and stride reach, and an
// accepted call is computed. For a GPU, which is not there, they are any addresses.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "aiter/norm.h"
#include "tests/support/attention/fuzzed_structs.h"

namespace {

using AITER_ATTN_NAMESPACE::testing::FuzzedStructs;
using AITER_ATTN_NAMESPACE::testing::require_answer;

// Operands that reach further have no memory here: such a call names a GPU.
constexpr __int128 kMostBytes = 1 << 16;

class Caller : private FuzzedStructs {
 public:
  Caller(const uint8_t* data, size_t size) : FuzzedStructs(data, size) {}

  void call() {
    switch (input().ConsumeIntegralInRange(0, 3)) {
      case 0:
        return norm_forward();
      case 1:
        return norm_backward();
      case 2:
        return softmax_forward();
      default:
        return softmax_backward();
    }
  }

 private:
  float real(float usual) {
    using Limits = std::numeric_limits<float>;
    static constexpr float kOdd[] = {0,
                                     -1,
                                     Limits::denorm_min(),
                                     Limits::max(),
                                     Limits::infinity(),
                                     -Limits::infinity(),
                                     Limits::quiet_NaN()};
    if (!rarely()) return usual;
    return input().ConsumeBool() ? input().PickValueInArray(kOdd)
                                 : input().ConsumeFloatingPoint<float>();
  }
  int32_t dtype() { return number(1, rarely() ? 6 : 3); }
  int64_t extent(int64_t least, int64_t most) {
    return rarely() ? number<int64_t>(least, int64_t{1} << 33) : number<int64_t>(least, most);
  }
  int32_t device() {
    if (!rarely()) return ATTN_DEVICE_CPU;
    return input().ConsumeBool() ? ATTN_DEVICE_CUDA : number(0, 11);
  }

  // Of the dtypes that operands may have; of others nothing is read.
  static int64_t size_of(int32_t dtype) {
    switch (dtype) {
      case ATTN_DTYPE_FP32:
        return 4;
      case ATTN_DTYPE_FP8_E4M3:
      case ATTN_DTYPE_FP8_E5M2:
        return 1;
      default:
        return 2;
    }
  }

  // Memory of the bytes, or any address where there are too many or no CPU reads them.
  void* operand(__int128 bytes) {
    if (rarely()) return nullptr;
    if (bytes > kMostBytes) on_cpu_ = false;
    if (!on_cpu_) return reinterpret_cast<void*>(input().ConsumeIntegral<uintptr_t>());
    const int64_t shift = rarely() ? 1 : 0;
    const auto size = static_cast<int64_t>(std::max<__int128>(bytes, 0));
    return static_cast<unsigned char*>(tensor_memory(size + shift)) + shift;
  }

  attn_rows matrix(int64_t rows, int64_t columns, int32_t dtype) {
    attn_rows m = {};
    m.stride = columns;
    if (rarely()) m.stride = number<int64_t>(-100, 200);
    if (rarely()) m.stride = input().ConsumeIntegral<int64_t>();
    const __int128 reach = rows > 1 ? __int128{m.stride} * (rows - 1) : 0;
    const __int128 elements = rows > 0 && columns > 0 ? std::max<__int128>(reach, 0) + columns : 0;
    m.data = operand(std::min<__int128>(elements, INT64_MAX) * size_of(dtype));
    return m;
  }

  template <typename T>
  T* vector(__int128 count, int64_t element = sizeof(T)) {
    return static_cast<T*>(operand(count * element));
  }
  // An operand that a right call of this kind has where `usual`, and need not have elsewhere.
  template <typename T>
  T* given_if(bool usual, __int128 count, int64_t element = sizeof(T)) {
    return usual != rarely() ? vector<T>(count, element) : nullptr;
  }

  void fill_norm(bool forward) {
    attn_norm_problem& p = norm_;
    p.struct_size = sizeof(p);
    p.kind = number(1, 2);
    p.device_type = device();
    p.device_id = number(0, 0);
    p.rows = extent(0, 9);
    p.hidden = extent(1, 40);
    p.x_dtype = dtype();
    p.weight_dtype = dtype();
    p.y_dtype = forward ? number(1, 5) : dtype();
    p.zero_centred = number(0, 1);
    p.epsilon = real(1e-5f);
    p.reserved = static_cast<uint32_t>(number(0, 0));
    on_cpu_ = p.device_type == ATTN_DEVICE_CPU;
  }
  void fill_softmax() {
    attn_softmax_problem& p = softmax_;
    p.struct_size = sizeof(p);
    p.mask_kind = number(0, 2);
    p.device_type = device();
    p.device_id = number(0, 0);
    p.queries = extent(1, 4);
    p.columns = extent(1, 40);
    p.mask_repeat = p.mask_kind == ATTN_SOFTMAX_MASK_EXPLICIT ? number<int64_t>(1, 2) : 0;
    if (rarely()) p.mask_repeat = input().ConsumeIntegral<int64_t>();
    const int64_t matrices = 2 * input().ConsumeIntegralInRange<int64_t>(0, 2);
    if (rarely() || __builtin_mul_overflow(matrices, p.queries, &p.rows)) p.rows = extent(0, 9);
    p.dtype = dtype();
    p.scale = real(0.5f);
    on_cpu_ = p.device_type == ATTN_DEVICE_CPU;
  }

  template <typename Problem>
  const Problem* sent_problem(Problem problem) {
    if (!on_cpu_ && problem.device_type == ATTN_DEVICE_CPU) problem.device_type = ATTN_DEVICE_CUDA;
    return rarely() ? nullptr : sent(problem);
  }

  void norm_forward() {
    fill_norm(/*forward=*/true);
    const attn_norm_problem& p = norm_;
    const bool layer = p.kind == ATTN_NORM_LAYER, fp8 = p.y_dtype >= ATTN_DTYPE_FP8_E4M3;
    attn_norm_fwd_args args = {sizeof(args), static_cast<uint32_t>(number(0, 0)), nullptr};
    args.x = matrix(p.rows, p.hidden, p.x_dtype);
    args.y = matrix(p.rows, p.hidden, p.y_dtype);
    if (input().ConsumeBool()) {
      args.residual = matrix(p.rows, p.hidden, p.x_dtype);
      args.sum = matrix(p.rows, p.hidden, p.x_dtype);
    }
    args.gamma = vector<void>(p.hidden, size_of(p.weight_dtype));
    args.beta = given_if<void>(layer, p.hidden, size_of(p.weight_dtype));
    args.mean = given_if<float>(layer, p.rows);
    args.rstd = vector<float>(p.rows);
    args.scale = given_if<float>(fp8, 1);
    args.amax = given_if<float>(fp8, 1);
    args.barrier = given_if<void>(false, ATTN_NORM_BARRIER_SIZE, 1);
    args.problem = sent_problem(p);
    require_answer(attn_norm_fwd(sent(args)));
  }

  void norm_backward() {
    fill_norm(/*forward=*/false);
    const attn_norm_problem& p = norm_;
    const bool layer = p.kind == ATTN_NORM_LAYER;
    attn_norm_bwd_args args = {sizeof(args), static_cast<uint32_t>(number(0, 0)), nullptr};
    args.x = matrix(p.rows, p.hidden, p.x_dtype);
    args.dy = matrix(p.rows, p.hidden, p.y_dtype);
    args.dx = matrix(p.rows, p.hidden, p.x_dtype);
    if (input().ConsumeBool()) args.dh = matrix(p.rows, p.hidden, p.x_dtype);
    args.gamma = vector<void>(p.hidden, size_of(p.weight_dtype));
    args.mean = given_if<float>(layer, p.rows);
    args.rstd = vector<float>(p.rows);
    args.dgamma = vector<void>(p.hidden, size_of(p.weight_dtype));
    args.dbeta = given_if<void>(layer, p.hidden, size_of(p.weight_dtype));
    args.workspace_size = rarely() ? input().ConsumeIntegral<uint64_t>() : 64;
    args.workspace = given_if<void>(false, 64, 1);
    args.problem = sent_problem(p);
    const attn_norm_bwd_args* const given = sent(args);
    uint64_t bytes = 0;
    require_answer(attn_norm_bwd_workspace_size(given, rarely() ? nullptr : &bytes));
    require_answer(attn_norm_bwd(given));
  }

  void softmax_forward() {
    fill_softmax();
    const attn_softmax_problem& p = softmax_;
    attn_softmax_fwd_args args = {sizeof(args), static_cast<uint32_t>(number(0, 0)), nullptr};
    args.x = matrix(p.rows, p.columns, p.dtype);
    args.y = matrix(p.rows, p.columns, p.dtype);
    const __int128 masks = p.rows / (p.mask_repeat > 0 ? p.mask_repeat : 1);
    args.mask = given_if<uint8_t>(p.mask_kind == ATTN_SOFTMAX_MASK_EXPLICIT, masks * p.columns);
    args.barrier = given_if<void>(false, ATTN_NORM_BARRIER_SIZE, 1);
    args.problem = sent_problem(p);
    require_answer(attn_softmax_fwd(sent(args)));
  }

  void softmax_backward() {
    fill_softmax();
    const attn_softmax_problem& p = softmax_;
    attn_softmax_bwd_args args = {sizeof(args), static_cast<uint32_t>(number(0, 0)), nullptr};
    args.y = matrix(p.rows, p.columns, p.dtype);
    args.dy = matrix(p.rows, p.columns, p.dtype);
    args.dx = matrix(p.rows, p.columns, p.dtype);
    args.barrier = given_if<void>(false, ATTN_NORM_BARRIER_SIZE, 1);
    args.problem = sent_problem(p);
    require_answer(attn_softmax_bwd(sent(args)));
  }

  attn_norm_problem norm_ = {};
  attn_softmax_problem softmax_ = {};
  bool on_cpu_ = true;
};

}  // namespace

// No GPU of this machine's gets these addresses.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  setenv("AITER_ATTN_CUDA_LIBRARY", "/nowhere/libcuda.so", 1);
  setenv("AITER_ATTN_HIP_LIBRARY", "/nowhere/libamdhip64.so", 1);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Caller(data, size).call();
  return 0;
}
