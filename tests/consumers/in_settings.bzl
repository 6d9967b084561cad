# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""in_settings: a program with given kernels, under any flags of the build."""

_ARCHS = "//kernels:archs"
_VARIANTS = "//kernels:variants"

def _settings_transition_impl(settings, attr):
    return {
        _ARCHS: attr.archs or settings[_ARCHS],
        _VARIANTS: attr.variants or settings[_VARIANTS],
    }

_settings_transition = transition(
    implementation = _settings_transition_impl,
    inputs = [
        _ARCHS,
        _VARIANTS,
    ],
    outputs = [
        _ARCHS,
        _VARIANTS,
    ],
)

def _in_settings_impl(ctx):
    out = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = out, target_file = ctx.file.file)
    return [DefaultInfo(files = depset([out]), runfiles = ctx.runfiles([out]))]

in_settings = rule(
    implementation = _in_settings_impl,
    doc = "A file that needs no other, as it is built with other settings.",
    attrs = {
        "archs": attr.string(doc = "a value of --//kernels:archs; empty: it stays"),
        "file": attr.label(mandatory = True, allow_single_file = True, cfg = _settings_transition),
        "variants": attr.string(doc = "a value of --//kernels:variants; empty: it stays"),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
)
