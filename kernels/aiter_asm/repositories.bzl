# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repository of AITER's assembly kernels: code objects, taken from a locked wheel."""

load("//toolchains/pypi:pypi.bzl", "pypi_archive")

_DIRECTIONS = {
    "backward": "fmha_v3_bwd",
    "forward": "fmha_v3_fwd",
    "latent": "mla",
    "paged": "pa",
}

_SHIPPED = {
    "gfx942": [
        "fmha_v3_fwd/*/*_rt*.co",
        "fmha_v3_bwd/*_a32*.co",
    ],
    "gfx950": [
        "fmha_v3_fwd/*.co",
        "fmha_v3_bwd/*_a32*.co",
    ],
}

# The wheel is large: whoever needs no object does not fetch it.
_BUILD = """[filegroup(
    name = direction,
    srcs = glob(["aiter_meta/hsa/*/%s/**/*.co" % folder]),
    tags = ["manual"],
    visibility = ["//visibility:public"],
) for direction, folder in {directions}.items()]

# That of the objects.
filegroup(
    name = "licence",
    srcs = ["dist-info/LICENSE"],
    tags = ["manual"],
    visibility = ["//visibility:public"],
)

# Those that builds take (kernels/aiter_asm/launch.py). Of gfx942's forward
# the names have a rounding.
[filegroup(
    name = arch + ".shipped",
    srcs = glob(
        ["aiter_meta/hsa/%s/%s" % (arch, path) for path in paths],
        exclude = ["**/*_swa_*"],
    ),
    tags = ["manual"],
    visibility = ["//visibility:public"],
) for arch, paths in {shipped}.items()]
""".format(directions = _DIRECTIONS, shipped = _SHIPPED)

def aiter_asm_repositories():
    """Declares @aiter_asm, the objects of the wheel, its licence and nothing else of it."""
    pypi_archive(
        name = "aiter_asm",
        build_file_content = _BUILD,
        dist_info = True,
        distribution = "amd-aiter",
        include = [
            "aiter_meta/hsa/%s/%s" % (arch, folder)
            for arch in ["gfx942", "gfx950"]
            for folder in _DIRECTIONS.values()
        ],
        kind = "any",
    )
