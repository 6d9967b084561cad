# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Link options of shared libraries."""

load(":version.bzl", "ABI_VERSION")

# A sanitized library finds the runtime in the program that loads it.
NO_UNDEFINED = select({
    Label("//toolchains/llvm/sanitizers:any.enabled"): [],
    "//conditions:default": ["-Wl,--no-undefined"],
})

# A program that is linked with the library asks for it by this name; without one, by the path that
# the linker was given. The variable is of `toolchains = ["//aiter:namespace"]`.
SONAME = ["-Wl,-soname,lib$(ATTN_NAMESPACE)_attn.so.%d" % ABI_VERSION]

# The library calls its own functions, also where another object of the process exports such names.
SYMBOLIC = ["-Wl,-Bsymbolic"]
