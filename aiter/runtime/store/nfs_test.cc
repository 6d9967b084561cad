// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Processes that share a cache on a file system of a network: its locks fail, or are each machine's
// own, and its renames come late (nfs_preload.cc). They may do the same work; no file is torn.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "aiter/runtime/store/cache.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

namespace fs = std::filesystem;

constexpr int kProcesses = 12, kKernels = 4;

Digest key(int kernel) { return sha256(&kernel, sizeof(kernel)); }

Bytes object(int kernel) {
  Bytes bytes(size_t{200000} + static_cast<size_t>(kernel));
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<unsigned char>(i * 31 + static_cast<size_t>(kernel));
  }
  return bytes;
}

// It counts in a file.
class Maker : public Provider {
 public:
  explicit Maker(fs::path counted) : counted_(std::move(counted)) {}
  std::string name() const override { return "the maker"; }
  std::optional<Bytes> get(const CodeObjectRef& ref) override {
    std::ofstream(counted_, std::ios::app) << 'x';
    for (int kernel = 0; kernel < kKernels; ++kernel) {
      if (ref.key == key(kernel)) return object(kernel);
    }
    return std::nullopt;
  }

 private:
  const fs::path counted_;
};

class Nfs : public ::testing::TestWithParam<const char*> {};

// One of the processes: not a test by itself.
TEST(Process, DISABLED_AsksForAll) {
  const fs::path folder = std::getenv("NFS_FOLDER");
  CacheOptions options;
  options.folder = folder / "code-objects";
  options.warn = [](const std::string& line) { ADD_FAILURE() << line; };
  CacheProvider cache(options, std::make_unique<Maker>(folder / "made"));
  for (int kernel = 0; kernel < kKernels; ++kernel) {
    // In an order of its own.
    const int one = (kernel + getpid()) % kKernels;
    EXPECT_EQ(cache.get({key(one), {}}), object(one));
  }
}

TEST_P(Nfs, NoFileIsTornAndAllAreKept) {
  const fs::path folder = fs::path(std::getenv("TEST_TMPDIR")) / GetParam();
  const std::string preload = fs::absolute(std::getenv("NFS"));
  fs::create_directories(folder);
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      setenv("LD_PRELOAD", preload.c_str(), 1);
      setenv("NFS_FOLDER", folder.c_str(), 1);
      if (std::string(GetParam()) == "locks_of_each") setenv("NFS_LOCKS", "1", 1);
      unsetenv("XML_OUTPUT_FILE");
      execl("/proc/self/exe", "nfs_test", "--gtest_also_run_disabled_tests",
            "--gtest_filter=Process.DISABLED_AsksForAll", nullptr);
      _exit(99);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  // Duplicate work at worst.
  const auto made = fs::file_size(folder / "made");
  EXPECT_GE(made, static_cast<uintmax_t>(kKernels));
  EXPECT_LE(made, static_cast<uintmax_t>(kKernels * kProcesses));
  // A process on a machine whose locks work finds all, and nothing that is unfinished.
  CacheOptions options;
  options.folder = folder / "code-objects";
  CacheProvider kept(options, nullptr);
  for (int kernel = 0; kernel < kKernels; ++kernel) {
    EXPECT_EQ(kept.get({key(kernel), {}}), object(kernel));
  }
  for (const auto& entry : fs::directory_iterator(options.folder)) {
    EXPECT_EQ(entry.path().extension(), ".object") << entry.path();
  }
}

INSTANTIATE_TEST_SUITE_P(Each, Nfs, ::testing::Values("no_locks", "locks_of_each"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
