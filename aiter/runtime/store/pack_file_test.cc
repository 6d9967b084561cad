// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/store/pack_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "aiter/runtime/error.h"
#include "tests/support/runtime/error_of.h"
#include "tests/support/runtime/forked_child.h"
#include "tests/support/runtime/minisign.h"
#include "tests/support/runtime/pack.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

constexpr char kVersion[] = "1.2.3";
constexpr size_t kHeader = 152;

Digest key(const std::string& text) { return sha256(text.data(), text.size()); }
Digest digest(const Bytes& bytes) { return sha256(bytes.data(), bytes.size()); }

class PackFile : public ::testing::Test {
 protected:
  PackFile() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  fs::path write(const std::string& name, const std::vector<unsigned char>& bytes) const {
    const fs::path path = folder_ / name;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return path;
  }
  // The answer to the question for an object of the pack, in which bytes were changed.
  std::optional<Bytes> get(const fs::path& path, const char* name = "a") const {
    return open_pack_file(path, kVersion)->get({key(name), digest(objects_.at(key(name)))});
  }
  void expect_refused(const std::vector<unsigned char>& file, Status status,
                      const std::string& why) const {
    const fs::path path = write("refused.attnpack", file);
    const Error error = error_of([&] { get(path, "c"); });
    EXPECT_EQ(error.status(), status) << why;
    EXPECT_THAT(error.what(), HasSubstr(why));
  }

  const fs::path folder_ = fs::path(std::getenv("TEST_TMPDIR")) / "packs";
  const std::map<Digest, Bytes> objects_ = {
      {key("a"), {1}}, {key("b"), {2, 2}}, {key("c"), Bytes(100000, 3)}, {key("empty"), {}}};
  const std::vector<unsigned char> file_ = testing::make_pack_file(objects_, kVersion);
};

TEST_F(PackFile, ObjectsThatTheLibraryKnowsAreFound) {
  const auto pack = open_pack_file(write("a.attnpack", file_), kVersion);
  EXPECT_EQ(pack->name(), "pack '" + (folder_ / "a.attnpack").string() + "'");
  for (const auto& [key, bytes] : objects_) {
    EXPECT_TRUE(pack->look({key, digest(bytes)}).has);
    EXPECT_EQ(pack->get({key, digest(bytes)}), bytes);
  }
  EXPECT_EQ(pack->get({key("other"), key("other")}), std::nullopt);
  EXPECT_FALSE(pack->look({key("other"), key("other")}).has);
}

TEST_F(PackFile, WithADictionaryItIsReadFromTheFile) {
  const auto objects = testing::similar_objects();
  const auto pack =
      open_pack_file(write("a.attnpack", testing::make_pack_file(objects, kVersion)), kVersion);
  for (const auto& [key, bytes] : objects) EXPECT_EQ(pack->get({key, digest(bytes)}), bytes);
}

// A pack says digests of its own, which prove nothing.
TEST_F(PackFile, ObjectsThatNothingProvesAreRefused) {
  const auto pack = open_pack_file(write("a.attnpack", file_), kVersion);
  for (const auto& ask : std::vector<std::function<void(const CodeObjectRef&)>>{
           [&](const CodeObjectRef& ref) { pack->get(ref); },
           [&](const CodeObjectRef& ref) { pack->look(ref); }}) {
    Error error = error_of([&] { ask({key("a"), {}}); });
    EXPECT_EQ(error.status(), Status::kUnsupported);
    EXPECT_THAT(error.what(), HasSubstr("nothing proves its bytes"));
    error = error_of([&] { ask({key("a"), key("other")}); });
    EXPECT_EQ(error.status(), Status::kCorrupt);
    EXPECT_THAT(error.what(), AllOf(HasSubstr(hex(digest({1}))), HasSubstr(hex(key("other")))));
  }
}

TEST_F(PackFile, ObjectsThatATrustedSignatureProvesAreFound) {
  const fs::path path = write("a.attnpack", file_), signature = write("a.attnpack.minisig", {});
  const std::string key_text = testing::minisign_key(), made = testing::minisign(file_);
  setenv(kTrustVariable, write("key.pub", {key_text.begin(), key_text.end()}).c_str(), 1);
  const std::vector<PublicKey> trusted = trusted_keys();
  unsetenv(kTrustVariable);
  const CodeObjectRef unknown = {key("c"), {}};
  const auto refuses = [&](const std::vector<PublicKey>& keys, Status status, const char* why) {
    const auto pack = open_pack_file(path, kVersion, keys);
    for (int times = 0; times < 2; ++times) {
      const Error error = error_of([&] { pack->get(unknown); });
      EXPECT_EQ(error.status(), status);
      EXPECT_THAT(error.what(), AllOf(HasSubstr("nothing proves its bytes"), HasSubstr(why)));
    }
    // By its digest it is believed as ever.
    EXPECT_TRUE(pack->look({key("c"), digest(objects_.at(key("c")))}).has);
  };
  refuses(trusted, Status::kCorrupt, "is none of minisign's");
  write("a.attnpack.minisig", {made.begin(), made.end()});
  refuses({}, Status::kUnsupported, "3837363534333231, which is not trusted: name its file in");
  {
    const auto pack = open_pack_file(path, kVersion, trusted);
    EXPECT_EQ(pack->look(unknown).text, "has it, signed by the key 3837363534333231");
    EXPECT_EQ(pack->get(unknown), objects_.at(key("c")));
    EXPECT_EQ(pack->get({key("other"), {}}), std::nullopt);
  }
  // Another byte of a frame, and so another object.
  std::vector<unsigned char> other = file_;
  other.back() ^= 1;
  write("a.attnpack", other);
  refuses(trusted, Status::kCorrupt, "is not of this file's bytes");
  fs::remove(signature);
  refuses(trusted, Status::kUnsupported, "has no signature '");
}

// A process forks as a thread of it reads the file for its signature, in some rounds at least.
TEST_F(PackFile, AChildThatIsForkedMeanwhileReadsTheSignatureItself) {
  std::mt19937_64 random;
  Bytes object(2 << 20);
  for (size_t at = 0; at < object.size(); at += sizeof(uint64_t)) {
    const uint64_t word = random();
    std::memcpy(&object[at], &word, sizeof(word));
  }
  const std::vector<unsigned char> file =
      testing::make_pack_file({{key("large"), object}}, kVersion);
  const std::string key_text = testing::minisign_key(), made = testing::minisign(file);
  const fs::path path = write("a.attnpack", file);
  write("a.attnpack.minisig", {made.begin(), made.end()});
  setenv(kTrustVariable, write("key.pub", {key_text.begin(), key_text.end()}).c_str(), 1);
  const std::vector<PublicKey> trusted = trusted_keys();
  unsetenv(kTrustVariable);
  for (int round = 0; round < 20; ++round) {
    const auto pack = open_pack_file(path, kVersion, trusted);
    const auto is_found = [&] { return pack->look({key("large"), {}}).has; };
    std::atomic<bool> is_reading{false}, is_forked{false};
    std::thread other([&] {
      is_reading = true;
      EXPECT_TRUE(is_found());
      // ThreadSanitizer would miss its join in the child.
      while (!is_forked) std::this_thread::yield();
    });
    while (!is_reading) std::this_thread::yield();
    const int child = testing::in_forked_child([&] { return is_found() ? 0 : 1; });
    is_forked = true;
    other.join();
    ASSERT_EQ(child, 0);
  }
}

TEST_F(PackFile, BadFilesAreRefused) {
  struct Case {
    std::function<void(std::vector<unsigned char>&)> change;
    Status status;
    std::string why;
  };
  const auto set = [](size_t at, const char* text) {
    return [=](std::vector<unsigned char>& f) { std::memcpy(f.data() + at, text, strlen(text)); };
  };
  const std::vector<Case> cases = {
      {[](auto& f) { f.clear(); }, Status::kCorrupt, "is no file of a pack"},
      {[](auto& f) { f.resize(kHeader - 1); }, Status::kCorrupt, "is no file of a pack"},
      {set(0, "\177ELF"), Status::kCorrupt, "is no file of a pack"},
      {set(7, "2"), Status::kUnsupported,
       "is of format '2', but this library reads 1; install the pack of this version, 1.2.3"},
      {set(8, "1.2.4"), Status::kUnsupported,
       "was made with aiter-attn 1.2.4, but this is 1.2.3; install "
       "aiter-attn-kernels-test==1.2.3"},
      {[](auto& f) { f.pop_back(); }, Status::kCorrupt, "install aiter-attn-kernels-test again"},
      {[](auto& f) { f.push_back(0); }, Status::kCorrupt, "bytes of a pack instead of"},
      {set(112, "\377\377\377\377\377\377\377"), Status::kCorrupt, "more than it may have"},
      {[](auto& f) { f[kHeader + 40] ^= 1; }, Status::kCorrupt, "has a damaged index"},
      {[](auto& f) { f[120] ^= 1; }, Status::kCorrupt, "has a damaged index"},
      {[](auto& f) {
         for (size_t at = kHeader + 40 + 88 * 4; at < f.size(); ++at) f[at] ^= 1;  // the frames
       },
       Status::kCorrupt, "code object " + hex(key("c"))},
  };
  for (const Case& c : cases) {
    std::vector<unsigned char> file = file_;
    c.change(file);
    expect_refused(file, c.status, c.why);
  }
}

// The object is right, or there is none.
TEST_F(PackFile, AnyFlippedBitIsFoundOrHarmless) {
  const auto objects = testing::similar_objects();
  const std::vector<unsigned char> file = testing::make_pack_file(objects, kVersion);
  for (size_t at = 0; at < file.size(); at += at < kHeader ? 1 : 37) {
    std::vector<unsigned char> changed = file;
    changed[at] ^= 0x10;
    const fs::path path = write("changed.attnpack", changed);
    for (const auto& [key, bytes] : objects) {
      std::optional<Bytes> got;
      const Error error = error_of([&, &key = key, &bytes = bytes] {
        got = open_pack_file(path, kVersion)->get({key, digest(bytes)});
      });
      if (got) {
        ASSERT_EQ(got, bytes) << at;
      } else {
        ASSERT_NE(error.status(), Status::kOk) << at;
      }
      if (at < kHeader) break;  // of all objects alike
    }
  }
}

TEST_F(PackFile, WhatBecomesOfAnOpenFile) {
  const fs::path path = write("a.attnpack", file_);
  const auto pack = open_pack_file(path, kVersion);
  fs::remove(path);
  EXPECT_EQ(pack->get({key("c"), digest(Bytes(100000, 3))}), Bytes(100000, 3));

  const auto cut_off = open_pack_file(write("a.attnpack", file_), kVersion);
  fs::resize_file(path, kHeader + 10);
  const Error error = error_of([&] { cut_off->get({key("c"), digest(Bytes(100000, 3))}); });
  EXPECT_EQ(error.status(), Status::kCorrupt);
  EXPECT_THAT(error.what(), HasSubstr("was cut off after it was opened"));
}

TEST_F(PackFile, PlacesAreFilesAndFolders) {
  write("b.attnpack", testing::make_pack_file({{key("b"), {2, 2}}}, kVersion));
  write("a.attnpack", testing::make_pack_file({{key("a"), {1}}}, kVersion));
  write("old.attnpack", testing::make_pack_file({{key("a"), {1}}}, "0.9"));
  write("notes.txt", {1, 2, 3});
  fs::create_directories(folder_ / "inner");
  const fs::path single = folder_ / "inner" / "single.attnpack";
  fs::create_symlink("../b.attnpack", single);  // bytes prove themselves, wherever they lie
  ASSERT_EQ(mkfifo((folder_ / "pipe.attnpack").c_str(), 0600), 0);
  auto packs = pack_files({folder_, single, folder_ / "none"}, kVersion);
  std::vector<std::string> names;
  for (const auto& pack : packs) {
    names.push_back(
        fs::path(pack->name().substr(6, pack->name().size() - 7)).lexically_relative(folder_));
  }
  EXPECT_THAT(names, ::testing::ElementsAre("a.attnpack", "b.attnpack", "old.attnpack",
                                            "pipe.attnpack", "inner/single.attnpack", "none"));
  const Store store(std::move(packs));
  EXPECT_EQ(store.get({key("a"), digest({1})}), Bytes{1});
  EXPECT_EQ(store.get({key("b"), digest({2, 2})}), (Bytes{2, 2}));
  const Error error = error_of([&] { store.get({key("c"), digest({3})}); });
  EXPECT_EQ(error.status(), Status::kUnsupported);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("a.attnpack': does not have it"),
                                  HasSubstr("old.attnpack': was made with aiter-attn 0.9"),
                                  HasSubstr("pipe.attnpack': is no regular file"),
                                  HasSubstr("none': cannot be found: No such file or directory")));
}

TEST_F(PackFile, ThePathsAreAbsolute) {
  const auto places = [](const char* value) {
    setenv("AITER_ATTN_PACK_PATH", value, 1);
    return named_pack_places();
  };
  EXPECT_THAT(places(""), ::testing::IsEmpty());
  EXPECT_THAT(places("/a"), ::testing::ElementsAre("/a"));
  EXPECT_THAT(places(":/a::/b/c.attnpack:"), ::testing::ElementsAre("/a", "/b/c.attnpack"));
  const Error error = error_of([&] { places("/a:packs"); });
  EXPECT_EQ(error.status(), Status::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("AITER_ATTN_PACK_PATH has 'packs', but must have absolute"));
  unsetenv("AITER_ATTN_PACK_PATH");
  EXPECT_THAT(named_pack_places(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
