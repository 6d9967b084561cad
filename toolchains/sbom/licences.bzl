# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The texts of licences that go beside the project's own into what is given to others: file -> what
it is of.

Code of these is in it. No text is there of what needs none in binaries: the runtime
libraries of GCC and LLVM and the start-up code of glibc, by the exceptions of their licences; nor
of XLA's headers, whose licence is the project's own, Apache-2.0. Headers that are given as such
need one.
"""

_BOTH = {
    # Host code and code objects are compiled with its headers.
    "@composable_kernel//:LICENSE": "composable-kernel",
    "@rocm//:headers.licence": "hip",
}

# Of the library and its extension module.
LIBRARY_LICENCES = _BOTH | {
    "@dlpack//:licence": "dlpack",
    "@monocypher//:licence": "monocypher",
    "@pybind11//:licence": "pybind11",
    "@zstd//:licence": "zstd",
}

# Of code objects.
KERNEL_LICENCES = _BOTH | {
    "@rocm//:device_libraries.licence": "rocm-device-libs",
}

# Of AITER's.
ASM_LICENCES = {"@aiter_asm//:licence": "amd-aiter"}

# Of parts of the sysroot: GNU's, whole. The packages' own texts refer to them.
GNU_LICENCES = {
    "@licences//:GPL-2": "GPL-2",
    "@licences//:GPL-3": "GPL-3",
    "@licences//:LGPL-2.1": "LGPL-2.1",
}

# Of headers that are given for hipRTC, beside Composable Kernel's and HIP's.
HIPRTC_HEADER_LICENCES = GNU_LICENCES | {
    "@licences//:gcc": "libstdc++",
    "@llvm//:headers.licence": "clang",
    "@sysroot//:c_library.licence": "glibc",
    "@sysroot//:linux_headers.licence": "linux",
}

# The same in SPDX's words.
HIPRTC_HEADER_EXPRESSIONS = [
    "Apache-2.0 WITH LLVM-exception",
    "GPL-2.0-only WITH Linux-syscall-note",
    "GPL-3.0-or-later WITH GCC-exception-3.1",
    "LGPL-2.1-or-later",
]
