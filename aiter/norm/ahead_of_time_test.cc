// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Kernels that were compiled with the library, beside the same compiled by this process: with the
// NVRTC that the build has, they are the same.
#include "kernels/code_object/ahead_of_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "aiter/norm/configure.h"
#include "aiter/norm/kernels.h"
#include "aiter/runtime/rtc/compiling.h"
#include "aiter/runtime/source_kernels.h"
#include "aiter/runtime/store/pack.h"
#include "kernels/archs/archs.h"
#include "kernels/code_object/embedded_pack.h"

namespace AITER_ATTN_NAMESPACE::kernels {

// All of sm_90, and some of gfx942.
AheadOfTimeKernels test_row_kernels();
EmbeddedPack test_norm_pack();

}  // namespace AITER_ATTN_NAMESPACE::kernels

namespace AITER_ATTN_NAMESPACE::norm {
namespace {

using runtime::RunTimeCompile;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

runtime::PackProvider& built_in_pack() {
  static const kernels::EmbeddedPack pack = kernels::test_norm_pack();
  static runtime::PackProvider provider("the pack", pack.data, pack.size);
  return provider;
}

runtime::Compilers& compilers() {
  static runtime::Compilers opened(
      [](const std::string& arch) { return runtime::open_compiler(arch, {}); });
  return opened;
}

runtime::SourceKernels source_kernels(RunTimeCompile when) {
  runtime::SourceKernelsOptions options = options_of(kernels::test_row_kernels());
  options.is_built_in = [](const runtime::Digest& key) { return built_in_pack().size_of(key) > 0; };
  options.run_time_compile = when;
  options.compilers = &compilers();
  return runtime::SourceKernels(std::move(options));
}

Shape bf16_shape(RowOperation operation, int64_t hidden, bool on_demand, int few_rows = 0) {
  Shape shape = {};
  shape.operation = operation;
  shape.dtypes = {ATTN_DTYPE_BF16, ATTN_DTYPE_BF16, ATTN_DTYPE_BF16};
  shape.hidden = hidden;
  shape.vector = 8;
  shape.beta = operation == RowOperation::kLayerForward;
  shape.on_demand = on_demand;
  shape.few_rows = few_rows;
  return shape;
}

Kernels configured(const Shape& shape, const std::string& arch, int64_t shared_bytes) {
  return configure(shape, device_traits(arch, shared_bytes));
}

runtime::SourceKernel kernel_of(RowOperation operation, int64_t hidden, bool on_demand,
                                const std::string& arch, int64_t shared_bytes) {
  const Kernels kernels = configured(bf16_shape(operation, hidden, on_demand), arch, shared_bytes);
  return {kernels.source, kernels.flags};
}

runtime::SourceKernel rms_forward(const std::string& arch, int64_t shared_bytes) {
  return kernel_of(RowOperation::kRmsForward, 4096, false, arch, shared_bytes);
}

TEST(AheadOfTime, IsWhatThisProcessCompiles) {
  const runtime::SourceKernel kernel = rms_forward("sm_90", 227 << 10);
  const runtime::SourceKernels built_in = source_kernels(RunTimeCompile::kNever);
  const runtime::SourceKernels compiled = source_kernels(RunTimeCompile::kAlways);
  const runtime::SourceCodeObject object = built_in.code_object(kernel, "sm_90");
  EXPECT_EQ(compiled.code_object(kernel, "sm_90").spec.canonical(), object.spec.canonical());
  const std::optional<runtime::Bytes> bytes = built_in_pack().get(object.ref());
  EXPECT_TRUE(bytes);
  EXPECT_EQ(runtime::CompilingProvider(compilers()).get(object.ref()), bytes);
}

// Each key of the pack is one that the library computes from a kernel's spec, and the other way.
TEST(AheadOfTime, TheKeysOfThePackAreThoseOfTheSpecs) {
  const runtime::SourceKernels built_in = source_kernels(RunTimeCompile::kNever);
  std::set<runtime::Digest> computed = {
      built_in.code_object(rms_forward("gfx942", 64 << 10), "gfx942").spec.key()};
  for (const RowOperation operation :
       {RowOperation::kLayerForward, RowOperation::kLayerBackward, RowOperation::kRmsForward,
        RowOperation::kRmsBackward, RowOperation::kSoftmaxForward,
        RowOperation::kSoftmaxBackward}) {
    for (const int64_t hidden : {4096, 8192}) {
      for (const int kind : {kHandful, kDozens, kHundreds}) {
        const Shape shape = bf16_shape(operation, hidden, false, kind);
        if (!has_kind(shape)) continue;
        const Kernels few = configured(shape, "sm_90", 227 << 10);
        computed.insert(built_in.code_object({few.source, few.flags}, "sm_90").spec.key());
      }
      for (const bool on_demand : {false, true}) {
        const Kernels k = configured(bf16_shape(operation, hidden, on_demand), "sm_90", 227 << 10);
        computed.insert(built_in.code_object({k.source, k.flags}, "sm_90").spec.key());
        if (k.sums == 0) continue;
        computed.insert(
            built_in.code_object({kColumnsSource, k.columns_flags}, "sm_90").spec.key());
      }
    }
  }
  std::set<runtime::Digest> packed;
  for (uint64_t i = 0; i < built_in_pack().count(); ++i) {
    packed.insert(built_in_pack().entry(i).key);
  }
  EXPECT_EQ(computed, packed);
}

TEST(AheadOfTime, CodeForHipIsFoundByTheFlagsThatTheLibraryAsksFor) {
  const runtime::SourceKernels built_in = source_kernels(RunTimeCompile::kNever);
  const runtime::SourceCodeObject object =
      built_in.code_object(rms_forward("gfx942", 64 << 10), "gfx942");
  EXPECT_EQ(object.spec.arch, "gfx942");
  EXPECT_EQ(built_in_pack().get(object.ref()).value()[0], 0x7f);
}

TEST(AheadOfTime, CallsWithAndWithoutABarrierAreServed) {
  const runtime::SourceKernels built_in = source_kernels(RunTimeCompile::kNever);
  std::vector<std::string> specs;
  for (const bool on_demand : {false, true}) {
    const runtime::SourceKernel kernel =
        kernel_of(RowOperation::kLayerForward, 8192, on_demand, "sm_90", 227 << 10);
    specs.push_back(built_in.code_object(kernel, "sm_90").spec.canonical());
  }
  EXPECT_NE(specs[0], specs[1]);
}

TEST(AheadOfTime, WhatIsNotBuiltInNamesTheFlagWhereItHelps) {
  const runtime::SourceKernels built_in = source_kernels(RunTimeCompile::kNever);
  const auto refusal = [&](const std::string& arch, int64_t shared_bytes) -> std::string {
    try {
      built_in.code_object(rms_forward(arch, shared_bytes), arch);
    } catch (const runtime::Error& error) {
      EXPECT_EQ(error.status(), runtime::Status::kUnsupported);
      return error.what();
    }
    return "nothing thrown";
  };
  EXPECT_THAT(
      refusal("sm_80", 163 << 10),
      AllOf(HasSubstr("AITER_ATTN_RTC=0"), HasSubstr("--//kernels/norm/ahead_of_time:archs=sm_80"),
            HasSubstr("kernels/norm/sets/common.toml"),
            HasSubstr("--//kernels/norm/ahead_of_time:set=NAME")));
  std::string known;  // AMD's are those whose waves the kernels are for
  for (const kernels::ArchFacts& arch : kernels::kArchs) {
    if (arch.wave_size == 64) known += std::string(arch.name) + " ";
  }
  EXPECT_THAT(refusal("sm_75", 64 << 10),
              AllOf(HasSubstr("sm_75"), HasSubstr("AITER_ATTN_RTC=0"),
                    HasSubstr(known + "sm_100 sm_100a sm_103 sm_120 sm_80 sm_89 sm_90"),
                    Not(HasSubstr("--//"))));
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::norm
