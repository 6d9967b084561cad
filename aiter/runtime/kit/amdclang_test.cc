// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The provider of ROCm's clang, with scripts in a tree that is laid out as a ROCm.
// tests/compile_kit has a real compiler there.
#include "aiter/runtime/kit/amdclang.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "aiter/runtime/error.h"
#include "aiter/runtime/kit/kernel_sources.h"
#include "aiter/runtime/store/cache.h"
#include "tests/support/runtime/error_of.h"
#include "tests/support/runtime/kernel_sources.h"
#include "tests/support/runtime/tiny_elf.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using ::testing::AllOf;
using testing::bytes;
using testing::digest;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::read;
using ::testing::StartsWith;
using testing::write;

namespace fs = std::filesystem;

constexpr char kVersion[] = "1.2.3";

class AmdClangTest : public ::testing::Test {
 protected:
  AmdClangTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "cache");
    unsetenv(kAmdClangVariable);
    unsetenv(kRocmPathVariable);
    unsetenv(kKernelSourcesVariable);
    write(folder_ / "output", elf_);
    compiler("");
    write(rocm_ / "amdgcn/bitcode/ocml.bc", bytes("BC"));
    const std::string tree =
        testing::header_listing({{"include/a/b.hpp", "b"}, {"top.hpp", "top"}});
    testing::write_kernel_sources(sources_, {source_, tree, "b", "top"}, kVersion);
    spec_ = {"gfx942", build_flags(), hex(digest(tree)), hex(digest(source_)), std::string(64, 'a'),
             ""};
  }
  ~AmdClangTest() override {
    if (fs::exists(work_)) {
      EXPECT_TRUE(fs::is_empty(work_));
    }
  }

  static std::vector<std::string> build_flags() {
    return {"--sysroot=external/sysroot",
            "-D__AMDGCN_WAVEFRONT_SIZE=64",
            "-x",
            "hip",
            "-O3",
            "-Iexternal/headers/include",
            "-Iexternal/headers",
            "-I.",
            "-ffile-prefix-map=external/rocm=external/rocm",
            "-DA=1",
            "-mllvm",
            "-some-option=0",
            "-U__AMDGCN_WAVEFRONT_SIZE"};
  }
  // The compiler: its lines, and then a copy of a code object.
  void compiler(const std::string& lines, const std::string& place = "bin/amdclang++") const {
    const fs::path path = rocm_ / place;
    write(path, bytes("#!/bin/sh\nargs=\"$*\"\nwhile [ \"$1\" != -c ]; do shift; done\n"
                      "source=$2; object=$4\n" +
                      lines + "\ncat " + (folder_ / "output").string() + " > \"$object\"\n"));
    fs::permissions(path, fs::perms::owner_all);
  }
  AmdClangOptions options() const {
    AmdClangOptions options;
    options.version = kVersion;
    options.sources = sources_;
    options.work_place = work_;
    options.limit = std::chrono::seconds(60);
    return options;
  }
  AmdClang clang() const { return find_amdclang(rocm_); }
  std::unique_ptr<Provider> open() const { return open_amdclang(clang(), options()); }
  // The build's object, which is nowhere.
  CodeObjectRef ref() const {
    CodeObjectRef ref = {spec_.key(), digest("the build's"), [spec = spec_] { return spec; }};
    ref.name = [] { return std::string("fmha"); };
    return ref;
  }
  Bytes get(Provider& provider) const { return provider.get(provider.own(ref()).value()).value(); }
  Error error() const {
    return error_of([this] { get(*open()); });
  }

  const fs::path folder_ = fs::path(::testing::TempDir()) / "amdclang_test";
  const fs::path rocm_ = folder_ / "rocm", work_ = folder_ / "cache/compiling",
                 sources_ = folder_ / "kernel_sources.attnpack";
  const std::string source_ = "a kernel's source";
  const Bytes elf_ = testing::tiny_code_object("kernel", "amdclang");
  CodeObjectSpec spec_;
};

TEST_F(AmdClangTest, CompilesInAFolderOfItsOwnWithoutAShell) {
  const std::string said = folder_ / "said";
  compiler("printf '%s\\n' \"$args\" > " + said + "; env >> " + said + "; cat \"$source\" >> " +
           said + "; cd \"${object%/*}\"; find headers -type f | sort >> " + said);
  const std::unique_ptr<Provider> provider = open();
  EXPECT_EQ(provider->look(*provider->own(ref())).text, "compiles it at its first use");
  EXPECT_FALSE(fs::exists(said));
  EXPECT_EQ(get(*provider), elf_);
  const std::string told = read(said);
  EXPECT_THAT(told, StartsWith("--rocm-path=" + rocm_.string() +
                               " -ffile-prefix-map=" + work_.string() + "/compile."));
  EXPECT_THAT(told, HasSubstr("=. -fuse-cuid=none -x hip -O3 -I" + work_.string()));
  EXPECT_THAT(told, HasSubstr("/headers/include -I"));
  EXPECT_THAT(told, HasSubstr("/headers/. -DA=1 --offload-arch=gfx942 -c "));
  EXPECT_THAT(told, HasSubstr("LC_ALL=C\n"));
  EXPECT_THAT(told, Not(HasSubstr("ROCM_PATH")));
  EXPECT_THAT(told, HasSubstr(source_ + "headers/include/a/b.hpp\nheaders/top.hpp\n"));
}

TEST_F(AmdClangTest, HasNothingOfOtherKeys) {
  const std::unique_ptr<Provider> provider = open();
  EXPECT_FALSE(provider->get(ref()));
  EXPECT_FALSE(provider->look(ref()).has);
  CodeObjectRef plain = ref();
  plain.sha256.reset();
  EXPECT_FALSE(provider->get(plain));
  EXPECT_FALSE(provider->own({digest("foreign"), {}}));
  const SourceFile source = {"norm.cu", ""};
  CodeObjectRef norm = ref();
  norm.source = &source;
  EXPECT_FALSE(provider->own(norm));
}

TEST_F(AmdClangTest, IsFoundWhereRocmHasIt) {
  EXPECT_EQ(clang().program, rocm_ / "bin/amdclang++");
  for (const char* place : {"lib/llvm/bin/amdclang++", "llvm/bin/clang++"}) {
    fs::remove_all(rocm_);
    compiler("", place);
    EXPECT_EQ(clang().program, rocm_ / place);
    EXPECT_EQ(clang().rocm, rocm_);
    // By its own variable, whose ROCm is that which it lies in, behind links as well.
    fs::create_directories(folder_ / "links");
    fs::remove(folder_ / "links/clang");
    fs::create_symlink(rocm_ / place, folder_ / "links/clang");
    setenv(kAmdClangVariable, (folder_ / "links/clang").c_str(), 1);
    EXPECT_EQ(find_amdclang("/nowhere").rocm, fs::canonical(rocm_));
    setenv(kRocmPathVariable, "/other", 1);
    EXPECT_EQ(find_amdclang("/nowhere").rocm, "/other");
    unsetenv(kAmdClangVariable);
    setenv(kRocmPathVariable, rocm_.c_str(), 1);
    EXPECT_EQ(find_amdclang("/nowhere").program, rocm_ / place);
    unsetenv(kRocmPathVariable);
  }
  EXPECT_EQ(find_amdclang("/nowhere").program, "");
}

TEST_F(AmdClangTest, ThatIsNotThereSaysSo) {
  setenv(kRocmPathVariable, "/nowhere", 1);
  Error error = error_of([] { find_amdclang(); });
  EXPECT_EQ(error.status(), Status::kUnsupported);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("ROCM_PATH is '/nowhere', which has no bin/amdclang++"),
                                  HasSubstr("rocm-llvm"), HasSubstr("AITER_ATTN_AMDCLANG")));
  setenv(kAmdClangVariable, "/nowhere/clang", 1);
  error = error_of([] { find_amdclang(); });
  EXPECT_EQ(error.status(), Status::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("which cannot be run: No such file"));
  for (const char* name : {kAmdClangVariable, kRocmPathVariable}) {
    unsetenv(kAmdClangVariable);
    setenv(name, "rocm", 1);
    error = error_of([] { find_amdclang(); });
    EXPECT_EQ(error.status(), Status::kInvalidArgument);
    EXPECT_THAT(error.what(),
                StartsWith(std::string(name) + " is 'rocm', but must be an absolute"));
  }
  setenv(kKernelSourcesVariable, "sources", 1);
  error = error_of([] { find_kernel_sources({}); });
  EXPECT_EQ(error.status(), Status::kInvalidArgument);
}

TEST_F(AmdClangTest, IsAnotherOneWhereAnyOfItsFilesIs) {
  const std::string first = identity(clang());
  EXPECT_EQ(first.size(), 9u + 64u);
  EXPECT_EQ(identity(clang()), first);
  std::set<std::string> seen = {first};
  for (const char* file : {"amdgcn/bitcode/ockl.bc", "bin/clang-22", "lib/libLLVM.so.22",
                           "bin/clang++.cfg", "include/hip/hip_version.h", ".info/version"}) {
    write(rocm_ / file, bytes("1"));
    EXPECT_TRUE(seen.insert(identity(clang())).second) << file;
  }
  compiler("# a newer one");
  EXPECT_TRUE(seen.insert(identity(clang())).second);
  write(rocm_ / "share/doc/README", bytes("1"));
  EXPECT_FALSE(seen.insert(identity(clang())).second);
}

TEST_F(AmdClangTest, WithoutItsSourcesSaysWhich) {
  AmdClangOptions options = this->options();
  options.sources = "";
  const auto told = [&] {
    return std::string(error_of([&] { open_amdclang(clang(), options)->get(ref()); }).what());
  };
  EXPECT_THAT(told(),
              AllOf(HasSubstr("install the slim wheel"), HasSubstr("AITER_ATTN_KERNEL_SOURCES")));
  options.sources = "/nowhere";
  EXPECT_THAT(told(), HasSubstr("No such file"));
  options = this->options();
  options.version = "1.2.4";
  EXPECT_THAT(told(), HasSubstr("was made with aiter-attn 1.2.3, but this is 1.2.4"));
  spec_.headers = std::string(64, 'c');
  EXPECT_THAT(error().what(), AllOf(HasSubstr("has not the kernel's headers, ccc"),
                                    HasSubstr("install the wheel of this library's build again")));
  spec_.source = std::string(64, 'c');
  EXPECT_THAT(error().what(), HasSubstr("has not the kernel's source, ccc"));
  const std::unique_ptr<Provider> provider = open();
  EXPECT_THAT(error_of([&] { provider->look(*provider->own(ref())); }).what(),
              HasSubstr("has not the kernel's source"));
}

TEST_F(AmdClangTest, WritesNoHeaderOutsideOfItsFolder) {
  for (const std::string& name : {"../outside.hpp", "/outside.hpp", "a/../../b.hpp", ""}) {
    const std::string tree = testing::header_listing({{name, "b"}});
    testing::write_kernel_sources(sources_, {source_, tree, "b"}, kVersion);
    spec_.headers = hex(digest(tree));
    EXPECT_EQ(error().status(), Status::kCorrupt) << name;
    EXPECT_THAT(error().what(), HasSubstr("which is no path below a folder"));
  }
}

TEST_F(AmdClangTest, ThatFailsTellsAllThatHelps) {
  compiler("echo 'kernel.cpp:1:1: error: this and that'; exit 3");
  Error failed = error();
  EXPECT_EQ(failed.status(), Status::kInternal);
  EXPECT_THAT(failed.what(), AllOf(HasSubstr("its compiler's exit status is 3; " + rocm_.string() +
                                             "/bin/amdclang++ --rocm-path="),
                                   HasSubstr("\nkernel.cpp:1:1: error: this and that\n")));
  compiler("echo text > \"$object\"; exit 0");
  EXPECT_THAT(error().what(), AllOf(HasSubstr("its compiler's output is no ELF file for AMD GPUs"),
                                    HasSubstr("install ROCm's compiler again")));
  compiler("kill -SEGV $$");
  EXPECT_THAT(error().what(), HasSubstr("its compiler was ended by signal 11"));
  compiler("exit 0");
  EXPECT_THAT(error().what(), HasSubstr("its compiler wrote no object"));
  compiler("head -c 20000000 /dev/zero | tr '\\0' y; exit 1");
  EXPECT_LT(std::string(error().what()).size(), 4000u);
}

TEST_F(AmdClangTest, IsStoppedAtItsLimits) {
  compiler("sleep 1000");
  AmdClangOptions options = this->options();
  options.limit = std::chrono::seconds(1);
  const auto provider = open_amdclang(clang(), options);
  EXPECT_THAT(error_of([&] { get(*provider); }).what(), HasSubstr("it was stopped after 1 s"));
  // Its memory, and its time on the processor.
  const std::string said = folder_ / "said";
  compiler("ulimit -v > " + said + "; ulimit -t >> " + said + "; ulimit -c >> " + said);
  EXPECT_EQ(get(*open()), elf_);
  EXPECT_EQ(read(said), std::to_string((uint64_t{8} << 30) / 1024) + "\n60\n0\n");
}

TEST_F(AmdClangTest, HasNoFilesOfThisProcess) {
  const int held = ::open("/dev/null", O_RDONLY);  // without O_CLOEXEC
  ASSERT_GT(held, 2);
  const std::string said = folder_ / "said";
  compiler("test -e /proc/self/fd/" + std::to_string(held) + " && echo open > " + said);
  EXPECT_EQ(get(*open()), elf_);
  EXPECT_FALSE(fs::exists(said));
  ::close(held);
}

// As the library has it: before it the user's cache, which serves where it must not compile.
TEST_F(AmdClangTest, ServesByTheCacheAtLast) {
  const auto store = [&](const std::string& forbidden) {
    CacheOptions cache;
    cache.folder = folder_ / "cache/code-objects";
    AmdClangOptions options = this->options();
    options.forbidden = forbidden;
    std::vector<std::unique_ptr<Provider>> providers;
    providers.push_back(std::make_unique<CacheProvider>(cache, nullptr));
    auto compiler = open_amdclang(clang(), options);
    if (forbidden.empty()) {
      compiler = std::make_unique<CacheProvider>(cache, std::move(compiler));
    }
    providers.push_back(std::move(compiler));
    return Store(std::move(providers));
  };
  EXPECT_THAT(error_of([&] { store("must not compile").serve(ref()); }).what(),
              HasSubstr("bin/amdclang++': must not compile)"));
  compiler("printf x >> " + (folder_ / "compiles").string());
  EXPECT_EQ(store("").serve(ref()), elf_);
  EXPECT_EQ(store("").serve(ref()), elf_);
  EXPECT_EQ(store("must not compile").serve(ref()), elf_);
  EXPECT_EQ(read(folder_ / "compiles"), "x");
  // The key of the build's object has no bytes.
  EXPECT_EQ(error_of([&] { store("").get(ref()); }).status(), Status::kUnsupported);
  // Another compiler has another key.
  compiler("printf y >> " + (folder_ / "compiles").string());
  EXPECT_EQ(store("").serve(ref()), elf_);
  EXPECT_EQ(read(folder_ / "compiles"), "xy");
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
