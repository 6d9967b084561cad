// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Where compilers are looked for. Apart from compiler_test, which has one loaded.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "aiter/runtime/rtc/compiler.h"
#include "aiter/runtime/shared_library.h"
#include "tests/support/runtime/forked_child.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

namespace fs = std::filesystem;

// As pip lays it out. Each in a process of its own: a loaded library stays.
class Search : public ::testing::Test {
 protected:
  void SetUp() override {
    unsetenv(kNvrtcLibraryVariable);
    fs::remove_all(folder_);
    for (const char* name : {"cu13/lib", "cuda_nvrtc/lib"}) {
      fs::create_directories(folder_ / "nvidia" / name);
    }
  }
  void place(const char* name, const std::string& file) {
    fs::copy_file(file, folder_ / "nvidia" / name);
  }
  // The answer of ask(), or an error's text, from a child that ran body() first.
  template <typename Body, typename Ask>
  std::string said(Body&& body, Ask&& ask) {
    const fs::path answer = folder_ / "answer";
    testing::in_forked_child([&] {
      body();
      try {
        std::ofstream(answer) << ask();
      } catch (const Error& error) {
        std::ofstream(answer) << error.what();
      }
      return 0;
    });
    std::string line;
    std::getline(std::ifstream(answer), line);
    return line;
  }
  // describe() or identity() of NVRTC.
  template <typename Body>
  std::string opened(Body&& body, std::string (Compiler::*ask)() const = &Compiler::describe) {
    return said(body, [&] { return (*open_nvrtc({"/nowhere", folder_}).*ask)(); });
  }
  std::string opened() {
    return opened([] {});
  }
  std::string identity() {
    return opened([] {}, &Compiler::identity);
  }

  const std::string fake_ = fs::absolute(std::getenv("FAKE_NVRTC"));
  const std::string without_id_ = fs::absolute(std::getenv("FAKE_NVRTC_WITHOUT_ID"));
  const fs::path folder_ = fs::path(std::getenv("TEST_TMPDIR")) / "site-packages";
};

TEST_F(Search, TheNewestOfPips) {
  place("cuda_nvrtc/lib/libnvrtc.so.12", fake_);
  EXPECT_THAT(opened(), HasSubstr("cuda_nvrtc/lib/libnvrtc.so.12"));
  place("cu13/lib/libnvrtc.so.13", fake_);
  EXPECT_THAT(opened(), HasSubstr((folder_ / "nvidia/cu13/lib/libnvrtc.so.13").string()));
}

TEST_F(Search, WhatIsLoadedComesBeforePips) {
  place("cu13/lib/libnvrtc.so.13", fake_);
  const std::string loaded = fake_;  // has the soname of NVRTC 13
  EXPECT_THAT(opened([&] { dlopen(loaded.c_str(), RTLD_NOW | RTLD_LOCAL); }), HasSubstr(loaded));
}

TEST_F(Search, AFileOfPipsThatCannotBeLoadedIsPassedOver) {
  std::ofstream(folder_ / "nvidia/cu13/lib/libnvrtc.so.13") << "half";
  place("cuda_nvrtc/lib/libnvrtc.so.12", fake_);
  EXPECT_THAT(opened(), HasSubstr("cuda_nvrtc/lib/libnvrtc.so.12"));
}

// Patch releases have one version, and NVRTC 12.8 has no build ID that a process sees.
TEST_F(Search, FilesWithoutABuildIdAreToldApart) {
  place("cuda_nvrtc/lib/libnvrtc.so.12", without_id_);
  const std::string before = identity();
  EXPECT_THAT(before, ::testing::ContainsRegex("^nvrtc 13\\.0 file [0-9]+\\.[0-9]+ "));
  EXPECT_EQ(identity(), before);
  const fs::path file = folder_ / "nvidia/cuda_nvrtc/lib/libnvrtc.so.12";
  fs::last_write_time(file, fs::last_write_time(file) + std::chrono::nanoseconds(1));
  EXPECT_NE(identity(), before);
}

TEST_F(Search, BuiltinsCount) {
  place("cu13/lib/libnvrtc.so.13", fake_);
  const std::string alone = identity();
  place("cu13/lib/libnvrtc-builtins.so.13.0", without_id_);
  EXPECT_THAT(identity(), HasSubstr(" builtins file "));
  EXPECT_NE(identity(), alone);
}

// pip's, laid out like the wheel rocm-sdk-core, and one beside a HIP runtime elsewhere.
class HipRtcSearch : public Search {
 protected:
  void SetUp() override {
    Search::SetUp();
    unsetenv(kHipRtcLibraryVariable);
    fs::create_directories(pips_);
    fs::create_directories(rocm_);
    fs::copy_file(std::getenv("FAKE_HIP"), rocm_ / "libamdhip64.so.7");
  }
  template <typename Body>
  std::string found(Body&& body) {
    return said(body, [&] { return open_compiler("gfx942", {"/nowhere", folder_})->describe(); });
  }
  std::string found() {
    return found([] {});
  }
  void place_hiprtc(const fs::path& path) {
    fs::copy_file(std::getenv("FAKE_HIPRTC"), path, fs::copy_options::overwrite_existing);
  }
  void load_hip() { dlopen((rocm_ / "libamdhip64.so.7").c_str(), RTLD_NOW | RTLD_LOCAL); }

  const fs::path pips_ = folder_ / "_rocm_sdk_core/lib";
  const fs::path rocm_ = folder_ / "rocm";
};

TEST_F(HipRtcSearch, TheNewestOfPips) {
  place_hiprtc(pips_ / "libhiprtc.so.6");
  EXPECT_THAT(found(), HasSubstr((pips_ / "libhiprtc.so.6").string()));
  std::ofstream(pips_ / "libhiprtc.so.7") << "half";  // is passed over
  EXPECT_THAT(found(), HasSubstr((pips_ / "libhiprtc.so.6").string()));
  place_hiprtc(pips_ / "libhiprtc.so.7");
  EXPECT_THAT(found(), HasSubstr((pips_ / "libhiprtc.so.7").string()));
  place_hiprtc(pips_ / "libhiprtc.so.8");
  EXPECT_THAT(found(), HasSubstr((pips_ / "libhiprtc.so.8").string()));
}

TEST_F(HipRtcSearch, TheOneBesideTheHipThatIsLoadedComesFirst) {
  place_hiprtc(pips_ / "libhiprtc.so.7");
  place_hiprtc(rocm_ / "libhiprtc.so.6");
  EXPECT_THAT(found([this] { load_hip(); }), HasSubstr((rocm_ / "libhiprtc.so.6").string()));
  EXPECT_THAT(found(), HasSubstr((pips_ / "libhiprtc.so.7").string()));
}

TEST_F(HipRtcSearch, WithoutOneItsWheelIsNamed) {
  const std::string answer = found();
  if (answer.find("hipRTC ") == 0) GTEST_SKIP() << "this machine has one: " << answer;
  EXPECT_THAT(answer, AllOf(StartsWith("no hipRTC on this machine"), HasSubstr("rocm-sdk-core"),
                            HasSubstr(kHipRtcLibraryVariable)));
}

// hipRTC has another library compile.
TEST_F(Search, ComgrCounts) {
  const fs::path library = folder_ / "libhiprtc.so.7";
  fs::copy_file(std::getenv("FAKE_HIPRTC"), library);
  setenv(kHipRtcLibraryVariable, library.c_str(), 1);
  const auto ask = [&] { return said([] {}, [] { return open_hiprtc({})->identity(); }); };
  const std::string alone = ask();
  fs::copy_file(without_id_, folder_ / "libamd_comgr.so.2");
  EXPECT_THAT(ask(), HasSubstr(" comgr file "));
  EXPECT_NE(ask(), alone);
  fs::copy_file(fake_, folder_ / "libamd_comgr.so.3");
  EXPECT_THAT(ask(), ::testing::ContainsRegex(" comgr [0-9a-f]{40}"));
}

TEST_F(Search, NoneAtAll) {
  const fs::path broken = folder_ / "broken.so";
  std::ofstream(broken) << "half";
  const LibrarySearch search = {"NoSuchRtc",
                                "NO_SUCH_RTC_LIBRARY",
                                {"libno-such-rtc.so.1"},
                                {"/nowhere/x.so", broken},
                                "install it"};
  try {
    SharedLibrary::open(search);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::kDriver);
    EXPECT_THAT(error.what(),
                AllOf(StartsWith("no NoSuchRtc on this machine"), HasSubstr("libno-such-rtc.so.1"),
                      HasSubstr(broken.string()), Not(HasSubstr("/nowhere")),
                      HasSubstr("install it"), HasSubstr("NO_SUCH_RTC_LIBRARY")));
  }
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
