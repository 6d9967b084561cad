// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Processes that fetch kernels from a server that fails in all ways, some of which are killed
// meanwhile: every object that they get, or that the cache keeps, is the right one, none of them
// hangs, and once the server is well the next process gets all.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "aiter/runtime/error.h"
#include "aiter/runtime/remote/remote.h"
#include "aiter/runtime/store/cache.h"
#include "tests/support/runtime/http_server.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::Connection;
using testing::Server;

constexpr int kKernels = 6, kRounds = 100, kSecondsUntilItHangs = 60;

std::string object(int kernel) {
  return std::string(size_t{40000} + 1000 * static_cast<size_t>(kernel),
                     static_cast<char>('a' + kernel));
}
Digest digest(const std::string& text) { return sha256(text.data(), text.size()); }
CodeObjectRef ref(int kernel) {
  return {digest("kernel " + std::to_string(kernel)), digest(object(kernel))};
}

// The server's answers, by turns that are random and always the same.
class Faults {
 public:
  void answer(const Connection& c) {
    const std::string body = asked_for(c);
    switch (next()) {
      case 0:
        count("answers that hang");
        return c.wait();
      case 1:
        count("hangs in the middle");
        c.send(head(body) + body.substr(0, body.size() / 2));
        return c.wait();
      case 2:
        count("breaks in the middle");
        c.send(head(body) + body.substr(0, body.size() / 3));
        return;
      case 3:
        count("closed connections");
        return;
      case 4:
        count("garbage");
        c.send(std::string("\x16\x03\x01\x00 garbage\r\n\r\n"));
        return;
      case 5:
        count("redirects to file://");
        return c.answer("302 Found", "", "Location: file:///etc/passwd\r\n");
      case 6:
        count("redirects in circles");
        return c.answer("302 Found", "", "Location: /again\r\n");
      case 7:
        count("other bytes");
        return c.answer("200 OK", body.substr(1) + "z");
      case 8:
        count("another kernel");
        return c.answer("200 OK", object(0) + "of another");
      case 9:
        count("cut off");
        return c.answer("200 OK", body.substr(0, body.size() - 1));
      case 10:
        count("without end");
        c.send("HTTP/1.1 200 OK\r\n\r\n");
        while (c.send(body)) {
        }
        return;
      case 11:
        count("status 503");
        return c.answer("503 Service Unavailable", "later");
      case 12:
        count("status 404");
        return c.answer("404 Not Found", "none");
      default:
        return c.answer("200 OK", body);
    }
  }
  void mend() { is_well_ = true; }
  void begin() { is_well_ = false; }
  std::map<std::string, int> injected() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return injected_;
  }

 private:
  static std::string head(const std::string& body) {
    return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  }
  static std::string asked_for(const Connection& c) {
    for (int kernel = 0; kernel < kKernels; ++kernel) {
      if (c.request().find(hex(*ref(kernel).sha256)) != std::string::npos) return object(kernel);
    }
    return "a page";
  }
  int next() { return is_well_ ? 99 : std::uniform_int_distribution<int>(0, 16)(random_); }
  void count(const char* what) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++injected_[what];
  }

  std::atomic<bool> is_well_{false};
  std::mt19937 random_{29};
  std::mutex mutex_;
  std::map<std::string, int> injected_;
};

TEST(ServerFaults, EveryObjectIsRightAndTheNextProcessRecovers) {
  const fs::path folder = fs::path(std::getenv("TEST_TMPDIR")) / "server-faults/code-objects";
  fs::remove_all(folder);
  Faults faults;
  // Before any child is forked.
  Server server([&](const Connection& c) { faults.answer(c); });
  const std::string url = server.url();
  std::mt19937 random(7);
  const auto pick = [&](int end) { return std::uniform_int_distribution<int>(0, end - 1)(random); };
  // The number of wrong objects among those that a process gets.
  const auto wrong_objects = [&](const std::vector<int>& kernels, bool must_have_all) {
    CacheOptions cache;
    cache.folder = folder;
    cache.warn = [](const std::string&) {};
    RemoteOptions options;
    options.url = url;
    options.limits.connect = milliseconds(150);
    options.limits.whole = milliseconds(must_have_all ? 20000 : 150);
    options.limits.bytes = 1 << 20;
    options.pause = milliseconds(0);
    options.open = [] { return open_curl("aiter-attn/test"); };
    CacheProvider provider(cache, std::make_unique<RemoteProvider>(options));
    int wrong = 0;
    for (const int kernel : kernels) {
      const std::string expected = object(kernel);
      try {
        const std::optional<Bytes> got = provider.get(ref(kernel));
        wrong += got ? std::string(got->begin(), got->end()) != expected : must_have_all;
      } catch (const Error& error) {
        if (must_have_all) std::fprintf(stderr, "%s\n", error.what());
        wrong += must_have_all;
      }
    }
    return wrong;
  };
  const auto start = [&](const std::vector<int>& kernels, bool must_have_all) {
    const pid_t child = fork();
    if (child != 0) return child;
    alarm(kSecondsUntilItHangs);
    _exit(wrong_objects(kernels, must_have_all));
  };
  // A process that asks until it is killed, so that a kill meets it at work on a fast machine too.
  const auto start_doomed = [&](const std::vector<int>& kernels) {
    const pid_t child = fork();
    if (child != 0) return child;
    alarm(kSecondsUntilItHangs);
    int wrong = 0;
    while (wrong == 0) wrong = wrong_objects(kernels, false);
    _exit(wrong);
  };
  int killed = 0, asked = 0;
  for (int round = 0; round < kRounds; ++round) {
    if (round % 5 == 0) fs::remove_all(folder);
    faults.begin();
    std::vector<pid_t> children;
    const bool kills = pick(3) == 0;
    for (int i = 0; i < 2; ++i) {
      const std::vector<int> kernels = {pick(kKernels), pick(kKernels), pick(kKernels)};
      children.push_back(kills && i == 0 ? start_doomed(kernels) : start(kernels, false));
      asked += 3;
    }
    if (kills) {
      usleep(static_cast<useconds_t>(pick(100)) * 1000);
      kill(children[0], SIGKILL);
    }
    for (const pid_t child : children) {
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
        ++killed;
        continue;
      }
      ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
      ASSERT_EQ(WEXITSTATUS(status), 0) << "wrong objects";
    }
    if (round % 10 != 9) continue;
    faults.mend();
    int status = 0;
    const pid_t next = start({0, 1, 2, 3, 4, 5}, true);
    ASSERT_EQ(waitpid(next, &status, 0), next);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "round " << round;
    asked += kKernels;
    make_room(folder, uint64_t{1} << 30);
    for (const auto& entry : fs::directory_iterator(folder)) {
      EXPECT_EQ(entry.path().extension(), ".object") << entry.path();
    }
  }
  int injected = killed;
  std::string kinds = "killed " + std::to_string(killed);
  const std::map<std::string, int> by_server = faults.injected();
  for (const auto& [what, times] : by_server) {
    injected += times;
    kinds += ", " + what + " " + std::to_string(times);
    EXPECT_GT(times, 5) << what;
  }
  std::printf(
      "faults: %d injected (%s); %d objects asked for, 0 wrong; 0 hangs; 0 files left "
      "behind\n",
      injected, kinds.c_str(), asked);
  EXPECT_EQ(by_server.size(), 13u);
  EXPECT_GT(killed, 10);
  EXPECT_GT(injected, 300);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
