// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The provider of hipRTC's objects, with a compiler of the test in its place.
// //tests/emulation/wheel:hiprtc_test has the real one.
#include "aiter/runtime/kit/hiprtc_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "aiter/runtime/error.h"
#include "aiter/runtime/interrupt.h"
#include "aiter/runtime/store/cache.h"
#include "tests/support/runtime/error_of.h"
#include "tests/support/runtime/kernel_sources.h"
#include "tests/support/runtime/tiny_elf.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using ::testing::AllOf;
using testing::bytes;
using testing::digest;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::read;
using ::testing::StartsWith;

namespace fs = std::filesystem;

constexpr char kVersion[] = "1.2.3";

// All that a compile was asked.
struct Asked {
  std::string name, source, target;
  std::vector<std::string> flags;
  std::map<std::string, std::string> files;  // of the folders in its flags
};

class TestCompiler : public Compiler {
 public:
  std::string describe() const override { return "hipRTC 6.4"; }
  std::string identity() const override { return "hiprtc 6.4 abc"; }
  std::string target(const std::string& arch) const override { return arch; }
  Bytes compile(const SourceFile& source, const std::vector<SourceFile>& headers,
                const std::vector<std::string>& flags, const std::string& target) const override {
    EXPECT_TRUE(headers.empty());
    Asked asked = {source.name, source.text, target, flags, {}};
    for (std::string flag : flags) {
      if (flag.substr(0, 2) == "-I") flag = flag.substr(2);
      if (flag[0] != '/') continue;
      for (const auto& entry : fs::recursive_directory_iterator(flag)) {
        if (entry.is_regular_file()) {
          asked.files[fs::relative(entry, flag)] = read(entry.path());
        }
      }
    }
    compiles.push_back(std::move(asked));
    return make();
  }

  mutable std::vector<Asked> compiles;
  std::function<Bytes()> make;
};

class HipRtcKernelsTest : public ::testing::Test {
 protected:
  HipRtcKernelsTest() : compilers_([this](const std::string& arch) { return open(arch); }) {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "cache");
    testing::write_kernel_sources(sources_, {source_, tree_, system_, "b", "cmath", "pre"},
                                  kVersion);
    make_ = [this] { return elf_; };
  }
  ~HipRtcKernelsTest() override {
    if (fs::exists(work_)) {
      EXPECT_TRUE(fs::is_empty(work_));
    }
  }

  std::unique_ptr<Compiler> open(const std::string& arch) {
    ++opened_;
    EXPECT_EQ(arch, "gfx942");
    if (!missing_.empty()) fail(Status::kDriver, missing_);
    auto made = std::make_unique<TestCompiler>();
    made->make = [this] { return make_(); };
    compiler_ = made.get();
    return made;
  }
  HipRtcOptions options() const {
    HipRtcOptions options;
    options.version = kVersion;
    options.sources = sources_;
    options.tree = hex(digest(system_));
    options.folders = {"usr/include/c++", "usr/include"};
    options.work_place = work_;
    return options;
  }
  std::unique_ptr<Provider> provider(const HipRtcOptions& options) {
    return open_hiprtc_kernels(compilers_, options);
  }
  std::unique_ptr<Provider> provider() { return provider(options()); }
  // The build's object, which is nowhere.
  CodeObjectRef ref() const {
    CodeObjectRef ref = {spec_.key(), digest("the build's"), [spec = spec_] { return spec; }};
    ref.name = [] { return std::string("fmha"); };
    return ref;
  }
  Bytes get(Provider& provider) const { return provider.get(provider.own(ref()).value()).value(); }
  Error error() {
    return error_of([this] { get(*provider()); });
  }

  const fs::path folder_ = fs::path(::testing::TempDir()) / "hiprtc_kernels_test";
  const fs::path work_ = folder_ / "cache/compiling",
                 sources_ = folder_ / "kernel_sources.attnpack";
  const std::string source_ = "a kernel's source";
  const std::string tree_ = testing::header_listing({{"include/a/b.hpp", "b"}});
  const std::string system_ =
      testing::header_listing({{"hiprtc_prelude.h", "pre"}, {"usr/include/c++/cmath", "cmath"}});
  const Bytes elf_ = testing::tiny_code_object("kernel", "hiprtc");
  CodeObjectSpec spec_ = {"gfx942",
                          {"--sysroot=external/sysroot", "-x", "hip", "-std=c++17", "-O3", "-fPIC",
                           "--cuda-device-only", "--no-gpu-bundle-output",
                           "-Iexternal/headers/include", "-DA=1", "-mllvm", "-some-option=0"},
                          hex(digest(tree_)),
                          hex(digest(source_)),
                          std::string(64, 'a'),
                          "a group"};
  std::function<Bytes()> make_;
  std::string missing_;
  int opened_ = 0;
  const TestCompiler* compiler_ = nullptr;
  Compilers compilers_;
};

TEST_F(HipRtcKernelsTest, GivesItAllThatItLacks) {
  const auto provider = this->provider();
  EXPECT_EQ(opened_, 0) << "before it is asked for anything";
  const CodeObjectRef own = provider->own(ref()).value();
  EXPECT_EQ(own.spec().toolchain, "hiprtc 6.4 abc headers " + hex(digest(system_)));
  EXPECT_EQ(own.spec().group, "");
  EXPECT_EQ(own.key, own.spec().key());
  EXPECT_EQ(provider->look(own).text, "by hipRTC 6.4 compiles it at its first use");
  EXPECT_EQ(get(*provider), elf_);
  EXPECT_EQ(opened_, 1);
  ASSERT_EQ(compiler_->compiles.size(), 1u);
  const Asked& asked = compiler_->compiles[0];
  EXPECT_EQ(asked.target, "gfx942");
  EXPECT_EQ(asked.source, "#include \"hiprtc_prelude.h\"\n#line 1\n" + source_);
  EXPECT_EQ(asked.files.at("a/b.hpp"), "b");
  EXPECT_EQ(asked.files.at("hiprtc_prelude.h"), "pre");
  EXPECT_EQ(asked.files.at("cmath"), "cmath");
  std::vector<std::string> flags = asked.flags;
  const std::string work = flags[0].substr(18, flags[0].size() - 20);
  EXPECT_THAT(work, StartsWith(work_.string() + "/compile."));
  for (std::string& flag : flags) {
    if (const size_t at = flag.find(work); at != flag.npos) flag.replace(at, work.size(), "WORK");
  }
  EXPECT_THAT(flags,
              ElementsAre("-ffile-prefix-map=WORK=.", "-Dstd=hiprtc_std", "-Ddim3=hiprtc_dim3",
                          "-Dint64_t=hiprtc_int64_t", "-Duint64_t=hiprtc_uint64_t", "-std=c++17",
                          "-O3", "-IWORK/headers/include", "-DA=1", "-IWORK/hiprtc", "-isystem",
                          "WORK/hiprtc/usr/include/c++", "-isystem", "WORK/hiprtc/usr/include"));
}

TEST_F(HipRtcKernelsTest, HasNothingOfOtherKeys) {
  const auto provider = this->provider();
  EXPECT_FALSE(provider->get(ref()));
  const CodeObjectRef own = provider->own(ref()).value();
  EXPECT_FALSE(provider->get(ref()));
  EXPECT_FALSE(provider->look(ref()).has);
  CodeObjectRef proven = own;
  proven.sha256 = digest("foreign");
  EXPECT_FALSE(provider->get(proven));
  EXPECT_FALSE(provider->own({digest("foreign"), {}}));
  const SourceFile source = {"norm.cu", ""};
  CodeObjectRef norm = ref();
  norm.source = &source;
  EXPECT_FALSE(provider->own(norm));
  // Other headers of C++ make another object.
  HipRtcOptions others = options();
  others.tree = hex(digest(tree_));
  const auto other = this->provider(others);
  EXPECT_NE(other->own(ref())->key, own.key);
  EXPECT_FALSE(other->get(own));
}

TEST_F(HipRtcKernelsTest, ThatIsMissingIsSaidAndLookedForAgain) {
  missing_ = "hipRTC was not found; install ROCm's libhiprtc";
  std::vector<std::unique_ptr<Provider>> list;
  HipRtcOptions options = this->options();
  options.missing_life = std::chrono::milliseconds(0);
  list.push_back(provider(options));
  const Store store(std::move(list));
  EXPECT_THAT(error_of([&] { store.serve(ref()); }).what(),
              HasSubstr("hipRTC: does not have it), nor its compile by hipRTC: " + missing_));
  const std::vector<Store::Told> told = store.look(ref());
  EXPECT_EQ(told.back().answer.text, "its compile by hipRTC: " + missing_);
  EXPECT_TRUE(told.back().is_of_other);
  EXPECT_TRUE(store.own(ref()).empty());
  missing_ = "";
  EXPECT_EQ(store.serve(ref()), elf_);
}

TEST_F(HipRtcKernelsTest, ThatIsMissingIsNotLookedForForEachKernel) {
  missing_ = "hipRTC was not found";
  HipRtcOptions options = this->options();
  options.missing_life = std::chrono::hours(1);
  const auto provider = this->provider(options);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(error_of([&] { provider->own(ref()); }).what(), missing_);
  }
  EXPECT_EQ(opened_, 1);
}

TEST_F(HipRtcKernelsTest, ThatFailsTellsAllThatHelps) {
  make_ = []() -> Bytes { throw CompileError("hipRTC 6.4 does not compile", "error: this"); };
  EXPECT_EQ(error().status(), Status::kInternal);
  EXPECT_THAT(error().what(), HasSubstr(": hipRTC 6.4 does not compile"));
  make_ = [] { return bytes("text"); };
  EXPECT_THAT(error().what(), AllOf(HasSubstr("the output of hipRTC 6.4 is no ELF file for AMD"),
                                    HasSubstr(kHipRtcLibraryVariable)));
  HipRtcOptions options = this->options();
  options.version = "1.2.4";
  EXPECT_THAT(error_of([&] { provider(options)->get(ref()); }).what(),
              HasSubstr("was made with aiter-attn 1.2.3, but this is 1.2.4"));
  spec_.source = std::string(64, 'c');
  EXPECT_THAT(error().what(), HasSubstr("has not the kernel's source, ccc"));
}

TEST_F(HipRtcKernelsTest, HeedsAnInterruptBeforeAndBehind) {
  const auto provider = this->provider();
  bool is_interrupted = true;
  thread_interrupt() = {[](void* context) { return int{*static_cast<bool*>(context)}; },
                        &is_interrupted};
  EXPECT_EQ(error_of([&] { get(*provider); }).status(), Status::kInterrupted);
  EXPECT_TRUE(compiler_->compiles.empty());
  is_interrupted = false;
  make_ = [&] {
    is_interrupted = true;
    return elf_;
  };
  EXPECT_EQ(error_of([&] { get(*provider); }).status(), Status::kInterrupted);
  thread_interrupt() = {};
}

TEST_F(HipRtcKernelsTest, SaysThatItTakesLong) {
  ::testing::internal::CaptureStderr();
  get(*provider());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  // Until the line is there.
  std::string said;
  make_ = [&] {
    while (said.empty()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      said = ::testing::internal::GetCapturedStderr();
      ::testing::internal::CaptureStderr();
    }
    return elf_;
  };
  ::testing::internal::CaptureStderr();
  get(*provider());
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(said, "aiter-attn: compiling fmha for gfx942\n");
}

// As the library has it: before it the user's cache, which serves where it must not compile.
TEST_F(HipRtcKernelsTest, ServesByTheCacheAtLast) {
  const auto store = [&](const std::string& forbidden) {
    CacheOptions cache;
    cache.folder = folder_ / "cache/code-objects";
    HipRtcOptions options = this->options();
    options.forbidden = forbidden;
    std::vector<std::unique_ptr<Provider>> providers;
    providers.push_back(std::make_unique<CacheProvider>(cache, nullptr));
    auto compiler = provider(options);
    if (forbidden.empty()) {
      compiler = std::make_unique<CacheProvider>(cache, std::move(compiler));
    }
    providers.push_back(std::move(compiler));
    return Store(std::move(providers));
  };
  EXPECT_THAT(error_of([&] { store("must not compile").serve(ref()); }).what(),
              AllOf(HasSubstr("hipRTC: must not compile)"), Not(HasSubstr("nor its plain"))));
  EXPECT_EQ(store("").serve(ref()), elf_);
  EXPECT_EQ(store("").serve(ref()), elf_);
  EXPECT_EQ(store("must not compile").serve(ref()), elf_);
  EXPECT_EQ(compiler_->compiles.size(), 1u);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
