// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// ATTN_EMBED(name, path): the file as `const unsigned char name[]`, 16-byte aligned and ending at
// name_end, known to this source file alone. The path is from the folder in which the compiler
// runs, and is not in the object.
#pragma once

#define ATTN_EMBED(name, path)                                   \
  __asm__(".pushsection .rodata." #name                          \
          ", \"a\"\n"                                            \
          ".balign 16\n" #name ":\n.incbin \"" path "\"\n" #name \
          "_end:\n"                                              \
          ".popsection");                                        \
  extern "C" __attribute__((visibility("hidden"))) const unsigned char name[], name##_end[]
