# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The wheel of a compile kit, which the library finds beside itself."""

load("//kernels:defs.bzl", "CompileKitInfo")
load(":packing.bzl", "PACKING_ATTRS", "pack_wheel")

# Beside the package; aiter/runtime/library_store.cc looks there.
_FOLDER = "aiter_attn_compile_kit"

# Its programs bring their loader and libraries.
_PLATFORM = "manylinux_2_17_x86_64"

def _compile_kit_wheel_impl(ctx):
    wheel = ctx.actions.declare_file("%s-%s-py3-none-%s.whl" % (
        _FOLDER,
        ctx.attr.version,
        _PLATFORM,
    ))
    files = {
        "%s/%s" % (_FOLDER, place): file
        for place, file in ctx.attr.kit[CompileKitInfo].files.items()
    }

    # .../share/doc/PACKAGE/copyright. A package of two trees has one text.
    licences = {file.dirname.rpartition("/")[2]: file for file in ctx.files.licences}
    pack_wheel(
        ctx,
        wheel,
        python_tag = "py3",
        files = files,
        more = ["--platform=" + _PLATFORM] + [
            "--other_licence=%s=%s" % (package, file.path)
            for package, file in licences.items()
        ],
        more_inputs = licences.values(),
    )
    return [DefaultInfo(files = depset([wheel]), runfiles = ctx.runfiles(files = [wheel]))]

compile_kit_wheel = rule(
    implementation = _compile_kit_wheel_impl,
    doc = "The wheel of a compile kit, for any Python.",
    attrs = PACKING_ATTRS | {
        "kit": attr.label(mandatory = True, providers = [CompileKitInfo]),
        "licences": attr.label_list(
            allow_files = True,
            doc = "of the Debian packages in it, or of one that has their text: files " +
                  "doc/PACKAGE/copyright",
        ),
    },
)
