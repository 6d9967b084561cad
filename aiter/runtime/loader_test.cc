// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "aiter/runtime/error.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Digest key(const std::string& text) { return sha256(text.data(), text.size()); }

// Modules and functions are numbered; loads can be made to fail.
class CountingDriver : public Driver {
 public:
  std::string describe() override { return "counting"; }
  int device_count() override { return 2; }
  std::string arch(int) override { return "gfx942"; }
  DeviceLimits limits(int) override { return {}; }
  BeforeEntry enter(int) override { return {}; }
  void leave(const BeforeEntry&) override {}
  Module load(const void*) override {
    if (fail_next_load) {
      fail_next_load = false;
      fail(Status::kDriver, "asked to fail");
    }
    return reinterpret_cast<Module>(++loads);
  }
  Function function(Module, const char*) override {
    return reinterpret_cast<Function>(++functions);
  }
  uint32_t make_resident(Function, const char*, const Residency&) override { return 0; }
  void launch(Function, const char*, const KernelLaunch&, Stream) override {}
  void zero_rows(void*, size_t, size_t, size_t, Stream) override {}
  void fill_words(void*, uint32_t, size_t, Stream) override {}

  uintptr_t loads = 0, functions = 0;
  bool fail_next_load = false;
};

// Has every key; "slow" not before it is released.
class SlowShelf : public Provider {
 public:
  SlowShelf(std::promise<void>* asked, std::future<void> released)
      : asked_(asked), released_(std::move(released)) {}
  std::string name() const override { return "shelf"; }
  std::optional<Bytes> get(const CodeObjectRef& ref) override {
    if (ref.key == key("slow")) {
      asked_->set_value();
      released_.wait();
    }
    return Bytes{1};
  }

 private:
  std::promise<void>* asked_;
  std::future<void> released_;
};

class LoaderTest : public ::testing::Test {
 protected:
  static std::vector<std::unique_ptr<Provider>> shelf(std::promise<void>* asked,
                                                      std::future<void> released) {
    std::vector<std::unique_ptr<Provider>> providers;
    providers.push_back(std::make_unique<SlowShelf>(asked, std::move(released)));
    return providers;
  }

  std::promise<void> asked_, release_;
  CountingDriver driver_;
  Store store_{shelf(&asked_, release_.get_future())};
  Loader loader_{store_};
};

TEST_F(LoaderTest, LoadsOncePerDeviceAndFindsEachSymbolOnce) {
  const Function first = loader_.function(driver_, 0, {key("a"), {}}, "f");
  EXPECT_EQ(loader_.function(driver_, 0, {key("a"), {}}, "f"), first);
  EXPECT_NE(loader_.function(driver_, 0, {key("a"), {}}, "g"), first);
  EXPECT_EQ(driver_.loads, 1u);
  EXPECT_EQ(driver_.functions, 2u);
  EXPECT_NE(loader_.function(driver_, 1, {key("a"), {}}, "f"), first);
  loader_.function(driver_, 0, {key("b"), {}}, "f");
  EXPECT_EQ(driver_.loads, 3u);
}

TEST_F(LoaderTest, DriversHaveTheirOwnModules) {
  CountingDriver other;
  const Function first = loader_.function(driver_, 0, {key("a"), {}}, "f");
  loader_.function(other, 0, {key("a"), {}}, "f");
  EXPECT_EQ(loader_.function(driver_, 0, {key("a"), {}}, "f"), first);
  EXPECT_EQ(driver_.loads, 1u);
  EXPECT_EQ(other.loads, 1u);
}

TEST_F(LoaderTest, ALoadThatFailedIsTriedAgain) {
  driver_.fail_next_load = true;
  try {
    loader_.function(driver_, 1, {key("a"), {}}, "f");
    ADD_FAILURE() << "nothing thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::kDriver);
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("asked to fail"), HasSubstr(hex(key("a"))), HasSubstr("device 1")));
  }
  EXPECT_TRUE(loader_.function(driver_, 1, {key("a"), {}}, "f"));
}

TEST_F(LoaderTest, NoKeyWaitsForAnother) {
  auto slow = std::async(std::launch::async,
                         [&] { return loader_.function(driver_, 0, {key("slow"), {}}, "f"); });
  asked_.get_future().wait();
  auto fast = std::async(std::launch::async,
                         [&] { return loader_.function(driver_, 0, {key("a"), {}}, "f"); });
  EXPECT_EQ(fast.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  release_.set_value();
  EXPECT_TRUE(slow.get());
  EXPECT_TRUE(fast.get());
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
