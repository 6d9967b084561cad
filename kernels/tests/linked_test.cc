// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A program with the cc_library targets of two instances, which loads a shared object with one of
// them: each finds its own, and the shared object exports nothing of it. Environment: FIRST and
// SECOND are INSTANCE.ARCH, with their files; OBJECT is the shared object.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "kernels/code_object/linked_code_objects.h"
#include "kernels/tests/linked_object.h"
#include "tests/support/runtime/elf_file.h"

namespace {

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

// "INSTANCE.ARCH" -> bytes.
template <typename At>
std::map<std::string, std::string> found(size_t count, At at) {
  std::map<std::string, std::string> objects;
  for (size_t i = 0; i < count; ++i) {
    const attn_linked_code_object object = at(i);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(object.data) % 16, 0u);
    objects[std::string(object.instance) + "." + object.arch] = {
        static_cast<const char*>(object.data), object.size};
  }
  EXPECT_EQ(objects.size(), count);
  return objects;
}

TEST(LinkedCodeObjects, AreThoseOfTheProgram) {
  const auto objects = found(attn_linked_code_objects(), attn_linked_code_object_at);
  const std::map<std::string, std::string> expected = {
      {environment("FIRST"), contents(environment("FIRST_FILE"))},
      {environment("SECOND"), contents(environment("SECOND_FILE"))},
  };
  EXPECT_EQ(objects, expected);
}

TEST(LinkedCodeObjects, AreThoseOfTheSharedObject) {
  void* const library = dlopen(environment("OBJECT").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto count = reinterpret_cast<decltype(&foreign_count)>(dlsym(library, "foreign_count"));
  const auto at = reinterpret_cast<decltype(&foreign_at)>(dlsym(library, "foreign_at"));
  ASSERT_TRUE(count && at);
  const auto objects = found(count(), at);
  const std::map<std::string, std::string> expected = {
      {environment("FIRST"), contents(environment("FIRST_FILE"))},
  };
  EXPECT_EQ(objects, expected);
}

TEST(LinkedCodeObjects, NoSymbolOfThemIsExported) {
  const auto symbols = AITER_ATTN_NAMESPACE::testing::read_dynamic_symbols(environment("OBJECT"));
  EXPECT_EQ(symbols.defined, (std::set<std::string>{"foreign_at", "foreign_count"}));
}

}  // namespace
