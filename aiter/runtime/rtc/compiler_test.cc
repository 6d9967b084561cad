// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// On stand-ins of NVRTC and hipRTC: tests/support/runtime/fake_rtc.cc.
#include "aiter/runtime/rtc/compiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <thread>

#include "tests/support/runtime/error_of.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::StartsWith;

namespace fs = std::filesystem;

const SourceFile kSource = {"kernel.cpp", "source"};
const std::vector<SourceFile> kHeaders = {{"a.h", "A"}, {"b.h", "B"}};

std::string fake(const char* variable) { return fs::absolute(std::getenv(variable)); }

std::string text(const Bytes& bytes) { return {bytes.begin(), bytes.end()}; }

class Rtc : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv(kNvrtcLibraryVariable, fake("FAKE_NVRTC").c_str(), 1);
    setenv(kHipRtcLibraryVariable, fake("FAKE_HIPRTC").c_str(), 1);
  }
  void TearDown() override {
    for (const char* name :
         {"AITER_FAKE_RTC_VERSION", "AITER_FAKE_RTC_ARCHS", "AITER_FAKE_RTC_FAIL"}) {
      unsetenv(name);
    }
  }
};

TEST_F(Rtc, NvrtcGetsWhatItIsGiven) {
  const auto nvrtc = open_nvrtc({});
  const Bytes cubin = nvrtc->compile(kSource, kHeaders, {"-std=c++17", "-DX=1"}, "sm_90");
  EXPECT_EQ(text(cubin), std::string("cubin kernel.cpp=source a.h=A b.h=B --gpu-architecture=sm_90 "
                                     "-std=c++17 -DX=1") +
                             '\0');
}

TEST_F(Rtc, HipRtcGetsWhatItIsGiven) {
  const Bytes code = open_hiprtc({})->compile(kSource, kHeaders, {"-DX=1"}, "gfx942");
  EXPECT_THAT(text(code),
              StartsWith("hip kernel.cpp=source a.h=A b.h=B --offload-arch=gfx942 -DX=1"));
}

TEST_F(Rtc, DevicesNewerThanNvrtcGetPtx) {
  const auto nvrtc = open_nvrtc({});
  EXPECT_EQ(nvrtc->target("sm_80"), "sm_80");
  EXPECT_EQ(nvrtc->target("sm_90a"), "sm_90a");
  EXPECT_EQ(nvrtc->target("sm_86"), "compute_80");
  EXPECT_EQ(nvrtc->target("sm_100"), "compute_90");
  EXPECT_THAT(text(nvrtc->compile(kSource, {}, {}, "compute_90")),
              StartsWith("ptx kernel.cpp=source --gpu-architecture=compute_90"));
  const Error error = error_of([&] { nvrtc->target("sm_75"); });
  EXPECT_EQ(error.status(), Status::kUnsupported);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("sm_75"), HasSubstr("sm_80 and newer"),
                                  HasSubstr(kNvrtcLibraryVariable)));
}

TEST_F(Rtc, WhatIsNoArchIsRefused) {
  const auto nvrtc = open_nvrtc({});
  for (const char* arch : {"", "sm_", "gfx942", "sm_9x0", "sm_99999999999"}) {
    EXPECT_EQ(error_of([&] { nvrtc->target(arch); }).status(), Status::kInvalidArgument) << arch;
  }
  EXPECT_EQ(error_of([&] { open_hiprtc({})->target("sm_90"); }).status(), Status::kInvalidArgument);
  EXPECT_EQ(error_of([&] { open_compiler("xe2", {}); }).status(), Status::kUnsupported);
  EXPECT_THAT(open_compiler("gfx950", {})->describe(), StartsWith("hipRTC"));
  EXPECT_THAT(open_compiler("sm_90", {})->describe(), StartsWith("NVRTC"));
}

TEST_F(Rtc, ItSaysWhatItIs) {
  setenv("AITER_FAKE_RTC_VERSION", "12.9", 1);
  const auto nvrtc = open_nvrtc({});
  EXPECT_EQ(nvrtc->describe(), "NVRTC 12.9 (" + fake("FAKE_NVRTC") + ")");
  // The version, and 20 bytes that the linker made of the file's contents.
  EXPECT_THAT(nvrtc->identity(),
              ::testing::MatchesRegex("nvrtc 12\\.9 [0-9a-f]+ builtins [0-9a-z .]+"));
  EXPECT_NE(nvrtc->identity(), open_hiprtc({})->identity());
  setenv("AITER_FAKE_RTC_VERSION", "13.0", 1);
  EXPECT_NE(nvrtc->identity(), open_nvrtc({})->identity());
}

TEST_F(Rtc, HipRtcIsAnotherWithOtherOptionsOfTheEnvironment) {
  const auto hiprtc = open_hiprtc({});
  const std::string plain = hiprtc->identity();
  EXPECT_THAT(plain, ::testing::MatchesRegex("hiprtc 13\\.0 [0-9a-f]+ comgr [0-9a-z .]+"));
  std::set<std::string> identities = {plain};
  for (const char* name : {"HIPRTC_COMPILE_OPTIONS_APPEND", "HIPRTC_LINK_OPTIONS_APPEND"}) {
    for (const char* value : {"-O1", "-O1 \xff"}) {
      setenv(name, value, 1);
      identities.insert(hiprtc->identity());
    }
    setenv(name, "", 1);
    EXPECT_EQ(hiprtc->identity(), plain);
    unsetenv(name);
  }
  EXPECT_EQ(identities.size(), 5u);
  for (const std::string& identity : identities) {
    EXPECT_EQ(identity.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyz_ ."
                                         "ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
              identity.npos);
  }
}

TEST_F(Rtc, ASourceThatDoesNotCompileGivesTheLog) {
  const SourceFile broken = {"broken.cpp", "int x;\n#error needs \xff sm_90"};
  try {
    open_nvrtc({})->compile(broken, {}, {"-DX=1"}, "sm_80");
    ADD_FAILURE();
  } catch (const CompileError& error) {
    EXPECT_EQ(error.log(), "#error needs \xef\xbf\xbd sm_90");
    EXPECT_THAT(error.what(), AllOf(HasSubstr(error.log()), HasSubstr("broken.cpp"),
                                    HasSubstr("-DX=1"), HasSubstr("NVRTC 13.0")));
  }
}

TEST_F(Rtc, ALongLogIsCutInTheMessageAlone) {
  const SourceFile broken = {"broken.cpp", "#error " + std::string(100000, 'x')};
  try {
    open_hiprtc({})->compile(broken, {}, {}, "gfx942");
    ADD_FAILURE();
  } catch (const CompileError& error) {
    EXPECT_EQ(error.log().size(), 100007u);
    EXPECT_LT(std::string(error.what()).size(), 5000u);
  }
}

TEST_F(Rtc, FailuresNameTheCall) {
  const auto nvrtc = open_nvrtc({});
  for (const char* function : {"nvrtcCreateProgram", "nvrtcCompileProgram", "nvrtcGetCUBIN"}) {
    setenv("AITER_FAKE_RTC_FAIL", (std::string(function) + "=7").c_str(), 1);
    const Error error = error_of([&] { nvrtc->compile(kSource, {}, {}, "sm_90"); });
    EXPECT_EQ(error.status(), Status::kDriver);
    EXPECT_THAT(error.what(), AllOf(HasSubstr(function), HasSubstr("asked to fail (7)")));
  }
  setenv("AITER_FAKE_RTC_FAIL", "nvrtcCompileProgram=1", 1);
  EXPECT_EQ(error_of([&] { nvrtc->compile(kSource, {}, {}, "sm_90"); }).status(),
            Status::kOutOfMemory);
}

TEST_F(Rtc, MissingBuiltinsAreNamed) {
  setenv("AITER_FAKE_RTC_FAIL", "nvrtcCompileProgram=7", 1);
  for (const auto& [version, file, package] : std::vector<std::array<const char*, 3>>{
           {"12.8", "libnvrtc-builtins.so.12.8", "nvidia-cuda-nvrtc-cu12)"},
           {"13.0", "libnvrtc-builtins.so.13.0", "nvidia-cuda-nvrtc)"}}) {
    setenv("AITER_FAKE_RTC_VERSION", version, 1);
    const auto nvrtc = open_nvrtc({});
    EXPECT_THAT(error_of([&] { nvrtc->compile(kSource, {}, {}, "sm_90"); }).what(),
                AllOf(HasSubstr(file), HasSubstr(package), HasSubstr(fake("FAKE_NVRTC")),
                      HasSubstr(kNvrtcLibraryVariable)));
  }
}

TEST_F(Rtc, AnotherMajorVersionIsRefused) {
  for (const char* version : {"11.8", "14.0"}) {
    setenv("AITER_FAKE_RTC_VERSION", version, 1);
    const Error error = error_of([] { open_nvrtc({}); });
    EXPECT_EQ(error.status(), Status::kDriver);
    EXPECT_THAT(error.what(), AllOf(HasSubstr(version), HasSubstr(fake("FAKE_NVRTC")),
                                    HasSubstr("NVRTC 12 or 13"), HasSubstr("pip install")));
  }
}

TEST_F(Rtc, AMissingFunctionIsNamed) {
  setenv(kNvrtcLibraryVariable, fake("FAKE_NVRTC_OLD").c_str(), 1);
  EXPECT_THAT(error_of([] { open_nvrtc({}); }).what(),
              AllOf(HasSubstr("nvrtcGetCUBINSize"), HasSubstr(fake("FAKE_NVRTC_OLD")),
                    HasSubstr("NVRTC 12 or 13")));
  // Of another vendor.
  setenv(kNvrtcLibraryVariable, fake("FAKE_HIPRTC").c_str(), 1);
  EXPECT_THAT(error_of([] { open_nvrtc({}); }).what(), HasSubstr("has no nvrtc"));
}

TEST_F(Rtc, AFileThatCannotBeLoadedIsNamed) {
  setenv(kNvrtcLibraryVariable, "/nowhere/libnvrtc.so", 1);
  const Error error = error_of([] { open_nvrtc({}); });
  EXPECT_EQ(error.status(), Status::kDriver);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("/nowhere/libnvrtc.so"), HasSubstr(kNvrtcLibraryVariable)));
}

TEST_F(Rtc, ThreadsCompileAtTheSameTime) {
  const auto nvrtc = open_nvrtc({});
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int j = 0; j < 50; ++j) {
        const std::string flag = "-DX=" + std::to_string(100 * i + j);
        const std::string code = text(nvrtc->compile(kSource, kHeaders, {flag}, "sm_90"));
        right += code.find(flag + '\0') != code.npos;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 400);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
