// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/store/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "aiter/runtime/error.h"
#include "tests/support/runtime/error_of.h"
#include "tests/support/runtime/forked_child.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::in_forked_child;

namespace fs = std::filesystem;

const std::string kHead = "# Kernels that runs asked for: aiter-attn prebuild build FILE\n";

class Record : public ::testing::Test {
 protected:
  Record() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  std::string text() const {
    std::ifstream in(file_);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  const fs::path folder_ = fs::path(::testing::TempDir()) / "record";
  const std::string file_ = folder_ / "list";
};

TEST_F(Record, IsSortedAndHasALineOnce) {
  for (const char* line : {"gfx942 b", "gfx942 a", "gfx942 b", "gfx1201 c"}) {
    EXPECT_EQ(record(file_, line), "");
  }
  EXPECT_EQ(text(), kHead + "gfx1201 c\ngfx942 a\ngfx942 b\n");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(Record, ManyProcessesAddToOneFile) {
  std::vector<std::thread> threads;
  std::vector<int> ends(8, -1);
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([this, i, &ends] {
      ends[i] = in_forked_child([this, i] {
        for (int j = 0; j < 5; ++j) {
          if (!record(file_, "gfx942 " + std::to_string(10 * i + j)).empty()) return 1;
        }
        return 0;
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(ends, ::testing::Each(0));
  const std::string all = text();
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 41);
}

TEST_F(Record, AFileOfAnotherKindStaysAsItIs) {
  std::ofstream(file_) << "notes\n";
  EXPECT_THAT(record(file_, "gfx942 a"), HasSubstr("is there and is no list of kernels"));
  EXPECT_EQ(text(), "notes\n");
}

TEST_F(Record, AFolderThatIsNotThereIsTold) {
  EXPECT_THAT(record("/nowhere/list", "gfx942 a"), HasSubstr("cannot open '/nowhere/list.new'"));
}

TEST_F(Record, TheFileIsAbsolute) {
  setenv(kRecordVariable, "list", 1);
  EXPECT_THAT(error_of([] { record_file(); }).what(),
              HasSubstr("AITER_ATTN_RECORD is 'list', but must be an absolute path"));
  unsetenv(kRecordVariable);
  EXPECT_EQ(record_file(), "");
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
