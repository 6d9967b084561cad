// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/rtc/compilers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "aiter/runtime/error.h"
#include "tests/support/runtime/error_of.h"
#include "tests/support/runtime/forked_child.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using testing::error_of;
using testing::in_forked_child;

// Says for which arch it was opened.
class Named : public Compiler {
 public:
  explicit Named(std::string arch) : arch_(std::move(arch)) {}
  std::string describe() const override { return arch_; }
  std::string identity() const override { return arch_; }
  std::string target(const std::string& arch) const override { return arch; }
  Bytes compile(const SourceFile&, const std::vector<SourceFile>&, const std::vector<std::string>&,
                const std::string&) const override {
    return {};
  }

 private:
  const std::string arch_;
};

TEST(CompilersTest, OneForEachVendorIsOpenedOnceAndAFailureIsNotKept) {
  int opened = 0;
  Compilers compilers([&](const std::string& arch) {
    if (opened++ == 0) fail(Status::kDriver, "is not there yet");
    return std::make_unique<Named>(arch);
  });
  EXPECT_EQ(error_of([&] { compilers.for_arch("gfx942"); }).status(), Status::kDriver);
  EXPECT_EQ(compilers.for_arch("gfx942").describe(), "gfx942");
  EXPECT_EQ(compilers.for_arch("gfx950").describe(), "gfx942");
  EXPECT_EQ(compilers.for_arch("sm_90").describe(), "sm_90");
  EXPECT_EQ(opened, 3);
}

TEST(CompilersTest, AChildThatIsForkedWhileOneIsOpenedOpensItItself) {
  std::atomic<bool> is_opening{false}, is_forked{false};
  Compilers compilers([&](const std::string& arch) {
    const bool is_child = is_opening.exchange(true);
    while (!is_child && !is_forked) std::this_thread::yield();
    return std::make_unique<Named>(arch);
  });
  std::thread other([&] { EXPECT_EQ(compilers.for_arch("sm_90").describe(), "sm_90"); });
  while (!is_opening) std::this_thread::yield();
  const int child =
      in_forked_child([&] { return compilers.for_arch("sm_90").describe() == "sm_90" ? 0 : 1; });
  is_forked = true;
  other.join();
  EXPECT_EQ(child, 0);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
