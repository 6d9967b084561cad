// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A program that is linked with older_glibc.c: its own definitions are what runs here.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

extern "C" int older_dl_find_object(void*, dl_find_object*);
extern "C" int older_cond_clockwait(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Through frames of the C++ runtime and of this program.
TEST(OlderGlibc, ExceptionsFindTheirHandlers) {
  const auto nested = [](int depth) {
    const auto call = [](const auto& self, int left) -> int {
      if (left == 0) throw std::runtime_error("thrown");
      return self(self, left - 1) + 1;
    };
    return call(call, depth);
  };
  EXPECT_THROW(nested(50), std::runtime_error);
  EXPECT_THROW((void)std::stoi("no number"), std::invalid_argument);
}

// This glibc's, and that for older ones.
class Objects : public ::testing::TestWithParam<int (*)(void*, dl_find_object*)> {};

TEST_P(Objects, OfAddresses) {
  const auto function = reinterpret_cast<char*>(&older_cond_clockwait);
  dl_find_object found;
  ASSERT_EQ(GetParam()(function, &found), 0);
  EXPECT_LE(found.dlfo_map_start, function);
  EXPECT_GT(found.dlfo_map_end, function);
  ASSERT_NE(found.dlfo_eh_frame, nullptr);
  EXPECT_EQ(*static_cast<unsigned char*>(found.dlfo_eh_frame), 1);  // the tables' version

  dl_find_object of_libc;
  ASSERT_EQ(GetParam()(dlsym(RTLD_DEFAULT, "malloc"), &of_libc), 0);
  EXPECT_NE(of_libc.dlfo_map_start, found.dlfo_map_start);

  EXPECT_EQ(GetParam()(std::malloc(1), &found), -1);
  EXPECT_EQ(GetParam()(nullptr, &found), -1);
}

INSTANTIATE_TEST_SUITE_P(OlderGlibc, Objects,
                         ::testing::Values(_dl_find_object, older_dl_find_object));

timespec after(milliseconds time) {
  const auto end = std::chrono::duration_cast<std::chrono::nanoseconds>(
      (Clock::now() + time).time_since_epoch());
  return {end.count() / 1000000000, end.count() % 1000000000};
}

class Waits : public ::testing::Test {
 protected:
  void SetUp() override { pthread_mutex_lock(&mutex_); }
  void TearDown() override { pthread_mutex_unlock(&mutex_); }
  int wait(const timespec& end) {
    return older_cond_clockwait(&condition_, &mutex_, CLOCK_MONOTONIC, &end);
  }
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition_ = PTHREAD_COND_INITIALIZER;
};

TEST_F(Waits, UntilTheEnd) {
  const auto start = Clock::now();
  EXPECT_EQ(wait(after(milliseconds(30))), ETIMEDOUT);
  EXPECT_GE(Clock::now() - start, milliseconds(29));
}

TEST_F(Waits, NotForAnEndThatHasPassed) { EXPECT_EQ(wait(after(milliseconds(-5000))), ETIMEDOUT); }

// The clock by which it waits may be set back.
TEST_F(Waits, ForASecondAtMost) {
  const auto start = Clock::now();
  EXPECT_EQ(wait(after(std::chrono::hours(24 * 365 * 200))), 0);
  EXPECT_GE(Clock::now() - start, milliseconds(900));
}

TEST_F(Waits, NotUntilATimeThatIsNone) { EXPECT_EQ(wait({1, 1000000000}), EINVAL); }

TEST_F(Waits, UntilItIsWoken) {
  std::thread waker([&] {
    pthread_mutex_lock(&mutex_);
    pthread_cond_signal(&condition_);
    pthread_mutex_unlock(&mutex_);
  });
  EXPECT_EQ(wait(after(std::chrono::hours(1))), 0);
  pthread_mutex_unlock(&mutex_);
  waker.join();
  pthread_mutex_lock(&mutex_);
}

TEST(OlderGlibc, WaitsOfTheCxxLibrary) {
  std::mutex mutex;
  std::condition_variable condition;
  std::unique_lock<std::mutex> lock(mutex);
  EXPECT_FALSE(condition.wait_for(lock, milliseconds(20), [] { return false; }));
}

TEST(OlderGlibc, Files) {
  const std::filesystem::path path = std::string(std::getenv("TEST_TMPDIR")) + "/file";
  std::ofstream(path) << "12345";
  EXPECT_EQ(std::filesystem::file_size(path), 5u);
  std::filesystem::create_symlink("file", path.string() + ".link");
  EXPECT_TRUE(std::filesystem::is_symlink(path.string() + ".link"));
  struct stat status;
  EXPECT_EQ(stat((path.string() + ".none").c_str(), &status), -1);
  EXPECT_EQ(errno, ENOENT);
}

TEST(OlderGlibc, Numbers) {
  volatile double x = 1.5, zero = 0, far = -1000, infinite = -HUGE_VAL;
  EXPECT_EQ(std::exp(x), 4.4816890703380645);
  EXPECT_EQ(std::log(x), 0.4054651081081644);
  EXPECT_EQ(std::exp(far), 0);
  EXPECT_EQ(std::exp(infinite), 0);
  EXPECT_EQ(std::log(zero), -HUGE_VAL);
}

}  // namespace
