// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <iterator>

#include "aiter/runtime/error.h"
#include "aiter/testing/pack.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Digest key(const std::string& text) { return sha256(text.data(), text.size()); }

template <typename Call>
Error error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return Error(Status::kOk, "nothing thrown");
}

class Pack : public ::testing::Test {
 protected:
  PackProvider provider() const { return {"shelf", bytes_.data(), bytes_.size()}; }
  // Where the entry of the first object is in the pack.
  unsigned char* first_entry() { return bytes_.data() + 16; }

  const std::map<Digest, Bytes> objects_ = {
      {key("a"), {1}}, {key("b"), {2, 2}}, {key("c"), Bytes(100000, 3)}, {key("empty"), {}}};
  std::vector<unsigned char> bytes_ = testing::make_pack(objects_);
};

TEST_F(Pack, EveryObjectIsFoundByItsKey) {
  PackProvider pack = provider();
  for (const auto& [key, bytes] : objects_) EXPECT_EQ(pack.get({key, {}}), bytes);
  EXPECT_EQ(pack.get({key("d"), {}}), std::nullopt);
  EXPECT_EQ(pack.get({Digest{}, {}}), std::nullopt);
  Digest last;
  last.fill(0xff);
  EXPECT_EQ(pack.get({last, {}}), std::nullopt);
}

TEST_F(Pack, BytesAreVerifiedAgainstTheDigestThatIsAskedFor) {
  EXPECT_EQ(provider().get({key("a"), sha256("\1", 1)}), Bytes{1});
  const Error error = error_of([&] { provider().get({key("a"), key("other")}); });
  EXPECT_EQ(error.status(), Status::kCorrupt);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr(hex(key("a"))), HasSubstr(hex(key("other"))), HasSubstr("shelf")));
}

TEST_F(Pack, DamageIsCorrupt) {
  const Digest first = objects_.begin()->first;
  const PackEntry entry = *provider().find(first);
  const auto refused = [&](const char* why) {
    const Error error = error_of([&] { provider().get({first, {}}); });
    EXPECT_EQ(error.status(), Status::kCorrupt) << why;
    EXPECT_THAT(error.what(), HasSubstr(why));
    bytes_ = testing::make_pack(objects_);
  };
  first_entry()[32] ^= 1;  // the digest
  refused("instead of");
  first_entry()[72] ^= 4;  // the packed size
  refused("cannot be unpacked");
  first_entry()[80] ^= 1;  // the size
  refused("does not unpack");
  first_entry()[71] = 0x80;  // the offset
  refused("lies outside");
  bytes_[entry.offset + entry.packed_size - 1] ^= 1;  // the frame
  refused("");
  bytes_.resize(16 + 88 * objects_.size() - 1);
  refused("is a pack of 4");
  bytes_[0] = 'B';
  refused("is not a pack");
  bytes_.resize(15);
  refused("is not a pack");
}

// Sizes that are never asked of the system: a frame may claim any.
TEST_F(Pack, ObjectsOutOfAllProportionAreCorrupt) {
  const Digest first = objects_.begin()->first;
  for (const uint64_t size : {(uint64_t{256} << 20) + 1, uint64_t{1} << 50, ~uint64_t{0} - 2}) {
    std::memcpy(first_entry() + 80, &size, sizeof(size));
    // The frame's own header says the same: a size of 8 bytes and no window, then the least block.
    unsigned char frame[14] = {0x28, 0xb5, 0x2f, 0xfd, 0xe0};
    std::memcpy(frame + 5, &size, sizeof(size));
    const uint64_t offset = bytes_.size(), packed_size = sizeof(frame);
    bytes_.insert(bytes_.end(), std::begin(frame), std::end(frame));
    std::memcpy(first_entry() + 64, &offset, sizeof(offset));
    std::memcpy(first_entry() + 72, &packed_size, sizeof(packed_size));
    std::vector<std::unique_ptr<Provider>> providers;
    providers.push_back(std::make_unique<PackProvider>(provider()));
    const Store store(std::move(providers));
    const Error error = error_of([&] { store.get({first, {}}); });
    EXPECT_EQ(error.status(), Status::kCorrupt);
    EXPECT_THAT(error.what(), HasSubstr(std::to_string(size) + " bytes"));
  }
}

// Has one object, or throws.
class Shelf : public Provider {
 public:
  Shelf(std::string name, const char* object, Bytes bytes, Status status = Status::kOk)
      : name_(std::move(name)), key_(key(object)), bytes_(std::move(bytes)), status_(status) {}
  std::string name() const override { return name_; }
  std::optional<Bytes> get(const CodeObjectRef& ref) override {
    if (ref.key != key_) return std::nullopt;
    if (status_ != Status::kOk) fail(status_, "damaged");
    return bytes_;
  }

 private:
  std::string name_;
  Digest key_;
  Bytes bytes_;
  Status status_;
};

TEST(Store, ProvidersAreAskedInOrder) {
  std::vector<std::unique_ptr<Provider>> providers;
  providers.push_back(std::make_unique<Shelf>("first", "a", Bytes{1}));
  providers.push_back(std::make_unique<Shelf>("second", "a", Bytes{2}));
  providers.push_back(std::make_unique<Shelf>("third", "b", Bytes{3}));
  const Store store(std::move(providers));
  EXPECT_EQ(store.get({key("a"), {}}), Bytes{1});
  EXPECT_EQ(store.get({key("b"), {}}), Bytes{3});
  const Error error = error_of([&] { store.get({key("c"), {}}); });
  EXPECT_EQ(error.status(), Status::kUnsupported);
  EXPECT_THAT(error.what(), AllOf(HasSubstr(hex(key("c"))), HasSubstr("first: "),
                                  HasSubstr("second: "), HasSubstr("third: ")));
}

TEST(Store, DamageInOneProviderDoesNotHideTheNext) {
  std::vector<std::unique_ptr<Provider>> providers;
  providers.push_back(std::make_unique<Shelf>("first", "a", Bytes{}, Status::kCorrupt));
  providers.push_back(std::make_unique<Shelf>("second", "a", Bytes{2}));
  EXPECT_EQ(Store(std::move(providers)).get({key("a"), {}}), Bytes{2});

  providers.clear();
  providers.push_back(std::make_unique<Shelf>("first", "a", Bytes{}, Status::kCorrupt));
  providers.push_back(std::make_unique<Shelf>("second", "b", Bytes{}));
  const Store store(std::move(providers));
  const Error error = error_of([&] { store.get({key("a"), {}}); });
  EXPECT_EQ(error.status(), Status::kCorrupt);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("first: damaged"), HasSubstr("second: ")));
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
