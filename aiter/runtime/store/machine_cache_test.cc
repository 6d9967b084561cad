// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/store/machine_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "aiter/runtime/error.h"
#include "aiter/runtime/store/cache.h"
#include "tests/support/runtime/error_of.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

const Bytes kObject = {1, 2, 3};

class Maker : public Provider {
 public:
  std::string name() const override { return "the maker"; }
  std::optional<Bytes> get(const CodeObjectRef&) override { return kObject; }
};

// A cache that its owner has filled as a user's.
class MachineCache : public ::testing::Test {
 protected:
  MachineCache() {
    fs::remove_all(folder_);
    CacheOptions options;
    options.folder = folder_ / "code-objects";
    CacheProvider(options, std::make_unique<Maker>()).get(unproven());
  }
  static CodeObjectRef unproven() { return {sha256("key", 3), {}}; }
  static CodeObjectRef proven() {
    return {sha256("key", 3), sha256(kObject.data(), kObject.size())};
  }
  std::string refusal(const CodeObjectRef& ref) {
    const Error error = error_of([&] { cache_.get(ref); });
    EXPECT_EQ(error.status(), Status::kCorrupt);
    EXPECT_EQ(std::string(error_of([&] { cache_.look(ref); }).what()), error.what());
    return error.what();
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  const fs::path folder_ = fs::path(::testing::TempDir()) / "machine";
  const fs::path file_ = folder_ / "code-objects" / (hex(unproven().key) + ".object");
  MachineCacheProvider cache_{folder_};
};

TEST_F(MachineCache, ServesAndWritesNothing) {
  const timespec then[] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, file_.c_str(), then, 0), 0);
  EXPECT_EQ(cache_.get(unproven()), kObject);
  EXPECT_EQ(cache_.get(proven()), kObject);
  EXPECT_TRUE(cache_.look(proven()).has);
  struct stat status;
  ASSERT_EQ(stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mtim.tv_sec, 1000);
  EXPECT_EQ(cache_.name(), "the machine's cache '" + folder_.string() + "'");
}

TEST_F(MachineCache, WithoutAnObjectHasNothing) {
  fs::remove(file_);
  EXPECT_FALSE(cache_.get(proven()));
  EXPECT_FALSE(cache_.look(proven()).has);
  EXPECT_FALSE(MachineCacheProvider("/nowhere").get(proven()));
}

TEST_F(MachineCache, ADigestProvesAFileOfAnybodys) {
  fs::permissions(file_, fs::perms::all);
  EXPECT_EQ(cache_.get(proven()), kObject);
  EXPECT_THAT(refusal(unproven()), HasSubstr("belongs to another user, or others may write to it"));
}

TEST_F(MachineCache, RefusesDamageAndLeavesItThere) {
  const auto before = files();
  CodeObjectRef other = proven();
  (*other.sha256)[0] ^= 1;
  EXPECT_THAT(refusal(other), HasSubstr("instead of " + hex(*other.sha256)));
  fs::resize_file(file_, 82);
  EXPECT_THAT(refusal(proven()), HasSubstr("is cut off: it has 82 bytes, and is not believed"));
  fs::rename(file_, folder_ / "object");
  fs::create_symlink(folder_ / "object", file_);
  EXPECT_THAT(refusal(proven()), HasSubstr("is a link"));
  fs::remove(folder_ / "object");
  EXPECT_EQ(files(), before);
}

TEST(MachineCacheFolder, IsAbsolute) {
  unsetenv(kMachineCacheVariable);
  EXPECT_EQ(machine_cache_folder(), "");
  setenv(kMachineCacheVariable, "/opt/attn", 1);
  EXPECT_EQ(machine_cache_folder(), "/opt/attn");
  setenv(kMachineCacheVariable, "attn", 1);
  EXPECT_THAT(error_of([] { machine_cache_folder(); }).what(),
              HasSubstr("AITER_ATTN_MACHINE_CACHE is 'attn', but must be an absolute path"));
  unsetenv(kMachineCacheVariable);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
