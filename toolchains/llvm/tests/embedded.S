// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
#define DATA "toolchains/llvm/tests/embedded.txt"
    .section .rodata
    .global embedded_begin, embedded_end
embedded_begin:
    .incbin DATA
embedded_end:
    .section .note.GNU-stack, "", @progbits
