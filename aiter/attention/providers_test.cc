// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Code objects that are not in the library, through the C ABI: packs and the user's cache. A
// process opens its store once, so each test is a child of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "aiter/attn.h"
#include "aiter/runtime/store/digest.h"
#include "tests/support/attention/test_launch_table.h"
#include "tests/support/runtime/forked_child.h"
#include "tests/support/runtime/pack.h"
#include "tests/support/runtime/tiny_elf.h"

namespace AITER_ATTN_NAMESPACE::attention {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

namespace fs = std::filesystem;

// The library's own bytes of it are damaged: the next provider is asked.
const std::string kKey = test_key(kCorruptName, "gfx942");

class Providers : public ::testing::Test {
 protected:
  Providers() {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "packs");
    fs::create_directories(folder_ / "cache/code-objects");
    setenv("AITER_ATTN_CACHE_DIR", (folder_ / "empty").c_str(), 1);
    unsetenv("AITER_ATTN_PACK_PATH");
  }
  static void write(const fs::path& path, const std::vector<unsigned char>& bytes) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  void write_pack(const char* version) const {
    write(folder_ / "packs/one.attnpack",
          make_pack_file({{*runtime::parse_hex(kKey), image_}}, version));
    setenv("AITER_ATTN_PACK_PATH", (folder_ / "packs").c_str(), 1);
  }
  void write_cached() const {
    const runtime::Digest key = *runtime::parse_hex(kKey);
    const runtime::Digest digest = runtime::sha256(image_.data(), image_.size());
    const uint64_t size = image_.size();
    std::string text = "ATTNOBJ1";
    text.append(key.begin(), key.end()).append(digest.begin(), digest.end());
    text.append(reinterpret_cast<const char*>(&size), sizeof(size));
    std::vector<unsigned char> file(text.begin(), text.end());
    file.insert(file.end(), image_.begin(), image_.end());
    write(folder_ / "cache/code-objects" / (kKey + ".object"), file);
  }
  bool serves() const {
    void* data = nullptr;
    uint64_t size = 0;
    if (attn_code_object(kKey.c_str(), &data, &size) != ATTN_OK) return false;
    const bool same = size == image_.size() && std::memcmp(data, image_.data(), size) == 0;
    attn_code_object_free(data);
    return same;
  }
  // Runs the checks in a child; whether all held.
  template <typename Checks>
  static void in_child(Checks&& checks) {
    EXPECT_EQ(in_forked_child([&] {
                checks();
                return ::testing::Test::HasFailure() ? 1 : 0;
              }),
              0);
  }

  const fs::path folder_ = fs::path(std::getenv("TEST_TMPDIR")) / "providers";
  const std::vector<unsigned char> image_ = tiny_code_object(kCorruptName, "gfx942");
};

TEST_F(Providers, APackServesWhereTheLibraryCannot) {
  in_child([&] {
    EXPECT_FALSE(serves());
    EXPECT_THAT(attn_last_error(), HasSubstr("install its pack, aiter-attn-kernels-gfx942-"));
    EXPECT_THAT(attn_last_error(), HasSubstr("AITER_ATTN_PACK_PATH"));
  });
  write_pack("0.1.0");
  in_child([&] {
    EXPECT_TRUE(serves()) << attn_last_error();
    const char *provider = nullptr, *text = nullptr;
    ASSERT_EQ(attn_find_code_object(kKey.c_str(), &provider, &text), ATTN_OK);
    EXPECT_STREQ(provider, "the library");
    const std::string pack = "pack '" + (folder_ / "packs/one.attnpack").string() + "'";
    EXPECT_THAT(text, StartsWith("the library: has it\n" + pack + ": has it\n"));
    // It is in no provider.
    ASSERT_EQ(attn_find_code_object(std::string(64, '0').c_str(), &provider, &text), ATTN_OK);
    EXPECT_STREQ(provider, "");
    EXPECT_THAT(text, HasSubstr(pack + ": does not have it\n"));
    EXPECT_EQ(attn_find_code_object("0", &provider, &text), ATTN_ERROR_UNSUPPORTED);
    EXPECT_EQ(attn_find_code_object(kKey.c_str(), nullptr, &text), ATTN_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(attn_find_code_object(kKey.c_str(), &provider, nullptr), ATTN_ERROR_INVALID_ARGUMENT);
  });
}

TEST_F(Providers, APackOfAnotherVersionIsRefused) {
  write_pack("0.0.9");
  in_child([&] {
    EXPECT_FALSE(serves());
    EXPECT_THAT(attn_last_error(), HasSubstr("was made with aiter-attn 0.0.9, but this is 0.1.0; "
                                             "install aiter-attn-kernels-test==0.1.0"));
  });
}

TEST_F(Providers, ARelativePathIsRefused) {
  setenv("AITER_ATTN_PACK_PATH", "packs", 1);
  in_child([&] {
    void* data = nullptr;
    uint64_t size = 0;
    EXPECT_EQ(attn_code_object(kKey.c_str(), &data, &size), ATTN_ERROR_INVALID_ARGUMENT);
    EXPECT_THAT(attn_last_error(), HasSubstr("AITER_ATTN_PACK_PATH has 'packs', but must"));
  });
}

TEST_F(Providers, TheCacheIsNamedBeforeTheFirstCall) {
  write_cached();
  const std::string cache = folder_ / "cache";
  for (const bool compile : {true, false}) {
    setenv("AITER_ATTN_RTC", compile ? "" : "0", 1);
    in_child([&] {
      const char* text = nullptr;
      setenv("AITER_ATTN_PACK_PATH", "packs", 1);
      EXPECT_FALSE(serves());  // refused before the cache is looked at
      unsetenv("AITER_ATTN_PACK_PATH");
      ASSERT_EQ(attn_cache_dir(&text), ATTN_OK);
      EXPECT_EQ(text, folder_ / "empty/code-objects");
      EXPECT_EQ(attn_set_cache_dir("cache"), ATTN_ERROR_INVALID_ARGUMENT);
      EXPECT_THAT(attn_last_error(), StartsWith("folder is 'cache', but must be an absolute path"));
      EXPECT_EQ(attn_set_cache_dir(cache.c_str()), ATTN_OK);
      EXPECT_EQ(attn_set_cache_dir(nullptr), ATTN_OK);
      EXPECT_EQ(attn_set_cache_dir(cache.c_str()), ATTN_OK);
      EXPECT_TRUE(serves()) << attn_last_error();
      ASSERT_EQ(attn_cache_dir(&text), ATTN_OK);
      EXPECT_EQ(text, cache + "/code-objects");
      EXPECT_EQ(attn_set_cache_dir("/elsewhere"), ATTN_ERROR_INVALID_ARGUMENT);
      EXPECT_THAT(attn_last_error(), HasSubstr("name the cache before the first call, or in "
                                               "AITER_ATTN_CACHE_DIR"));
    });
  }
  unsetenv("AITER_ATTN_RTC");
}

TEST_F(Providers, AreWarmedUp) {
  in_child([] {
    std::vector<uint32_t> all(attn_kernel_count());
    for (uint32_t i = 0; i < all.size(); ++i) all[i] = i;
    const auto count = static_cast<uint32_t>(all.size());
    uint32_t pending = 99;
    EXPECT_EQ(attn_warm_up(all.data(), count), ATTN_OK) << attn_last_error();
    EXPECT_EQ(attn_warm_up_wait(all.data(), count, -1, &pending), ATTN_OK) << attn_last_error();
    EXPECT_EQ(pending, 0u) << "all are in the library";
    EXPECT_EQ(attn_warm_up(nullptr, 0), ATTN_OK);
    EXPECT_EQ(attn_warm_up_wait(nullptr, 0, -1, &pending), ATTN_OK);
    EXPECT_EQ(attn_warm_up(nullptr, 1), ATTN_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(attn_warm_up_wait(all.data(), count, 0, nullptr), ATTN_ERROR_INVALID_ARGUMENT);
    all[1] = count;
    EXPECT_EQ(attn_warm_up(all.data(), count), ATTN_ERROR_INVALID_ARGUMENT);
    EXPECT_THAT(attn_last_error(), StartsWith("kernels[1] is "));
    EXPECT_STREQ(attn_last_error_field(), "kernels");
    // A child has its own.
    EXPECT_EQ(in_forked_child([&] {
                return attn_warm_up(&all[0], 1) == ATTN_OK &&
                               attn_warm_up_wait(&all[0], 1, -1, &pending) == ATTN_OK
                           ? 0
                           : 1;
              }),
              0);
  });
}

TEST_F(Providers, OnDemandIsCompileCacheOrOff) {
  constexpr char kSwitch[] = "AITER_ATTN_ON_DEMAND";
  write_cached();
  setenv("AITER_ATTN_CACHE_DIR", (folder_ / "cache").c_str(), 1);
  for (const char* value : {"", "compile", "cache"}) {
    setenv(kSwitch, value, 1);
    in_child([&] { EXPECT_TRUE(serves()) << value << attn_last_error(); });
  }
  setenv(kSwitch, "off", 1);
  in_child([&] {
    EXPECT_FALSE(serves());
    EXPECT_THAT(attn_last_error(),
                HasSubstr("must not be asked, as AITER_ATTN_ON_DEMAND is 'off'"));
  });
  for (const char* value : {"0", "on", "Compile", "cache "}) {
    setenv(kSwitch, value, 1);
    in_child([&] {
      void* data = nullptr;
      uint64_t size = 0;
      EXPECT_EQ(attn_code_object(kKey.c_str(), &data, &size), ATTN_ERROR_INVALID_ARGUMENT);
      EXPECT_THAT(attn_last_error(), HasSubstr(std::string("AITER_ATTN_ON_DEMAND is '") + value +
                                               "'; it may be compile (kernels"));
    });
  }
  unsetenv(kSwitch);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::attention
