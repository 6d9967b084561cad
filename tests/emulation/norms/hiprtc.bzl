# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""hiprtc_object: a kernel source compiled by the locked hipRTC, in the library's way.

The program that asks hipRTC is the library's own code. It runs with the loader and the libraries
that hipRTC was built for, which are newer than the C library of most hosts.
"""

def _header(file):
    return "%s=%s" % (file.basename, file.path)

def _hiprtc_object_impl(ctx):
    name, source, loader = ctx.label.name, ctx.file.src, ctx.file._loader
    code_object, metadata, spec = [
        ctx.actions.declare_file("%s.%s" % (name, extension))
        for extension in ["hsaco", "json", "spec"]
    ]
    arguments = ctx.actions.args()
    arguments.add("--inhibit-cache")
    arguments.add("--library-path", loader.dirname)
    arguments.add(ctx.executable._compile_source)
    arguments.add_all([
        "object",
        code_object.path.removesuffix(".hsaco"),
        ctx.attr.arch,
        name,
        "%s=%s" % (source.basename, source.path),
    ])
    arguments.add_all(ctx.files.headers, before_each = "--header", map_each = _header)
    arguments.add("--")
    arguments.add_all(ctx.attr.copts)
    ctx.actions.run(
        executable = loader,
        arguments = [arguments],
        inputs = [source] + ctx.files.headers,
        outputs = [code_object, metadata, spec],
        tools = [ctx.executable._compile_source, ctx.attr._libraries[DefaultInfo].files],
        env = {
            "AITER_ATTN_HIPRTC_LIBRARY": ctx.file._hiprtc.path,
            # The compiler's own cache is a folder of the user's.
            "AMD_COMGR_CACHE": "0",
        },
        mnemonic = "HipRtcObject",
        progress_message = "Compiling %{label}",
    )
    return [
        DefaultInfo(files = depset([code_object])),
        OutputGroupInfo(spec = [spec]),
    ]

hiprtc_object = rule(
    implementation = _hiprtc_object_impl,
    doc = "NAME.hsaco; output group spec.",
    attrs = {
        "arch": attr.string(mandatory = True, doc = "gfx942"),
        "copts": attr.string_list(doc = "hipRTC's options"),
        "headers": attr.label(mandatory = True, doc = "included by their base names"),
        "src": attr.label(allow_single_file = [".cpp"], mandatory = True),
        "_compile_source": attr.label(
            cfg = "exec",
            default = "//aiter/runtime/rtc:compile_source",
            executable = True,
        ),
        "_hiprtc": attr.label(allow_single_file = True, cfg = "exec", default = "@hiprtc//:file"),
        "_libraries": attr.label(cfg = "exec", default = "@hiprtc"),
        "_loader": attr.label(allow_single_file = True, cfg = "exec", default = "@hiprtc//:loader"),
    },
)
