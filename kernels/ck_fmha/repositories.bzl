# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repositories of CK's fused attention: its sources and the instances."""

load("//kernels/ck_fmha/private:ck_fmha_repository.bzl", "ck_fmha_repository")
load("//toolchains/pypi:pypi.bzl", "pypi_archive")

def _composable_kernel(name, patches = []):
    pypi_archive(
        name = name,
        build_file = Label("//kernels/ck_fmha:composable_kernel.BUILD.bazel"),
        distribution = "flash-attn",
        include = [
            "include/ck_tile",
            "example/ck_tile/01_fmha",
        ],
        kind = "sdist",
        patches = patches,
        strip_prefix = "csrc/composable_kernel",
    )

def ck_fmha_repositories():
    """Declares the repositories.

    @composable_kernel            sources as they are
    @composable_kernel_barriers   the same, with the barriers of docs/races.md
    @ck_fmha                      the instances of all variant sets
    """
    _composable_kernel("composable_kernel")
    _composable_kernel(
        "composable_kernel_barriers",
        patches = [Label("//kernels/ck_fmha:barriers.patch")],
    )
    ck_fmha_repository(
        name = "ck_fmha",
        archs = Label("//kernels:archs.toml"),
        ck_generator = "@composable_kernel//:example/ck_tile/01_fmha/generate.py",
        python = Label("@python_3_13//:bin/python3"),
        variants = Label("//kernels/variants:README.md"),
    )
