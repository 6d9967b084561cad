// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "tests/support/runtime/tiny_elf.h"

#include <elf.h>

#include <cstring>

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

}  // namespace

std::vector<unsigned char> tiny_code_object(const std::string& kernel, const std::string& salt) {
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
