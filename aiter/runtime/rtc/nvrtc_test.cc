// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// On NVRTC itself, as pip installs it. It needs no GPU.
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "aiter/runtime/rtc/compiler.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::vector<SourceFile> kHeaders = {{"factor.h", "#define FACTOR 3.0f\n"}};
const SourceFile kSource = {"scale.cpp", R"(
#include "factor.h"
extern "C" __global__ void scale(float* x) { x[threadIdx.x] *= FACTOR + NUMBER; }
)"};

std::vector<std::string> flags(int number) {
  return {"-std=c++17", "-DNUMBER=" + std::to_string(number)};
}

TEST(Nvrtc, MachineCodeIsForItsArchAndTheSameEveryTime) {
  const auto nvrtc = open_nvrtc({});
  for (const unsigned arch : {80u, 90u, 100u}) {
    const std::string target = nvrtc->target("sm_" + std::to_string(arch));
    const Bytes cubin = nvrtc->compile(kSource, kHeaders, flags(1), target);
    ASSERT_GT(cubin.size(), sizeof(Elf64_Ehdr));
    Elf64_Ehdr header;
    std::memcpy(&header, cubin.data(), sizeof(header));
    EXPECT_EQ(0, std::memcmp(header.e_ident, ELFMAG, SELFMAG));
    EXPECT_EQ(header.e_machine, EM_CUDA);
    EXPECT_EQ(header.e_flags >> 8 & 0xff, arch);  // ABI version 8, that of CUDA 13
    EXPECT_EQ(nvrtc->compile(kSource, kHeaders, flags(1), target), cubin);
    EXPECT_NE(nvrtc->compile(kSource, kHeaders, flags(2), target), cubin);
  }
}

TEST(Nvrtc, ADeviceOfTheFutureGetsPtx) {
  const auto nvrtc = open_nvrtc({});
  const std::string target = nvrtc->target("sm_990");
  ASSERT_THAT(target, StartsWith("compute_"));
  const Bytes ptx = nvrtc->compile(kSource, kHeaders, flags(1), target);
  EXPECT_EQ(ptx.back(), '\0');
  EXPECT_THAT(reinterpret_cast<const char*>(ptx.data()),
              HasSubstr(".target sm_" + target.substr(std::strlen("compute_"))));
}

TEST(Nvrtc, MistakesAreInTheLog) {
  const auto nvrtc = open_nvrtc({});
  const auto log_of = [&](const SourceFile& source, const std::vector<std::string>& flags) {
    try {
      nvrtc->compile(source, kHeaders, flags, "sm_90");
    } catch (const CompileError& error) {
      return error.log();
    }
    return std::string("it compiled");
  };
  EXPECT_THAT(log_of({"wrong.cpp", "int f() { return missing; }"}, {}),
              HasSubstr("identifier \"missing\" is undefined"));
  EXPECT_THAT(log_of({"wrong.cpp", "#include \"other.h\"\n"}, {}), HasSubstr("other.h"));
  EXPECT_THAT(log_of(kSource, {"--no-such-option"}), HasSubstr("--no-such-option"));
}

TEST(Nvrtc, ThreadsGetTheirOwn) {
  const auto nvrtc = open_nvrtc({});
  std::vector<Bytes> cubins(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < cubins.size(); ++i) {
    threads.emplace_back([&, i] {
      cubins[i] = nvrtc->compile(kSource, kHeaders, flags(static_cast<int>(i)), "sm_90");
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < cubins.size(); ++i) {
    EXPECT_EQ(cubins[i], nvrtc->compile(kSource, kHeaders, flags(static_cast<int>(i)), "sm_90"));
  }
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
