# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""mha_headers: mha_fwd.h and mha_bwd.h of one pin of AITER; qola_headers: QoLA's over them."""

load("//aiter:namespace.bzl", "NamespaceInfo")
load("//toolchains/python:defs.bzl", "run_py_tool")

def _mha_headers_impl(ctx):
    headers = []
    for pass_name in ["fwd", "bwd"]:
        header = ctx.actions.declare_file("%s/mha_%s.h" % (ctx.attr.pin, pass_name))
        arguments = ctx.actions.args()
        arguments.add("--pass", pass_name)
        arguments.add("--pin", ctx.attr.pin)
        arguments.add("--namespace", ctx.attr._namespace[NamespaceInfo].name)
        arguments.add("--out", header)
        run_py_tool(
            ctx,
            tool = ctx.attr._write_header,
            arguments = [arguments],
            outputs = [header],
            mnemonic = "MhaHeader",
            progress_message = "Writing mha_%s.h of %%{label}" % pass_name,
        )
        headers.append(header)
    return [DefaultInfo(files = depset(headers))]

def _qola_headers_impl(ctx):
    names = ["qola_common.h", "qola_config.h", "qola_mha_bwd.h", "qola_mha_fwd.h"]
    headers = [ctx.actions.declare_file("%s/%s" % (ctx.attr.pin, name)) for name in names]
    arguments = ctx.actions.args()
    arguments.add("--pin", ctx.attr.pin)
    arguments.add("--namespace", ctx.attr._namespace[NamespaceInfo].name)
    arguments.add("--out", headers[0].dirname)
    run_py_tool(
        ctx,
        tool = ctx.attr._write_qola_headers,
        arguments = [arguments],
        outputs = headers,
        mnemonic = "QolaHeaders",
        progress_message = "Writing %{label}",
    )
    return [DefaultInfo(files = depset(headers))]

qola_headers = rule(
    implementation = _qola_headers_impl,
    doc = "QoLA's headers over one pin of AITER, in a folder of its name.",
    attrs = {
        "pin": attr.string(mandatory = True, doc = "A pin of fields.toml."),
        "_namespace": attr.label(default = "//aiter:namespace", providers = [NamespaceInfo]),
        "_write_qola_headers": attr.label(
            cfg = "exec",
            default = "//aiter/compat:write_qola_headers",
        ),
    },
)

mha_headers = rule(
    implementation = _mha_headers_impl,
    doc = "mha_fwd.h and mha_bwd.h of one pin of AITER, in a folder of its name.",
    attrs = {
        "pin": attr.string(mandatory = True, doc = "A pin of fields.toml."),
        "_namespace": attr.label(default = "//aiter:namespace", providers = [NamespaceInfo]),
        "_write_header": attr.label(cfg = "exec", default = "//aiter/compat:write_header"),
    },
)
