# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repositories of upstream's fused attention: its sources, the instances, the variant sets."""

load(
    "//kernels/ck_fmha/private:generated_repositories.bzl",
    "pool_repository",
    "variant_set_repository",
    _generate = "generate",
    _write_set_build = "write_set_build",
)
load("//kernels/ck_fmha/private:headers_repository.bzl", "headers_repository")
load("//kernels/ck_fmha/private:variant_sets_repository.bzl", "variant_sets_repository")
load("//toolchains/pypi:pypi.bzl", "pypi_archive")
load(":patches.bzl", "COMPILE_TIME_PATCHES", "PATCHES", "REGISTERS_PATCHES")

# For repositories with a selection of their own.
generate = _generate
write_set_build = _write_set_build

# The folder of variant set files is known by this one.
VARIANTS_README = Label("//kernels/variants:README.md")

def _composable_kernel(name, patches):
    pypi_archive(
        name = name,
        build_file = Label("//kernels/ck_fmha:composable_kernel.BUILD.bazel"),
        distribution = "amd-aiter",
        files = ["LICENSE"],
        include = [
            "include/ck_tile",
            "example/ck_tile/01_fmha",
        ],
        kind = "any",
        patches = patches,
        strip_prefix = "aiter_meta/3rdparty/composable_kernel",
    )

def ck_fmha_repositories(outside = []):
    """Declares all but the repositories of the variant sets.

    @composable_kernel            sources with all patches of patches/
    @composable_kernel_plain      sources with all but those of patches/compile_time/
    @composable_kernel_upstream   sources as they are
    @ck_headers                   what kernels read of each, by the sections of headers.toml
    @ck_fmha                      the instances: all that upstream's generator knows
    @variant_sets                 which variant sets and directions there are

    Args:
      outside: names of variant sets whose files are of other modules.
    """
    plain = PATCHES + REGISTERS_PATCHES
    _composable_kernel("composable_kernel", patches = plain + COMPILE_TIME_PATCHES)
    _composable_kernel("composable_kernel_plain", patches = plain)
    _composable_kernel("composable_kernel_upstream", patches = [])
    headers_repository(
        name = "ck_headers",
        trees = {
            "@%s//:BUILD.bazel" % name: name
            for name in [
                "composable_kernel",
                "composable_kernel_plain",
                "composable_kernel_upstream",
            ]
        },
    )
    pool_repository(
        name = "ck_fmha",
        archs = "@archs//:archs.json",
        ck_generator = "@composable_kernel//:example/ck_tile/01_fmha/generate.py",
    )
    variant_sets_repository(
        name = "variant_sets",
        outside = outside,
        readme = VARIANTS_README,
        traits = Label("//kernels/launch_table:traits.toml"),
    )

def variant_set_repositories(files, labels = {}, paths = {}):
    """Declares @variant_set_NAME for each variant set.

    Args:
      files: set name -> name of its file in kernels/variants.
      labels: set name -> label of its file in another module.
      paths: set name -> absolute path of its file outside of the source tree.
    """
    own = {name: Label("//kernels/variants:" + file) for name, file in files.items()}
    for name in own.keys() + labels.keys() + paths.keys():
        variant_set_repository(
            name = "variant_set_" + name,
            file = own.get(name, labels.get(name)),
            outside = name not in own,
            path = paths.get(name),
            pool = "@ck_fmha//:pool.json",
            set_name = name,
        )
