// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Kernels that were compiled with the library, beside the same compiled by this process: with the
// NVRTC that the build has, they are the same.
#include "kernels/code_object/ahead_of_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "aiter/norm/configure.h"
#include "aiter/norm/store.h"
#include "aiter/runtime/rtc/source_kernels.h"

namespace AITER_ATTN_NAMESPACE::kernels {

// All of sm_90, and some of gfx942.
AheadOfTimeKernels test_row_kernels();

}  // namespace AITER_ATTN_NAMESPACE::kernels

namespace AITER_ATTN_NAMESPACE::norm {
namespace {

using runtime::RunTimeCompile;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

runtime::SourceKernels source_kernels(RunTimeCompile when) {
  runtime::SourceKernelsOptions options = options_of(kernels::test_row_kernels());
  options.run_time_compile = when;
  options.open_compiler = [](const std::string& arch) { return runtime::open_compiler(arch, {}); };
  return runtime::SourceKernels(std::move(options));
}

runtime::SourceKernel kernel_of(RowOperation operation, int64_t hidden, bool on_demand,
                                const std::string& arch, int64_t shared_bytes) {
  Shape shape = {};
  shape.operation = operation;
  shape.dtypes = {ATTN_DTYPE_BF16, ATTN_DTYPE_BF16, ATTN_DTYPE_BF16};
  shape.hidden = hidden;
  shape.vector = 8;
  shape.beta = operation == RowOperation::kLayerForward;
  shape.on_demand = on_demand;
  const Kernels kernels = configure(shape, device_traits(arch, shared_bytes));
  return {kernels.source, kernels.flags};
}

runtime::SourceKernel rms_forward(const std::string& arch, int64_t shared_bytes) {
  return kernel_of(RowOperation::kRmsForward, 4096, false, arch, shared_bytes);
}

TEST(AheadOfTime, IsWhatThisProcessCompiles) {
  const runtime::SourceKernel kernel = rms_forward("sm_90", 227 << 10);
  runtime::SourceKernels built_in = source_kernels(RunTimeCompile::kNever);
  runtime::SourceKernels compiled = source_kernels(RunTimeCompile::kAlways);
  const runtime::CodeObjectSpec spec = built_in.spec(kernel, "sm_90");
  EXPECT_EQ(compiled.spec(kernel, "sm_90").canonical(), spec.canonical());
  EXPECT_EQ(compiled.store().get({spec.key(), {}, &spec}),
            built_in.store().get({spec.key(), {}, &spec}));
}

TEST(AheadOfTime, CodeForHipIsFoundByTheFlagsThatTheLibraryAsksFor) {
  runtime::SourceKernels built_in = source_kernels(RunTimeCompile::kNever);
  const runtime::CodeObjectSpec spec = built_in.spec(rms_forward("gfx942", 64 << 10), "gfx942");
  EXPECT_EQ(spec.arch, "gfx942");
  EXPECT_EQ(built_in.store().get({spec.key(), {}, &spec})[0], 0x7f);
}

TEST(AheadOfTime, CallsWithAndWithoutABarrierAreServed) {
  runtime::SourceKernels built_in = source_kernels(RunTimeCompile::kNever);
  std::vector<std::string> specs;
  for (const bool on_demand : {false, true}) {
    const runtime::SourceKernel kernel =
        kernel_of(RowOperation::kLayerForward, 8192, on_demand, "sm_90", 227 << 10);
    specs.push_back(built_in.spec(kernel, "sm_90").canonical());
  }
  EXPECT_NE(specs[0], specs[1]);
}

TEST(AheadOfTime, WhatIsNotBuiltInNamesTheFlagWhereItHelps) {
  runtime::SourceKernels built_in = source_kernels(RunTimeCompile::kNever);
  const auto refusal = [&](const std::string& arch, int64_t shared_bytes) -> std::string {
    try {
      built_in.spec(rms_forward(arch, shared_bytes), arch);
    } catch (const runtime::Error& error) {
      EXPECT_EQ(error.status(), runtime::Status::kUnsupported);
      return error.what();
    }
    return "nothing thrown";
  };
  EXPECT_THAT(
      refusal("sm_80", 163 << 10),
      AllOf(HasSubstr("AITER_ATTN_RTC=0"), HasSubstr("--//kernels/norm/ahead_of_time:archs=sm_80"),
            HasSubstr("kernels/norm/ahead_of_time/kernels.bzl")));
  EXPECT_THAT(refusal("sm_120", 99 << 10),
              AllOf(HasSubstr("sm_120"), HasSubstr("AITER_ATTN_RTC=0"),
                    HasSubstr("gfx942 gfx950 sm_100 sm_80 sm_90"), Not(HasSubstr("--//"))));
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::norm
