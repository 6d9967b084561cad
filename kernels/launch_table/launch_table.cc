// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "kernels/launch_table/launch_table.h"

#include <algorithm>
#include <cstring>

namespace AITER_ATTN_NAMESPACE::kernels {
namespace {

static_assert(sizeof(TableHeader) == kPackedTableHeaderSize);
static_assert(sizeof(Arch) == kPackedArchSize);
static_assert(sizeof(Row) == kPackedRowSize);
static_assert(sizeof(CodeObjectRow) == kPackedCodeObjectRowSize);
static_assert(sizeof(Bucket) == kPackedBucketSize);
static_assert(sizeof(Slot) == kPackedSlotSize);

// As table.py: the upper bits of the product with 2^64 / the golden ratio.
uint32_t first_slot(uint64_t exact_key, uint32_t slot_count) {
  return static_cast<uint32_t>(exact_key * 0x9E3779B97F4A7C15u >> (64 - __builtin_ctz(slot_count)));
}

}  // namespace

bool LaunchTable::valid(const void* blob, uint64_t size) {
  TableHeader h;
  if (size < sizeof(h)) return false;
  std::memcpy(&h, blob, sizeof(h));
  if (std::memcmp(h.magic, "ATTNTBL1", sizeof(h.magic)) != 0 || h.total_size != size) return false;
  const auto holds = [&](uint32_t offset, uint64_t count, size_t record) {
    return offset % 8 == 0 && offset <= size && count <= (size - offset) / record;
  };
  if (!holds(h.rows, h.row_count, sizeof(Row)) || !holds(h.archs, h.arch_count, sizeof(Arch)) ||
      !holds(h.objects, uint64_t{h.row_count} * h.arch_count, sizeof(CodeObjectRow)) ||
      !holds(h.buckets, h.bucket_count, sizeof(Bucket)) ||
      !holds(h.slots, h.slot_count, sizeof(Slot)) ||
      !holds(h.slot_rows, h.slot_row_count, sizeof(uint32_t)) ||
      !holds(h.strings, h.string_size, 1)) {
    return false;
  }
  const LaunchTable table(blob, nullptr, 0);
  // Every string ends in the last one's zero at the latest.
  const char* const strings = table.at<char>(h.strings);
  if (h.string_size == 0 || strings[h.string_size - 1] || h.variant_set >= h.string_size) {
    return false;
  }
  for (uint32_t i = 0; i < h.row_count; ++i) {
    if (table.row(i).name >= h.string_size) return false;
  }
  const uint32_t* const slot_rows = table.at<uint32_t>(h.slot_rows);
  if (std::any_of(slot_rows, slot_rows + h.slot_row_count,
                  [&](uint32_t row) { return row >= h.row_count; })) {
    return false;
  }
  // A power of two of slots, at least two, and one of them empty: a search ends.
  if (h.slot_count < 2 || h.slot_count & (h.slot_count - 1)) return false;
  const Slot* const slots = table.at<Slot>(h.slots);
  bool empty_slot = false;
  for (const Slot* slot = slots; slot != slots + h.slot_count; ++slot) {
    if (slot->count > h.slot_row_count || slot->first > h.slot_row_count - slot->count)
      return false;
    empty_slot |= slot->count == 0;
  }
  return empty_slot;
}

std::string_view LaunchTable::arch(uint32_t index) const {
  const char* const name = at<Arch>(header().archs)[index].name;
  return {name, strnlen(name, sizeof(Arch::name))};
}

int LaunchTable::find_arch(std::string_view name) const {
  for (uint32_t i = 0; i < arch_count(); ++i) {
    if (arch(i) == name) return static_cast<int>(i);
  }
  return -1;
}

const CodeObjectRow* LaunchTable::object(const Row& row, int arch) const {
  static constexpr uint8_t kNone[sizeof(CodeObjectRow::key)] = {};
  const CodeObjectRow* const object =
      at<CodeObjectRow>(header().objects) + size_t{index(row)} * arch_count() + arch;
  return std::memcmp(object->key, kNone, sizeof(kNone)) == 0 ? nullptr : object;
}

Range<Bucket> LaunchTable::buckets(Kind kind, Dtype dtype) const {
  const auto is_other = [=](const Bucket& bucket) {
    return bucket.kind != static_cast<uint8_t>(kind) || bucket.dtype != static_cast<uint8_t>(dtype);
  };
  const Bucket* const all = at<Bucket>(header().buckets);
  const Bucket* const end = all + header().bucket_count;
  const Bucket* const first = std::find_if_not(all, end, is_other);
  return {first, std::find_if(first, end, is_other)};
}

Range<uint32_t> LaunchTable::rows(uint64_t exact_key) const {
  const Slot* const slots = at<Slot>(header().slots);
  const uint32_t* const slot_rows = at<uint32_t>(header().slot_rows);
  const uint32_t count = header().slot_count;
  for (uint32_t i = first_slot(exact_key, count); slots[i].count != 0; i = (i + 1) & (count - 1)) {
    if (slots[i].exact_key != exact_key) continue;
    const uint32_t* const first = slot_rows + slots[i].first;
    return {first, first + slots[i].count};
  }
  return {nullptr, nullptr};
}

}  // namespace AITER_ATTN_NAMESPACE::kernels
