// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A test is a function with checks; a failed check is printed and the test goes on. testing_main.cc
// runs all tests of the program, or those whose names contain its first argument.
#pragma once

#include <cmath>
#include <cstdio>
#include <sstream>
#include <string>

namespace aiter_attn::testing {

using Test = void (*)();

// Called before main by TEST.
bool add_test(const char* name, Test test);
// Counts and prints a failure of the running test.
void report_failure(const char* file, int line, const std::string& message);

template <typename T>
std::string show(const T& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

template <typename A, typename B>
void expect_eq(const A& actual, const B& expected, const char* expression, const char* file,
               int line) {
  if (actual == expected) return;
  report_failure(
      file, line,
      std::string(expression) + " is\n    " + show(actual) + "\n  expected\n    " + show(expected));
}

inline void expect_near(double actual, double expected, double tolerance, const char* expression,
                        const char* file, int line) {
  if (std::fabs(actual - expected) <= tolerance) return;
  report_failure(file, line,
                 std::string(expression) + " is " + show(actual) + ", expected " + show(expected) +
                     " +- " + show(tolerance));
}

inline void expect_contains(const std::string& text, const std::string& part,
                            const char* expression, const char* file, int line) {
  if (text.find(part) != std::string::npos) return;
  report_failure(file, line,
                 std::string(expression) + " is\n    " + text + "\n  and lacks\n    " + part);
}

}  // namespace aiter_attn::testing

#define TEST(name)                                                                       \
  static void test_##name();                                                             \
  static const bool added_##name = ::aiter_attn::testing::add_test(#name, &test_##name); \
  static void test_##name()

#define EXPECT(condition)                                                                \
  do {                                                                                   \
    if (!(condition))                                                                    \
      ::aiter_attn::testing::report_failure(__FILE__, __LINE__, #condition " is false"); \
  } while (false)

#define EXPECT_EQ(actual, expected) \
  ::aiter_attn::testing::expect_eq(actual, expected, #actual, __FILE__, __LINE__)

#define EXPECT_NEAR(actual, expected, tolerance) \
  ::aiter_attn::testing::expect_near(actual, expected, tolerance, #actual, __FILE__, __LINE__)

#define EXPECT_CONTAINS(text, part) \
  ::aiter_attn::testing::expect_contains(text, part, #text, __FILE__, __LINE__)
