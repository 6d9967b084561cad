# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Code objects of groups, drawn, and those of their own compiles."""

load("@kernel_lists//:groups.bzl", "GROUPS")

def drawn_members(count):
    """Proven members of groups: others whenever the proof is another.

    Args:
      count: how many of each arch.
    Returns:
      The labels of their code objects.
    """
    labels = []
    for arch, groups in GROUPS.items():
        proven = [
            (hash(proof[1]), member)
            for members in groups.values()
            # Of many, which a build is likely to have compiled together.
            for member, proof in members.items()
            if len(proof) == 2 and len(members) > 2
        ]
        labels += ["@ck_fmha//%s.grouped.%s" % (m, arch) for _, m in sorted(proven)[:count]]
    return labels

def _without_shortcuts_impl(_settings, _attr):
    return {"//kernels/ck_fmha:shortcuts": "none"}

_without_shortcuts = transition(
    implementation = _without_shortcuts_impl,
    inputs = [],
    outputs = ["//kernels/ck_fmha:shortcuts"],
)

def _plain_code_objects_impl(ctx):
    return [DefaultInfo(files = depset(ctx.files.deps))]

plain_code_objects = rule(
    implementation = _plain_code_objects_impl,
    doc = "Code objects, each compiled by itself without any shortcut.",
    attrs = {
        "deps": attr.label_list(cfg = _without_shortcuts),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
)
