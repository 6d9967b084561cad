// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The provider of a store on a server, by a real libcurl and servers of this process: each does
// something wrong.
#include "aiter/runtime/remote/remote.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "aiter/runtime/error.h"
#include "aiter/runtime/interrupt.h"
#include "aiter/runtime/store/cache.h"
#include "aiter/runtime/store/cached_file.h"
#include "aiter/runtime/store/signature.h"
#include "tests/support/runtime/error_of.h"
#include "tests/support/runtime/forked_child.h"
#include "tests/support/runtime/http_server.h"
#include "tests/support/runtime/minisign.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

Digest digest(const std::string& text) { return sha256(text.data(), text.size()); }

using testing::Connection;
using testing::Server;

const std::string kObject(100000, 'o');

CodeObjectRef object_ref() {
  CodeObjectRef ref;
  ref.key = digest("key");
  ref.sha256 = digest(kObject);
  return ref;
}

std::string file() { return "/store/cas/" + hex(*object_ref().sha256); }

class RemoteTest : public ::testing::Test {
 protected:
  RemoteTest() {
    ::unsetenv("http_proxy");
    ::unsetenv("HTTPS_PROXY");
    ::unsetenv("ALL_PROXY");
    ::setenv("HOME", ::testing::TempDir().c_str(), 1);
  }

  static RemoteOptions options(const std::string& url) {
    RemoteOptions options;
    options.url = url + "/store";
    options.open = [] { return open_curl("aiter-attn/test"); };
    return options;
  }

  // The answer of a store, which may be right.
  static std::string fetched(const std::string& url, const DownloadLimits& limits = {}) {
    RemoteOptions made = options(url);
    made.limits = limits;
    const std::optional<Bytes> bytes = RemoteProvider(std::move(made)).get(object_ref());
    return bytes ? std::string(bytes->begin(), bytes->end()) : "nothing";
  }
  static Error refused(const std::string& url, const DownloadLimits& limits = {}) {
    return error_of([&] { fetched(url, limits); });
  }
};

TEST_F(RemoteTest, AnObjectIsAskedForByItsDigest) {
  Server server([](const Connection& c) {
    c.asks_for(file()) ? c.answer("200 OK", kObject) : c.answer("404 Not Found", "no page");
  });
  EXPECT_EQ(fetched(server.url()), kObject);
  EXPECT_THAT(server.requests(), ElementsAre(HasSubstr("User-Agent: aiter-attn/test\r\n")));
  CodeObjectRef other = object_ref();
  other.sha256 = digest("other");
  RemoteProvider provider(options(server.url()));
  EXPECT_EQ(provider.get(other), std::nullopt);
  EXPECT_TRUE(provider.get(object_ref()).has_value());  // a missing file is no failure
}

TEST_F(RemoteTest, ALookTellsWhatTheServerSaid) {
  std::atomic<int> status{404};
  Server server([&](const Connection& c) {
    if (status == 200) return c.answer("200 OK", kObject);
    status == 404 ? c.answer("404 Not Found", "") : c.answer("200 OK", "other bytes");
  });
  RemoteProvider provider(options(server.url()));
  const Answer before = provider.look(object_ref());
  EXPECT_TRUE(before.has && before.is_fetched && !before.is_made && !before.is_there());
  EXPECT_THAT(server.requests(), ElementsAre());
  EXPECT_EQ(provider.get(object_ref()), std::nullopt);
  EXPECT_FALSE(provider.look(object_ref()).has);
  EXPECT_EQ(provider.look(object_ref()).text, "does not have it");
  CodeObjectRef other = object_ref();
  other.key = digest("other");
  EXPECT_TRUE(provider.look(other).has);
  status = 1;
  const Error error = error_of([&] { provider.get(object_ref()); });
  EXPECT_EQ(error.status(), Status::kCorrupt);
  EXPECT_EQ(provider.look(object_ref()).text, error.what());
  // It is asked all the same.
  status = 200;
  EXPECT_TRUE(provider.get(object_ref()).has_value());
  EXPECT_TRUE(provider.look(object_ref()).has);
}

// Has the object, at any address.
class Giver : public Downloader {
 public:
  std::optional<Bytes> get(const std::string&, const DownloadLimits&) const override {
    return Bytes(kObject.begin(), kObject.end());
  }
};

TEST_F(RemoteTest, AChildThatIsForkedWhileCurlIsOpenedOpensItItself) {
  std::atomic<bool> is_opening{false}, is_forked{false};
  RemoteOptions made = options("http://nowhere");
  made.open = [&] {
    const bool is_child = is_opening.exchange(true);
    while (!is_child && !is_forked) std::this_thread::yield();
    return std::make_unique<Giver>();
  };
  RemoteProvider provider(std::move(made));
  std::thread other([&] { EXPECT_TRUE(provider.get(object_ref()).has_value()); });
  while (!is_opening) std::this_thread::yield();
  const int child =
      testing::in_forked_child([&] { return provider.get(object_ref()).has_value() ? 0 : 1; });
  is_forked = true;
  other.join();
  EXPECT_EQ(child, 0);
}

TEST_F(RemoteTest, ItsPasswordIsSentAndNotShown) {
  Server server([](const Connection& c) {
    // "user:s3cret"
    c.request().find("Authorization: Basic dXNlcjpzM2NyZXQ=") != std::string::npos
        ? c.answer("500 Internal Server Error", "")
        : c.answer("401 Unauthorized", "");
  });
  std::string url = server.url();
  url.insert(7, "user:s3cret@");
  const Error error = refused(url);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("status 500"), HasSubstr("http://user@127.0.0.1"),
                                  Not(HasSubstr("s3cret"))));
  RemoteOptions made = options(url);
  EXPECT_THAT(RemoteProvider(made).name(), Not(HasSubstr("s3cret")));
}

TEST_F(RemoteTest, TheUsersNetrcCounts) {
  std::ofstream(fs::path(::testing::TempDir()) / ".netrc")
      << "machine 127.0.0.1 login user password s3cret\n";
  Server server([](const Connection& c) {
    c.request().find("Authorization: Basic dXNlcjpzM2NyZXQ=") != std::string::npos
        ? c.answer("200 OK", kObject)
        : c.answer("401 Unauthorized", "");
  });
  EXPECT_EQ(fetched(server.url()), kObject);
  fs::remove(fs::path(::testing::TempDir()) / ".netrc");
}

TEST_F(RemoteTest, OtherBytesAreRefused) {
  Server server([](const Connection& c) { c.answer("200 OK", "<html>Please log in</html>"); });
  const Error error = refused(server.url());
  EXPECT_EQ(error.status(), Status::kCorrupt);
  EXPECT_THAT(error.what(), AllOf(HasSubstr(hex(object_ref().key)), HasSubstr(server.url()),
                                  HasSubstr("instead of " + hex(*object_ref().sha256))));
}

TEST_F(RemoteTest, WithoutADigestItIsNotAsked) {
  Server server([](const Connection& c) { c.answer("200 OK", kObject); });
  CodeObjectRef ref = object_ref();
  ref.sha256.reset();
  RemoteProvider provider(options(server.url()));
  EXPECT_FALSE(provider.may_have(ref));
  EXPECT_EQ(provider.get(ref), std::nullopt);
  EXPECT_EQ(provider.look(ref).text, "is not asked: nothing would prove its bytes");
  EXPECT_EQ(provider.look(object_ref()).text, "is asked for it at its first use");
  EXPECT_THAT(server.requests(), ElementsAre());
}

// A server of signed objects: file -> its bytes.
class SignedObjects : public RemoteTest {
 protected:
  SignedObjects()
      : server_([this](const Connection& c) {
          for (const auto& [name, bytes] : files_) {
            if (c.asks_for("/store/code-objects/" + name)) return c.answer("200 OK", bytes);
          }
          c.answer("404 Not Found", "no page");
        }) {
    ref_.key = digest("key");
    const fs::path key = fs::path(::testing::TempDir()) / "trusted.pub";
    std::ofstream(key) << testing::minisign_key();
    fs::permissions(key, fs::perms::owner_read);
    ::setenv(kTrustVariable, key.c_str(), 1);
    trusted_ = trusted_keys();
    ::unsetenv(kTrustVariable);
    fs::remove(key);
  }

  static std::string file_of(const Digest& key, const std::string& object = kObject) {
    const Bytes bytes(object.begin(), object.end());
    const CachedFileHeader header = cached_file_header(key, bytes);
    return std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + object;
  }
  static std::string signature_of(const std::string& file) {
    return testing::minisign({file.begin(), file.end()});
  }
  std::string object_name() const { return hex(ref_.key) + ".object"; }
  void serve(const std::string& file, const std::string& signature) {
    files_ = {{object_name(), file}, {object_name() + ".minisig", signature}};
  }
  std::unique_ptr<RemoteProvider> provider() {
    RemoteOptions made = options(server_.url());
    made.trusted = trusted_;
    return std::make_unique<RemoteProvider>(std::move(made));
  }
  Error refusal() {
    return error_of([&] { provider()->get(ref_); });
  }

  CodeObjectRef ref_;
  std::vector<PublicKey> trusted_;
  std::map<std::string, std::string> files_;
  Server server_;
};

TEST_F(SignedObjects, AreBelievedWithoutADigest) {
  const std::string file = file_of(ref_.key);
  serve(file, signature_of(file));
  EXPECT_TRUE(provider()->may_have(ref_));
  EXPECT_EQ(provider()->look(ref_).text,
            "is asked for it, signed by a trusted key, at its first use");
  EXPECT_EQ(provider()->get(ref_), Bytes(kObject.begin(), kObject.end()));
  CodeObjectRef other = ref_;
  other.key = digest("other");
  EXPECT_EQ(provider()->get(other), std::nullopt);
}

TEST_F(SignedObjects, OfAnotherKeyAreRefused) {
  // As a server gives it that swaps files.
  const std::string file = file_of(digest("other"));
  serve(file, signature_of(file));
  const Error error = refusal();
  EXPECT_EQ(error.status(), Status::kCorrupt);
  EXPECT_THAT(error.what(),
              AllOf(StartsWith("code object " + hex(ref_.key)),
                    HasSubstr("is the code object of the key " + hex(digest("other")))));
}

TEST_F(SignedObjects, ThatAreChangedAreRefused) {
  const std::string file = file_of(ref_.key);
  std::string changed = file;
  changed.back() ^= 1;
  for (const std::string& given : {changed, file_of(ref_.key, "another object"), file + "x",
                                   file.substr(0, file.size() - 1), std::string()}) {
    serve(given, signature_of(file));
    const Error error = refusal();
    EXPECT_EQ(error.status(), Status::kCorrupt);
    EXPECT_THAT(error.what(), HasSubstr("is not of this file's bytes"));
  }
}

TEST_F(SignedObjects, ThatAreSignedAndNoFilesOfACacheAreRefused) {
  const std::string whole = file_of(ref_.key);
  std::string damaged = whole;
  damaged.back() ^= 1;
  const std::pair<std::string, const char*> cases[] = {
      {"", "is cut off: it has 0 bytes"},
      {kObject, "is no code object of a cache"},
      {whole.substr(0, whole.size() - 1), "is cut off"},
      {whole + "x", "is cut off"},
      {damaged, "instead of"},
  };
  for (const auto& [file, reason] : cases) {
    serve(file, signature_of(file));
    const Error error = refusal();
    EXPECT_EQ(error.status(), Status::kCorrupt);
    EXPECT_THAT(error.what(), HasSubstr(reason));
  }
}

TEST_F(SignedObjects, WithoutASignatureThatIsTrustedAreRefused) {
  const std::string file = file_of(ref_.key);
  serve(file, "no signature");
  EXPECT_THAT(refusal().what(), HasSubstr("which is none of minisign's"));
  serve(file, std::string(5000, 'x'));
  EXPECT_THAT(refusal().what(), HasSubstr("sends more than 4096 bytes"));
  files_.erase(object_name() + ".minisig");
  EXPECT_EQ(refusal().status(), Status::kUnsupported);
  EXPECT_THAT(refusal().what(), HasSubstr("has no signature beside it"));
  serve(file, signature_of(file));
  trusted_[0].id[0] ^= 1;
  EXPECT_EQ(refusal().status(), Status::kUnsupported);
  EXPECT_THAT(refusal().what(), HasSubstr("which is not trusted"));
}

TEST_F(SignedObjects, ADigestDecidesWhereItIsKnown) {
  const std::string file = file_of(ref_.key);
  serve(file, signature_of(file));
  ref_.sha256 = digest(kObject);
  EXPECT_EQ(provider()->get(ref_), std::nullopt);  // cas has no such file
}

TEST_F(RemoteTest, OneThatMustNotBeAskedIsNot) {
  Server server([](const Connection& c) { c.answer("200 OK", kObject); });
  RemoteOptions made = options(server.url());
  made.forbidden = "must not be asked, as it is Sunday";
  RemoteProvider provider(made);
  for (const Error& error : {error_of([&] { provider.get(object_ref()); }),
                             error_of([&] { provider.look(object_ref()); })}) {
    EXPECT_EQ(error.status(), Status::kUnsupported);
    EXPECT_EQ(error.what(), made.forbidden);
  }
  EXPECT_THAT(server.requests(), ElementsAre());
}

TEST_F(RemoteTest, ATransferThatBreaksOffGoesOn) {
  int number = 0;
  Server server([&](const Connection& c) {
    if (number++ == 0) {
      c.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + kObject.substr(0, 60000));
    } else {
      c.answer("206 Partial Content", kObject.substr(60000),
               "Content-Range: bytes 60000-99999/100000\r\n");
    }
  });
  EXPECT_EQ(fetched(server.url()), kObject);
  EXPECT_THAT(server.requests(),
              ElementsAre(Not(HasSubstr("Range:")), HasSubstr("Range: bytes=60000-\r\n")));
}

TEST_F(RemoteTest, AServerThatCannotGoOnBeginsAnew) {
  int number = 0;
  Server server([&](const Connection& c) {
    if (number++ == 0) {
      c.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + kObject.substr(0, 60000));
    } else {
      c.answer("200 OK", kObject);
    }
  });
  EXPECT_EQ(fetched(server.url()), kObject);
}

TEST_F(RemoteTest, OneThatAlwaysBreaksOffIsGivenUp) {
  Server server([&](const Connection& c) {
    c.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + kObject.substr(0, 10));
  });
  const Error error = refused(server.url());
  EXPECT_EQ(error.status(), Status::kDriver);
  EXPECT_LE(server.requests().size(), 3u);
}

TEST_F(RemoteTest, OneThatHangsIsLeftInTime) {
  Server server([](const Connection& c) { c.wait(); });
  DownloadLimits limits;
  limits.whole = milliseconds(300);
  const Clock::time_point start = Clock::now();
  const Error error = refused(server.url(), limits);
  EXPECT_EQ(error.status(), Status::kDriver);
  EXPECT_THAT(error.what(), HasSubstr("timed out"));
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(20));
}

TEST_F(RemoteTest, OneThatNeverEndsIsLeft) {
  Server server([](const Connection& c) {
    c.send("HTTP/1.1 200 OK\r\n\r\n");
    while (c.send(kObject)) {
    }
  });
  DownloadLimits limits;
  limits.bytes = 1 << 20;
  EXPECT_THAT(refused(server.url(), limits).what(), HasSubstr("sends more than 1048576 bytes"));
}

TEST_F(RemoteTest, AnErrorsPageIsNotRead) {
  Server server([](const Connection& c) {
    c.send("HTTP/1.1 503 Service Unavailable\r\n\r\n");
    while (c.send(kObject)) {
    }
  });
  EXPECT_THAT(refused(server.url()).what(), HasSubstr("answers with status 503"));
}

TEST_F(RemoteTest, RedirectsAreFollowedToServersAlone) {
  Server other([](const Connection& c) { c.answer("200 OK", kObject); });
  Server to_other([&](const Connection& c) {
    c.answer("302 Found", "moved", "Location: " + other.url() + "/elsewhere\r\n");
  });
  EXPECT_EQ(fetched(to_other.url()), kObject);

  const fs::path local = fs::path(::testing::TempDir()) / "local";
  std::ofstream(local) << kObject;
  Server to_file([&](const Connection& c) {
    c.answer("302 Found", "moved", "Location: file://" + local.string() + "\r\n");
  });
  const Error error = refused(to_file.url());
  EXPECT_EQ(error.status(), Status::kDriver);
  EXPECT_THAT(error.what(), HasSubstr("file"));

  Server in_circles(
      [&](const Connection& c) { c.answer("302 Found", "moved", "Location: " + file() + "\r\n"); });
  EXPECT_THAT(refused(in_circles.url()).what(), HasSubstr("redirect"));
}

TEST_F(RemoteTest, GarbageIsRefused) {
  Server server([](const Connection& c) { c.send("\x16\x03\x01 garbage\r\n\r\n"); });
  EXPECT_EQ(refused(server.url()).status(), Status::kDriver);
}

TEST_F(RemoteTest, AServerThatFailedIsNotAskedAgainForAWhile) {
  std::string url;
  {
    url = Server([](const Connection&) {}).url();
  }
  RemoteOptions made = options(url);
  made.pause = milliseconds(200);
  RemoteProvider provider(std::move(made));
  const Error first = error_of([&] { provider.get(object_ref()); });
  EXPECT_EQ(first.status(), Status::kDriver);
  EXPECT_THAT(first.what(), StartsWith("code object " + hex(object_ref().key)));
  EXPECT_THAT(error_of([&] { provider.get(object_ref()); }).what(),
              HasSubstr("is not asked again for a while: it failed: "));
  std::this_thread::sleep_for(milliseconds(250));
  EXPECT_THAT(error_of([&] { provider.get(object_ref()); }).what(),
              Not(HasSubstr("is not asked again")));
}

TEST_F(RemoteTest, AnInterruptEndsIt) {
  Server server([](const Connection& c) { c.wait(); });
  thread_interrupt().poll = [](void*) { return 1; };
  const Error error = refused(server.url());
  thread_interrupt() = {};
  EXPECT_EQ(error.status(), Status::kInterrupted);
}

TEST_F(RemoteTest, TheCacheKeepsIt) {
  Server server([](const Connection& c) { c.answer("200 OK", kObject); });
  CacheOptions cache;
  cache.folder = ::testing::TempDir() + "/cache";
  for (int process = 0; process < 2; ++process) {
    CacheProvider provider(cache, std::make_unique<RemoteProvider>(options(server.url())));
    const std::optional<Bytes> bytes = provider.get(object_ref());
    ASSERT_TRUE(bytes.has_value());
    EXPECT_EQ(std::string(bytes->begin(), bytes->end()), kObject);
  }
  EXPECT_EQ(server.requests().size(), 1u);
  fs::remove_all(cache.folder);
}

TEST_F(RemoteTest, ManyThreadsAreServedAtATime) {
  Server server([](const Connection& c) { c.answer("200 OK", kObject); });
  RemoteProvider provider(options(server.url()));
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { right += provider.get(object_ref()).has_value() ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 8);
}

TEST_F(RemoteTest, WithoutLibcurlTheErrorNamesItsFile) {
  RemoteOptions made = options("http://127.0.0.1:9");
  const std::string known = std::getenv(kCurlVariable);
  ::setenv(kCurlVariable, "/nowhere/libcurl.so.4", 1);
  const Error error = error_of([&] { RemoteProvider(made).get(object_ref()); });
  ::setenv(kCurlVariable, known.c_str(), 1);
  EXPECT_EQ(error.status(), Status::kDriver);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("/nowhere/libcurl.so.4"), HasSubstr(kCurlVariable)));
}

TEST_F(RemoteTest, TheVariablesAreHeldToTheirForms) {
  EXPECT_EQ(named_store(), "");
  ::setenv(kStoreVariable, "https://host/store//", 1);
  EXPECT_EQ(named_store(), "https://host/store");
  for (const char* wrong : {"host/store", "file:///store", "ftp://host", "http://a b",
                            "https://host/?key=", "HTTP", "/store"}) {
    ::setenv(kStoreVariable, wrong, 1);
    EXPECT_THAT(error_of([] { named_store(); }).what(),
                HasSubstr(std::string("AITER_ATTN_STORE is '") + wrong));
  }
  ::setenv(kStoreVariable, "ftp://user:s3cret@host", 1);
  EXPECT_THAT(error_of([] { named_store(); }).what(), Not(HasSubstr("s3cret")));
  ::unsetenv(kStoreVariable);

  EXPECT_EQ(store_limit(), std::chrono::seconds(60));
  ::setenv(kStoreSecondsVariable, "3600", 1);
  EXPECT_EQ(store_limit(), std::chrono::seconds(3600));
  for (const char* wrong : {"0", "-1", "1.5", "60s", "3601", "99999999999999999999", " "}) {
    ::setenv(kStoreSecondsVariable, wrong, 1);
    EXPECT_THAT(error_of([] { store_limit(); }).what(), HasSubstr(wrong));
  }
  ::unsetenv(kStoreSecondsVariable);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
