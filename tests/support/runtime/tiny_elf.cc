// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "tests/support/runtime/tiny_elf.h"

#include <elf.h>

#include <cstring>
#include <utility>

namespace AITER_ATTN_NAMESPACE::testing {
namespace {

constexpr Elf64_Half kMachineAmdgpu = 224;

template <typename T>
void append(std::vector<unsigned char>* image, const T& value) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&value);
  image->insert(image->end(), bytes, bytes + sizeof(T));
}

template <typename T>
T read(const unsigned char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// Of MessagePack.
std::string text(const std::string& value) {
  std::string packed = "\xd9";
  packed += static_cast<char>(value.size());
  return packed + value;
}

std::string number(uint32_t value) {
  std::string packed = "\xce";
  for (int shift = 24; shift >= 0; shift -= 8) packed += static_cast<char>(value >> shift);
  return packed;
}

std::string map(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string packed(1, static_cast<char>(0x80 | entries.size()));
  for (const auto& [key, value] : entries) packed.append(text(key)).append(value);
  return packed;
}

std::string array(const std::vector<std::string>& entries) {
  std::string packed("\xdc\0", 2);
  packed += static_cast<char>(entries.size());
  for (const std::string& entry : entries) packed += entry;
  return packed;
}

std::string argument(uint32_t offset, uint32_t size, const std::string& kind) {
  return map({{".offset", number(offset)}, {".size", number(size)}, {".value_kind", text(kind)}});
}

// The segment of notes: one struct of arguments, behind which the runtime adds one of its own.
std::string notes_of(const std::string& kernel, const TinyMetadata& metadata) {
  const uint32_t size = metadata.kernarg_size;
  const std::string packed = map({
      {"amdhsa.kernels", array({map({{".args", array({argument(0, size, "by_value"),
                                                      argument(size, 8, "hidden_block_count_x")})},
                                     {".max_flat_workgroup_size", number(metadata.workgroup_size)},
                                     {".name", text(kernel)},
                                     {".uses_dynamic_stack", "\xc2"}})})},
      {"amdhsa.version", array({number(1), number(2)})},
  });
  const Elf64_Nhdr header = {7, static_cast<Elf64_Word>(packed.size()), 32};
  std::string notes(reinterpret_cast<const char*>(&header), sizeof(header));
  notes.append("AMDGPU\0\0", 8).append(packed);
  notes.resize((notes.size() + 3) / 4 * 4);
  return notes;
}

}  // namespace

std::vector<unsigned char> tiny_code_object(const std::string& kernel, const std::string& salt,
                                            const std::optional<TinyMetadata>& metadata) {
  const std::string notes = metadata ? notes_of(kernel, *metadata) : "";
  const std::string strings = '\0' + kernel + ".kd" + '\0' + salt + '\0';
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = kMachineAmdgpu;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof(Elf64_Ehdr);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 3;
  header.e_shoff = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Sym) + strings.size();
  Elf64_Phdr segment = {};
  segment.p_type = PT_NOTE;
  segment.p_filesz = notes.size();
  if (metadata) {
    header.e_phoff = header.e_shoff;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 1;
    segment.p_offset = header.e_phoff + sizeof(segment);
    header.e_shoff += sizeof(segment) + notes.size();
  }

  Elf64_Shdr symbols = {};
  symbols.sh_type = SHT_DYNSYM;
  symbols.sh_offset = sizeof(Elf64_Ehdr);
  symbols.sh_size = 2 * sizeof(Elf64_Sym);
  symbols.sh_entsize = sizeof(Elf64_Sym);
  symbols.sh_link = 2;
  Elf64_Shdr names = {};
  names.sh_type = SHT_STRTAB;
  names.sh_offset = symbols.sh_offset + symbols.sh_size;
  names.sh_size = strings.size();
  Elf64_Sym symbol = {};
  symbol.st_name = 1;

  std::vector<unsigned char> image;
  append(&image, header);
  append(&image, Elf64_Sym{});
  append(&image, symbol);
  image.insert(image.end(), strings.begin(), strings.end());
  if (metadata) append(&image, segment);
  image.insert(image.end(), notes.begin(), notes.end());
  append(&image, Elf64_Shdr{});
  append(&image, symbols);
  append(&image, names);
  return image;
}

size_t elf_image_size(const void* image) {
  const auto header = read<Elf64_Ehdr>(static_cast<const unsigned char*>(image));
  return header.e_shoff + size_t{header.e_shnum} * header.e_shentsize;
}

bool elf_has_symbol(const void* image, const std::string& symbol) {
  const auto* bytes = static_cast<const unsigned char*>(image);
  const auto header = read<Elf64_Ehdr>(bytes);
  const auto section = [&](size_t i) {
    return read<Elf64_Shdr>(bytes + header.e_shoff + i * sizeof(Elf64_Shdr));
  };
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr table = section(i);
    if (table.sh_type != SHT_DYNSYM) continue;
    const auto* names = reinterpret_cast<const char*>(bytes + section(table.sh_link).sh_offset);
    for (size_t at = 0; at < table.sh_size; at += sizeof(Elf64_Sym)) {
      if (names + read<Elf64_Sym>(bytes + table.sh_offset + at).st_name == symbol) return true;
    }
  }
  return false;
}

}  // namespace AITER_ATTN_NAMESPACE::testing
