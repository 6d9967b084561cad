// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Any text as a code object's spec: it is refused with kInvalidArgument, or is the canonical form
// of its spec, so that no two texts have one key.
#include <fuzzer/FuzzedDataProvider.h>

#include <cstdlib>
#include <string>

#include "aiter/runtime/error.h"
#include "aiter/runtime/store/spec.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

// A spec of the input's strings, its text with one byte changed.
std::string changed_text(FuzzedDataProvider& input) {
  if (input.ConsumeBool()) return input.ConsumeRemainingBytesAsString();
  CodeObjectSpec spec;
  for (std::string* field : {&spec.arch, &spec.headers, &spec.source, &spec.toolchain}) {
    *field = input.ConsumeRandomLengthString(8);
  }
  while (input.remaining_bytes() > 4) spec.flags.push_back(input.ConsumeRandomLengthString(8));
  std::string text = spec.canonical();
  if (input.remaining_bytes() > 1) {
    text[input.ConsumeIntegralInRange<size_t>(0, text.size() - 1)] = input.ConsumeIntegral<char>();
  }
  return text;
}

void run(const uint8_t* data, size_t size) {
  FuzzedDataProvider input(data, size);
  try {
    const std::string text = changed_text(input);
    if (CodeObjectSpec::parse(text).canonical() != text) std::abort();
  } catch (const Error& error) {
    if (error.status() != Status::kInvalidArgument) std::abort();
  }
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  AITER_ATTN_NAMESPACE::runtime::run(data, size);
  return 0;
}
