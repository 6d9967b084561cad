// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "kernels/launch_table/launch_table.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <tuple>
#include <vector>

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

// Whether each section that the header names lies in the blob.
bool sections_fit(const TableHeader& h, uint64_t size) {
  const auto holds = [size](uint32_t offset, uint64_t count, size_t record) {
    return offset % 8 == 0 && offset <= size && count <= (size - offset) / record;
  };
  return holds(h.rows, h.row_count, sizeof(Row)) && holds(h.archs, h.arch_count, sizeof(Arch)) &&
         holds(h.objects, uint64_t{h.row_count} * h.arch_count, sizeof(CodeObjectRow)) &&
         holds(h.buckets, h.bucket_count, sizeof(Bucket)) &&
         holds(h.slots, h.slot_count, sizeof(Slot)) &&
         holds(h.slot_rows, h.slot_row_count, sizeof(uint32_t)) &&
         holds(h.recipes, h.recipe_count, sizeof(uint32_t)) && holds(h.strings, h.string_size, 1);
}

bool is_kind(uint8_t number) { return number < std::size(kKindNames); }

// Whether each value is one that the trait can have, and 0 where the kind does not have the trait.
bool traits_are_known(const Traits& traits) {
  if (!is_kind(static_cast<uint8_t>(traits.kind))) return false;
  return std::all_of(std::begin(kTraits), std::end(kTraits), [&](const TraitInfo& trait) {
    const uint32_t value = trait.value(traits);
    if (!trait.of(traits.kind)) return value == 0;
    return trait.texts == nullptr || (value < trait.text_count && *trait.texts[value] != 0);
  });
}

bool is_printable(char c) { return ' ' <= c && c <= '~'; }

// A name, and zeros up to the end, at least one.
bool is_padded_name(const char (&name)[sizeof(Arch::name)]) {
  const std::string_view all(name, sizeof(name));
  const size_t size = std::min(all.find('\0'), all.size());
  return 0 < size && size < all.size() &&
         std::all_of(all.begin(), all.begin() + size, is_printable) &&
         all.find_first_not_of('\0', size) == all.npos;
}

// Texts one after the other, each with its zero.
bool are_strings(std::string_view strings) {
  return !strings.empty() && strings.back() == 0 &&
         std::all_of(strings.begin(), strings.end(),
                     [](char c) { return c == 0 || is_printable(c); });
}

bool is_sorted(const Bucket* buckets, uint32_t count) {
  return std::is_sorted(buckets, buckets + count, [](const Bucket& a, const Bucket& b) {
    return std::tie(a.kind, a.dtype) < std::tie(b.kind, b.dtype);
  });
}

}  // namespace

bool LaunchTable::valid(const void* blob, uint64_t size) {
  if (reinterpret_cast<uintptr_t>(blob) % 8 != 0 || size < sizeof(TableHeader)) return false;
  const LaunchTable table(blob, nullptr, 0);
  const TableHeader& h = table.header();
  if (std::memcmp(h.magic, "ATTNTBL3", sizeof(h.magic)) != 0 || h.total_size != size ||
      !sections_fit(h, size) || !are_strings({table.at<char>(h.strings), h.string_size}) ||
      h.variant_set >= h.string_size || !is_sorted(table.at<Bucket>(h.buckets), h.bucket_count)) {
    return false;
  }
  for (uint32_t i = 0; i < h.row_count; ++i) {
    const Row& row = table.row(i);
    if (row.name >= h.string_size || table.name(row).empty() || row.symbol >= h.string_size ||
        table.symbol(row).empty() || !traits_are_known(row.traits)) {
      return false;
    }
  }
  for (uint32_t i = 0; i < h.arch_count; ++i) {
    if (!is_padded_name(table.at<Arch>(h.archs)[i].name)) return false;
  }
  return table.specs_are_known() && table.hazards_are_known() && table.index_is_sound();
}

bool LaunchTable::specs_are_known() const {
  const TableHeader& h = header();
  const uint32_t* const recipes = at<uint32_t>(h.recipes);
  const CodeObjectRow* const objects = at<CodeObjectRow>(h.objects);
  return std::all_of(recipes, recipes + h.recipe_count,
                     [&](uint32_t offset) { return offset < h.string_size; }) &&
         std::all_of(objects, objects + uint64_t{h.row_count} * h.arch_count,
                     [&](const CodeObjectRow& object) {
                       return object.recipe <= h.recipe_count && object.group < h.string_size;
                     });
}

bool LaunchTable::hazards_are_known() const {
  const CodeObjectRow* const objects = at<CodeObjectRow>(header().objects);
  return std::all_of(
      objects, objects + uint64_t{row_count()} * arch_count(),
      [](const CodeObjectRow& object) { return object.hazards >> std::size(kHazardNames) == 0; });
}

// A power of two of slots, at least two and one of them empty, so that a search ends. Every slot is
// what a search for its key finds; every row is in one, that of its own key, in table order.
bool LaunchTable::index_is_sound() const {
  const TableHeader& h = header();
  if (h.slot_count < 2 || h.slot_count & (h.slot_count - 1)) return false;
  const Range<Slot> slots = {at<Slot>(h.slots), at<Slot>(h.slots) + h.slot_count};
  uint64_t listed = 0;
  for (const Slot& slot : slots) {
    if (slot.count > h.slot_row_count || slot.first > h.slot_row_count - slot.count) return false;
    listed += slot.count;
  }
  const bool has_room =
      std::any_of(slots.begin(), slots.end(), [](const Slot& slot) { return slot.count == 0; });
  if (!has_room || listed != h.row_count) return false;

  const uint32_t* const slot_rows = at<uint32_t>(h.slot_rows);
  std::vector<bool> known(h.row_count);
  for (const Slot& slot : slots) {
    if (slot.count == 0) continue;
    const uint32_t* const first = slot_rows + slot.first;
    if (rows(slot.exact_key).first != first) return false;
    for (const uint32_t* row = first; row != first + slot.count; ++row) {
      if (*row >= h.row_count || known[*row] || (row != first && *row < row[-1]) ||
          exact_key(this->row(*row).traits) != slot.exact_key) {
        return false;
      }
      known[*row] = true;
    }
  }
  return true;
}

std::string_view LaunchTable::arch(uint32_t index) const {
  const char* const name = at<Arch>(header().archs)[index].name;
  return {name, strnlen(name, sizeof(Arch::name))};
}

int LaunchTable::find_arch(std::string_view name) const {
  // A name has no zeros; in the table at least one follows it.
  if (name.empty() || name.size() >= sizeof(Arch::name)) return -1;
  for (uint32_t i = 0; i < arch_count(); ++i) {
    const char* const known = at<Arch>(header().archs)[i].name;
    if (known[name.size()] == 0 && std::memcmp(known, name.data(), name.size()) == 0) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

const CodeObjectRow* LaunchTable::object(const Row& row, int arch) const {
  const CodeObjectRow* const object =
      at<CodeObjectRow>(header().objects) + size_t{index(row)} * arch_count() + arch;
  uint64_t words[sizeof(object->key) / sizeof(uint64_t)];
  std::memcpy(words, object->key, sizeof(words));
  return (words[0] | words[1] | words[2] | words[3]) == 0 ? nullptr : object;
}

Range<Bucket> LaunchTable::buckets(Kind kind, Dtype dtype) const {
  const auto place = [](uint8_t of_kind, uint8_t of_dtype) { return of_kind << 8 | of_dtype; };
  const auto is_before = [place](const Bucket& bucket, int wanted) {
    return place(bucket.kind, bucket.dtype) < wanted;
  };
  const int wanted = place(static_cast<uint8_t>(kind), static_cast<uint8_t>(dtype));
  const Bucket* const all = at<Bucket>(header().buckets);
  const Bucket* const end = all + header().bucket_count;
  const Bucket* const first = std::lower_bound(all, end, wanted, is_before);
  const Bucket* last = first;
  while (last != end && is_before(*last, wanted + 1)) ++last;
  return {first, last};
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
