# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""How shared libraries are linked."""

# A sanitized library finds the runtime in the program that loads it.
NO_UNDEFINED = select({
    Label("//toolchains/llvm/sanitizers:any.enabled"): [],
    "//conditions:default": ["-Wl,--no-undefined"],
})

# The library calls its own functions, whatever another object of the process exports.
SYMBOLIC = ["-Wl,-Bsymbolic"]
