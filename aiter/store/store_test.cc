// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/store/store.h"

#include <map>

#include "aiter/error.h"
#include "aiter/store/embedded.h"
#include "aiter/testing/test_launch_table.h"
#include "aiter/testing/testing.h"
#include "aiter/testing/tiny_elf.h"

namespace aiter_attn {
namespace {

using testing::find_instance;

// A provider of what the test put into it.
class Shelf : public Provider {
 public:
  Shelf(std::string name, std::map<std::string, Bytes, std::less<>> bytes)
      : name_(std::move(name)), bytes_(std::move(bytes)) {}
  std::string name() const override { return name_; }
  bool get(std::string_view key, Bytes* bytes) override {
    const auto found = bytes_.find(key);
    if (found == bytes_.end()) return false;
    *bytes = found->second;
    return true;
  }

 private:
  std::string name_;
  std::map<std::string, Bytes, std::less<>> bytes_;
};

template <typename Call>
Error error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return Error(ATTN_OK, "nothing thrown");
}

TEST(embedded_bytes_are_unpacked_and_verified) {
  EmbeddedProvider provider(launch_table());
  const Instance* instance = find_instance("fwd_d64_fp16_batch_mask_psk");
  Bytes bytes;
  EXPECT(provider.get(instance->code_objects[1].key, &bytes));
  EXPECT(bytes == testing::tiny_code_object(instance->symbol, "gfx950"));
  EXPECT(!provider.get("no such key", &bytes));
}

TEST(wrong_digest_is_corrupt_and_names_the_key) {
  EmbeddedProvider provider(launch_table());
  const CodeObject& object = find_instance(testing::kCorruptName)->code_objects[0];
  Bytes bytes;
  const Error error = error_of([&] { provider.get(object.key, &bytes); });
  EXPECT_EQ(error.status(), ATTN_ERROR_CORRUPT);
  EXPECT_CONTAINS(error.what(), object.key);
  EXPECT_CONTAINS(error.what(), object.sha256);
  EXPECT(bytes.empty());
}

TEST(broken_frame_is_corrupt) {
  const Instance* whole = find_instance("fwd_d64_fp16_batch_mask_psk");
  CodeObject object = whole->code_objects[0];
  object.packed_size /= 2;
  Instance instance = *whole;
  instance.code_objects = &object;
  instance.code_object_count = 1;
  const LaunchTable table = {&instance, 1, nullptr, 0, "test"};
  EmbeddedProvider provider(table);
  Bytes bytes;
  const Error error = error_of([&] { provider.get(object.key, &bytes); });
  EXPECT_EQ(error.status(), ATTN_ERROR_CORRUPT);
  EXPECT_CONTAINS(error.what(), "cannot be unpacked");
}

TEST(providers_are_asked_in_order) {
  std::vector<std::unique_ptr<Provider>> providers;
  using Contents = std::map<std::string, Bytes, std::less<>>;
  providers.push_back(std::make_unique<Shelf>("first", Contents{{"a", {1}}}));
  providers.push_back(std::make_unique<Shelf>("second", Contents{{"a", {2}}, {"b", {3}}}));
  const Store store(std::move(providers));
  EXPECT(store.get("a") == Bytes{1});
  EXPECT(store.get("b") == Bytes{3});
  const Error error = error_of([&] { store.get("c"); });
  EXPECT_EQ(error.status(), ATTN_ERROR_UNSUPPORTED);
  EXPECT_CONTAINS(error.what(), "'c'");
  EXPECT_CONTAINS(error.what(), "first, second");
}

}  // namespace
}  // namespace aiter_attn
