// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// One code object as read-only data, and its place in the list of linked_code_objects.h. Nothing
// here is a symbol that another file could see, and nothing is relocated when it is loaded.
//
//   INSTANCE, ARCH, CODE_OBJECT   strings: the code object's names and its file

    .section .rodata.attn_code_object, "a", @progbits
    .balign 16
.Lcode_object:
    .incbin CODE_OBJECT
.Lcode_object_end:
.Linstance:
    .asciz INSTANCE
.Larch:
    .asciz ARCH

    // Of all objects that are linked into one file the linker makes one array. "R": it stays,
    // though nothing refers to it.
    .section attn_code_objects, "aR", @progbits
    .balign 8
    .quad .Linstance - .
    .quad .Larch - .
    .quad .Lcode_object - .
    .quad .Lcode_object_end - .Lcode_object

    .section .note.GNU-stack, "", @progbits
