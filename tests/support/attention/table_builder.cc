// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "tests/support/attention/table_builder.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>
#include <tuple>

namespace AITER_ATTN_NAMESPACE::testing {
namespace {

using kernels::Bucket;
using kernels::Row;
using kernels::Slot;
using kernels::Traits;

// Sections that follow each other, each at a multiple of 8 bytes.
class Blob {
 public:
  template <typename Record>
  uint32_t add(const Record* records, size_t count) {
    const size_t offset = bytes_.size();
    bytes_.resize((offset + count * sizeof(Record) + 7) / 8 * 8);
    if (count) std::memcpy(bytes_.data() + offset, records, count * sizeof(Record));
    return static_cast<uint32_t>(offset);
  }
  template <typename Record>
  uint32_t add(const std::vector<Record>& records) {
    return add(records.data(), records.size());
  }
  std::vector<char>& bytes() { return bytes_; }

 private:
  std::vector<char> bytes_;
};

std::vector<Bucket> buckets_of(const std::vector<Row>& rows) {
  std::vector<Bucket> buckets;
  const auto as_tuple = [](const Bucket& b) {
    return std::tuple(b.kind, b.dtype, b.head_size_qk, b.head_size_v);
  };
  for (const Row& row : rows) {
    const Traits& t = row.traits;
    const Bucket bucket = {static_cast<uint8_t>(t.kind), static_cast<uint8_t>(t.dtype),
                           t.head_size_qk, t.head_size_v, 0};
    const bool known = std::any_of(buckets.begin(), buckets.end(), [&](const Bucket& other) {
      return as_tuple(other) == as_tuple(bucket);
    });
    if (!known) buckets.push_back(bucket);
  }
  std::stable_sort(buckets.begin(), buckets.end(), [](const Bucket& a, const Bucket& b) {
    return std::tie(a.kind, a.dtype) < std::tie(b.kind, b.dtype);
  });
  return buckets;
}

}  // namespace

uint32_t TableBuilder::keep(const std::string& text) {
  const auto at = static_cast<uint32_t>(strings_.size());
  strings_ += text + '\0';
  return at;
}

uint32_t TableBuilder::add_recipe(const std::string& text) {
  recipes_.push_back(keep(text));
  return static_cast<uint32_t>(recipes_.size());
}

void TableBuilder::add(const std::string& name, Row row, kernels::MakeLaunch launch,
                       const std::vector<kernels::CodeObjectRow>& objects) {
  row.name = row.symbol = keep(name);
  row.launch = static_cast<uint32_t>(launches_.size());
  rows_.push_back(row);
  launches_.push_back(launch);
  objects_.insert(objects_.end(), objects.begin(), objects.end());
}

kernels::LaunchTable TableBuilder::build(const std::string& variant_set) {
  std::map<uint64_t, std::vector<uint32_t>> by_key;
  for (uint32_t i = 0; i < rows_.size(); ++i) by_key[exact_key(rows_[i].traits)].push_back(i);
  uint32_t bits = 1;
  while ((size_t{1} << bits) < 2 * by_key.size()) ++bits;
  std::vector<Slot> slots(size_t{1} << bits);
  std::vector<uint32_t> slot_rows;
  for (const auto& [key, rows] : by_key) {
    size_t at = key * 0x9E3779B97F4A7C15u >> (64 - bits);
    while (slots[at].count) at = (at + 1) % slots.size();
    slots[at] = {key, static_cast<uint32_t>(slot_rows.size()), static_cast<uint32_t>(rows.size())};
    slot_rows.insert(slot_rows.end(), rows.begin(), rows.end());
  }
  const std::vector<Bucket> buckets = buckets_of(rows_);
  std::vector<kernels::Arch> archs(archs_.size());
  for (size_t i = 0; i < archs.size(); ++i) archs_[i].copy(archs[i].name, sizeof(archs[i].name));

  kernels::TableHeader header = {};
  std::memcpy(header.magic, "ATTNTBL3", sizeof(header.magic));
  header.row_count = static_cast<uint32_t>(rows_.size());
  header.arch_count = static_cast<uint32_t>(archs.size());
  header.bucket_count = static_cast<uint32_t>(buckets.size());
  header.slot_count = static_cast<uint32_t>(slots.size());
  header.slot_row_count = static_cast<uint32_t>(slot_rows.size());
  header.recipe_count = static_cast<uint32_t>(recipes_.size());
  header.variant_set = keep(variant_set);
  header.string_size = static_cast<uint32_t>(strings_.size());
  Blob blob;
  blob.add(&header, 1);
  header.rows = blob.add(rows_);
  header.archs = blob.add(archs);
  header.objects = blob.add(objects_);
  header.buckets = blob.add(buckets);
  header.slots = blob.add(slots);
  header.slot_rows = blob.add(slot_rows);
  header.recipes = blob.add(recipes_);
  header.strings = blob.add(strings_.data(), strings_.size());
  header.total_size = static_cast<uint32_t>(blob.bytes().size());
  std::memcpy(blob.bytes().data(), &header, sizeof(header));
  blob_.resize(blob.bytes().size() / sizeof(uint64_t));
  std::memcpy(blob_.data(), blob.bytes().data(), blob.bytes().size());
  if (!kernels::LaunchTable::valid(blob_.data(), header.total_size)) {
    throw std::logic_error("the table by hand is not well-formed");
  }
  return {blob_.data(), launches_.data(), static_cast<uint32_t>(launches_.size())};
}

}  // namespace AITER_ATTN_NAMESPACE::testing
