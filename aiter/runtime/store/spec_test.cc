// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/store/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aiter/runtime/error.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The build's own test, in kernels/code_object, has this text and this key, too.
constexpr char kGolden[] =
    R"({"arch":"gfx942","flags":["-O3","-DX=1"],"format":1,)"
    R"("headers":"0000000000000000000000000000000000000000000000000000000000000000",)"
    R"("source":"41cf6794ba4200b839c53531555f0f3998df4cbb01a4d5cb0b94e3ca5e23947d",)"
    R"("toolchain":"1111111111111111111111111111111111111111111111111111111111111111"})";
constexpr char kGoldenKey[] = "c7658226ea5b48e620d89184fdae16d67e5836befee55d1d9c7eb8fe6a2cb259";

// Of a.h, "1", and b/c.h, "2".
constexpr char kGoldenTree[] = "52f15772f2fa3f4f37e67895efb7761b01b2b6822177ad1e7f4b131baf2cd5e8";

TEST(Spec, CanonicalFormAndKeyAreTheBuilds) {
  const CodeObjectSpec spec = CodeObjectSpec::parse(kGolden);
  EXPECT_EQ(spec.arch, "gfx942");
  EXPECT_THAT(spec.flags, ElementsAre("-O3", "-DX=1"));
  EXPECT_EQ(spec.headers, std::string(64, '0'));
  EXPECT_EQ(spec.source, hex(sha256("source", 6)));
  EXPECT_EQ(spec.toolchain, std::string(64, '1'));
  EXPECT_EQ(spec.canonical(), kGolden);
  EXPECT_EQ(hex(spec.key()), kGoldenKey);
}

TEST(Spec, AGroupIsNamed) {
  std::string grouped = kGolden;
  grouped.replace(grouped.find(",\"headers"), 0, ",\"group\":\"" + std::string(64, '2') + "\"");
  const CodeObjectSpec spec = CodeObjectSpec::parse(grouped);
  EXPECT_EQ(spec.group, std::string(64, '2'));
  EXPECT_EQ(spec.canonical(), grouped);
  EXPECT_EQ(hex(spec.key()), "ecdd7249052129bb15f69e86e627c8e74b789052c29cea6829a756a4de6f4ace");
  EXPECT_EQ(spec.alone().canonical(), kGolden);
  grouped.replace(grouped.find(std::string(64, '2')), 64, "");
  EXPECT_THROW(CodeObjectSpec::parse(grouped), Error) << grouped;
}

TEST(Spec, EveryFieldChangesTheKey) {
  const CodeObjectSpec spec = CodeObjectSpec::parse(kGolden);
  for (std::string CodeObjectSpec::* field :
       {&CodeObjectSpec::arch, &CodeObjectSpec::headers, &CodeObjectSpec::source,
        &CodeObjectSpec::toolchain, &CodeObjectSpec::group}) {
    CodeObjectSpec other = spec;
    other.*field += "x";
    EXPECT_NE(other.key(), spec.key());
  }
  CodeObjectSpec other = spec;
  std::swap(other.flags[0], other.flags[1]);
  EXPECT_NE(other.key(), spec.key());
}

TEST(Recipe, SpecsAndDigestsAreTheBuilds) {
  const CodeObjectSpec golden = CodeObjectSpec::parse(kGolden);
  const Recipe recipe = {{"-O3"}, golden.headers, golden.toolchain};
  EXPECT_EQ(recipe.spec(golden.source, "gfx942", {"-DX=1"}).canonical(), kGolden);
  EXPECT_EQ(Recipe::parse(recipe.serialised()).serialised(), recipe.serialised());
  EXPECT_EQ(recipe.serialised(), R"({"flags":["-O3"],"headers":")" + golden.headers +
                                     R"(","toolchain":")" + golden.toolchain + R"("})");
  for (const std::string& text : {std::string(), recipe.serialised() + " ", std::string(kGolden)}) {
    EXPECT_THROW(Recipe::parse(text), Error) << text;
  }
  EXPECT_EQ(header_tree_digest({{"b/c.h", "2"}, {"a.h", "1"}}), kGoldenTree);
}

TEST(Spec, QuotesAndBackslashesAreEscaped) {
  CodeObjectSpec spec;
  spec.flags = {R"(-DNAME="a\b")", ""};
  const std::string text = spec.canonical();
  EXPECT_THAT(text, HasSubstr(R"("flags":["-DNAME=\"a\\b\"",""])"));
  EXPECT_EQ(CodeObjectSpec::parse(text).flags, spec.flags);
}

TEST(Spec, WhatIsNotCanonicalIsRefused) {
  const std::string golden = kGolden;
  for (const std::string& text : std::vector<std::string>{
           "", golden.substr(0, golden.size() - 1), golden + "\n", "{ " + golden.substr(1),
           R"({"arch":"gfx942","flags":[,],"format":1,"headers":"","source":"","toolchain":""})",
           R"({"arch":"\gfx942","flags":[],"format":1,"headers":"","source":"","toolchain":""})",
           R"({"arch":"gfx942","flags":[],"format":2,"headers":"","source":"","toolchain":""})",
           R"({"arch":"gfx942\)"}) {
    try {
      CodeObjectSpec::parse(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::kInvalidArgument);
      EXPECT_THAT(error.what(), HasSubstr("canonical form"));
    }
  }
  CodeObjectSpec spec;
  spec.arch = "gfx\n";
  EXPECT_THROW(spec.canonical(), Error);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
