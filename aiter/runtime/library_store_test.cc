// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The list of providers by the environment. A process makes it once, so each test is a child of its
// own.
#include "aiter/runtime/library_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "aiter/runtime/error.h"
#include "tests/support/runtime/error_of.h"
#include "tests/support/runtime/forked_child.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::in_forked_child;
using ::testing::Not;

namespace fs = std::filesystem;

// A kernel of attention, which is nowhere.
CodeObjectRef missing() {
  const CodeObjectSpec spec = {"gfx942", {}, "headers", "source", "toolchain", ""};
  return {spec.key(), Digest{}, [spec] { return spec; }};
}

class LibraryStore : public ::testing::Test {
 protected:
  LibraryStore() {
    fs::remove_all(folder_);
    setenv("AITER_ATTN_CACHE_DIR", folder_.c_str(), 1);
    for (const char* name :
         {"AITER_ATTN_AMDCLANG", "AITER_ATTN_COMPILE_KIT", "AITER_ATTN_COMPILE_SECONDS",
          "AITER_ATTN_KERNEL_SOURCES", "AITER_ATTN_MACHINE_CACHE", "AITER_ATTN_ON_DEMAND",
          "AITER_ATTN_PACK_PATH", "AITER_ATTN_RTC", "AITER_ATTN_STORE", "AITER_ATTN_STORE_SECONDS",
          "AITER_ATTN_TRUST", "CK_JIT_CACHE_DIR", "NVTE_CK_JIT", "NVTE_DISABLE_NVRTC",
          "ROCM_PATH"}) {
      unsetenv(name);
    }
  }
  // Runs the checks on the error of a process that asks for it.
  template <typename Checks>
  static void told(const CodeObjectRef& ref, Checks&& checks) {
    EXPECT_EQ(in_forked_child([&] {
                checks(error_of([&] { library_store().get(ref); }));
                return ::testing::Test::HasFailure() ? 1 : 0;
              }),
              0);
  }
  static void tells(const std::string& text) {
    told(missing(), [&](const Error& error) {
      EXPECT_EQ(error.status(), Status::kUnsupported);
      EXPECT_THAT(error.what(), HasSubstr(text));
    });
  }
  static void refuses(const std::string& text) {
    told(missing(), [&](const Error& error) {
      EXPECT_EQ(error.status(), Status::kInvalidArgument);
      EXPECT_THAT(error.what(), HasSubstr(text));
    });
  }

  const fs::path folder_ = fs::path(::testing::TempDir()) / "library_store";
};

TEST_F(LibraryStore, AsksNoKitWhereNoneIs) {
  told(missing(), [](const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("then the run-time compiler: does not have it)"));
    EXPECT_THAT(error.what(), Not(HasSubstr("kit")));
  });
}

TEST_F(LibraryStore, AsksRocmsClangWhereItIsNamedOrHasSources) {
  setenv("AITER_ATTN_AMDCLANG", "/bin/sh", 1);
  tells("; amdclang '/bin/sh': has not the kernels' sources: install the slim wheel");
  setenv("AITER_ATTN_KERNEL_SOURCES", "/nowhere/sources", 1);
  tells("No such file or directory");
  setenv("AITER_ATTN_AMDCLANG", "/nowhere/clang", 1);
  tells("; amdclang '/nowhere/clang': AITER_ATTN_AMDCLANG is '/nowhere/clang', which cannot be");
  unsetenv("AITER_ATTN_AMDCLANG");
  setenv("ROCM_PATH", "/nowhere", 1);
  tells("; amdclang '/nowhere': ROCM_PATH is '/nowhere', which has no bin/amdclang++");
  unsetenv("AITER_ATTN_KERNEL_SOURCES");
  told(missing(),
       [](const Error& error) { EXPECT_THAT(error.what(), Not(HasSubstr("amdclang"))); });
}

TEST_F(LibraryStore, RefusesRelativePathsOfRocmsClang) {
  setenv("AITER_ATTN_AMDCLANG", "clang", 1);
  refuses("AITER_ATTN_AMDCLANG is 'clang', but must be an absolute path");
  unsetenv("AITER_ATTN_AMDCLANG");
  setenv("AITER_ATTN_KERNEL_SOURCES", "sources", 1);
  refuses("AITER_ATTN_KERNEL_SOURCES is 'sources', but must be an absolute path");
}

TEST_F(LibraryStore, AsksTheNamedKitLast) {
  setenv("AITER_ATTN_COMPILE_KIT", "/nowhere", 1);
  for (const char* rtc : {"", "0", "1"}) {
    setenv("AITER_ATTN_RTC", rtc, 1);
    tells(
        "; the compile kit '/nowhere': has no '/nowhere/kit': No such file or directory; "
        "install aiter-attn-compile-kit==0.1.0 again, or name a kit's folder in "
        "AITER_ATTN_COMPILE_KIT)");
  }
}

TEST_F(LibraryStore, AsksAKitForNoKernelThatHasItsSourceHere) {
  setenv("AITER_ATTN_COMPILE_KIT", "/nowhere", 1);
  setenv("AITER_ATTN_RTC", "0", 1);
  const SourceFile source = {"norm.h", ""};
  CodeObjectRef norm = missing();
  norm.source = &source;
  told(norm, [](const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("; the compile kit '/nowhere': does not have it)"));
  });
}

TEST_F(LibraryStore, OnDemandForbids) {
  setenv("AITER_ATTN_COMPILE_KIT", "/nowhere", 1);
  for (const std::string value : {"cache", "off"}) {
    setenv("AITER_ATTN_ON_DEMAND", value.c_str(), 1);
    tells("; the compile kit '/nowhere': must not compile, as AITER_ATTN_ON_DEMAND is '" + value +
          "': unset it)");
  }
  tells(
      "/code-objects', then the run-time compiler: must not be asked, as AITER_ATTN_ON_DEMAND "
      "is 'off': unset it;");
  setenv("AITER_ATTN_ON_DEMAND", "compile", 1);
  tells("has no '/nowhere/kit'");
}

TEST_F(LibraryStore, TakesTransformerEnginesWordWhereItsOwnIsNotSet) {
  setenv("AITER_ATTN_COMPILE_KIT", "/nowhere", 1);
  setenv("NVTE_CK_JIT", "1", 1);
  tells("has no '/nowhere/kit'");
  setenv("NVTE_CK_JIT", "0", 1);
  tells("; the compile kit '/nowhere': must not compile, as NVTE_CK_JIT is '0': unset it)");
  setenv("AITER_ATTN_ON_DEMAND", "compile", 1);
  tells("has no '/nowhere/kit'");
}

TEST_F(LibraryStore, AsksTheNamedServerBeforeTheCompilers) {
  setenv("AITER_ATTN_STORE", "http://127.0.0.1:9/store/", 1);
  setenv("AITER_ATTN_CURL_LIBRARY", "/nowhere/libcurl.so.4", 1);
  setenv("AITER_ATTN_COMPILE_KIT", "/nowhere", 1);
  told(missing(), [](const Error& error) {
    const std::string text = error.what();
    const size_t server = text.find("cannot be had from http://127.0.0.1:9/store/cas/");
    EXPECT_NE(server, text.npos) << text;
    EXPECT_LT(server, text.find("then the run-time compiler"));
    EXPECT_LT(server, text.find("the compile kit"));
  });
  for (const std::string value : {"cache", "off"}) {
    setenv("AITER_ATTN_ON_DEMAND", value.c_str(), 1);
    tells("the store 'http://127.0.0.1:9/store': must not be asked, as AITER_ATTN_ON_DEMAND is '" +
          value + "': unset it");
  }
}

TEST_F(LibraryStore, AsksTheCacheOfTheMachineBeforeTheUsers) {
  setenv("AITER_ATTN_MACHINE_CACHE", "/nowhere", 1);
  for (const char* rtc : {"", "0", "1"}) {
    setenv("AITER_ATTN_RTC", rtc, 1);
    tells("the machine's cache '/nowhere': does not have it; the cache '");
  }
  unsetenv("AITER_ATTN_RTC");
  setenv("AITER_ATTN_ON_DEMAND", "cache", 1);
  tells("the machine's cache '/nowhere': does not have it; ");
  setenv("AITER_ATTN_ON_DEMAND", "off", 1);
  tells("the machine's cache '/nowhere': must not be asked, as AITER_ATTN_ON_DEMAND is 'off'");
}

TEST_F(LibraryStore, RefusesWrongValues) {
  setenv("AITER_ATTN_MACHINE_CACHE", "cache", 1);
  refuses("AITER_ATTN_MACHINE_CACHE is 'cache', but must be an absolute path");
  unsetenv("AITER_ATTN_MACHINE_CACHE");
  setenv("AITER_ATTN_STORE", "file:///store", 1);
  refuses("AITER_ATTN_STORE is 'file:///store', but must be the URL");
  unsetenv("AITER_ATTN_STORE");
  setenv("AITER_ATTN_ON_DEMAND", "no", 1);
  refuses("AITER_ATTN_ON_DEMAND is 'no'; it may be compile (kernels");
  unsetenv("AITER_ATTN_ON_DEMAND");
  setenv("AITER_ATTN_TRUST", "minisign.pub", 1);
  refuses("AITER_ATTN_TRUST has 'minisign.pub', but must have absolute paths");
  unsetenv("AITER_ATTN_TRUST");
  setenv("NVTE_CK_JIT", "yes", 1);
  refuses("NVTE_CK_JIT is 'yes'; it may be 1 (AITER_ATTN_ON_DEMAND=compile), 0 (");
  unsetenv("NVTE_CK_JIT");
  setenv("AITER_ATTN_COMPILE_KIT", "kit", 1);
  refuses("AITER_ATTN_COMPILE_KIT is 'kit', but must be an absolute path");
  setenv("AITER_ATTN_COMPILE_KIT", "/nowhere", 1);
  setenv("AITER_ATTN_COMPILE_SECONDS", "0", 1);
  refuses("AITER_ATTN_COMPILE_SECONDS is '0', but must be a whole number of seconds from 1 to");
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
