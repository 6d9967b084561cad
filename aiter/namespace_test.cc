// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Two copies of the library in one process, under the namespaces "aiter" and "te": each in a shared
// object of its own, or both linked into one foreign shared object. Environment: AITER_COPY and
// TE_COPY are the copies' files, FOREIGN is a regular expression for the other exports of the one
// file.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "aiter/attn.h"
#include "tests/support/attention/problems.h"
#include "tests/support/runtime/elf_file.h"
#include "tests/support/runtime/recorder.h"

namespace {

using namespace AITER_ATTN_NAMESPACE::testing;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

struct Copy {
  explicit Copy(const std::string& name, const char* file) {
    library = dlopen(variable(file).c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (!library) throw std::runtime_error(dlerror());
    bind(name + "_attn_fwd", &fwd);
    bind(name + "_attn_last_error", &last_error);
    bind(name + "_attn_kernel_info", &kernel_info);
  }
  template <typename F>
  void bind(const std::string& symbol, F* function) {
    *function = reinterpret_cast<F>(dlsym(library, symbol.c_str()));
    if (!*function) throw std::runtime_error("no " + symbol);
  }
  void* library;
  decltype(&attn_fwd) fwd;
  decltype(&attn_last_error) last_error;
  decltype(&attn_kernel_info) kernel_info;
};

class Namespaces : public ::testing::Test {
 protected:
  const Copy ours_{"aiter", "AITER_COPY"}, theirs_{"te", "TE_COPY"};
};

// A foreign object that both are linked into has a name of its own, or none.
TEST_F(Namespaces, EachLibraryHasItsName) {
  const bool is_library = variable("FOREIGN") == "none";
  EXPECT_EQ(read_dynamic_symbols(variable("AITER_COPY")).soname,
            is_library ? "libaiter_attn.so.1" : "");
  EXPECT_EQ(read_dynamic_symbols(variable("TE_COPY")).soname, is_library ? "libte_attn.so.1" : "");
}

TEST_F(Namespaces, NothingElseIsExported) {
  for (const char* file : {"AITER_COPY", "TE_COPY"}) {
    EXPECT_THAT(read_dynamic_symbols(variable(file)).defined,
                Each(AnyOf(StartsWith("aiter_attn_"), StartsWith("te_attn_"),
                           MatchesRegex(variable("FOREIGN")))));
    // Of the mangled names that the expression may allow, none is the library's.
    EXPECT_THAT(read_dynamic_symbols(variable(file)).defined,
                Each(Not(AnyOf(HasSubstr("7runtime"), HasSubstr("9attention"),
                               HasSubstr("7kernels"), HasSubstr("7testing")))));
  }
  if (ours_.library == theirs_.library) return;
  EXPECT_FALSE(dlsym(ours_.library, "te_attn_fwd"));
  EXPECT_FALSE(dlsym(theirs_.library, "aiter_attn_fwd"));
}

TEST_F(Namespaces, MessagesAreApart) {
  EXPECT_EQ(ours_.fwd(nullptr), ATTN_ERROR_INVALID_ARGUMENT);
  EXPECT_STRNE(ours_.last_error(), "");
  EXPECT_STREQ(theirs_.last_error(), "");
}

TEST_F(Namespaces, LaunchTablesAreApart) {
  attn_kernel_info_t mine = {}, other = {};
  mine.struct_size = other.struct_size = sizeof(mine);
  ASSERT_EQ(ours_.kernel_info(0, &mine), ATTN_OK);
  ASSERT_EQ(theirs_.kernel_info(0, &other), ATTN_OK);
  EXPECT_NE(mine.name, other.name);
  EXPECT_STREQ(mine.name, other.name);
}

TEST_F(Namespaces, BothRun) {
  TestProblem problem(Shape{1, 2, 2, 100, 100, 64, 64}, ATTN_DTYPE_FP16);
  attn_fwd_args args = problem.fwd();
  EXPECT_EQ(ours_.fwd(&args), ATTN_OK);
  EXPECT_EQ(theirs_.fwd(&args), ATTN_OK);
  problem.problem.device_type = ATTN_DEVICE_ROCM;
  const Recorder recorder;
  EXPECT_EQ(ours_.fwd(&args), ATTN_OK) << ours_.last_error();
  EXPECT_EQ(theirs_.fwd(&args), ATTN_OK) << theirs_.last_error();
  EXPECT_EQ(recorder.order(), "lklk") << "each loads for itself";
}

}  // namespace
