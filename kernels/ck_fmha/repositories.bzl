# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repositories of CK's fused attention: @composable_kernel and @ck_fmha."""

load("//kernels/ck_fmha/private:ck_fmha_repository.bzl", "ck_fmha_repository")
load("//toolchains/pypi:pypi.bzl", "pypi_archive")

def ck_fmha_repositories():
    """Declares @composable_kernel (sources) and @ck_fmha (the instances of all variant sets)."""
    pypi_archive(
        name = "composable_kernel",
        build_file = Label("//kernels/ck_fmha:composable_kernel.BUILD.bazel"),
        distribution = "flash-attn",
        include = [
            "include/ck_tile",
            "example/ck_tile/01_fmha",
        ],
        kind = "sdist",
        strip_prefix = "csrc/composable_kernel",
    )
    ck_fmha_repository(
        name = "ck_fmha",
        archs = Label("//kernels:archs.toml"),
        ck_generator = "@composable_kernel//:example/ck_tile/01_fmha/generate.py",
        python = Label("@python_3_13//:bin/python3"),
        variants = Label("//kernels/variants:README.md"),
    )
