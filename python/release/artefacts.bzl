# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The list of a release's files."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("//aiter:namespace.bzl", "NamespaceInfo")
load("//kernels:defs.bzl", "VariantSetInfo")
load("//toolchains/python:defs.bzl", "ABIS", "each_abi")

def _only_file(target):
    files = target[DefaultInfo].files.to_list()
    if len(files) != 1:
        fail("%s has %d files, want one" % (target.label, len(files)))
    return files[0]

def _artefacts_impl(ctx):
    namespace = ctx.attr._namespace[NamespaceInfo].name
    files = []
    entries = []
    for kind, targets in {
        "slim_wheel": ctx.split_attr.slim_wheel,
        "wheel": ctx.split_attr.wheel,
    }.items():
        for abi, target in sorted(targets.items()):
            file = _only_file(target)
            files.append(file)
            entries.append({"abi": abi, "file": file.short_path, "kind": kind})
    for file in ctx.files.kernels_wheels:
        files.append(file)
        entries.append({"file": file.short_path, "kind": "kernels_wheel"})
    for file in ctx.files.code_objects:
        files.append(file)
        entries.append({"file": file.short_path, "kind": "code_object"})
    for target, what in ctx.attr.files.items():
        kind, name = what.replace("NAMESPACE", namespace).split(" ")
        file = _only_file(target)
        files.append(file)
        entries.append({"file": file.short_path, "kind": kind, "name": name})
    for file in ctx.files.te_prebuilt:
        kind = "te_prebuilt_digest" if file.extension == "sha256" else "te_prebuilt"
        files.append(file)
        entries.append({"file": file.short_path, "kind": kind, "name": file.basename})
    out = ctx.actions.declare_file(ctx.label.name + ".json")
    ctx.actions.write(out, json.encode_indent({
        "abis": sorted(ABIS),
        "files": entries,
        "settings": {
            "namespace": namespace,
            "on_demand": ctx.attr._on_demand[VariantSetInfo].name,
            "patches": ctx.attr._patches[BuildSettingInfo].value,
        },
        "version": ctx.attr.version,
    }) + "\n")
    return [DefaultInfo(
        # A build of this builds all that it lists.
        files = depset([out] + files),
        runfiles = ctx.runfiles(files = [out] + files),
    )]

artefacts = rule(
    implementation = _artefacts_impl,
    doc = "NAME.json: the files of a release, with the settings that they are built with.",
    attrs = {
        "code_objects": attr.label(
            mandatory = True,
            doc = "those of the launch table",
        ),
        "files": attr.label_keyed_string_dict(
            mandatory = True,
            allow_files = True,
            doc = "file -> its kind and its name in the release: \"archive libx.a\". The word " +
                  "NAMESPACE stands for that of --//aiter:namespace",
        ),
        "kernels_wheels": attr.label(
            mandatory = True,
            doc = "a wheel of kernels for each arch",
        ),
        "slim_wheel": attr.label(
            mandatory = True,
            cfg = each_abi,
            doc = "is built for each ABI",
        ),
        "te_prebuilt": attr.label(
            mandatory = True,
            doc = "an archive and its digest",
        ),
        "version": attr.string(mandatory = True),
        "wheel": attr.label(
            mandatory = True,
            cfg = each_abi,
            doc = "is built for each ABI",
        ),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
        "_namespace": attr.label(default = "//aiter:namespace"),
        "_on_demand": attr.label(default = "//kernels:on_demand"),
        "_patches": attr.label(default = "//kernels/ck_fmha:patches"),
    },
)
