// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/warm_up.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "aiter/runtime/error.h"
#include "aiter/runtime/interrupt.h"
#include "tests/support/runtime/error_of.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using std::chrono::milliseconds;
using testing::error_of;
using ::testing::HasSubstr;

Digest key(const std::string& text) { return sha256(text.data(), text.size()); }

// A compiler whose compiles end when the test says so.
class Compiler : public Provider {
 public:
  std::string name() const override { return "the compiler"; }
  std::optional<Bytes> get(const CodeObjectRef& ref) override {
    std::unique_lock<std::mutex> lock(mutex_);
    ++started_;
    most_ = std::max(most_, ++running_);
    changed_.notify_all();
    changed_.wait(lock, [this] { return is_free_; });
    --running_;
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    if (!sigismember(&blocked, SIGINT)) gets_signals_ = true;
    if (ref.key == key("broken")) fail(Status::kInternal, "does not compile");
    return Bytes{1};
  }
  Answer look(const CodeObjectRef& ref) override {
    if (ref.key == key("there")) return {true, "keeps it"};
    if (ref.key == key("on a server")) return {true, "is asked for it", false, true};
    return {true, "compiles it", true};
  }

  void wait_for(int started) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return started_ == started; });
  }
  void free() {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_free_ = true;
    changed_.notify_all();
  }
  int started() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return started_;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_free_ = false;
  bool gets_signals_ = false;
  int started_ = 0, running_ = 0, most_ = 0;
};

class WarmUpOf : public ::testing::Test {
 protected:
  static Store store_with(Compiler** compiler) {
    std::vector<std::unique_ptr<Provider>> providers;
    auto made = std::make_unique<Compiler>();
    *compiler = made.get();
    providers.push_back(std::move(made));
    return Store(std::move(providers));
  }

  Compiler* compiler_ = nullptr;
  const Store store_ = store_with(&compiler_);
};

TEST_F(WarmUpOf, SeveralReturnsAtOnceAndMakesEachOnceSoManyAtATime) {
  WarmUp warm_up(store_, 2);
  std::vector<Digest> keys;
  std::vector<CodeObjectRef> refs;
  for (const char* name : {"fwd", "dq", "on a server", "convert", "there"}) {
    keys.push_back(key(name));
    refs.push_back({keys.back(), {}});
  }
  warm_up.add(refs);
  warm_up.add(refs);
  compiler_->wait_for(2);
  EXPECT_GE(warm_up.wait(keys, milliseconds(0)), 4);
  EXPECT_GE(warm_up.wait(keys, milliseconds(30)), 4);
  compiler_->free();
  EXPECT_EQ(warm_up.wait(keys, milliseconds(-1)), 0);
  EXPECT_EQ(compiler_->started(), 4) << "one is there";
  EXPECT_EQ(compiler_->most_, 2);
  EXPECT_FALSE(compiler_->gets_signals_);
  // Keys that were never added are not to be made.
  EXPECT_EQ(warm_up.wait({key("other")}, milliseconds(-1)), 0);
}

TEST_F(WarmUpOf, OneThatCannotBeMadeTellsWhyAndIsTriedAgain) {
  compiler_->free();
  WarmUp warm_up(store_, 4);
  const std::vector<CodeObjectRef> refs = {{key("broken"), {}}, {key("fwd"), {}}};
  const std::vector<Digest> keys = {key("fwd"), key("broken")};
  for (int times = 1; times <= 2; ++times) {
    warm_up.add(refs);
    const Error error = error_of([&] { warm_up.wait(keys, milliseconds(-1)); });
    EXPECT_EQ(error.status(), Status::kInternal);
    EXPECT_THAT(error.what(), HasSubstr("does not compile"));
    EXPECT_EQ(compiler_->started(), 1 + times) << "the other is made once";
  }
  EXPECT_EQ(warm_up.wait({key("fwd")}, milliseconds(-1)), 0);
}

TEST_F(WarmUpOf, AWaitIsInterrupted) {
  WarmUp warm_up(store_, 1);
  warm_up.add({{key("fwd"), {}}});
  int polls = 0;
  thread_interrupt() = {[](void* count) { return ++*static_cast<int*>(count) > 3 ? 1 : 0; },
                        &polls};
  EXPECT_EQ(error_of([&] { warm_up.wait({key("fwd")}, milliseconds(-1)); }).status(),
            Status::kInterrupted);
  thread_interrupt() = {};
  compiler_->free();
  EXPECT_EQ(warm_up.wait({key("fwd")}, milliseconds(-1)), 0);
}

TEST_F(WarmUpOf, AtItsEndMakesNoMore) {
  std::thread later;
  {
    WarmUp warm_up(store_, 1);
    warm_up.add({{key("fwd"), {}}, {key("dq"), {}}});
    compiler_->wait_for(1);
    later = std::thread([this] {
      std::this_thread::sleep_for(milliseconds(100));
      compiler_->free();
    });
  }
  later.join();
  EXPECT_EQ(compiler_->started(), 1);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
