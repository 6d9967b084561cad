// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Children of a process whose threads are in calls at that moment. HIP is the recording one.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "aiter/attn.h"
#include "kernels/code_object/embedded_pack.h"
#include "tests/support/attention/problems.h"
#include "tests/support/attention/test_launch_table.h"
#include "tests/support/runtime/forked_child.h"
#include "tests/support/runtime/recorder.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using namespace testing;
constexpr const char* kLibrary = "AITER_ATTN_HIP_LIBRARY";

attn_status forward(int32_t device_type) {
  TestProblem problem(Shape{2, 4, 2, 9, 20, 64, 64}, ATTN_DTYPE_FP16);
  problem.problem.device_type = device_type;
  const attn_fwd_args args = problem.fwd();
  return attn_fwd(&args);
}

bool use_the_cpu() {
  TestProblem problem(Shape{2, 4, 2, 9, 20, 64, 64}, ATTN_DTYPE_FP16);
  const attn_fwd_args fwd = problem.fwd();
  const attn_bwd_args bwd = problem.bwd();
  return attn_fwd(&fwd) == ATTN_OK && attn_bwd(&bwd) == ATTN_OK;
}

// All that needs no GPU runtime.
bool use_all_but_the_gpu() {
  if (!use_the_cpu() || attn_kernel_count() == 0) return false;
  void* data = nullptr;
  uint64_t size = 0;
  const std::string key = test_key("fwd_d64_fp16_batch_mask_psk", "gfx942");
  if (attn_code_object(key.c_str(), &data, &size) != ATTN_OK) return false;
  attn_code_object_free(data);
  TestProblem problem(Shape{2, 4, 2, 9, 20, 64, 64}, ATTN_DTYPE_FP16);
  problem.problem.device_type = ATTN_DEVICE_ROCM;
  const attn_fwd_args args = problem.fwd();
  const char* text = nullptr;
  uint32_t count = 0;
  return attn_explain_fwd(&args, "gfx942", &text) == ATTN_OK &&
         attn_plan_fwd(&args, "gfx942", nullptr, &count) == ATTN_OK &&
         attn_plan_fwd(&args, "gfx90a", nullptr, &count) == ATTN_ERROR_UNSUPPORTED;
}

// 0 where the child gets the promise of aiter/attn.h.
int the_cpu_serves_and_the_gpu_is_refused() {
  if (!use_all_but_the_gpu()) return 1;
  if (forward(ATTN_DEVICE_ROCM) != ATTN_ERROR_DRIVER) return 2;
  if (std::string(attn_last_error()).find("by spawn") == std::string::npos) return 3;
  const char* text = nullptr;
  if (attn_driver_info(ATTN_DEVICE_ROCM, &text) != ATTN_ERROR_DRIVER) return 4;
  return 0;
}

int all_is_served() {
  return use_all_but_the_gpu() && forward(ATTN_DEVICE_ROCM) == ATTN_OK ? 0 : 1;
}

// Threads that use the library until the scope ends.
class Users {
 public:
  explicit Users(std::function<bool()> use) {
    for (int i = 0; i < 2; ++i) {
      threads_.emplace_back([this, use] {
        while (!done_) good_ = use() && good_;
      });
    }
  }
  ~Users() {
    done_ = true;
    for (std::thread& thread : threads_) thread.join();
    EXPECT_TRUE(good_);
  }

 private:
  std::atomic<bool> done_{false}, good_{true};
  std::vector<std::thread> threads_;
};

// Runs body in a process in which nothing has used the library yet.
void in_fresh_process(const std::function<void()>& body) {
  EXPECT_EQ(in_forked_child([&] {
              body();
              return ::testing::Test::HasFailure() ? 1 : 0;
            }),
            0);
}

TEST(ForkTest, ChildrenOfAProcessThatCallsOnTheCpuCanDoAll) {
  in_fresh_process([] {
    EXPECT_TRUE(use_all_but_the_gpu());
    const Users users(use_all_but_the_gpu);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(in_forked_child(all_is_served), 0);
  });
}

// Values of the first use are being made while the process forks.
TEST(ForkTest, ChildrenOfAProcessAtItsFirstCallsCanDoAll) {
  kernels::launch_table();  // the test's own is made under a lock
  kernels::embedded_packs();
  for (int i = 0; i < 20; ++i) {
    in_fresh_process([i] {
      const Users users(use_all_but_the_gpu);
      std::this_thread::sleep_for(std::chrono::microseconds(50 * i));
      EXPECT_EQ(in_forked_child(all_is_served), 0);
    });
  }
}

TEST(ForkTest, ChildrenOfAProcessThatUsesTheGpuAreRefusedThere) {
  in_fresh_process([] {
    EXPECT_EQ(forward(ATTN_DEVICE_ROCM), ATTN_OK);
    const Users users([] { return forward(ATTN_DEVICE_ROCM) == ATTN_OK && use_all_but_the_gpu(); });
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(in_forked_child(the_cpu_serves_and_the_gpu_is_refused), 0);
    }
    // And theirs.
    EXPECT_EQ(
        in_forked_child([] { return in_forked_child(the_cpu_serves_and_the_gpu_is_refused); }), 0);
    EXPECT_EQ(forward(ATTN_DEVICE_ROCM), ATTN_OK);
  });
}

// Another thread is opening the runtime: its file is a pipe that has no writer yet.
TEST(ForkTest, AChildForkedWhileTheRuntimeIsOpenedIsRefused) {
  in_fresh_process([] {
    const std::string pipe = ::testing::TempDir() + "fork_test_pipe." + std::to_string(getpid());
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    const Environment library(kLibrary, pipe);
    std::thread opener([] { EXPECT_EQ(forward(ATTN_DEVICE_ROCM), ATTN_ERROR_DRIVER); });
    // A writer can open it without waiting once it has a reader.
    int writer = -1;
    while ((writer = open(pipe.c_str(), O_WRONLY | O_NONBLOCK)) < 0) std::this_thread::yield();
    EXPECT_EQ(in_forked_child(the_cpu_serves_and_the_gpu_is_refused), 0);
    close(writer);
    opener.join();
    unlink(pipe.c_str());
  });
}

TEST(ForkTest, ARuntimeThatCouldNotBeOpenedIsTriedAgainByTheChild) {
  in_fresh_process([] {
    const std::string good = std::getenv(kLibrary);
    const Environment library(kLibrary, "/no/such/libamdhip64.so");
    EXPECT_EQ(forward(ATTN_DEVICE_ROCM), ATTN_ERROR_DRIVER);
    EXPECT_EQ(in_forked_child([&] {
                const Environment found(kLibrary, good);
                return all_is_served();
              }),
              0);
  });
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::attention
