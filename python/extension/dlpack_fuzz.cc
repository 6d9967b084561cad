// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Any fields in a DLTensor whose pointers alone are right: it is refused as an invalid argument, or
// every entry of the view that is made lies where the fields say, by arithmetic that cannot
// overflow.
#include <fuzzer/FuzzedDataProvider.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <vector>

#include "python/extension/dlpack_reader.h"

namespace AITER_ATTN_NAMESPACE::python {
namespace {

// Of the exact size, so that an entry behind it is not the process's.
std::unique_ptr<int64_t[]> numbers(FuzzedDataProvider& input, int32_t count) {
  auto memory = std::make_unique<int64_t[]>(count);
  for (int32_t i = 0; i < count; ++i) {
    memory[i] = input.ConsumeIntegralInRange(0, 7) == 0
                    ? input.ConsumeIntegral<int64_t>()
                    : input.ConsumeIntegralInRange<int64_t>(-4, 1 << 10);
  }
  return memory;
}

void check(const ArrayView& view, const DLTensor& tensor) {
  if (view.shape.size() != static_cast<size_t>(tensor.ndim)) std::abort();
  if (view.strides.size() != view.shape.size() || view.dtype.empty()) std::abort();
  __int128 least = 0, most = 0;
  for (size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i] < 0) std::abort();
    if (view.shape[i] == 0) return;  // no entry
    const __int128 reach = __int128{view.strides[i]} * (view.shape[i] - 1);
    (reach < 0 ? least : most) += reach;
  }
  if (view.item_bits == 0 || view.data == nullptr) std::abort();
  const __int128 item = (view.item_bits + 7) / 8;
  const auto start = static_cast<__int128>(reinterpret_cast<uintptr_t>(view.data));
  if (start + least * item < 0 || start + (most + 1) * item > __int128{UINTPTR_MAX} + 1) {
    std::abort();
  }
}

void run(const uint8_t* data, size_t size) {
  FuzzedDataProvider input(data, size);
  DLTensor tensor = {};
  tensor.ndim = input.ConsumeIntegralInRange(0, 15) == 0 ? input.ConsumeIntegral<int32_t>()
                                                         : input.ConsumeIntegralInRange(-1, 66);
  const int32_t count = tensor.ndim > 0 && tensor.ndim <= 66 ? tensor.ndim : 0;
  const auto shape = numbers(input, count), strides = numbers(input, count);
  if (input.ConsumeIntegralInRange(0, 15) != 0) tensor.shape = shape.get();
  if (input.ConsumeBool()) tensor.strides = strides.get();
  tensor.dtype = {input.ConsumeIntegral<uint8_t>(), input.ConsumeIntegral<uint8_t>(),
                  input.ConsumeBool() ? uint16_t{1} : input.ConsumeIntegral<uint16_t>()};
  tensor.device = {static_cast<DLDeviceType>(input.ConsumeIntegralInRange(0, 20)),
                   input.ConsumeIntegral<int32_t>()};
  tensor.byte_offset = input.ConsumeBool() ? 0 : input.ConsumeIntegral<uint64_t>();
  // Never read: any address will do.
  tensor.data = reinterpret_cast<void*>(input.ConsumeBool() ? uintptr_t{0x7f0000001000}
                                                            : input.ConsumeIntegral<uintptr_t>());
  try {
    check(ReadDlpack(tensor), tensor);
  } catch (const std::invalid_argument&) {
  }
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::python

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  AITER_ATTN_NAMESPACE::python::run(data, size);
  return 0;
}
