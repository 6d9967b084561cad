// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/store/cache_limit.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <utility>
#include <vector>

#include "aiter/runtime/error.h"
#include "aiter/runtime/store/cache.h"
#include "tests/support/runtime/forked_child.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace fs = std::filesystem;

constexpr size_t kHeaderSize = 80;
constexpr size_t kObjectSize = 920;
constexpr uint64_t kFileSize = kHeaderSize + kObjectSize;

Digest key(int number) {
  const std::string text = std::to_string(number);
  return sha256(text.data(), text.size());
}

Bytes object(const Digest& key) { return Bytes(kObjectSize, key[0]); }

class Maker : public Provider {
 public:
  using Make = std::function<std::optional<Bytes>(const CodeObjectRef&)>;
  explicit Maker(Make make) : make_(std::move(make)) {}
  std::string name() const override { return "the maker"; }
  std::optional<Bytes> get(const CodeObjectRef& ref) override { return make_(ref); }

 private:
  const Make make_;
};

class CacheLimit : public ::testing::Test {
 protected:
  CacheLimit() {
    umask(022);
    fs::remove_all(folder_);
  }

  std::unique_ptr<CacheProvider> cache(Maker::Make make) {
    CacheOptions options;
    options.folder = folder_;
    options.warn = [this](const std::string& line) { warnings_.push_back(line); };
    options.max_size = max_size_;
    return std::make_unique<CacheProvider>(std::move(options),
                                           std::make_unique<Maker>(std::move(make)));
  }
  std::unique_ptr<CacheProvider> cache() {
    return cache([this](const CodeObjectRef& ref) {
      made_.push_back(ref.key);
      return object(ref.key);
    });
  }
  // As of a process that starts, needs these kernels, and ends.
  void use(const std::vector<int>& numbers) {
    const auto cache = this->cache();
    for (const int number : numbers) {
      ASSERT_EQ(cache->get({key(number), {}}), object(key(number)));
    }
  }
  fs::path file(int number, const char* suffix = ".object") const {
    return folder_ / (hex(key(number)) + suffix);
  }
  // As if it was last used so long ago.
  void age(int number, int seconds) const {
    struct stat status;
    ASSERT_EQ(stat(file(number).c_str(), &status), 0);
    const timespec then = {status.st_mtim.tv_sec - seconds, 0};
    const timespec times[] = {then, then};
    ASSERT_EQ(utimensat(AT_FDCWD, file(number).c_str(), times, 0), 0);
  }
  std::vector<int> kept(int numbers) const {
    std::vector<int> found;
    for (int i = 0; i < numbers; ++i) {
      if (fs::exists(file(i))) found.push_back(i);
    }
    return found;
  }
  uint64_t size() const {
    uint64_t size = 0;
    for (const auto& entry : fs::directory_iterator(folder_)) size += entry.file_size();
    return size;
  }
  std::vector<std::string> unfinished() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path().extension() == ".new") names.push_back(entry.path().filename());
    }
    return names;
  }
  // A child that makes an object and does not end until it is told to: by a byte, which it then
  // publishes, or by a signal.
  struct Making {
    pid_t child;
    int go;
  };
  Making start_maker(int number) {
    int said[2], told[2];
    if (pipe(said) != 0 || pipe(told) != 0) std::abort();
    const pid_t child = fork();
    if (child == 0) {
      alarm(100);
      const auto slow = cache([&](const CodeObjectRef& ref) -> std::optional<Bytes> {
        char byte = 'x';
        if (::write(said[1], &byte, 1) != 1 || ::read(told[0], &byte, 1) != 1) _exit(1);
        return object(ref.key);
      });
      _exit(slow->get({key(number), {}}) == object(key(number)) ? 0 : 1);
    }
    char byte;
    if (::read(said[0], &byte, 1) != 1) std::abort();
    for (const int end : {said[0], said[1], told[0]}) ::close(end);
    return {child, told[1]};
  }
  static int end_of(pid_t child) {
    int status = 0;
    return waitpid(child, &status, 0) == child ? status : -1;
  }

  const fs::path folder_ = fs::path(std::getenv("TEST_TMPDIR")) / "limited";
  uint64_t max_size_ = 5 * kFileSize;
  std::vector<Digest> made_;
  std::vector<std::string> warnings_;
};

TEST_F(CacheLimit, TheLeastRecentlyUsedGo) {
  max_size_ = 100 * kFileSize;
  use({0, 1, 2, 3});
  for (int i = 0; i < 4; ++i) age(i, 1000 * (i + 1));
  max_size_ = 4 * kFileSize + kFileSize / 2;
  use({4});  // five are too many: 3 is the oldest
  EXPECT_THAT(kept(5), ElementsAre(0, 1, 2, 4));
  use({5});
  EXPECT_THAT(kept(6), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(CacheLimit, WhatIsReadIsUsed) {
  use({0, 1, 2});
  for (int i = 0; i < 3; ++i) age(i, 1000 * (i + 1));
  ASSERT_EQ(testing::in_forked_child([this] {
              use({2});  // another process finds it
              return made_.size() == 3 ? 0 : 1;
            }),
            0);
  max_size_ = 3 * kFileSize + kFileSize / 2;
  use({3});
  EXPECT_THAT(kept(4), ElementsAre(0, 2, 3));
}

TEST_F(CacheLimit, AProcessThatGoesOnStaysWithinIt) {
  max_size_ = 100 * kFileSize;  // the folder is looked at with every second object
  const auto cache = this->cache();
  for (int i = 0; i < 300; ++i) {
    cache->get({key(i), {}});
    ASSERT_LE(size(), max_size_);
  }
  EXPECT_GE(size(), max_size_ * 9 / 10);
  EXPECT_TRUE(fs::exists(file(299)));
}

TEST_F(CacheLimit, OtherFilesAreLeftAlone) {
  fs::create_directories(folder_);
  const fs::path elsewhere = folder_.parent_path() / "elsewhere";
  std::ofstream(elsewhere) << std::string(100 * kFileSize, 'x');
  std::ofstream(folder_ / "notes.object") << std::string(100 * kFileSize, 'x');
  std::ofstream(folder_ / (hex(key(7)) + ".objects")) << std::string(100 * kFileSize, 'x');
  fs::create_symlink(elsewhere, file(8));
  fs::create_directory(file(9));
  use({0, 1, 2, 3, 4, 5});
  EXPECT_THAT(kept(6), ElementsAre(2, 3, 4, 5));
  for (const fs::path& path : {elsewhere, folder_ / "notes.object",
                               folder_ / (hex(key(7)) + ".objects"), file(8), file(9)}) {
    EXPECT_TRUE(fs::exists(path)) << path;
  }
}

TEST_F(CacheLimit, FilesOfFailuresGoFirst) {
  use({0, 1, 2});
  for (const int number : {7, 8})
    std::ofstream(file(number, ".failed")) << std::string(kFileSize, 'x');
  max_size_ = 4 * kFileSize + kFileSize / 2;
  use({3});
  EXPECT_THAT(kept(4), ElementsAre(0, 1, 2, 3));
  EXPECT_FALSE(fs::exists(file(7, ".failed")) || fs::exists(file(8, ".failed")));
}

TEST_F(CacheLimit, WhatAnotherProcessMakesStays) {
  use({0, 1, 2, 3});
  for (int i = 0; i < 4; ++i) age(i, 1000 * (4 - i));
  // It is damaged, and a process sets it aside and makes it anew.
  std::ofstream(file(0), std::ios::in | std::ios::binary) << "damaged";
  age(0, 5000);
  const auto maker = start_maker(0);
  max_size_ = 2 * kFileSize + kFileSize / 2;
  use({4});
  EXPECT_THAT(kept(5), ElementsAre(3, 4));
  EXPECT_FALSE(std::filesystem::exists(file(0, ".refused")));
  EXPECT_THAT(unfinished(), ElementsAre(hex(key(0)) + ".new"));
  ASSERT_EQ(::write(maker.go, "x", 1), 1);
  EXPECT_EQ(end_of(maker.child), 0);
  ::close(maker.go);
  made_.clear();
  use({0, 4});
  EXPECT_THAT(made_, IsEmpty());
  EXPECT_THAT(unfinished(), IsEmpty());
}

TEST_F(CacheLimit, AFileThatNobodyWritesGoes) {
  const auto written = file(0, ".new.0123456789abcdef"), left = file(0, ".new.0000000000000000");
  std::filesystem::create_directories(written.parent_path());
  for (const auto& path : {written, left}) std::ofstream(path) << "half of it";
  const int fd = ::open(written.c_str(), O_RDWR);
  ASSERT_EQ(::flock(fd, LOCK_EX | LOCK_NB), 0);
  use({1});
  EXPECT_TRUE(std::filesystem::exists(written));
  EXPECT_FALSE(std::filesystem::exists(left));
  ::close(fd);
  use({2});
  EXPECT_FALSE(std::filesystem::exists(written));
}

TEST_F(CacheLimit, WhatAKilledProcessLeftBehindGoes) {
  const auto maker = start_maker(0);
  std::ofstream(file(0, ".new")) << std::string(100 * kFileSize, 'x');
  use({1});
  EXPECT_THAT(unfinished(), ElementsAre(hex(key(0)) + ".new"));
  ASSERT_EQ(kill(maker.child, SIGKILL), 0);
  EXPECT_EQ(end_of(maker.child), SIGKILL);
  ::close(maker.go);
  use({2});
  EXPECT_THAT(unfinished(), IsEmpty());
  EXPECT_THAT(kept(3), ElementsAre(1, 2));
}

// Each removes objects that the other has just made or is about to read: both get theirs.
TEST_F(CacheLimit, TwoProcessesAtATime) {
  constexpr int kRounds = 20, kKernels = 24;
  std::vector<pid_t> children;
  for (int child = 0; child < 2; ++child) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    alarm(100);
    for (int round = 0; round < kRounds; ++round) {
      const auto cache = this->cache();
      for (int i = 0; i < kKernels; ++i) {
        const Digest wanted = key((child == 0 ? i : kKernels - i) % kKernels);
        if (cache->get({wanted, {}}) != object(wanted)) _exit(1);
      }
    }
    _exit(warnings_.empty() ? 0 : 2);
  }
  for (const pid_t child : children) EXPECT_EQ(end_of(child), 0);
  EXPECT_THAT(unfinished(), IsEmpty());
  EXPECT_LE(size(), max_size_);
  EXPECT_GE(size(), kFileSize);
}

TEST_F(CacheLimit, AnObjectThatIsLargerIsNotKept) {
  use({0});
  max_size_ = kFileSize - 1;
  const auto small = cache();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(small->get({key(1), {}}), object(key(1)));
  EXPECT_THAT(made_, ElementsAre(key(0), key(1)));
  EXPECT_THAT(kept(2), ElementsAre(0));
  EXPECT_THAT(unfinished(), IsEmpty());
  EXPECT_THAT(warnings_,
              ElementsAre(AllOf(HasSubstr("not kept: one has 920 bytes"), HasSubstr("at most 999"),
                                HasSubstr("raise AITER_ATTN_CACHE_MAX_SIZE"))));
}

TEST(CacheMaxSize, IsNamedByTheEnvironment) {
  const auto named = [](const char* text) {
    setenv(kCacheSizeVariable, text, 1);
    return cache_max_size();
  };
  unsetenv(kCacheSizeVariable);
  EXPECT_EQ(cache_max_size(), uint64_t{1} << 30);
  EXPECT_EQ(named(""), uint64_t{1} << 30);
  EXPECT_EQ(named("1048576"), 1048576);
  EXPECT_EQ(named("2000K"), 2048000);
  EXPECT_EQ(named("1M"), 1048576);
  EXPECT_EQ(named("3G"), uint64_t{3} << 30);
  EXPECT_EQ(named("2T"), uint64_t{2} << 40);
  EXPECT_EQ(named("18446744073709551615"), ~uint64_t{0});
  for (const char* wrong : {"0", "1048575", "1023K", "M", "-1", "+1M", "1.5G", "1 G", "1g", "1GB",
                            "1P", "unlimited", "18446744073709551616", "16777216T", "\xff"}) {
    try {
      named(wrong);
      ADD_FAILURE() << wrong;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::kInvalidArgument);
      EXPECT_THAT(error.what(), AllOf(HasSubstr("AITER_ATTN_CACHE_MAX_SIZE is '"),
                                      HasSubstr("K, M, G or T"), HasSubstr("from 1M on")));
    }
  }
  unsetenv(kCacheSizeVariable);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
