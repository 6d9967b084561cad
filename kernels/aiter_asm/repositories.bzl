# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repository of AITER's assembly kernels: code objects, taken from a locked wheel."""

load("//toolchains/pypi:pypi.bzl", "pypi_archive")

_BUILD = """filegroup(
    name = "forward",
    srcs = glob(["aiter_meta/hsa/*/fmha_v3_fwd/**/*.co"]),
    # The wheel is large: whoever needs no object does not fetch it.
    tags = ["manual"],
    visibility = ["//visibility:public"],
)
"""

def aiter_asm_repositories():
    """Declares @aiter_asm, the objects of the wheel and nothing else of it."""
    pypi_archive(
        name = "aiter_asm",
        build_file_content = _BUILD,
        distribution = "amd-aiter",
        include = ["aiter_meta/hsa/gfx942/fmha_v3_fwd"],
        kind = "any",
    )
