// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "aiter/runtime/store/kernel_metadata.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "aiter/runtime/error.h"
#include "aiter/runtime/text.h"

namespace AITER_ATTN_NAMESPACE::runtime {
namespace {

constexpr Elf64_Half kMachineAmdgpu = 224;
constexpr Elf64_Word kMetadataNote = 32;
constexpr std::string_view kNoteName("AMDGPU\0", 7);

// A record at an offset; nothing where the bytes end before it does.
template <typename Record>
std::optional<Record> record_at(std::string_view bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(Record)) return std::nullopt;
  Record record;
  std::memcpy(&record, bytes.data() + offset, sizeof(record));
  return record;
}

// A part of the bytes; empty where they do not have all of it.
std::string_view part_of(std::string_view bytes, uint64_t offset, uint64_t size) {
  if (offset > bytes.size() || bytes.size() - offset < size) return {};
  return bytes.substr(offset, size);
}

// The metadata among the notes of a segment; empty: they are not there.
std::string_view metadata_of_notes(std::string_view notes) {
  const auto padded = [](uint64_t size) { return (size + 3) / 4 * 4; };
  uint64_t at = 0;
  while (const auto note = record_at<Elf64_Nhdr>(notes, at)) {
    at += sizeof(Elf64_Nhdr);
    const std::string_view name = part_of(notes, at, note->n_namesz);
    at += padded(note->n_namesz);
    if (note->n_type == kMetadataNote && name == kNoteName) {
      return part_of(notes, at, note->n_descsz);
    }
    at += padded(note->n_descsz);
  }
  return {};
}

// The metadata of a code object; empty: it has none.
std::string_view metadata_of(std::string_view object) {
  const auto header = record_at<Elf64_Ehdr>(object, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != kMachineAmdgpu ||
      header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phoff > object.size()) {
    return {};
  }
  for (uint64_t i = 0; i < header->e_phnum; ++i) {
    const auto segment = record_at<Elf64_Phdr>(object, header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment) return {};
    if (segment->p_type != PT_NOTE) continue;
    const std::string_view notes = part_of(object, segment->p_offset, segment->p_filesz);
    if (const std::string_view found = metadata_of_notes(notes); !found.empty()) return found;
  }
  return {};
}

// Reads values of MessagePack one after the other. Where they are damaged or end too early, all
// further ones are of Kind::kNone.
class Reader {
 public:
  enum class Kind { kNone, kNumber, kText, kArray, kMap, kOther };
  struct Value {
    Kind kind = Kind::kNone;
    uint64_t number = 0;  // kNumber; of kArray and kMap, how many entries follow
    std::string_view text = {};
  };

  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  // A scalar, or the beginning of an array or of a map, whose entries are the next values.
  Value next() {
    const uint64_t head = unsigned_of(1);
    if (is_damaged_) return {};
    if (head <= 0x7f) return {Kind::kNumber, head};
    if (head <= 0x8f) return {Kind::kMap, head & 0xf};
    if (head <= 0x9f) return {Kind::kArray, head & 0xf};
    if (head <= 0xbf) return text_of(head & 0x1f);
    if (head >= 0xe0) return {Kind::kOther};
    switch (head) {
      case 0xc0:
      case 0xc2:
      case 0xc3:
        return {Kind::kOther};
      case 0xca:
      case 0xcb:
        return other_of(uint64_t{4} << (head - 0xca));
      case 0xcc:
      case 0xcd:
      case 0xce:
      case 0xcf: {
        const uint64_t number = unsigned_of(1 << (head - 0xcc));
        return is_damaged_ ? Value() : Value{Kind::kNumber, number};
      }
      case 0xd0:
      case 0xd1:
      case 0xd2:
      case 0xd3:
        return other_of(uint64_t{1} << (head - 0xd0));
      case 0xd9:
      case 0xda:
      case 0xdb:
        return text_of(unsigned_of(1 << (head - 0xd9)));
      case 0xdc:
      case 0xdd:
        return entries_of(Kind::kArray, 2 << (head - 0xdc));
      case 0xde:
      case 0xdf:
        return entries_of(Kind::kMap, 2 << (head - 0xde));
      default:  // bytes and extensions, which the guide has none of
        is_damaged_ = true;
        return {};
    }
  }

  // Goes on behind a value that has begun.
  void leave(const Value& begun) {
    uint64_t left = entries(begun);
    while (left > 0 && !is_damaged_) left += entries(next()) - 1;
  }

  // Calls what it is given for the key of each entry of a map that has begun, with its value, which
  // it must read or leave.
  template <typename Take>
  void for_each(const Value& map, Take&& take) {
    if (map.kind != Kind::kMap) return leave(map);
    for (uint64_t i = 0; i < map.number && !is_damaged_; ++i) {
      const Value key = next();
      leave(key);
      take(key.text, next());
    }
  }

  bool is_damaged() const { return is_damaged_; }

 private:
  static uint64_t entries(const Value& value) {
    if (value.kind == Kind::kMap) return 2 * value.number;
    return value.kind == Kind::kArray ? value.number : 0;
  }
  std::string_view take(uint64_t size) {
    if (bytes_.size() < size) is_damaged_ = true;
    if (is_damaged_) return {};
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  // Big-endian.
  uint64_t unsigned_of(uint64_t size) {
    uint64_t number = 0;
    for (const char byte : take(size)) number = number << 8 | static_cast<unsigned char>(byte);
    return number;
  }
  Value text_of(uint64_t size) {
    const std::string_view text = take(size);
    return is_damaged_ ? Value() : Value{Kind::kText, 0, text};
  }
  Value other_of(uint64_t size) {
    take(size);
    return is_damaged_ ? Value() : Value{Kind::kOther};
  }
  Value entries_of(Kind kind, uint64_t size) {
    const uint64_t count = unsigned_of(size);
    return is_damaged_ ? Value() : Value{kind, count};
  }

  std::string_view bytes_;
  bool is_damaged_ = false;
};

using Kind = Reader::Kind;
using Value = Reader::Value;

struct Kernel {
  std::string_view name;
  uint64_t kernarg_size = 0;  // without the arguments that the runtime adds
  uint64_t workgroup_size = 0;
};

// The end of an argument among the bytes that a caller passes; 0 of one that the runtime adds.
uint64_t end_of_argument(Reader& reader, const Value& argument) {
  uint64_t offset = 0, size = 0;
  bool is_hidden = false;
  reader.for_each(argument, [&](std::string_view field, const Value& value) {
    if (field == ".offset") offset = value.number;
    if (field == ".size") size = value.number;
    if (field == ".value_kind") is_hidden = value.text.substr(0, 7) == "hidden_";
    reader.leave(value);
  });
  return is_hidden ? 0 : offset + size;
}

Kernel read_kernel(Reader& reader, const Value& map) {
  Kernel kernel;
  reader.for_each(map, [&](std::string_view field, const Value& value) {
    if (field == ".name") kernel.name = value.text;
    if (field == ".max_flat_workgroup_size") kernel.workgroup_size = value.number;
    if (field != ".args" || value.kind != Kind::kArray) return reader.leave(value);
    for (uint64_t i = 0; i < value.number && !reader.is_damaged(); ++i) {
      kernel.kernarg_size = std::max(kernel.kernarg_size, end_of_argument(reader, reader.next()));
    }
  });
  return kernel;
}

std::optional<Kernel> find_kernel(std::string_view object, std::string_view name) {
  std::optional<Kernel> found;
  Reader reader(metadata_of(object));
  reader.for_each(reader.next(), [&](std::string_view field, const Value& value) {
    if (field != "amdhsa.kernels" || value.kind != Kind::kArray) return reader.leave(value);
    for (uint64_t i = 0; i < value.number && !reader.is_damaged(); ++i) {
      const Kernel kernel = read_kernel(reader, reader.next());
      if (kernel.name == name) found = kernel;
    }
  });
  return reader.is_damaged() ? std::nullopt : found;
}

}  // namespace

std::string misfit(const CodeObjectRef& ref, const Bytes& object) {
  if (ref.sha256 || !ref.kernel) return "";
  const KernelFacts& wanted = *ref.kernel;
  const std::string_view bytes(reinterpret_cast<const char*>(object.data()), object.size());
  const std::optional<Kernel> found = find_kernel(bytes, wanted.symbol);
  if (!found) return concat("has no metadata of a kernel ", wanted.symbol);
  if (found->kernarg_size != wanted.kernarg_size) {
    return concat("has ", wanted.symbol, " with ", found->kernarg_size,
                  " bytes of arguments, but this library's host code makes ", wanted.kernarg_size);
  }
  if (found->workgroup_size != wanted.workgroup_size) {
    return concat("has ", wanted.symbol, " for workgroups of ", found->workgroup_size,
                  " work-items, but this library launches it with ", wanted.workgroup_size);
  }
  return "";
}

}  // namespace AITER_ATTN_NAMESPACE::runtime
