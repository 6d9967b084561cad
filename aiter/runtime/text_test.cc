// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/text.h"

#include <gtest/gtest.h>

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

TEST(Utf8, WellFormedTextStays) {
  for (const std::string text :
       {"", "gfx942:sramecc+", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
        "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "a\xc3\xa4z"}) {
    EXPECT_EQ(utf8(text), text);
  }
  const std::string zero("a\0b", 3);
  EXPECT_EQ(utf8(zero), zero);
}

TEST(Utf8, WhatIsNotBecomesTheReplacementCharacter) {
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(utf8("\x80"), bad);                            // no lead
  EXPECT_EQ(utf8("a\xff\xfe z"), "a" + bad + bad + " z");  // never in UTF-8
  EXPECT_EQ(utf8("\xc0\xaf"), bad + bad);                  // longer than need be
  EXPECT_EQ(utf8("\xe0\x9f\xbf"), bad + bad + bad);
  EXPECT_EQ(utf8("\xf0\x8f\xbf\xbf"), bad + bad + bad + bad);
  EXPECT_EQ(utf8("\xed\xa0\x80"), bad + bad + bad);            // a surrogate
  EXPECT_EQ(utf8("\xf4\x90\x80\x80"), bad + bad + bad + bad);  // beyond U+10FFFF
  EXPECT_EQ(utf8("\xf5\x80\x80\x80"), bad + bad + bad + bad);
  EXPECT_EQ(utf8("\xe2\x82"), bad + bad);  // cut off
  EXPECT_EQ(utf8("\xe2(\xa1"), bad + "(" + bad);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
