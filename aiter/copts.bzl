# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Compile options of the library's C++."""

COPTS = [
    # Statically linked into a shared object, too, the library exports its C ABI only.
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
    # One such variable makes glibc reserve all of a shared object's thread-local memory, the C++
    # runtime's too, when a thread starts. Else the thread's first exception takes memory, and the
    # process ends where there is none.
    "-ftls-model=initial-exec",
]
