# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""version_script: the linker script that makes a shared object export the C ABI only."""

load(":namespace.bzl", "NamespaceInfo")

SymbolsInfo = provider(
    doc = "The functions that a library is for.",
    fields = {"names": "list of str, as the linker knows them"},
)

def _version_script_impl(ctx):
    out = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.expand_template(
        template = ctx.file._exports,
        output = out,
        substitutions = {"NAMESPACE": ctx.attr._namespace[NamespaceInfo].name},
    )
    return [DefaultInfo(files = depset([out]))]

version_script = rule(
    implementation = _version_script_impl,
    doc = "exports.lds.tpl under the namespace of --//aiter:namespace. Link with " +
          "-Wl,--version-script=$(execpath ...).",
    attrs = {
        "_exports": attr.label(default = "//aiter:exports.lds.tpl", allow_single_file = True),
        "_namespace": attr.label(default = "//aiter:namespace", providers = [NamespaceInfo]),
    },
)
