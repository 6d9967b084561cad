# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The prefix of the library's symbols: the flag, the macro that follows from it, and builds with
another."""

load("@rules_cc//cc:defs.bzl", "CcInfo", "cc_common")
load(":version.bzl", "ABI_VERSION")

NamespaceInfo = provider(
    doc = "The prefix of exported symbols.",
    fields = {"name": "a C identifier: NAME_attn_fwd"},
)

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
_DIGITS = "0123456789"

def is_c_identifier(text):
    """Whether text can stand in front of a C symbol.

    Args:
      text: a string.

    Returns:
      True or False.
    """
    if not text or text[0] in _DIGITS:
        return False
    for character in text.elems():
        if character not in _LETTERS + _DIGITS:
            return False
    return True

def _namespace_flag_impl(ctx):
    name = ctx.build_setting_value
    if not is_c_identifier(name):
        fail("--%s=%s: \"%s\" is not a C identifier; use letters, digits and underscores, e.g. te" %
             (str(ctx.label).lstrip("@"), name, name))
    return [
        NamespaceInfo(name = name),
        platform_common.TemplateVariableInfo({"ATTN_NAMESPACE": name}),
        CcInfo(compilation_context = cc_common.create_compilation_context(
            defines = depset(["AITER_ATTN_NAMESPACE=" + name]),
        )),
    ]

namespace_flag = rule(
    implementation = _namespace_flag_impl,
    doc = "--//aiter:namespace=NAME: exported symbols are called NAME_attn_*. As a dependency of " +
          "C++ code it defines AITER_ATTN_NAMESPACE; among `toolchains` it is the variable " +
          "ATTN_NAMESPACE.",
    build_setting = config.string(flag = True),
)

def _named_library_impl(ctx):
    name = "lib%s_attn.so.%d" % (ctx.attr._namespace[NamespaceInfo].name, ABI_VERSION)
    out = ctx.actions.declare_file(ctx.label.name + "/" + name)
    ctx.actions.symlink(output = out, target_file = ctx.file.library)
    return [DefaultInfo(files = depset([out]), runfiles = ctx.runfiles([out]))]

named_library = rule(
    implementation = _named_library_impl,
    doc = "The shared library by its SONAME, which programs that are linked with it look for.",
    attrs = {
        "library": attr.label(mandatory = True, allow_single_file = [".so"]),
        "_namespace": attr.label(default = "//aiter:namespace", providers = [NamespaceInfo]),
    },
)

def _other_namespace_impl(_settings, attr):
    return {"//aiter:namespace": attr.namespace}

_other_namespace = transition(
    implementation = _other_namespace_impl,
    inputs = [],
    outputs = ["//aiter:namespace"],
)

def _in_namespace_impl(ctx):
    out = ctx.actions.declare_file(ctx.attr.out)
    ctx.actions.symlink(output = out, target_file = ctx.file.file)
    return [DefaultInfo(files = depset([out]), runfiles = ctx.runfiles([out]))]

in_namespace = rule(
    implementation = _in_namespace_impl,
    doc = "A file as it is built under another --//aiter:namespace.",
    attrs = {
        "file": attr.label(
            mandatory = True,
            allow_single_file = True,
            cfg = _other_namespace,
        ),
        "namespace": attr.string(mandatory = True),
        "out": attr.string(mandatory = True),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
)

def _linked_in_namespace_impl(ctx):
    return [CcInfo(linking_context = cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    ).linking_context)]

linked_in_namespace = rule(
    implementation = _linked_in_namespace_impl,
    doc = "Libraries as they are built under another --//aiter:namespace, to be linked only.",
    attrs = {
        "deps": attr.label_list(mandatory = True, cfg = _other_namespace, providers = [CcInfo]),
        "namespace": attr.string(mandatory = True),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
    provides = [CcInfo],
)

def _headers_in_namespace_impl(ctx):
    return [
        CcInfo(compilation_context = cc_common.merge_cc_infos(
            cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
        ).compilation_context),
    ]

headers_in_namespace = rule(
    implementation = _headers_in_namespace_impl,
    doc = "Headers as they are built under another --//aiter:namespace, and nothing to link.",
    attrs = {
        "deps": attr.label_list(mandatory = True, cfg = _other_namespace, providers = [CcInfo]),
        "namespace": attr.string(mandatory = True),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
    provides = [CcInfo],
)
