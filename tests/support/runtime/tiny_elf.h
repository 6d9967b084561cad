// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// The least that looks like a code object to a loader: an ELF file with one kernel symbol.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace AITER_ATTN_NAMESPACE::testing {

// An ELF64 image for AMDGPU whose dynamic symbol table has "<kernel>.kd". salt makes images of one
// kernel differ.
std::vector<unsigned char> tiny_code_object(const std::string& kernel, const std::string& salt);

// The size of the ELF64 image, which ends with its section headers.
size_t elf_image_size(const void* image);

// Whether the dynamic symbol table of the image has the symbol.
bool elf_has_symbol(const void* image, const std::string& symbol);

}  // namespace AITER_ATTN_NAMESPACE::testing
