// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/attention/preference.h"

#include <atomic>
#include <memory>
#include <string_view>

#include "aiter/attention/problem/error.h"
#include "aiter/attn.h"
#include "aiter/runtime/environment.h"
#include "aiter/runtime/once.h"
#include "aiter/runtime/text.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

constexpr const char* kVariable = "AITER_ATTN_KERNELS";

// By attn_kernels.
constexpr std::string_view kNames[] = {"default", "fastest", "ck", "asm"};

std::atomic<int32_t> process_kernels{ATTN_KERNELS_DEFAULT};

// source: a name that people know.
int32_t parse(const char* source, std::string_view name) {
  for (int32_t i = ATTN_KERNELS_FASTEST; i <= ATTN_KERNELS_ASM; ++i) {
    if (name == kNames[i]) return i;
  }
  fail(Status::kInvalidArgument, Field(source), " is '", runtime::utf8(std::string(name)),
       "', but must be fastest, ck or asm");
}

// Read once: programs may change their environment while others read it.
const std::string& variable() {
  static runtime::Once<const std::string> value;
  return value.get(
      [] { return std::make_unique<const std::string>(runtime::variable(kVariable)); });
}

int32_t environment_kernels() {
  const std::string& name = variable();
  return name.empty() ? int32_t{ATTN_KERNELS_DEFAULT} : parse(kVariable, name);
}

}  // namespace

void set_kernels(const char* name) {
  process_kernels = name ? parse("kernels", name) : int32_t{ATTN_KERNELS_DEFAULT};
}

int32_t preferred_kernels(int32_t of_problem) {
  if (of_problem != ATTN_KERNELS_DEFAULT) return of_problem;
  const int32_t of_process = process_kernels;
  if (of_process != ATTN_KERNELS_DEFAULT) return of_process;
  const int32_t of_environment = environment_kernels();
  return of_environment != ATTN_KERNELS_DEFAULT ? of_environment : int32_t{ATTN_KERNELS_FASTEST};
}

std::string describe_preference(int32_t of_problem) {
  const int32_t of_process = process_kernels;
  const std::string& environment = variable();
  return concat(kNames[preferred_kernels(of_problem)], " (the call: ", kNames[of_problem],
                "; attn_set_kernels: ", kNames[of_process], "; ", kVariable, ": ",
                environment.empty() ? "not set" : environment, ")");
}

}  // namespace AITER_ATTN_NAMESPACE::attention
