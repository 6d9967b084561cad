// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/kit/own_spec.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using Flags = std::vector<std::string>;

TEST(OwnSpec, HasTheFlagsThatAreTheKernels) {
  CodeObjectSpec spec = {"gfx942",
                         {"--sysroot=external/sysroot", "-D__AMDGCN_WAVEFRONT_SIZE=64", "-x", "hip",
                          "-O3", "-Iexternal/headers/include", "-Iexternal/headers", "-I.",
                          "-ffile-prefix-map=external/rocm=external/rocm", "-DA=1", "-mllvm",
                          "-some-option=0", "-U__AMDGCN_WAVEFRONT_SIZE"},
                         std::string(64, 'b'),
                         std::string(64, 'c'),
                         std::string(64, 'a'),
                         "a group"};
  const CodeObjectSpec own = own_spec(spec, "amdclang 1", {"-first"});
  EXPECT_EQ(own.flags, (Flags{"-first", "-x", "hip", "-O3", "-Iinclude", "-I.", "-I.", "-DA=1"}));
  EXPECT_EQ(own.toolchain, "amdclang 1");
  EXPECT_EQ(own.group, "");
  EXPECT_EQ(own.source, spec.source);
  EXPECT_EQ(own.headers, spec.headers);
  EXPECT_EQ(own.arch, "gfx942");
  EXPECT_NE(own.key(), spec.key());
}

TEST(OwnSpec, PutsIncludesBelowAFolder) {
  EXPECT_EQ(with_includes_below("/tree", {"-O3", "-Iinclude", "-I.", "-DA=-I"}),
            (Flags{"-O3", "-I/tree/include", "-I/tree/.", "-DA=-I"}));
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
