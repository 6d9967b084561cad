# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repository rule that turns CK's generator and the manifests into instances."""

_GENERATOR = [
    Label("//kernels/ck_fmha:generate.py"),
    Label("//kernels/ck_fmha:ckgen/__init__.py"),
    Label("//kernels/ck_fmha:ckgen/emission.py"),
    Label("//kernels/ck_fmha:ckgen/pool.py"),
    Label("//kernels/ck_fmha:ckgen/schema.py"),
    Label("//kernels/ck_fmha:ckgen/selection.py"),
]

_BUILD = """# Generated. Do not edit.
load("@aiter_attn//kernels/ck_fmha/private:package.bzl", "ck_fmha_package")
load(":instances.bzl", "BLOCK_SIZES", "INSTANCES_OF", "LAUNCH_SOURCES_OF")
load(":known.bzl", "ARCHS")

package(default_visibility = ["//visibility:public"])

exports_files(["instances.json"])

ck_fmha_package(
    archs = ARCHS,
    block_sizes = BLOCK_SIZES,
    instances_of = INSTANCES_OF,
    launch_sources_of = LAUNCH_SOURCES_OF,
)
"""

def _ck_fmha_repository_impl(rctx):
    # Everything that decides what is generated is watched; nothing else is.
    for source in _GENERATOR + [rctx.attr.archs]:
        rctx.watch(source)
    variants = rctx.path(rctx.attr.variants).dirname
    for entry in variants.readdir():
        if entry.basename.endswith(".toml"):
            rctx.watch(entry)
    rctx.report_progress("selecting kernel instances")
    result = rctx.execute(
        [
            rctx.path(rctx.attr.python),
            "-B",
            "-E",  # PYTHON* variables of whoever builds are not the generator's
            rctx.path(_GENERATOR[0]),
            "--fmha-dir",
            rctx.path(rctx.attr.ck_generator).dirname,
            "--archs",
            rctx.path(rctx.attr.archs),
            "--variants",
            variants,
            "--out",
            rctx.path("."),
        ],
    )
    if result.return_code:
        fail("\n" + result.stderr.strip())
    rctx.file("BUILD.bazel", _BUILD, executable = False)
    rctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % rctx.name, executable = False)

ck_fmha_repository = repository_rule(
    implementation = _ck_fmha_repository_impl,
    doc = """A source per kernel instance that any manifest selects, the host code that makes their
arguments, and instances.json with all their traits.""",
    attrs = {
        "archs": attr.label(mandatory = True, doc = "archs.toml"),
        "ck_generator": attr.label(mandatory = True, doc = "generate.py of CK's 01_fmha"),
        "python": attr.label(mandatory = True, doc = "the interpreter that runs the generator"),
        "variants": attr.label(mandatory = True, doc = "a file in the folder of manifests"),
    },
)
