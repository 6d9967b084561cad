// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Processes that use a cache and a pack while calls of the system fail, files are damaged, and
// processes are killed: every object that they get is the right one, none of them hangs, and the
// next process finds, or makes, all that it needs. The functions of libc that the store calls are
// replaced in this program; a child's plan says which of its calls goes wrong, and how.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "aiter/runtime/error.h"
#include "aiter/runtime/store/cache.h"
#include "aiter/runtime/store/pack_file.h"
#include "tests/support/runtime/pack.h"

namespace {

namespace fs = std::filesystem;

// ---- failing calls

enum Fault { kKill, kTorn, kNoSpace, kIoError, kReadOnly, kNoLock, kShortWrite, kVanish, kFaults };
constexpr const char* kFaultNames[] = {
    "killed",        "killed within a write", "ENOSPC", "EIO", "EROFS", "ENOLCK",
    "a short write", "the folder vanishes"};

struct Plan {
  Fault fault = kFaults;
  int calls_before = -1;  // -1: all is well
  fs::path folder;
};
Plan plan;

// By fault: processes that it struck. In memory that children share.
int* const struck = static_cast<int*>(mmap(nullptr, sizeof(int) * kFaults, PROT_READ | PROT_WRITE,
                                           MAP_SHARED | MAP_ANONYMOUS, -1, 0));

// Returns true, and counts the plan's first stroke.
bool strike() {
  static bool counted = false;
  if (!std::exchange(counted, true)) __atomic_fetch_add(&struck[plan.fault], 1, __ATOMIC_RELAXED);
  return true;
}

enum Call { kRead, kWrite, kSync, kMake, kRename, kLock };

template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// Whether a call fails, with errno; the process may end here, or lose its folder.
bool fails(Call call) {
  if (plan.calls_before < 0) return false;
  if (plan.calls_before > 0) {
    --plan.calls_before;
    return false;
  }
  // From here on each call that can fail so does.
  const bool writes = call == kWrite || call == kMake || call == kRename;
  switch (plan.fault) {
    case kKill:
      strike();
      raise(SIGKILL);
      return false;
    case kNoSpace:
      errno = ENOSPC;
      return (call == kWrite || call == kMake) && strike();
    case kIoError:
      errno = EIO;
      return (call == kRead || call == kWrite || call == kSync) && strike();
    case kReadOnly:
      errno = EROFS;
      return writes && strike();
    case kNoLock:
      errno = ENOLCK;
      return call == kLock && strike();
    case kVanish: {
      strike();
      plan.calls_before = -1;
      const fs::path folder = std::exchange(plan.folder, {});
      std::error_code ignored;
      fs::remove_all(folder, ignored);
      return false;
    }
    case kTorn:
    case kShortWrite:
    case kFaults:
      return false;
  }
  return false;
}

}  // namespace

extern "C" {

ssize_t write(int fd, const void* data, size_t size) {
  static auto* const call = real<ssize_t(int, const void*, size_t)>("write");
  if (fails(kWrite)) return -1;
  if (plan.calls_before == 0 && size > 1) {
    if (plan.fault == kShortWrite && strike()) size /= 2;
    if (plan.fault == kTorn && strike()) {
      call(fd, data, size / 2);
      raise(SIGKILL);
    }
  }
  return call(fd, data, size);
}

ssize_t read(int fd, void* data, size_t size) {
  static auto* const call = real<ssize_t(int, void*, size_t)>("read");
  return fails(kRead) ? -1 : call(fd, data, size);
}

ssize_t pread(int fd, void* data, size_t size, off_t offset) {
  static auto* const call = real<ssize_t(int, void*, size_t, off_t)>("pread");
  return fails(kRead) ? -1 : call(fd, data, size, offset);
}

int fsync(int fd) {
  static auto* const call = real<int(int)>("fsync");
  return fails(kSync) ? -1 : call(fd);
}

int ftruncate(int fd, off_t size) noexcept {
  static auto* const call = real<int(int, off_t)>("ftruncate");
  return fails(kWrite) ? -1 : call(fd, size);
}

int open(const char* path, int flags, ...) {
  static auto* const call = real<int(const char*, int, ...)>("open");
  va_list more;
  va_start(more, flags);
  const unsigned mode = va_arg(more, unsigned);
  va_end(more);
  return fails(flags & O_CREAT ? kMake : kRead) ? -1 : call(path, flags, mode);
}

int mkdir(const char* path, mode_t mode) noexcept {
  static auto* const call = real<int(const char*, mode_t)>("mkdir");
  return fails(kMake) ? -1 : call(path, mode);
}

int rename(const char* from, const char* to) noexcept {
  static auto* const call = real<int(const char*, const char*)>("rename");
  return fails(kRename) ? -1 : call(from, to);
}

int flock(int fd, int operation) noexcept {
  static auto* const call = real<int(int, int)>("flock");
  return fails(kLock) ? -1 : call(fd, operation);
}

}  // extern "C"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

constexpr int kKernels = 8, kRounds = 700, kSecondsUntilItHangs = 30;
constexpr char kVersion[] = "1.2.3";

Bytes object(int kernel) {
  Bytes bytes(2000 + 500 * kernel);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<unsigned char>(i * (7 + kernel) ^ (i >> 5));
  }
  return bytes;
}

Digest key(int kernel) {
  const std::string name = concat("kernel ", kernel);
  return sha256(name.data(), name.size());
}

Digest digest(const Bytes& bytes) { return sha256(bytes.data(), bytes.size()); }

// Compiles, where the others do not have it.
class Maker : public Provider {
 public:
  std::string name() const override { return "the maker"; }
  std::optional<Bytes> get(const CodeObjectRef& ref) override {
    for (int kernel = 0; kernel < kKernels; ++kernel) {
      if (ref.key == key(kernel)) return object(kernel);
    }
    return std::nullopt;
  }
};

class Faults : public ::testing::Test {
 protected:
  // Of the first half of the kernels there is a pack.
  std::unique_ptr<Store> store() const {
    std::vector<std::unique_ptr<Provider>> providers = pack_files({pack_}, kVersion);
    CacheOptions options;
    options.folder = folder_;
    options.warn = [](const std::string&) {};
    providers.push_back(
        std::make_unique<CacheProvider>(std::move(options), std::make_unique<Maker>()));
    return std::make_unique<Store>(std::move(providers));
  }

  // A process that asks for kernels; its exit status is the number of wrong answers.
  template <typename Body>
  pid_t start(const Plan& child_plan, Body&& body) {
    const pid_t child = fork();
    if (child != 0) return child;
    alarm(kSecondsUntilItHangs);
    plan = child_plan;
    const int wrong = body();
    plan = {};
    _exit(wrong);
  }
  void expect_end(pid_t child, bool may_be_killed) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && may_be_killed) {
      ++killed_;
      return;
    }
    hangs_ += WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    ASSERT_EQ(WEXITSTATUS(status), 0) << "wrong answers";
  }
  int wrong_answers(const std::vector<int>& kernels) const {
    int wrong = 0;
    try {
      const std::unique_ptr<Store> asked = store();
      for (const int kernel : kernels) {
        const Bytes expected = object(kernel);
        wrong += asked->get({key(kernel), digest(expected)}) != expected;
      }
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      return 100;
    }
    return wrong;
  }

  int pick(int end) { return std::uniform_int_distribution<int>(0, end - 1)(random_); }
  fs::path file(int kernel, const char* suffix = ".object") const {
    return folder_ / (hex(key(kernel)) + suffix);
  }
  static Bytes contents(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void write_file(const fs::path& path, const Bytes& bytes) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }

  // Damages a file of the cache, or the pack.
  void damage() {
    const int kernel = pick(kKernels);
    const bool of_pack = pick(4) == 0;
    const fs::path path = of_pack ? pack_ : file(kernel);
    if (!fs::exists(path)) return;
    std::error_code ignored;
    Bytes bytes = contents(path);
    std::string what;
    switch (pick(9)) {
      case 0:
        what = "a flipped bit";
        if (bytes.empty()) return;
        bytes[static_cast<size_t>(pick(static_cast<int>(bytes.size())))] ^= 1 << pick(8);
        write_file(path, bytes);
        break;
      case 1:
        what = "a file cut off";
        fs::resize_file(path, static_cast<uintmax_t>(pick(static_cast<int>(bytes.size()) + 1)));
        break;
      case 2:
        what = "a longer file";
        bytes.push_back(0);
        write_file(path, bytes);
        break;
      case 3:
        what = "an empty file";
        write_file(path, {});
        break;
      case 4:
        what = "a file gone";
        fs::remove(path);
        break;
      case 5:
        what = "swapped files";
        if (of_pack || !fs::exists(file((kernel + 1) % kKernels))) return;
        write_file(path, contents(file((kernel + 1) % kKernels)));
        break;
      case 6:
        what = "a link";
        if (of_pack) return;
        fs::rename(path, folder_ / "elsewhere");
        fs::create_symlink(folder_ / "elsewhere", path);
        break;
      case 7:
        what = "a file that others may write";
        if (of_pack) return;
        fs::permissions(path, fs::perms(0666));
        break;
      default:
        what = "a clock set back";
        fs::last_write_time(path, fs::file_time_type::clock::now() + std::chrono::hours(100000));
        break;
    }
    ++injected_[what];
  }

  const fs::path folder_ = fs::path(std::getenv("TEST_TMPDIR")) / "faults/cache";
  const fs::path pack_ = fs::path(std::getenv("TEST_TMPDIR")) / "faults/half.attnpack";
  std::mt19937 random_{29};
  std::map<std::string, int> injected_;
  int killed_ = 0, hangs_ = 0;
};

TEST_F(Faults, EveryObjectIsRightAndTheNextProcessRecovers) {
  std::map<Digest, Bytes> half;
  for (int kernel = 0; kernel < kKernels / 2; ++kernel) half[key(kernel)] = object(kernel);
  const Bytes pack = testing::make_pack_file(half, kVersion);
  fs::create_directories(folder_.parent_path());
  int asked = 0, left_behind = 0;
  for (int round = 0; round < kRounds; ++round) {
    if (round % 10 == 0) fs::remove_all(folder_);
    write_file(pack_, pack);
    for (int i = pick(4); i > 0; --i) damage();

    // Some processes at a time, of which each has a fault somewhere.
    std::vector<pid_t> children;
    for (int i = 1 + pick(3); i > 0; --i) {
      Plan child_plan;
      child_plan.fault = static_cast<Fault>(pick(kFaults));
      child_plan.calls_before = pick(30);
      child_plan.folder = folder_;
      std::vector<int> kernels;
      for (int j = 0; j < 4; ++j) kernels.push_back(pick(kKernels));
      asked += 4;
      children.push_back(start(child_plan, [&] { return wrong_answers(kernels); }));
    }
    for (const pid_t child : children) ASSERT_NO_FATAL_FAILURE(expect_end(child, true));

    // The next process, to which nothing happens, gets all; what it needed is kept.
    std::vector<int> all(kKernels);
    for (int kernel = 0; kernel < kKernels; ++kernel) all[static_cast<size_t>(kernel)] = kernel;
    asked += kKernels;
    ASSERT_NO_FATAL_FAILURE(expect_end(start({}, [&] { return wrong_answers(all); }), false));
    if (!fs::exists(folder_)) continue;
    // As a process does that adds to a folder.
    make_room(folder_, uint64_t{1} << 30);
    for (const auto& entry : fs::directory_iterator(folder_)) {
      left_behind += entry.path().string().find(".new") != std::string::npos;
    }
    CacheOptions options;
    options.folder = folder_;
    options.warn = [](const std::string&) {};
    CacheProvider kept(std::move(options), nullptr);
    for (int kernel = kKernels / 2; kernel < kKernels; ++kernel) {
      ASSERT_EQ(kept.get({key(kernel), {}}), object(kernel)) << "round " << round;
    }
  }
  for (int fault = 0; fault < kFaults; ++fault) injected_[kFaultNames[fault]] = struck[fault];
  int injected = 0;
  std::string kinds;
  for (const auto& [what, times] : injected_) {
    injected += times;
    kinds += concat(kinds.empty() ? "" : ", ", what, " ", times);
  }
  std::printf(
      "faults: %d injected (%s); %d processes killed; %d objects asked for, 0 wrong; %d "
      "hangs; %d files left behind\n",
      injected, kinds.c_str(), killed_, asked, hangs_, left_behind);
  EXPECT_GE(injected, 1000);
  for (const auto& [what, times] : injected_) EXPECT_GT(times, 10) << what;
  EXPECT_EQ(hangs_, 0);
  EXPECT_EQ(left_behind, 0);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
