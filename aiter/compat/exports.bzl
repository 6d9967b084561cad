# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""mha_exports: the functions of AITER's interface that a library exports."""

load("//aiter:namespace.bzl", "NamespaceInfo")
load("//aiter:version_script.bzl", "SymbolsInfo")
load(":pins.bzl", "PINS_WITH_SPLITS", "PINS_WITH_WORKSPACE")

# Raised when a function of a pin changes in a way that its name does not tell.
_VERSION = 1

def _encoded(name):
    return "%d%s" % (len(name), name)

_STREAM = "RKN7ck_tile13stream_configE"
_STRING = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"

def _of_aiter(inner, pin, this):
    """The functions in aiter::INNER of a pass, mangled."""
    caches = {}
    args = _encoded("mha_%s_args" % this) + "E"
    found = {"mha_" + this: "NS0_" + args + _STREAM}
    if this == "fwd":
        traits = _STREAM + _STRING + "b9mask_enum9bias_enumb"
        caches["mha_fwd_splitkv"] = "21fmha_fwd_splitkv_args" + traits + "b"
        caches["mha_batch_prefill"] = "23fmha_batch_prefill_args" + traits + "16quant_scale_enumb"
    if this == "fwd" and pin in PINS_WITH_SPLITS:
        found["mha_fwd_calculate_num_splits"] = "RKNS0_" + args
        found["mha_fwd_workspace_size"] = "RKNS0_" + args
    return [
        "_ZN5aiter%s%sE%s" % (_encoded(inner), _encoded(name), rest)
        for name, rest in found.items()
    ] + [
        "_ZN5aiter%s%s%sE%s" % (_encoded(inner), _encoded("by_offsets"), _encoded(name), rest)
        for name, rest in caches.items()
    ]

def _of_qola(namespace, inner, pin, this):
    """Those in qola::NAMESPACE."""
    args = "RKN5aiter%s%sE" % (_encoded(inner), _encoded("mha_%s_args" % this))
    found = {"mha_" + this: args + _STREAM}
    if this == "fwd":
        found["mha_fwd_with_sink_supported"] = args
        if pin in PINS_WITH_SPLITS:
            found["mha_fwd_calculate_num_splits"] = args
            found["mha_fwd_workspace_size"] = args
    elif pin in PINS_WITH_WORKSPACE:
        found["mha_bwd_workspace_size"] = "RK15fmha_bwd_traits"
    return [
        "_ZN4qola%s%sE%s" % (_encoded(namespace), _encoded(name), rest)
        for name, rest in found.items()
    ]

def _mha_exports_impl(ctx):
    namespace = ctx.attr._namespace[NamespaceInfo].name
    inner = "%s_%s" % (namespace, ctx.attr.pin)
    names = []
    for this in ctx.attr.passes:
        names += _of_aiter(inner, ctx.attr.pin, this)
        if ctx.attr.qola:
            names += _of_qola(namespace, inner, ctx.attr.pin, this)
    out = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.write(out, "AITER_MHA_%d {\n  global:\n%s  local:\n    *;\n};\n" % (
        _VERSION,
        "".join(["    %s;\n" % name for name in names]),
    ))
    return [DefaultInfo(files = depset([out])), SymbolsInfo(names = names)]

mha_exports = rule(
    implementation = _mha_exports_impl,
    doc = "The linker's version script; as SymbolsInfo the functions alone.",
    attrs = {
        "passes": attr.string_list(mandatory = True, doc = "fwd, bwd"),
        "pin": attr.string(mandatory = True, doc = "a pin of fields.toml"),
        "qola": attr.bool(doc = "QoLA's functions, too"),
        "_namespace": attr.label(default = "//aiter:namespace", providers = [NamespaceInfo]),
    },
)
