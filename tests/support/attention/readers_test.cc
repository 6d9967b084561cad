// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Launch tables and packs with damage of every kind: they are refused, or read without harm.
// Sanitizers notice the harm.
#include "tests/support/attention/readers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/attention/table_builder.h"
#include "tests/support/runtime/pack.h"

namespace AITER_ATTN_NAMESPACE::testing {
namespace {

using kernels::Bucket;
using kernels::CodeObjectRow;
using kernels::Dtype;
using kernels::Kind;
using kernels::Row;
using kernels::Slot;
using kernels::TableHeader;

std::string some_table() {
  TableBuilder builder({"gfx942", "gfx950"});
  CodeObjectRow object = {};
  object.key[0] = 1;
  for (const Kind kind : {Kind::kFwd, Kind::kBwdDotDoO, Kind::kBwdDqDkDv, Kind::kBwdConvertDq}) {
    for (const bool padded : {false, true}) {
      Row row = {};
      row.traits.kind = kind;
      row.traits.dtype = Dtype::kFp16;
      row.traits.head_size_qk = row.traits.head_size_v = 64;
      (kind == Kind::kBwdDqDkDv ? row.traits.pad_head_size_v : row.traits.pad_seqlen_q) = padded;
      row.tile_seqlen_q = row.tile_seqlen_k = 128;
      builder.add(std::string(name_of(kind)) + (padded ? "_p" : "_n"), row, nullptr,
                  {object, object});
    }
  }
  builder.build("damaged");
  return builder.bytes();
}

bool reads(const std::string& table) { return read_launch_table(table.data(), table.size()); }

TEST(ReadLaunchTable, EveryByteAndWordMayBeAnything) {
  const std::string good = some_table();
  ASSERT_TRUE(reads(good));
  int refused = 0;
  for (size_t at = 0; at < good.size(); ++at) {
    for (const int value : {0, 0xff}) {
      std::string bad = good;
      bad[at] = static_cast<char>(value);
      refused += !reads(bad);
    }
  }
  EXPECT_GT(refused, 500);
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    std::string bad = good;
    for (int n = random() % 4; n >= 0; --n) {
      const uint32_t words[] = {0, 1,          2,          7,
                                8, 0x7fffffff, 0xffffffff, static_cast<uint32_t>(random())};
      const size_t at = random() % (bad.size() / 4) * 4;
      std::memcpy(&bad[at], &words[random() % 8], 4);
    }
    reads(bad);
  }
  for (size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(reads(good.substr(0, size)));
}

// Damage that a reader would stumble over, one by one.
class DamagedTable : public ::testing::Test {
 protected:
  template <typename Record>
  Record* at(uint32_t TableHeader::* section, size_t index) {
    return reinterpret_cast<Record*>(&bytes_[header()->*section + index * sizeof(Record)]);
  }
  TableHeader* header() { return reinterpret_cast<TableHeader*>(&bytes_[0]); }
  Row* row(size_t index) { return at<Row>(&TableHeader::rows, index); }
  Slot* slot() {
    Slot* slot = at<Slot>(&TableHeader::slots, 0);
    while (slot->count < 2) ++slot;
    return slot;
  }
  void expect_refused(const char* why) {
    EXPECT_FALSE(reads(bytes_)) << why;
    bytes_ = good_;
  }

  const std::string good_ = some_table();
  std::string bytes_ = good_;
};

TEST_F(DamagedTable, TraitsThatNobodyKnows) {
  row(0)->traits.kind = static_cast<Kind>(8);
  expect_refused("a kind");
  row(0)->traits.dtype = static_cast<Dtype>(0);
  expect_refused("no dtype");
  row(0)->traits.dtype = static_cast<Dtype>(3);
  expect_refused("a dtype");
  row(0)->traits.mask = 2;
  expect_refused("a flag");
  row(3)->traits.pad_seqlen_q = 255;
  expect_refused("a flag that is not in the key");
  for (size_t i = 0; i < header()->row_count; ++i) {
    if (row(i)->traits.kind == Kind::kBwdDotDoO) row(i)->traits.pad_seqlen_k = 1;
  }
  expect_refused("a trait that the kind has not");
}

TEST_F(DamagedTable, TextsWithoutAnEnd) {
  std::memset(&bytes_[header()->archs], 'g', sizeof(kernels::Arch));
  expect_refused("an arch without a zero");
  bytes_[header()->archs] = 0;
  expect_refused("an arch without a name");
  bytes_[header()->archs + 7] = 'x';
  expect_refused("text behind an arch's zero");
  bytes_[header()->archs] = '\xff';
  expect_refused("an arch that is not ASCII");
  bytes_[header()->strings + header()->string_size - 1] = 'x';
  expect_refused("the last string without a zero");
  bytes_[header()->strings] = '\n';
  expect_refused("a string that is not printable");
  row(0)->name = header()->string_size;
  expect_refused("a name behind the strings");
  header()->variant_set = header()->string_size;
  expect_refused("a set's name behind the strings");
}

TEST_F(DamagedTable, AnIndexThatIsNone) {
  slot()->exact_key ^= 1;
  expect_refused("a key of other rows");
  Slot* const full = slot();
  Slot* empty = at<Slot>(&TableHeader::slots, 0);
  while (empty->count != 0 || empty == full + 1) ++empty;
  std::swap(*full, *empty);
  expect_refused("a slot where no search looks");
  slot()->first += 1;
  expect_refused("rows of another key");
  slot()->count -= 1;
  expect_refused("a row that no slot has");
  uint32_t* const rows = at<uint32_t>(&TableHeader::slot_rows, slot()->first);
  std::swap(rows[0], rows[1]);
  expect_refused("rows out of order");
  uint32_t* const again = at<uint32_t>(&TableHeader::slot_rows, slot()->first);
  again[1] = again[0];
  expect_refused("a row twice");
  for (size_t i = 0; i < header()->slot_count; ++i) {
    Slot* const empty = at<Slot>(&TableHeader::slots, i);
    if (empty->count == 0) empty->count = 1;
  }
  expect_refused("no empty slot");
  std::swap(*at<Bucket>(&TableHeader::buckets, 0), *at<Bucket>(&TableHeader::buckets, 1));
  expect_refused("buckets out of order");
}

void read_damaged_packs(const std::map<runtime::Digest, runtime::Bytes>& objects) {
  const std::vector<unsigned char> good = make_pack(objects);
  ASSERT_TRUE(read_pack(good.data(), good.size()));
  std::mt19937 random(5);
  for (size_t at = 0; at < good.size(); ++at) {
    std::vector<unsigned char> bad = good;
    bad[at] ^= 1 << random() % 8;
    read_pack(bad.data(), bad.size());
    // And a word that is out of all proportion.
    bad = good;
    const uint64_t great = ~uint64_t{0} >> random() % 64;
    std::memcpy(&bad[at], &great, std::min(sizeof(great), bad.size() - at));
    read_pack(bad.data(), bad.size());
  }
  for (size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(read_pack(good.data(), size));
}

TEST(ReadPack, EveryByteAndWordMayBeAnything) {
  std::map<runtime::Digest, runtime::Bytes> objects;
  for (unsigned char i = 0; i < 5; ++i) {
    runtime::Digest key = {};
    key[0] = i * 50;
    objects[key] = runtime::Bytes(i * 1000, i);
  }
  read_damaged_packs(objects);
}

TEST(ReadPack, EveryByteAndWordOfOneWithADictionaryMayBeAnything) {
  read_damaged_packs(similar_objects());
}

}  // namespace
}  // namespace AITER_ATTN_NAMESPACE::testing
