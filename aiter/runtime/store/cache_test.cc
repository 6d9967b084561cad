// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/store/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

#include "aiter/runtime/error.h"
#include "aiter/runtime/interrupt.h"
#include "aiter/runtime/store/file.h"
#include "tests/support/runtime/error_of.h"
#include "tests/support/runtime/forked_child.h"
#include "tests/support/runtime/tiny_elf.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

namespace fs = std::filesystem;

Digest key(const std::string& text) { return sha256(text.data(), text.size()); }

const Digest kKey = key("a kernel");
const Bytes kObject = {1, 2, 3, 4, 5, 6, 7, 8, 9};

class Maker : public Provider {
 public:
  using Make = std::function<std::optional<Bytes>(const CodeObjectRef&)>;
  explicit Maker(Make make) : make_(std::move(make)) {}
  std::string name() const override { return "the maker"; }
  std::optional<Bytes> get(const CodeObjectRef& ref) override { return make_(ref); }

 private:
  const Make make_;
};

Bytes contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const fs::path& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

// The message with which a call is refused.
template <typename Call>
std::string refusal(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::kCorrupt);
    return error.what();
  }
  return "nothing thrown";
}

class Cache : public ::testing::Test {
 protected:
  Cache() {
    umask(022);
    fs::remove_all(folder_);
  }

  std::unique_ptr<CacheProvider> cache(Maker::Make make) {
    CacheOptions options;
    options.folder = folder_;
    options.warn = [this](const std::string& line) { warnings_.push_back(line); };
    options.tell = [this](const std::string& line) { told_.push_back(line); };
    options.patience = patience_;
    return std::make_unique<CacheProvider>(std::move(options),
                                           std::make_unique<Maker>(std::move(make)));
  }
  // It counts, and gives kObject.
  std::unique_ptr<CacheProvider> counting() {
    return cache([this](const CodeObjectRef&) {
      ++made_;
      return kObject;
    });
  }
  // A child that holds the lock of kKey: it has said so, and makes its object forever, after
  // meanwhile().
  template <typename Meanwhile>
  pid_t start_stuck_child(Meanwhile&& meanwhile) {
    int pipes[2];
    if (pipe(pipes) != 0) std::abort();
    const pid_t child = fork();
    if (child == 0) {
      alarm(100);
      const auto stuck = cache([&](const CodeObjectRef&) -> std::optional<Bytes> {
        meanwhile();
        if (::write(pipes[1], "x", 1) != 1) _exit(1);
        while (true) pause();
      });
      stuck->get({kKey, {}});
      _exit(0);
    }
    char byte;
    if (::read(pipes[0], &byte, 1) != 1) std::abort();
    ::close(pipes[0]);
    ::close(pipes[1]);
    return child;
  }
  pid_t start_stuck_child() {
    return start_stuck_child([] {});
  }
  fs::path file(const char* suffix) const { return folder_ / (hex(kKey) + suffix); }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  const fs::path folder_ = fs::path(std::getenv("TEST_TMPDIR")) / "made/by/the/cache";
  std::chrono::milliseconds patience_ = std::chrono::seconds(60);
  std::atomic<int> made_{0};
  std::vector<std::string> warnings_, told_;
};

TEST_F(Cache, WhatIsMadeIsKeptForOtherProcesses) {
  EXPECT_EQ(counting()->get({kKey, {}}), kObject);
  EXPECT_EQ(counting()->get({kKey, {}}), kObject);
  EXPECT_EQ(counting()->get({kKey, sha256(kObject.data(), kObject.size())}), kObject);
  EXPECT_EQ(made_, 1);
  EXPECT_THAT(files(), ElementsAre(hex(kKey) + ".object"));
  EXPECT_EQ(fs::status(folder_).permissions(), fs::perms::owner_all);
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_THAT(counting()->name(), AllOf(HasSubstr("the maker"), HasSubstr(folder_.string())));
}

TEST_F(Cache, WhatCannotBeMadeIsNotKept) {
  EXPECT_EQ(cache([](const CodeObjectRef&) { return std::nullopt; })->get({kKey, {}}),
            std::nullopt);
  EXPECT_THAT(files(), IsEmpty());
}

// An object that its maker cannot know leaves no trace, and waits for no other process.
TEST_F(Cache, AnObjectThatItsMakerCannotHaveIsOnlyReadIfItIsThere) {
  class Particular : public Maker {
   public:
    using Maker::Maker;
    bool may_have(const CodeObjectRef& ref) const override { return static_cast<bool>(ref.spec); }
  };
  CacheOptions options;
  options.folder = folder_;
  CacheProvider cache(std::move(options), std::make_unique<Particular>([this](const auto&) {
                        ++made_;
                        return kObject;
                      }));
  EXPECT_EQ(cache.get({kKey, {}}), std::nullopt);
  EXPECT_FALSE(fs::exists(folder_));
  EXPECT_EQ(cache.get({kKey, {}, [] { return CodeObjectSpec(); }}), kObject);
  EXPECT_EQ(cache.get({kKey, {}}), kObject);
  EXPECT_EQ(made_, 1);
}

TEST_F(Cache, ADamagedFileIsReplaced) {
  counting()->get({kKey, {}});
  const Bytes whole = contents(file(".object"));
  std::vector<Bytes> damaged;
  for (size_t i = 0; i < whole.size(); ++i) {
    damaged.push_back(whole);
    damaged.back()[i] ^= 0x40;
    damaged.push_back({whole.begin(), whole.begin() + static_cast<ptrdiff_t>(i)});
  }
  damaged.push_back(whole);
  damaged.back().push_back(0);
  for (const Bytes& bytes : damaged) {
    write(file(".object"), bytes);
    made_ = 0;
    ASSERT_EQ(counting()->get({kKey, {}}), kObject);
    ASSERT_EQ(made_, 1);
    ASSERT_EQ(contents(file(".object")), whole);
  }
}

TEST_F(Cache, AnotherKernelIsSetAsideAndMadeAgain) {
  const Bytes wrong = testing::tiny_code_object("f", "", testing::TinyMetadata{24, 64});
  const Bytes right = testing::tiny_code_object("f", "", testing::TinyMetadata{16, 64});
  cache([&](const CodeObjectRef&) { return wrong; })->get({kKey, {}});
  CodeObjectRef ref = {kKey, {}};
  ref.kernel = KernelFacts{"f", 16, 64};
  EXPECT_EQ(cache([&](const CodeObjectRef&) { return right; })->get(ref), right);
  EXPECT_EQ(cache([&](const CodeObjectRef&) { return wrong; })->get(ref), right);
  ASSERT_THAT(warnings_, SizeIs(1));
  EXPECT_THAT(warnings_[0],
              AllOf(HasSubstr(".object' has f with 24 bytes of arguments, but this library's host "
                              "code makes 16, and is not believed"),
                    HasSubstr("it is set aside as " + hex(kKey) + ".refused")));
}

// No memory is asked for the holes that a file may have.
TEST_F(Cache, AFileThatIsNearlyAllHolesIsReplaced) {
  counting()->get({kKey, {}});
  const Bytes whole = contents(file(".object"));
  const uint64_t size = uint64_t{8} << 40;
  Bytes header(whole.begin(), whole.begin() + 80);
  std::memcpy(header.data() + 72, &size, sizeof(size));
  write(file(".object"), header);
  fs::resize_file(file(".object"), header.size() + size);
  made_ = 0;
  EXPECT_EQ(counting()->get({kKey, {}}), kObject);
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(contents(file(".object")), whole);
}

TEST_F(Cache, AFileUnderAnotherKeysNameIsNone) {
  counting()->get({key("another kernel"), {}});
  fs::rename(folder_ / (hex(key("another kernel")) + ".object"), file(".object"));
  EXPECT_EQ(counting()->get({kKey, {}}), kObject);
  EXPECT_EQ(made_, 2);
}

// Whoever may write to the folder neither has this process run code, nor write elsewhere.
TEST_F(Cache, AnObjectThatOthersCouldHaveMadeIsReplaced) {
  counting()->get({kKey, {}});
  const Bytes whole = contents(file(".object"));
  const fs::path elsewhere = folder_.parent_path() / "elsewhere";
  write(elsewhere, whole);
  const std::vector<std::function<void()>> places = {
      [&] { fs::create_symlink(elsewhere, file(".object")); },
      [&] { ASSERT_EQ(mkfifo(file(".object").c_str(), 0600), 0); },
      [&] {
        write(file(".object"), whole);
        fs::permissions(file(".object"), fs::perms(0666));
      },
  };
  for (const auto& place : places) {
    fs::remove(file(".object"));
    place();
    made_ = 0;
    warnings_.clear();
    ASSERT_EQ(counting()->get({kKey, {}}), kObject);
    ASSERT_EQ(counting()->get({kKey, {}}), kObject);
    ASSERT_EQ(made_, 1);
    ASSERT_TRUE(fs::is_regular_file(fs::symlink_status(file(".object"))));
    ASSERT_EQ(contents(elsewhere), whole);
    ASSERT_THAT(warnings_, ElementsAre(AllOf(HasSubstr(file(".object").string()),
                                             HasSubstr("is set aside as " + hex(kKey)))));
  }
}

// Objects that were put there serve without a maker, as far as they can be believed.
TEST_F(Cache, WithoutAMakerItHasWhatIsThere) {
  CacheOptions options;
  options.folder = folder_;
  options.warn = [this](const std::string& line) { warnings_.push_back(line); };
  CacheProvider cache(std::move(options), nullptr);
  EXPECT_EQ(cache.get({kKey, {}}), std::nullopt);
  EXPECT_FALSE(cache.look({kKey, {}}).has);
  EXPECT_FALSE(fs::exists(folder_));
  counting()->get({kKey, {}});
  EXPECT_EQ(cache.get({kKey, {}}), kObject);
  EXPECT_TRUE(cache.look({kKey, {}}).has);

  // The library knows better than the file.
  const Digest other = key("other bytes");
  const std::string why = "instead of " + hex(other);
  EXPECT_THAT(refusal([&] { cache.look({kKey, other}); }), HasSubstr(why));
  EXPECT_TRUE(fs::exists(file(".object")));
  EXPECT_THAT(refusal([&] { cache.get({kKey, other}); }), HasSubstr(why));
  EXPECT_THAT(files(), ElementsAre(hex(kKey) + ".refused"));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr(why)));
  EXPECT_EQ(cache.get({kKey, other}), std::nullopt);  // it recovers
}

TEST_F(Cache, AFileThatCannotBeSetAsideIsToldAndNotBelieved) {
  counting()->get({kKey, {}});
  Bytes damaged = contents(file(".object"));
  damaged.back() ^= 1;
  write(file(".object"), damaged);
  fs::permissions(folder_, fs::perms(0777));  // it may be anybody's: nothing is written there
  EXPECT_EQ(counting()->get({kKey, {}}), kObject);
  EXPECT_EQ(contents(file(".object")), damaged);
  EXPECT_THAT(warnings_, ::testing::Contains(HasSubstr("cannot be set aside")));
}

TEST_F(Cache, AFileThatOthersPutInTheWritersPlaceIsLeftAlone) {
  fs::create_directories(folder_);
  const fs::path elsewhere = folder_.parent_path() / "elsewhere";
  const Bytes precious = {1, 2, 3};
  const std::vector<std::function<void()>> places = {
      [&] { fs::create_symlink(elsewhere, file(".new")); },
      [&] { fs::create_hard_link(elsewhere, file(".new")); },
      [&] { ASSERT_EQ(mkfifo(file(".new").c_str(), 0600), 0); },
      [&] {
        write(file(".new"), {});
        fs::permissions(file(".new"), fs::perms(0666));
      },
  };
  for (const auto& place : places) {
    write(elsewhere, precious);
    fs::remove(file(".new"));
    place();
    warnings_.clear();
    made_ = 0;
    const auto cache = counting();
    ASSERT_EQ(cache->get({kKey, {}}), kObject);
    ASSERT_EQ(cache->get({kKey, {}}), kObject);
    ASSERT_EQ(made_, 1);
    ASSERT_EQ(contents(elsewhere), precious);
    ASSERT_THAT(warnings_, ElementsAre(HasSubstr(file(".new").string())));
    ASSERT_THAT(files(), ElementsAre(hex(kKey) + ".new"));
  }
}

TEST_F(Cache, NothingIsWrittenToAFolderOfAll) {
  fs::create_directories(folder_);
  fs::permissions(folder_, fs::perms(0777));
  EXPECT_EQ(counting()->get({kKey, {}}), kObject);
  EXPECT_THAT(files(), IsEmpty());
  EXPECT_THAT(warnings_, ElementsAre(AllOf(HasSubstr("'" + folder_.string() + "' belongs"),
                                           HasSubstr("AITER_ATTN_CACHE_DIR"))));
  fs::permissions(folder_, fs::perms(01777));  // as /tmp
  EXPECT_EQ(counting()->get({kKey, {}}), kObject);
  EXPECT_THAT(files(), ElementsAre(hex(kKey) + ".object"));
}

TEST(Folder, IsTrustedWhereOthersDoNotReplaceFiles) {
  const auto folder = [](uid_t owner, mode_t mode) {
    struct stat status = {};
    status.st_uid = owner;
    status.st_mode = S_IFDIR | mode;
    return status;
  };
  const uid_t other = geteuid() + 1;
  for (const uid_t trusted : {geteuid(), uid_t{0}}) {
    EXPECT_TRUE(is_trusted_folder(folder(trusted, 0755)));
    EXPECT_TRUE(is_trusted_folder(folder(trusted, 01777)));
    EXPECT_FALSE(is_trusted_folder(folder(trusted, 0777)));
  }
  EXPECT_FALSE(is_trusted_folder(folder(other, 0755)));
  EXPECT_FALSE(is_trusted_folder(folder(other, 01777)));
}

TEST_F(Cache, AnErrorIsKeptForItsKey) {
  const auto failing = cache([this](const CodeObjectRef& ref) -> std::optional<Bytes> {
    ++made_;
    if (ref.key == kKey) fail(Status::kInternal, "does not compile");
    return kObject;
  });
  for (int i = 0; i < 3; ++i) {
    try {
      failing->get({kKey, {}});
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::kInternal);
      EXPECT_STREQ(error.what(), "does not compile");
    }
  }
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(failing->get({key("another kernel"), {}}), kObject);
  EXPECT_THAT(files(), ElementsAre(hex(key("another kernel")) + ".object"));
}

TEST_F(Cache, WhatMayPassIsNot) {
  for (const Status status : {Status::kOutOfMemory, Status::kDriver}) {
    made_ = 0;
    const Digest own = key(std::to_string(static_cast<int>(status)));
    const auto failing = cache([&](const CodeObjectRef&) -> std::optional<Bytes> {
      if (made_++ == 0) fail(status, "for now");
      return kObject;
    });
    EXPECT_THROW(failing->get({own, {}}), Error);
    EXPECT_EQ(failing->get({own, {}}), kObject);
  }
}

TEST_F(Cache, ThreadsMakeAnObjectOnce) {
  const auto slow = cache([this](const CodeObjectRef&) {
    ++made_;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return kObject;
  });
  std::vector<std::future<std::optional<Bytes>>> threads;
  for (int i = 0; i < 8; ++i) {
    threads.push_back(std::async(std::launch::async, [&] { return slow->get({kKey, {}}); }));
  }
  for (auto& thread : threads) EXPECT_EQ(thread.get(), kObject);
  EXPECT_EQ(made_, 1);
}

TEST_F(Cache, AKeyDoesNotWaitForAnother) {
  std::promise<void> started, finish;
  const auto one_is_slow = cache([&](const CodeObjectRef& ref) {
    if (ref.key == kKey) {
      started.set_value();
      finish.get_future().wait();
    }
    return kObject;
  });
  auto slow = std::async(std::launch::async, [&] { return one_is_slow->get({kKey, {}}); });
  started.get_future().wait();
  // Without the right order, this does not return.
  EXPECT_EQ(one_is_slow->get({key("another kernel"), {}}), kObject);
  finish.set_value();
  EXPECT_EQ(slow.get(), kObject);
}

TEST_F(Cache, ProcessesMakeAnObjectOnce) {
  fs::create_directories(folder_);
  const fs::path log = folder_.parent_path() / "log";
  fs::remove(log);
  std::vector<pid_t> children;
  for (int i = 0; i < 6; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    alarm(100);
    const auto slow = cache([&](const CodeObjectRef&) {
      std::ofstream(log, std::ios::app) << "x";
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      return kObject;
    });
    _exit(slow->get({kKey, {}}) == kObject ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_THAT(contents(log), SizeIs(1));
  EXPECT_THAT(files(), ElementsAre(hex(kKey) + ".object"));
}

TEST_F(Cache, AKilledWritersLockAndFileAreTheNextOnes) {
  const pid_t child = start_stuck_child();
  write(file(".new"), Bytes(100000, 7));  // as if it had begun to write
  auto next = std::async(std::launch::async, [this] { return counting()->get({kKey, {}}); });
  EXPECT_EQ(next.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  ASSERT_EQ(kill(child, SIGKILL), 0);
  EXPECT_EQ(next.get(), kObject);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(counting()->get({kKey, {}}), kObject);
  EXPECT_EQ(made_, 1);
  EXPECT_THAT(files(), ElementsAre(hex(kKey) + ".object"));
}

TEST_F(Cache, AKilledWritersChildrenDoNotHoldItsLock) {
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const pid_t child = start_stuck_child([&] {
    if (fork() != 0) return;
    alarm(100);
    char byte;
    _exit(::read(pipes[0], &byte, 1) == 1 ? 0 : 1);  // lives until the test ends it
  });
  ASSERT_EQ(kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(counting()->get({kKey, {}}), kObject);
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_THAT(files(), ElementsAre(hex(kKey) + ".object"));
  ASSERT_EQ(::write(pipes[1], "x", 1), 1);
  ::close(pipes[0]);
  ::close(pipes[1]);
}

// The forked child of the maker's own thread has no lock, and leaves the file alone.
TEST_F(Cache, AChildOfAWriterKeepsNothing) {
  const auto forking = cache([](const CodeObjectRef&) -> std::optional<Bytes> {
    if (fork() == 0) return Bytes{0};  // goes on as if it were the writer
    int status = 0;
    wait(&status);
    return kObject;
  });
  const pid_t parent = getpid();
  const std::optional<Bytes> bytes = forking->get({kKey, {}});
  if (getpid() != parent) _exit(0);
  EXPECT_EQ(bytes, kObject);
  EXPECT_EQ(counting()->get({kKey, {}}), kObject);
  EXPECT_EQ(made_, 0);
}

TEST_F(Cache, AProcessThatIsStoppedIsNotWaitedForForever) {
  const pid_t child = start_stuck_child();
  patience_ = std::chrono::milliseconds(20);
  const auto impatient = counting();
  EXPECT_EQ(impatient->get({kKey, {}}), kObject);
  EXPECT_EQ(impatient->get({kKey, {}}), kObject);
  EXPECT_EQ(made_, 1);
  EXPECT_THAT(warnings_, ElementsAre(AllOf(HasSubstr("process " + std::to_string(child) + " on "),
                                           HasSubstr(" has held the lock of '" +
                                                     file(".new").string() + "' for 20 ms"))));
  EXPECT_THAT(files(), ElementsAre(hex(kKey) + ".new"));  // the child's
  ASSERT_EQ(kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
}

TEST_F(Cache, SaysAfterASecondWhomItWaitsFor) {
  const pid_t child = start_stuck_child();
  patience_ = std::chrono::milliseconds(1500);
  CodeObjectRef ref = {kKey, {}};
  ref.name = [] { return std::string("fmha_fwd"); };
  EXPECT_EQ(counting()->get(ref), kObject);
  ASSERT_EQ(told_.size(), 1);
  EXPECT_THAT(told_[0],
              ::testing::MatchesRegex("aiter-attn: waiting for process " + std::to_string(child) +
                                      " on .+, which makes fmha_fwd"));
  ASSERT_EQ(kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
}

TEST_F(Cache, AWaitIsInterrupted) {
  const pid_t child = start_stuck_child();
  patience_ = std::chrono::seconds(60);
  int polls = 0;
  thread_interrupt() = {[](void* count) { return ++*static_cast<int*>(count) > 3 ? 1 : 0; },
                        &polls};
  const auto waiting = counting();
  const Error error = testing::error_of([&] { waiting->get({kKey, {}}); });
  EXPECT_EQ(error.status(), Status::kInterrupted);
  // Also where it is a thread of this process that makes it.
  std::promise<void> started, done;
  const pid_t parent = getpid();
  patience_ = std::chrono::milliseconds(20);
  const auto slow = cache([&](const CodeObjectRef&) -> std::optional<Bytes> {
    if (getpid() != parent) return kObject;
    started.set_value();
    done.get_future().wait();
    return kObject;
  });
  const Digest other = key("another kernel");
  std::thread maker([&] { EXPECT_EQ(slow->get({other, {}}), kObject); });
  started.get_future().wait();
  polls = 0;
  EXPECT_EQ(testing::error_of([&] { slow->get({other, {}}); }).status(), Status::kInterrupted);
  thread_interrupt() = {};
  // A child that is forked meanwhile has no such thread, and makes it for itself.
  EXPECT_EQ(testing::in_forked_child([&] { return slow->get({other, {}}) == kObject ? 0 : 1; }), 0);
  done.set_value();
  maker.join();
  ASSERT_EQ(kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
}

TEST_F(Cache, AFolderThatCannotBeMadeIsSaidOnce) {
  fs::create_directories(folder_.parent_path());
  write(folder_, {});  // a file
  const auto cache = counting();
  EXPECT_EQ(cache->get({kKey, {}}), kObject);
  EXPECT_EQ(cache->get({kKey, {}}), kObject);
  EXPECT_EQ(cache->get({key("another kernel"), {}}), kObject);
  EXPECT_EQ(made_, 2);
  ASSERT_THAT(warnings_, SizeIs(1));
  EXPECT_THAT(warnings_[0], AllOf(HasSubstr(folder_.string()), HasSubstr("Not a directory"),
                                  HasSubstr("remove the file"), HasSubstr("AITER_ATTN_CACHE_DIR")));
}

// The folder that could not be made is named, with its own reason.
TEST_F(Cache, AParentThatCannotBeWrittenToIsSaidOnce) {
  const fs::path parent = folder_.parent_path();
  fs::remove_all(parent);
  fs::create_directories(parent.parent_path());
  fs::permissions(parent.parent_path(), fs::perms(0500));
  const int result = testing::in_forked_child([&] {
    // Without its capabilities, root is refused as any user is.
    uint32_t header[] = {0x20080522, 0};  // the version of capset()'s structs; this process
    const uint32_t none[6] = {};
    if (syscall(SYS_capset, header, none) != 0) return 1;
    const auto cache = counting();
    if (cache->get({kKey, {}}) != kObject || cache->get({kKey, {}}) != kObject) return 2;
    if (warnings_.size() != 1 || made_ != 1) return 3;
    const std::string expected = "cannot make the folder '" + parent.string() +
                                 "': Permission denied; give this user the right to write there, " +
                                 "or name another folder in AITER_ATTN_CACHE_DIR";
    return warnings_[0].find(expected) == std::string::npos ? 4 : 0;
  });
  fs::permissions(parent.parent_path(), fs::perms(0700));
  EXPECT_EQ(result, 0);
}

TEST_F(Cache, WhatIsInAFolderThatCannotBeWrittenToServes) {
  counting()->get({kKey, {}});
  const Digest other = key("another kernel");
  // As good as write-protected, for root, too.
  fs::create_directory(folder_ / (hex(other) + ".new"));
  const auto cache = counting();
  EXPECT_EQ(cache->get({other, {}}), kObject);
  EXPECT_THAT(warnings_, SizeIs(1));
  made_ = 0;
  EXPECT_EQ(cache->get({kKey, {}}), kObject);
  EXPECT_EQ(made_, 0);
}

TEST_F(Cache, AFullDiskLeavesNothingBehind) {
  const int result = testing::in_forked_child([this] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {85, 85};  // ends within the object
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    const auto cache = counting();
    if (cache->get({kKey, {}}) != kObject || cache->get({kKey, {}}) != kObject) return 2;
    return warnings_.size() == 1 && made_ == 1 ? 0 : 3;
  });
  EXPECT_EQ(result, 0);
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(Cache, WithoutAFolderThisProcessKeepsIt) {
  CacheProvider cache({}, std::make_unique<Maker>([this](const CodeObjectRef&) {
                        ++made_;
                        return kObject;
                      }));
  EXPECT_EQ(cache.get({kKey, {}}), kObject);
  EXPECT_EQ(cache.get({kKey, {}}), kObject);
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(cache.name(), "the maker");
}

TEST(UserCacheFolder, IsNamedByTheEnvironment) {
  setenv("HOME", "/home/me", 1);
  unsetenv("XDG_CACHE_HOME");
  unsetenv("AITER_ATTN_CACHE_DIR");
  unsetenv("CK_JIT_CACHE_DIR");
  EXPECT_EQ(user_cache_folder(), "/home/me/.cache/aiter-attn/code-objects");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(user_cache_folder(), "/home/me/.cache/aiter-attn/code-objects");
  setenv("XDG_CACHE_HOME", "/cache", 1);
  EXPECT_EQ(user_cache_folder(), "/cache/aiter-attn/code-objects");
  setenv("CK_JIT_CACHE_DIR", "/ck_jit", 1);
  EXPECT_EQ(user_cache_folder(), "/ck_jit/aiter-attn/code-objects");
  setenv("AITER_ATTN_CACHE_DIR", "/mine", 1);
  EXPECT_EQ(user_cache_folder(), "/mine/code-objects");
  for (const std::string name : {"AITER_ATTN_CACHE_DIR", "CK_JIT_CACHE_DIR"}) {
    setenv(name.c_str(), "mine", 1);
    const Error error = testing::error_of([] { user_cache_folder(); });
    EXPECT_EQ(error.status(), Status::kInvalidArgument);
    EXPECT_THAT(error.what(), AllOf(HasSubstr(name + " is 'mine'"), HasSubstr("absolute")));
    setenv(name.c_str(), "", 1);
  }
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  EXPECT_EQ(user_cache_folder(), "");
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
