// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/source_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <optional>

#include "aiter/runtime/rtc/compiling.h"
#include "aiter/runtime/store/cache.h"
#include "aiter/runtime/store/pack.h"
#include "tests/support/runtime/error_of.h"
#include "tests/support/runtime/pack.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::Not;

// A compiler whose output is a text that names its input.
class TextCompiler : public Compiler {
 public:
  explicit TextCompiler(std::atomic<int>& compiled) : compiled_(compiled) {}
  std::string describe() const override { return "text"; }
  std::string identity() const override { return "text 1"; }
  std::string target(const std::string& arch) const override { return "for " + arch; }
  Bytes compile(const SourceFile& source, const std::vector<SourceFile>& headers,
                const std::vector<std::string>& flags, const std::string& target) const override {
    ++compiled_;
    if (source.text == "broken") throw CompileError("it does not compile", "line 1");
    std::string text = source.text + headers.at(0).text + target;
    for (const std::string& flag : flags) text += flag;
    return {text.begin(), text.end()};
  }

 private:
  std::atomic<int>& compiled_;
};

const SourceKernel kKernel = {"a.cpp", {"-DX=1"}};
const Bytes kBuiltIn = {1, 2, 3};
constexpr char kRecipe[] = R"({"flags":["-O3"],"headers":"h","toolchain":"clang"})";

std::string text(const Bytes& bytes) { return {bytes.begin(), bytes.end()}; }

CodeObjectSpec built_in_spec(const std::string& arch) {
  return Recipe::parse(kRecipe).spec(hex(sha256("source", 6)), arch, kKernel.flags);
}

class Kernels : public ::testing::Test {
 protected:
  SourceKernelsOptions options() {
    SourceKernelsOptions options;
    options.sources = {{"a.cpp", "source"}, {"b.cpp", "broken"}};
    options.headers = {{"x.h", "header"}};
    options.flags = {"-std=c++17"};
    options.ahead_of_time = {{"sm_80", kRecipe}, {"sm_90", kRecipe}};
    options.is_built_in = [this](const Digest& key) { return pack_.size_of(key) > 0; };
    options.build_flag = "--//kernels:built_in";
    options.build_archs = "gfx942 sm_80 sm_90";
    options.build_list = "few.toml";
    options.set_flag = "--//kernels:set";
    options.run_time_compile = when_;
    options.compilers = &compilers_;
    return options;
  }
  // Built in, else compiled.
  Bytes get(const CodeObjectRef& ref) {
    if (when_ != RunTimeCompile::kAlways) {
      if (std::optional<Bytes> bytes = pack_.get(ref)) return *bytes;
    }
    return compiling_.get(ref).value();
  }
  Bytes get(const SourceKernels& kernels, const SourceKernel& kernel, const std::string& arch) {
    return get(kernels.code_object(kernel, arch).ref());
  }
  const std::vector<unsigned char> packed_ =
      testing::make_pack({{built_in_spec("sm_80").key(), kBuiltIn}});
  PackProvider pack_{"the library", packed_.data(), packed_.size()};
  RunTimeCompile when_ = RunTimeCompile::kMissing;
  std::atomic<int> compiled_{0};
  std::vector<std::string> opened_;
  Compilers compilers_{[this](const std::string& arch) {
    opened_.push_back(arch);
    return std::make_unique<TextCompiler>(compiled_);
  }};
  CacheProvider compiling_{{}, std::make_unique<CompilingProvider>(compilers_)};
};

TEST_F(Kernels, WhatIsBuiltInNeedsNoCompiler) {
  const SourceKernels kernels(options());
  EXPECT_EQ(kernels.code_object(kKernel, "sm_80").spec.canonical(),
            built_in_spec("sm_80").canonical());
  EXPECT_EQ(get(kernels, kKernel, "sm_80"), kBuiltIn);
  EXPECT_EQ(get(kernels, kKernel, "sm_89"), kBuiltIn);  // runs the machine code of sm_80
  EXPECT_THAT(opened_, ElementsAre());
}

TEST_F(Kernels, MachineCodeOfALetterIsForItsOwnCapabilityAlone) {
  SourceKernelsOptions given = options();
  given.ahead_of_time = {{"sm_100a", kRecipe}};
  given.is_built_in = [](const Digest& key) { return key == built_in_spec("sm_100a").key(); };
  const SourceKernels kernels(given);
  EXPECT_EQ(kernels.code_object(kKernel, "sm_100").spec.canonical(),
            built_in_spec("sm_100a").canonical());
  EXPECT_NE(kernels.code_object(kKernel, "sm_103").spec.canonical(),
            built_in_spec("sm_100a").canonical());
}

TEST_F(Kernels, WhatIsMissingIsCompiled) {
  const SourceKernels kernels(options());
  const CodeObjectSpec spec = kernels.code_object(kKernel, "sm_90").spec;
  EXPECT_EQ(spec.arch, "for sm_90");
  EXPECT_EQ(spec.toolchain, "text 1");
  EXPECT_EQ(spec.source, hex(sha256("source", 6)));
  EXPECT_EQ(spec.headers, header_tree_digest({{"x.h", "header"}}));
  EXPECT_THAT(spec.flags, ElementsAre("-std=c++17", "-DX=1"));
  EXPECT_EQ(text(get(kernels, kKernel, "sm_90")), "sourceheaderfor sm_90-std=c++17-DX=1");
  EXPECT_EQ(text(get(kernels, {"a.cpp", {}}, "sm_80")), "sourceheaderfor sm_80-std=c++17");
  EXPECT_THAT(opened_, ElementsAre("sm_90"));  // once for the vendor
  get(kernels, kKernel, "gfx942");
  EXPECT_THAT(opened_, ElementsAre("sm_90", "gfx942"));
}

TEST_F(Kernels, TheOrderOfAKernelsFlagsIsOfNoMatter) {
  const SourceKernels kernels(options());
  const SourceCodeObject one = kernels.code_object({"a.cpp", {"-DB=1", "-DA=1"}}, "sm_90");
  const SourceCodeObject other = kernels.code_object({"a.cpp", {"-DA=1", "-DB=1"}}, "sm_90");
  EXPECT_EQ(one.spec.canonical(), other.spec.canonical());
}

TEST_F(Kernels, SwitchedOffWhatIsMissingIsAnErrorWithANextStep) {
  when_ = RunTimeCompile::kNever;
  const SourceKernels kernels(options());
  EXPECT_EQ(get(kernels, kKernel, "sm_80"), kBuiltIn);
  const Error error = error_of([&] { kernels.code_object(kKernel, "sm_90"); });
  EXPECT_EQ(error.status(), Status::kUnsupported);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("a.cpp (-DX=1)"), HasSubstr("sm_90"), HasSubstr("AITER_ATTN_RTC=0"),
                    HasSubstr("--//kernels:built_in=sm_90 and"), HasSubstr("few.toml"),
                    EndsWith("--//kernels:set=NAME")));
  // An arch whose machine code the device runs; one that the flag does not take.
  EXPECT_THAT(error_of([&] { kernels.code_object({"a.cpp", {}}, "sm_89"); }).what(),
              HasSubstr("--//kernels:built_in=sm_80 and"));
  EXPECT_THAT(error_of([&] { kernels.code_object(kKernel, "sm_120"); }).what(),
              AllOf(HasSubstr("gfx942 sm_80 sm_90 alone"), Not(HasSubstr("--//"))));
  EXPECT_THAT(opened_, ElementsAre());
}

TEST_F(Kernels, SwitchedOnWhatIsBuiltInIsCompiledToo) {
  when_ = RunTimeCompile::kAlways;
  const SourceKernels kernels(options());
  EXPECT_EQ(text(get(kernels, kKernel, "sm_80")), "sourceheaderfor sm_80-std=c++17-DX=1");
}

TEST_F(Kernels, WithoutRecipesAllIsCompiled) {
  SourceKernelsOptions without = options();
  without.ahead_of_time.clear();
  const SourceKernels kernels(std::move(without));
  EXPECT_EQ(text(get(kernels, kKernel, "sm_80")), "sourceheaderfor sm_80-std=c++17-DX=1");
}

TEST_F(Kernels, ASourceThatDoesNotCompileIsTriedOnce) {
  const SourceKernels kernels(options());
  for (int i = 0; i < 2; ++i) {
    const Error error = error_of([&] { get(kernels, {"b.cpp", {}}, "sm_90"); });
    EXPECT_EQ(error.status(), Status::kInternal);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("it does not compile"), HasSubstr("line 1")));
  }
  EXPECT_EQ(compiled_, 1);
}

TEST_F(Kernels, SpecsOfOthersAreNotCompiled) {
  const SourceKernels kernels(options());
  const SourceCodeObject ours = kernels.code_object(kKernel, "sm_90");
  for (std::string CodeObjectSpec::* field :
       {&CodeObjectSpec::headers, &CodeObjectSpec::source, &CodeObjectSpec::toolchain}) {
    SourceCodeObject other = ours;
    other.spec.*field += "x";
    EXPECT_EQ(compiling_.get(other.ref()), std::nullopt);
  }
  // Of a row whose source is not in this process; and of nothing but a key.
  CodeObjectRef ref = ours.ref();
  ref.source = nullptr;
  EXPECT_EQ(compiling_.get(ref), std::nullopt);
  EXPECT_EQ(compiling_.get({ours.spec.key(), {}}), std::nullopt);
  EXPECT_EQ(compiled_, 0);
}

TEST_F(Kernels, AnUnknownSourceIsNamed) {
  const Error error =
      error_of([&] { SourceKernels(options()).code_object({"c.cpp", {}}, "sm_90"); });
  EXPECT_EQ(error.status(), Status::kInvalidArgument);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("'c.cpp'"), HasSubstr("a.cpp, b.cpp")));
}

TEST_F(Kernels, TheSwitch) {
  constexpr char kSwitch[] = "AITER_ATTN_RTC";
  unsetenv(kSwitch);
  EXPECT_EQ(run_time_compile(), RunTimeCompile::kMissing);
  setenv(kSwitch, "", 1);
  EXPECT_EQ(run_time_compile(), RunTimeCompile::kMissing);
  setenv(kSwitch, "0", 1);
  EXPECT_EQ(run_time_compile(), RunTimeCompile::kNever);
  setenv(kSwitch, "1", 1);
  EXPECT_EQ(run_time_compile(), RunTimeCompile::kAlways);
  for (const char* value : {"2", "on", "01", " "}) {
    setenv(kSwitch, value, 1);
    const Error error = error_of([] { run_time_compile(); });
    EXPECT_EQ(error.status(), Status::kInvalidArgument);
    EXPECT_THAT(error.what(), AllOf(HasSubstr(std::string("'") + value + "'"), HasSubstr("0 (")));
  }
  unsetenv(kSwitch);
}

TEST_F(Kernels, TransformerEnginesSwitchCountsWithoutIt) {
  constexpr char kSwitch[] = "AITER_ATTN_RTC", kOther[] = "NVTE_DISABLE_NVRTC";
  unsetenv(kSwitch);
  setenv(kOther, "1", 1);
  EXPECT_EQ(run_time_compile(), RunTimeCompile::kNever);
  EXPECT_STREQ(never_compiled(), "NVTE_DISABLE_NVRTC=1");
  setenv(kSwitch, "1", 1);
  EXPECT_EQ(run_time_compile(), RunTimeCompile::kAlways);
  setenv(kSwitch, "0", 1);
  EXPECT_STREQ(never_compiled(), "AITER_ATTN_RTC=0");
  unsetenv(kSwitch);
  setenv(kOther, "0", 1);
  EXPECT_EQ(run_time_compile(), RunTimeCompile::kMissing);
  setenv(kOther, "true", 1);
  const Error error = error_of([] { run_time_compile(); });
  EXPECT_EQ(error.status(), Status::kInvalidArgument);
  EXPECT_THAT(error.what(),
              HasSubstr("NVTE_DISABLE_NVRTC is 'true'; it may be 1 (AITER_ATTN_RTC=0"));
  unsetenv(kOther);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
