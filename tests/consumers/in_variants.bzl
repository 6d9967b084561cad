# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""in_variants: a program with the kernels of a given variant set, under any flags of the build."""

def _variants_transition_impl(_settings, attr):
    return {"//kernels:variants": attr.variants}

_variants_transition = transition(
    implementation = _variants_transition_impl,
    inputs = [],
    outputs = ["//kernels:variants"],
)

def _in_variants_impl(ctx):
    out = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = out, target_file = ctx.file.file)
    return [DefaultInfo(files = depset([out]), runfiles = ctx.runfiles([out]))]

in_variants = rule(
    implementation = _in_variants_impl,
    doc = "A file that needs no other, as it is built with another --//kernels:variants.",
    attrs = {
        "file": attr.label(mandatory = True, allow_single_file = True, cfg = _variants_transition),
        "variants": attr.string(mandatory = True, doc = "a value of the build setting"),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
)
