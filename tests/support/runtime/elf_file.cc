// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#include "tests/support/runtime/elf_file.h"

#include <elf.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <vector>

namespace AITER_ATTN_NAMESPACE::testing {
namespace {

class Image {
 public:
  explicit Image(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    if (bytes_.size() < sizeof(Elf64_Ehdr) || std::memcmp(bytes_.data(), ELFMAG, SELFMAG) != 0 ||
        bytes_[EI_CLASS] != ELFCLASS64) {
      throw std::runtime_error(path + " is not a 64-bit ELF file");
    }
  }

  template <typename T>
  T read(size_t offset) const {
    if (offset + sizeof(T) > bytes_.size()) throw std::runtime_error("ELF file is cut off");
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }

  std::string string(size_t offset) const { return bytes_.data() + offset; }

  std::vector<Elf64_Shdr> sections() const {
    const auto header = read<Elf64_Ehdr>(0);
    std::vector<Elf64_Shdr> all;
    for (size_t i = 0; i < header.e_shnum; ++i) {
      all.push_back(read<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)));
    }
    return all;
  }

 private:
  std::vector<char> bytes_;
};

}  // namespace

DynamicSymbols read_dynamic_symbols(const std::string& path) {
  const Image image(path);
  const std::vector<Elf64_Shdr> sections = image.sections();
  DynamicSymbols found;
  for (const Elf64_Shdr& section : sections) {
    const size_t begin = section.sh_offset, end = section.sh_offset + section.sh_size;
    const size_t names = sections.at(section.sh_link).sh_offset;
    if (section.sh_type == SHT_DYNSYM) {
      for (size_t at = begin + sizeof(Elf64_Sym); at < end; at += sizeof(Elf64_Sym)) {
        const auto symbol = image.read<Elf64_Sym>(at);
        auto& set = symbol.st_shndx == SHN_UNDEF ? found.undefined : found.defined;
        set.insert(image.string(names + symbol.st_name));
      }
    } else if (section.sh_type == SHT_DYNAMIC) {
      for (size_t at = begin; at < end; at += sizeof(Elf64_Dyn)) {
        const auto entry = image.read<Elf64_Dyn>(at);
        if (entry.d_tag == DT_NEEDED) found.needed.insert(image.string(names + entry.d_un.d_val));
        if (entry.d_tag == DT_SONAME) found.soname = image.string(names + entry.d_un.d_val);
        if (entry.d_tag == DT_FLAGS) found.flags = entry.d_un.d_val;
      }
    } else if (section.sh_type == SHT_GNU_verdef) {
      size_t at = begin;
      for (size_t i = 0; i < section.sh_info; ++i) {
        const auto version = image.read<Elf64_Verdef>(at);
        const auto aux = image.read<Elf64_Verdaux>(at + version.vd_aux);
        // The first one names the file.
        if ((version.vd_flags & VER_FLG_BASE) == 0) {
          found.defines.insert(image.string(names + aux.vda_name));
        }
        at += version.vd_next;
      }
    } else if (section.sh_type == SHT_GNU_verneed) {
      size_t at = begin;
      for (size_t i = 0; i < section.sh_info; ++i) {
        const auto need = image.read<Elf64_Verneed>(at);
        size_t aux_at = at + need.vn_aux;
        for (size_t j = 0; j < need.vn_cnt; ++j) {
          const auto aux = image.read<Elf64_Vernaux>(aux_at);
          found.versions.insert(image.string(names + aux.vna_name));
          aux_at += aux.vna_next;
        }
        at += need.vn_next;
      }
    }
  }
  return found;
}

}  // namespace AITER_ATTN_NAMESPACE::testing
