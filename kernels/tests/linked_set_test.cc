// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// INSTANCES: the names of a variant set's instances, with spaces between.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

#include "kernels/code_object/linked_code_objects.h"

TEST(LinkedCodeObjects, AreThoseOfTheSet) {
  std::istringstream names(std::getenv("INSTANCES"));
  const std::set<std::string> expected{std::istream_iterator<std::string>(names), {}};
  std::set<std::string> found;
  for (size_t i = 0; i < attn_linked_code_objects(); ++i) {
    const attn_linked_code_object object = attn_linked_code_object_at(i);
    EXPECT_STREQ(object.arch, "gfx942");
    EXPECT_GT(object.size, 0u);
    found.insert(object.instance);
  }
  EXPECT_GT(found.size(), 2u);
  EXPECT_EQ(found, expected);
}
