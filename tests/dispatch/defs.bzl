# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""dispatch_parity_test: this library's dispatch against upstream's, over one variant set."""

load("@rules_cc//cc:defs.bzl", "cc_library", "cc_test")
load("//kernels:defs.bzl", "hip_host_library")
load("//kernels/ck_fmha:defs.bzl", "ck_host_library")
load("//toolchains/python:defs.bzl", "run_py_tool")

_DIRECTIONS = [
    "fwd",
    "bwd",
    "fwd_splitkv",
    "fwd_pagedkv",
    "fwd_appendkv",
    "fwd_batch_prefill",
    "fwd_v3",
]

def _sources_impl(ctx):
    groups = {
        "dispatchers": [direction + "_dispatcher.inc" for direction in _DIRECTIONS],
        "listing": ["launches.cc"],
        "table": ["launch_table.blob"],
        "with_asm": ["with_asm.blob"],
    }
    for group in ["launch", "stubs"]:
        groups[group] = [
            "%s_%s_%d.cpp" % (direction, group, part)
            for direction in _DIRECTIONS
            for part in range(ctx.attr.parts)
        ]
    outputs = {
        group: [ctx.actions.declare_file("%s/%s" % (ctx.label.name, file)) for file in files]
        for group, files in groups.items()
    }
    arguments = ctx.actions.args()
    arguments.add("--fmha_dir", ctx.file._ck_generator.dirname)
    arguments.add("--variant_set", ctx.file.variant_set)
    arguments.add("--arch", ctx.attr.arch)
    arguments.add("--archs", ctx.file._archs)
    arguments.add_all(ctx.files._own_rows, before_each = "--rows")
    arguments.add("--asm_rows", ctx.file._asm_rows)
    arguments.add("--parts", ctx.attr.parts)
    arguments.add("--out", outputs["table"][0].dirname)
    run_py_tool(
        ctx,
        tool = ctx.attr._write_parity,
        arguments = [arguments],
        inputs = ctx.files._ck_codegen + ctx.files._own_rows + [
            ctx.file._archs,
            ctx.file._asm_rows,
            ctx.file.variant_set,
        ],
        outputs = [file for files in outputs.values() for file in files],
        mnemonic = "DispatchParity",
        progress_message = "Writing both sides of dispatch %{label}",
    )
    return [
        DefaultInfo(files = depset(outputs["dispatchers"])),
        OutputGroupInfo(**{group: depset(files) for group, files in outputs.items()}),
    ]

_sources = rule(
    implementation = _sources_impl,
    attrs = {
        "arch": attr.string(mandatory = True, doc = "one of kernels/archs"),
        "parts": attr.int(mandatory = True),
        "variant_set": attr.label(allow_single_file = [".toml"], mandatory = True),
        "_archs": attr.label(allow_single_file = True, default = "@archs//:archs.json"),
        "_asm_rows": attr.label(allow_single_file = True, default = "//kernels/no_keys:rows.json"),
        "_ck_codegen": attr.label(default = "@composable_kernel//:generator"),
        "_ck_generator": attr.label(
            allow_single_file = True,
            default = "@composable_kernel//:example/ck_tile/01_fmha/generate.py",
        ),
        "_own_rows": attr.label(allow_files = True, default = "//kernels/sum_heads:rows.json"),
        "_write_parity": attr.label(
            cfg = "exec",
            default = "//tests/dispatch:write_parity",
        ),
    },
)

def dispatch_parity_test(
        *,
        name,
        variant_set,
        calls,
        differences,
        arch = "gfx942",
        parts = 1,
        **kwargs):
    """A test that both dispatch random calls alike.

    Args:
      name: of the test.
      variant_set: a file of kernels/variants.
      calls: of each direction.
      differences: direction -> the deliberate differences that occur (differences.cc).
      arch: of the device.
      parts: compiles that each side of a direction is spread over.
      **kwargs: of the test.
    """
    sources = name + ".sources"
    common = {"tags": ["manual"]}
    _sources(name = sources, arch = arch, parts = parts, variant_set = variant_set, **common)
    for group in ["launch", "listing", "stubs", "table", "with_asm"]:
        native.filegroup(
            name = "%s.%s" % (name, group),
            srcs = [sources],
            output_group = group,
            **common
        )
    cc_library(
        name = name + ".inc",
        hdrs = [sources],
        includes = [sources],
        **common
    )
    hip_host_library(
        name = name + ".upstream",
        srcs = [
            "upstream_appendkv.cpp",
            "upstream_batch_prefill.cpp",
            "upstream_bwd.cpp",
            "upstream_fwd.cpp",
            "upstream_pagedkv.cpp",
            "upstream_splitkv.cpp",
            "upstream_v3.cpp",
            name + ".stubs",
        ],
        # Compiled once and run once: thousands of branches in one function.
        copts = [
            "-DCK_TILE_FMHA_FWD_FAST_EXP2=1",
            "-Wno-deprecated-attributes",
            "-DAITER_PARITY_ARCH=\"%s\"" % arch,
            "-O0",
        ],
        headers = "//kernels/ck_fmha:headers",
        deps = [
            name + ".inc",
            ":upstream_h",
        ],
        **common
    )
    ck_host_library(
        name = name + ".launch_functions",
        srcs = [name + ".launch"],
        **common
    )
    cc_test(
        name = name,
        srcs = [
            "dispatch_parity_test.cc",
            name + ".listing",
        ],
        args = ["$(rootpath %s.table)" % name, str(calls)] + [
            "'%s:%s'" % (direction, difference)
            for direction, of_direction in differences.items()
            for difference in of_direction
        ],
        data = [
            name + ".table",
            "//tests/support/runtime:libamdhip64.so",
        ],
        env = {
            "AITER_ATTN_HIP_LIBRARY": "$(rootpath //tests/support/runtime:libamdhip64.so)",
            "AITER_RECORDING_HIP_ARCHS": arch,
        },
        # Content of the stack before a call tells fields from gaps; a sanitizer writes to it too.
        target_compatible_with = select({
            "//toolchains/llvm/sanitizers:any.enabled": ["@platforms//:incompatible"],
            "//conditions:default": [],
        }),
        deps = [
            name + ".launch_functions",
            name + ".upstream",
            ":differences",
            ":problems",
            ":table",
            "//aiter/attention",
            "//tests/support:gtest",
            "//tests/support/runtime:recorder",
            "//kernels/launch_table",
            "//kernels/sum_heads:launch",
        ],
        **kwargs
    )
