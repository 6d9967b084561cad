# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The contents of @llvm: names only, for its repository rule and its BUILD file."""

load("//toolchains/versions:llvm.bzl", "LLVM", "LLVM_LIBRARY")

# Where the programs are in @llvm, and the folder that clang calls its resources.
PROGRAMS_FOLDER = "usr/lib/llvm-%s/bin/" % LLVM
RESOURCES_FOLDER = "usr/lib/llvm-{0}/lib/clang/{0}".format(LLVM)

# Tools that only read or rewrite object files, assembly and bitcode.
OBJECT_TOOLS = [
    "llvm-ar",
    "llvm-extract",
    "llvm-mc",
    "llvm-mca",
    "llvm-nm",
    "llvm-objcopy",
    "llvm-objdump",
    "llvm-readelf",
    "llvm-strip",
    "llvm-symbolizer",
]

# Of these, the ones that can ask a server for debug information, and so load libcurl.
DEBUGINFO_TOOLS = [
    "llvm-objdump",
    "llvm-symbolizer",
]

# Every tool with a wrapper bin/TOOL. clang finds lld by the names lld and ld.lld.
TOOLS = OBJECT_TOOLS + [
    "clang",
    "clang++",
    "ld.lld",
    "lld",
]

# The files of PROGRAMS_FOLDER that are kept: TOOLS, and the files that some of them link to.
PROGRAMS = TOOLS + ["llvm-readobj"]

# The shared libraries that LLVM's programs load, by soname, beside libcurl's. The loader
# itself is one of them. //toolchains/llvm/tests:closure_test holds the list exact.
LOADER_CLOSURE = [
    "ld-linux-x86-64.so.2",
    "libLLVM.so." + LLVM_LIBRARY,
    "libbsd.so.0",
    "libc.so.6",
    "libedit.so.2",
    "libffi.so.8",
    "libgcc_s.so.1",
    "liblzma.so.5",
    "libm.so.6",
    "libmd.so.0",
    "libstdc++.so.6",
    "libtinfo.so.6",
    "libxml2.so.2",
    "libz.so.1",
    "libz3.so.4",
    "libzstd.so.1",
]

# The allocator that clang runs with in place of glibc's: it takes a seventh of the processor time
# off what comes behind the front end, and changes no byte of an output.
ALLOCATOR = "libtcmalloc_minimal.so.4"
ALLOCATOR_USERS = [
    "clang",
    "clang++",
]

# Headers of clang's resource folder that no x86-64 or AMDGPU compile includes.
FOREIGN_HEADERS = [
    "altivec.h",
    "amo.h",
    "andes_vector.h",
    "arm*.h",
    "hexagon*.h",
    "htm*.h",
    "hvx*.h",
    "lasxintrin.h",
    "larchintrin.h",
    "llvm_libc_wrappers/**",
    "llvm_offload_wrappers/**",
    "lsxintrin.h",
    "msa.h",
    "nvptxintrin.h",
    "opencl*.h",
    "openmp_wrappers/**",
    "ppc_wrappers/**",
    "riscv*.h",
    "s390intrin.h",
    "sifive*.h",
    "spirvintrin.h",
    "vecintrin.h",
    "velintrin*.h",
    "wasm_simd128.h",
    "zos_wrappers/**",
]
