// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <iterator>
#include <thread>

#include "aiter/runtime/error.h"
#include "tests/support/runtime/error_of.h"
#include "tests/support/runtime/pack.h"
#include "tests/support/runtime/tiny_elf.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;

Digest key(const std::string& text) { return sha256(text.data(), text.size()); }

class Pack : public ::testing::Test {
 protected:
  PackProvider provider() const { return {"shelf", bytes_.data(), bytes_.size()}; }
  // Where the entry of the first object is in the pack.
  unsigned char* first_entry() { return bytes_.data() + 40; }

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
  bytes_.resize(40 + 88 * objects_.size() - 1);
  refused("is a pack of 4");
  bytes_[7] = '1';
  refused("of another format than 2");
  bytes_[0] = 'B';
  refused("is not a pack");
  bytes_.resize(39);
  refused("is not a pack");
}

class PackWithDictionary : public ::testing::Test {
 protected:
  static constexpr size_t kOffset = 16, kPackedSize = 24, kSize = 32;  // of the header's fields

  uint64_t number(size_t at) const {
    uint64_t value;
    std::memcpy(&value, bytes_.data() + at, sizeof(value));
    return value;
  }
  void set_number(size_t at, uint64_t value) {
    std::memcpy(bytes_.data() + at, &value, sizeof(value));
  }
  // Every object is refused for the reason, and again: a failed read leaves nothing half done.
  void expect_refused(const std::string& why) {
    PackProvider pack("shelf", bytes_.data(), bytes_.size());
    for (const auto& [key, bytes] : objects_) {
      const Error error = error_of([&, &key = key] { pack.get({key, {}}); });
      EXPECT_EQ(error.status(), Status::kCorrupt) << why;
      EXPECT_THAT(error.what(), AllOf(HasSubstr(why), HasSubstr("shelf")));
    }
    bytes_ = testing::make_pack(objects_);
  }

  const std::map<Digest, Bytes> objects_ = testing::similar_objects();
  std::vector<unsigned char> bytes_ = testing::make_pack(objects_);
};

TEST_F(PackWithDictionary, IsSmallerAndAnyObjectIsReadAlone) {
  ASSERT_GT(number(kSize), 0u);
  uint64_t unpacked = 0, packed = 40 + 88 * objects_.size();
  for (const auto& [key, bytes] : objects_) {
    PackProvider pack("shelf", bytes_.data(), bytes_.size());
    EXPECT_EQ(pack.get({key, {}}), bytes);
    EXPECT_EQ(pack.get({key, {}}), bytes);
    unpacked += bytes.size();
    packed += pack.size_of(key);
  }
  EXPECT_LT(bytes_.size(), unpacked / 2);
  // Shares of the dictionary are whole bytes.
  EXPECT_LE(packed, bytes_.size());
  EXPECT_GT(packed + objects_.size(), bytes_.size());
  EXPECT_EQ(PackProvider("shelf", bytes_.data(), bytes_.size()).size_of(key("none")), 0u);
}

TEST_F(PackWithDictionary, ThreadsMayReadItForTheFirstTimeTogether) {
  PackProvider pack("shelf", bytes_.data(), bytes_.size());
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (const auto& object : objects_) {
    threads.emplace_back([&] { right += pack.get({object.first, {}}) == object.second; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, static_cast<int>(objects_.size()));
}

TEST_F(PackWithDictionary, TheBytesDependOnTheObjectsAlone) {
  EXPECT_EQ(testing::make_pack(objects_), bytes_);
}

TEST_F(PackWithDictionary, ADamagedDictionaryIsCorrupt) {
  const uint64_t offset = number(kOffset), packed_size = number(kPackedSize);
  for (const uint64_t at : {packed_size / 4, packed_size / 2, packed_size - 1}) {
    bytes_[offset + at] ^= 1;
    expect_refused("the dictionary of");
  }
  set_number(kPackedSize, packed_size / 2);
  expect_refused("the dictionary of");
  set_number(kSize, number(kSize) + 1);
  expect_refused("does not unpack to");
  set_number(kOffset, bytes_.size() + 1);
  expect_refused("lies outside");
  set_number(kPackedSize, ~uint64_t{0});
  expect_refused("lies outside");
  for (const uint64_t size : {(uint64_t{16} << 20) + 1, ~uint64_t{0}}) {
    set_number(kSize, size);
    expect_refused("but none has more than");
  }
}

TEST_F(PackWithDictionary, WithoutItsDictionaryItIsCorrupt) {
  set_number(kSize, 0);
  expect_refused("but the pack's is 0");
}

TEST_F(PackWithDictionary, ADictionaryOfAnotherPackIsRefused) {
  std::map<Digest, Bytes> others = objects_;
  for (auto& [key, bytes] : others) {
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(byte * 3 + 1);
  }
  const std::vector<unsigned char> other = testing::make_pack(others);
  uint64_t place[3];
  std::memcpy(place, other.data() + kOffset, sizeof(place));
  ASSERT_GT(place[2], 0u);
  const uint64_t end = bytes_.size();
  bytes_.insert(bytes_.end(), other.begin() + place[0], other.begin() + place[0] + place[1]);
  set_number(kOffset, end);
  set_number(kPackedSize, place[1]);
  set_number(kSize, place[2]);
  expect_refused("was packed with dictionary");
}

TEST_F(PackWithDictionary, ADictionaryThatIsNotZstdsIsRefused) {
  // A frame of zeros, taken from a pack that needs no dictionary.
  const std::vector<unsigned char> zeros = testing::make_pack({{key("zeros"), Bytes(1000, 0)}});
  PackEntry entry;
  std::memcpy(&entry, zeros.data() + 40, sizeof(entry));
  const uint64_t end = bytes_.size();
  bytes_.insert(bytes_.end(), zeros.begin() + entry.offset, zeros.end());
  set_number(kOffset, end);
  set_number(kPackedSize, entry.packed_size);
  set_number(kSize, entry.size);
  expect_refused("is not one of zstd's");
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
    providers.push_back(std::make_unique<PackProvider>("shelf", bytes_.data(), bytes_.size()));
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
  Answer look(const CodeObjectRef& ref) override {
    return ref.key == key_ ? Answer{true, "has it"} : Answer{};
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

// Would make whatever it is asked for; a test that has it make something fails.
class Factory : public Provider {
 public:
  std::string name() const override { return "factory"; }
  std::optional<Bytes> get(const CodeObjectRef&) override {
    ADD_FAILURE() << "it is asked to make one";
    return Bytes{9};
  }
};

TEST(Store, AFetchMakesNothing) {
  std::vector<std::unique_ptr<Provider>> providers;
  providers.push_back(std::make_unique<Factory>());
  providers.push_back(std::make_unique<Shelf>("first", "a", Bytes{}, Status::kCorrupt));
  providers.push_back(std::make_unique<Shelf>("second", "b", Bytes{}, Status::kCorrupt));
  providers.push_back(std::make_unique<Shelf>("third", "b", Bytes{3}));
  const Store store(std::move(providers));
  EXPECT_EQ(store.fetch({key("b"), {}}), Bytes{3});
  EXPECT_EQ(store.fetch({key("c"), {}}), std::nullopt);
  const Error error = error_of([&] { store.fetch({key("a"), {}}); });
  EXPECT_EQ(error.status(), Status::kCorrupt);
  EXPECT_THAT(error.what(), HasSubstr("(first: damaged)"));
}

// A kernel of a compile group, and its plain compile.
CodeObjectRef grouped() {
  CodeObjectRef ref = {key("exact"), {}};
  ref.plain = [] { return CodeObjectRef{key("plain"), {}}; };
  return ref;
}

TEST(Store, ThePlainCompileServesWhereTheExactObjectIsNowhere) {
  std::vector<std::unique_ptr<Provider>> providers;
  providers.push_back(std::make_unique<Shelf>("first", "plain", Bytes{1}));
  providers.push_back(std::make_unique<Shelf>("second", "other", Bytes{2}));
  const Store store(std::move(providers));
  EXPECT_EQ(store.serve(grouped()), Bytes{1});
  // A key has its own bytes only.
  EXPECT_EQ(error_of([&] { store.get(grouped()); }).status(), Status::kUnsupported);
  const std::vector<Store::Told> told = store.look(grouped());
  ASSERT_EQ(told.size(), 3u);
  EXPECT_FALSE(told[0].answer.has || told[1].answer.has);
  EXPECT_TRUE(told[2].answer.has && told[2].is_of_other);
  EXPECT_EQ(told[2].provider, "first");
  EXPECT_EQ(told[2].answer.text, "its plain compile, key " + hex(key("plain")) + ": has it");
}

TEST(Store, AnyExactObjectComesBeforeThePlainCompile) {
  std::vector<std::unique_ptr<Provider>> providers;
  providers.push_back(std::make_unique<Shelf>("first", "plain", Bytes{1}));
  providers.push_back(std::make_unique<Shelf>("second", "exact", Bytes{2}));
  const Store store(std::move(providers));
  EXPECT_EQ(store.serve(grouped()), Bytes{2});
  EXPECT_EQ(store.get(grouped()), Bytes{2});
  EXPECT_EQ(store.look(grouped()).size(), 2u);
}

TEST(Store, WithNeitherItTellsOfBoth) {
  std::vector<std::unique_ptr<Provider>> providers;
  providers.push_back(std::make_unique<Shelf>("first", "plain", Bytes{}, Status::kInternal));
  const Store store(std::move(providers));
  const Error error = error_of([&] { store.serve(grouped()); });
  EXPECT_EQ(error.status(), Status::kInternal);
  EXPECT_EQ(error.what(), "no code object with key '" + hex(key("exact")) +
                              "' (first: does not have it), nor its plain compile, with key '" +
                              hex(key("plain")) + "' (first: damaged)");
}

// A compiler of the machine, whose objects have a key of their own.
class Workshop : public Shelf {
 public:
  using Shelf::Shelf;
  std::optional<CodeObjectRef> own(const CodeObjectRef&) const override {
    return CodeObjectRef{key("own"), {}};
  }
};

// A compiler that cannot even say its key.
class Ruin : public Workshop {
 public:
  using Workshop::Workshop;
  std::optional<CodeObjectRef> own(const CodeObjectRef&) const override {
    fail(Status::kDriver, "is in ruins");
  }
};

TEST(Store, ACompilersOwnObjectServesAtLast) {
  std::vector<std::unique_ptr<Provider>> providers;
  providers.push_back(std::make_unique<Ruin>("ruin", "other", Bytes{}));
  providers.push_back(std::make_unique<Workshop>("workshop", "own", Bytes{1}));
  const Store store(std::move(providers));
  EXPECT_EQ(store.serve(grouped()), Bytes{1});
  EXPECT_EQ(error_of([&] { store.get(grouped()); }).status(), Status::kUnsupported);
  const std::vector<Store::Told> told = store.look(grouped());
  ASSERT_EQ(told.size(), 3u);
  EXPECT_TRUE(told[2].answer.has && told[2].is_of_other);
  EXPECT_EQ(told[2].answer.text, "its compile by workshop, key " + hex(key("own")) + ": has it");

  for (const char* before : {"exact", "plain"}) {
    std::vector<std::unique_ptr<Provider>> better;
    better.push_back(std::make_unique<Workshop>("workshop", "own", Bytes{1}));
    better.push_back(std::make_unique<Shelf>("shelf", before, Bytes{2}));
    EXPECT_EQ(Store(std::move(better)).serve(grouped()), Bytes{2}) << before;
  }
}

TEST(Store, ItsOwnObjectMayLieElsewhere) {
  std::vector<std::unique_ptr<Provider>> providers;
  providers.push_back(std::make_unique<Shelf>("cache", "own", Bytes{3}));
  providers.push_back(std::make_unique<Workshop>("workshop", "other", Bytes{1}));
  EXPECT_EQ(Store(std::move(providers)).serve(grouped()), Bytes{3});
}

TEST(Store, WithoutAnyItTellsOfAll) {
  std::vector<std::unique_ptr<Provider>> providers;
  providers.push_back(std::make_unique<Ruin>("ruin", "other", Bytes{}));
  providers.push_back(std::make_unique<Workshop>("workshop", "own", Bytes{}, Status::kInternal));
  const Store store(std::move(providers));
  const Error error = error_of([&] { store.serve(CodeObjectRef{key("exact"), {}}); });
  EXPECT_EQ(error.status(), Status::kInternal);
  EXPECT_EQ(error.what(),
            "no code object with key '" + hex(key("exact")) +
                "' (ruin: does not have it; workshop: does not have it), nor its compile by ruin: "
                "is in ruins, nor its compile by workshop, with key '" +
                hex(key("own")) + "' (ruin: does not have it; workshop: damaged)");
}

// A signed pack is believed about bytes that the library knows no digest of: of another kernel they
// are not launched.
TEST(Store, BytesOfAnotherKernelAreNotLaunched) {
  const Bytes wrong = testing::tiny_code_object("f", "", testing::TinyMetadata{24, 64});
  const Bytes right = testing::tiny_code_object("f", "", testing::TinyMetadata{16, 64});
  CodeObjectRef ref = grouped();
  ref.kernel = KernelFacts{"f", 16, 64};
  ref.remedy = [] { return std::string("install the kit"); };
  for (const char* served : {"exact", "plain", "own"}) {
    std::vector<std::unique_ptr<Provider>> providers;
    providers.push_back(std::make_unique<Workshop>("first", served, wrong));
    const Store store(std::move(providers));
    const Error error = error_of([&] { store.serve(ref); });
    EXPECT_EQ(error.status(), Status::kCorrupt);
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("first: code object " + hex(key(served)) +
                                " has f with 24 bytes of arguments, but this library's host code "
                                "makes 16"),
                      HasSubstr("): install the kit")));
    std::vector<std::unique_ptr<Provider>> better;
    better.push_back(std::make_unique<Workshop>("first", served, wrong));
    better.push_back(std::make_unique<Shelf>("second", served, right));
    EXPECT_EQ(Store(std::move(better)).serve(ref), right);
  }
}

TEST(Store, WhoeverInterruptsWantsNothingMore) {
  std::vector<std::unique_ptr<Provider>> providers;
  providers.push_back(std::make_unique<Shelf>("first", "exact", Bytes{}, Status::kInterrupted));
  providers.push_back(std::make_unique<Shelf>("second", "exact", Bytes{1}));
  providers.push_back(std::make_unique<Shelf>("third", "plain", Bytes{2}));
  const Store store(std::move(providers));
  EXPECT_EQ(error_of([&] { store.serve(grouped()); }).status(), Status::kInterrupted);
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::runtime
