// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The least that looks like a code object to a loader: an ELF file with one kernel symbol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace AITER_ATTN_NAMESPACE::testing {

// Of a kernel's metadata.
struct TinyMetadata {
  uint32_t kernarg_size;
  uint32_t workgroup_size;
};

// An ELF64 image for AMDGPU whose dynamic symbol table has "<kernel>.kd". salt makes images of one
// kernel differ. With metadata it has the note that a compiler writes.
std::vector<unsigned char> tiny_code_object(const std::string& kernel, const std::string& salt,
                                            const std::optional<TinyMetadata>& metadata = {});

// The size of the ELF64 image, which ends with its section headers.
size_t elf_image_size(const void* image);

// Whether the dynamic symbol table of the image has the symbol.
bool elf_has_symbol(const void* image, const std::string& symbol);

}  // namespace AITER_ATTN_NAMESPACE::testing
