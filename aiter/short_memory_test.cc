// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The library where threads get no memory at all: a status, not the end of the process.
// Environment: OBJECT is a shared object of the library.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "aiter/attn.h"
#include "tests/support/attention/problems.h"

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
}

namespace {

thread_local bool is_short = false;   // this thread
thread_local bool is_exempt = false;  // from the next
std::atomic<bool> all_others_are_short = {false};

bool fails() { return is_short || (all_others_are_short && !is_exempt); }

}  // namespace

// In place of glibc's, also for glibc itself.
extern "C" void* malloc(size_t size) { return fails() ? nullptr : __libc_malloc(size); }
extern "C" void* calloc(size_t count, size_t size) {
  return fails() ? nullptr : __libc_calloc(count, size);
}
extern "C" void* realloc(void* memory, size_t size) {
  return fails() ? nullptr : __libc_realloc(memory, size);
}

namespace {

using namespace AITER_ATTN_NAMESPACE::testing;

#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)

class ShortMemory : public ::testing::Test {
 protected:
  ShortMemory() {
    void* const library = dlopen(std::getenv("OBJECT"), RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(dlerror());
    fwd = reinterpret_cast<decltype(fwd)>(dlsym(library, TEXT(attn_fwd)));
    last_error = reinterpret_cast<decltype(last_error)>(dlsym(library, TEXT(attn_last_error)));
    if (!fwd || !last_error) throw std::runtime_error("no attn_fwd or no attn_last_error");
  }

  decltype(&attn_fwd) fwd;
  decltype(&attn_last_error) last_error;
};

TEST_F(ShortMemory, AThreadWithoutAnyGetsAStatus) {
  TestProblem problem(Shape{1, 2, 2, 8, 8, 16, 16}, ATTN_DTYPE_FP32);
  const attn_fwd_args args = problem.fwd();
  attn_status status = ATTN_OK;
  std::string message;
  std::thread([&] {
    is_short = true;
    status = fwd(&args);
    const char* const text = last_error();
    is_short = false;
    message = text;
  }).join();
  EXPECT_EQ(status, ATTN_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(message, "out of memory while reporting an error");
}

// On a machine of one CPU the caller does all of the work, and gets the memory for it.
TEST_F(ShortMemory, ThreadsThatComputeWithoutAnyEndTheCall) {
  TestProblem problem(Shape{2, 4, 4, 200, 200, 64, 64}, ATTN_DTYPE_FP32);
  const attn_fwd_args args = problem.fwd();
  is_exempt = all_others_are_short = true;
  const attn_status status = fwd(&args);
  is_exempt = all_others_are_short = false;
  EXPECT_EQ(status, std::thread::hardware_concurrency() > 1 ? ATTN_ERROR_OUT_OF_MEMORY : ATTN_OK)
      << last_error();
}

}  // namespace
