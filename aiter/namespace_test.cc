// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Two copies of the library in one process, under the namespaces "aiter" and "te". Arguments: their
// files.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "aiter/attn.h"
#include "aiter/testing/problems.h"
#include "aiter/testing/recorder.h"

namespace {

using namespace aiter_attn::testing;

int failures = 0;

void expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "not so: %s\n", what);
  ++failures;
}

struct Copy {
  Copy(const char* path, const std::string& name) {
    library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
      std::fprintf(stderr, "%s\n", dlerror());
      std::exit(1);
    }
    bind(name + "_attn_fwd", &fwd);
    bind(name + "_attn_last_error", &last_error);
    bind(name + "_attn_kernel_info", &kernel_info);
  }
  template <typename F>
  void bind(const std::string& symbol, F* function) {
    *function = reinterpret_cast<F>(dlsym(library, symbol.c_str()));
    if (!*function) {
      std::fprintf(stderr, "no %s\n", symbol.c_str());
      std::exit(1);
    }
  }
  void* library;
  decltype(&attn_fwd) fwd;
  decltype(&attn_last_error) last_error;
  decltype(&attn_kernel_info) kernel_info;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const Copy ours(argv[1], "aiter"), theirs(argv[2], "te");
  expect(!dlsym(ours.library, "te_attn_fwd"), "aiter's copy has no te_ names");
  expect(!dlsym(theirs.library, "aiter_attn_fwd"), "te's copy has no aiter_ names");
  expect(ours.fwd != theirs.fwd, "each has its own code");

  expect(ours.fwd(nullptr) == ATTN_ERROR_INVALID_ARGUMENT, "NULL is refused");
  expect(std::strlen(ours.last_error()) != 0, "with a message");
  expect(std::strlen(theirs.last_error()) == 0, "that is not the other's");

  // The table is built anew in each: nothing of one is found by the other.
  attn_kernel_info_t mine = {}, other = {};
  mine.struct_size = other.struct_size = sizeof(mine);
  expect(ours.kernel_info(0, &mine) == ATTN_OK, "kernel_info");
  expect(theirs.kernel_info(0, &other) == ATTN_OK, "kernel_info of the other");
  expect(mine.name != other.name && std::strcmp(mine.name, other.name) == 0, "two tables");

  Problem problem(Shape{1, 2, 2, 100, 100, 64, 64}, ATTN_DTYPE_FP16);
  attn_fwd_args args = problem.fwd();
  expect(ours.fwd(&args) == ATTN_OK && theirs.fwd(&args) == ATTN_OK, "both run on the CPU");
  args.problem.device_type = ATTN_DEVICE_ROCM;
  const Recorder recorder;
  expect(ours.fwd(&args) == ATTN_OK && theirs.fwd(&args) == ATTN_OK, "both run on the GPU");
  expect(recorder.order() == "lklk", "and load for themselves");
  return failures != 0;
}
