# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Link options of shared libraries."""

# A sanitized library finds the runtime in the program that loads it.
NO_UNDEFINED = select({
    Label("//toolchains/llvm/sanitizers:any.enabled"): [],
    "//conditions:default": ["-Wl,--no-undefined"],
})

# The library calls its own functions, also where another object of the process exports such names.
SYMBOLIC = ["-Wl,-Bsymbolic"]
