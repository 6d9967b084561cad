// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/store/kernel_metadata.h"

#include <gtest/gtest.h>

#include "tests/support/runtime/tiny_elf.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using testing::tiny_code_object;
using testing::TinyMetadata;

// Launched with 300 bytes of arguments and 256 work-items.
CodeObjectRef launched(const char* symbol) {
  CodeObjectRef ref = {};
  ref.kernel = KernelFacts{symbol, 300, 256};
  return ref;
}

TEST(KernelMetadata, AKernelOfThatLaunchFits) {
  const Bytes object = tiny_code_object("forward", "", TinyMetadata{300, 256});
  EXPECT_EQ(misfit(launched("forward"), object), "");
}

TEST(KernelMetadata, AnotherKernelSaysWhichFactDiffers) {
  const CodeObjectRef ref = launched("forward");
  EXPECT_EQ(misfit(ref, tiny_code_object("forward", "", TinyMetadata{308, 256})),
            "has forward with 308 bytes of arguments, but this library's host code makes 300");
  EXPECT_EQ(misfit(ref, tiny_code_object("forward", "", TinyMetadata{300, 64})),
            "has forward for workgroups of 64 work-items, but this library launches it with 256");
  EXPECT_EQ(misfit(ref, tiny_code_object("backward", "", TinyMetadata{300, 256})),
            "has no metadata of a kernel forward");
  EXPECT_EQ(misfit(ref, tiny_code_object("forward", "")), "has no metadata of a kernel forward");
  EXPECT_EQ(misfit(ref, {}), "has no metadata of a kernel forward");
}

TEST(KernelMetadata, ADigestProvesMore) {
  CodeObjectRef ref = launched("forward");
  ref.sha256 = Digest{};
  EXPECT_EQ(misfit(ref, {}), "");
  EXPECT_EQ(misfit({}, {}), "") << "nothing is launched";
}

// The parts of an object are of no kernel, and nothing behind their ends is read.
TEST(KernelMetadata, DamagedBytesAreOfNoKernelOrOfThat) {
  const std::string name(200, 'k');
  const CodeObjectRef ref = launched(name.c_str());
  const Bytes whole = tiny_code_object(name, "", TinyMetadata{300, 256});
  ASSERT_EQ(misfit(ref, whole), "");
  const size_t sections = 3 * 64;  // behind the metadata; they are not read
  for (size_t size = 0; size < whole.size() - sections - 64; ++size) {
    // A vector of its own, so that a sanitizer sees what is read behind its end.
    const Bytes part(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    ASSERT_NE(misfit(ref, part), "") << size;
  }
  int refused = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int change : {0x01, 0x10, 0x80, 0xff}) {
      Bytes damaged = whole;
      damaged[at] = static_cast<unsigned char>(damaged[at] ^ change);
      refused += misfit(ref, damaged) != "";
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
