# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""dist: the library as an archive for other build systems."""

load("//aiter:namespace.bzl", "NamespaceInfo")
load("//aiter:version.bzl", "ABI_VERSION", "VERSION")
load("//toolchains/python:defs.bzl", "PyToolInfo", "run_py_tool")

def _dist_impl(ctx):
    namespace = ctx.attr._namespace[NamespaceInfo].name
    name = namespace + "_attn"
    share = "share/%s/" % name
    files = {"include/aiter/" + file.basename: file for file in ctx.files.headers}
    files["lib/lib%s.a" % name] = ctx.file.archive
    files["lib/" + ctx.file.library.basename] = ctx.file.library
    files[share + "kernels.json"] = ctx.file.kernels
    files[share + "LICENSE"] = ctx.file.licence
    for target, of in ctx.attr.other_licences.items():
        (file,) = target.files.to_list()
        files["%slicences/%s" % (share, of)] = file
    templates = {
        "lib/cmake/{0}/{0}-config.cmake".format(name): ctx.file._config,
        "lib/cmake/{0}/{0}-config-version.cmake".format(name): ctx.file._config_version,
        "lib/pkgconfig/%s.pc" % name: ctx.file._pc,
    }
    stem = "%s/%s-%s-linux-x86_64" % (ctx.label.name, name, VERSION)
    tar = ctx.actions.declare_file(stem + ".tar")
    arguments = ctx.actions.args()
    arguments.add("--namespace", namespace)
    arguments.add("--package_version", VERSION)
    arguments.add("--abi_version", ABI_VERSION)
    for path, file in files.items():
        arguments.add(file, format = "--file=%s=%%s" % path)
    for path, file in templates.items():
        arguments.add(file, format = "--template=%s=%%s" % path)
    arguments.add("--out", tar)
    run_py_tool(
        ctx,
        tool = ctx.attr._write_dist,
        arguments = [arguments],
        inputs = files.values() + templates.values(),
        outputs = [tar],
        mnemonic = "DistTar",
        progress_message = "Writing %{output}",
    )
    compressed = ctx.actions.declare_file(stem + ".tar.zst")
    ctx.actions.run(
        executable = ctx.executable._compress,
        arguments = [tar.path, compressed.path],
        inputs = [tar],
        outputs = [compressed],
        mnemonic = "DistCompress",
        progress_message = "Compressing %{output}",
    )
    return [
        DefaultInfo(files = depset([compressed])),
        OutputGroupInfo(tar = depset([tar])),
    ]

dist = rule(
    implementation = _dist_impl,
    doc = """NAME/NAMESPACE_attn-VERSION-linux-x86_64.tar.zst, for users of CMake and of pkg-config.

In the folder NAMESPACE_attn-VERSION are include/aiter, lib with the shared library under its
SONAME, a link to it, the archive and the packages for CMake and pkg-config, and share with the
kernels, licences and the digests of all files. The output group `tar` is not compressed.""",
    attrs = {
        "archive": attr.label(mandatory = True, allow_single_file = [".a"]),
        "headers": attr.label_list(mandatory = True, allow_files = [".h", ".hpp"]),
        "kernels": attr.label(
            mandatory = True,
            allow_single_file = [".json"],
            doc = "//kernels:manifest",
        ),
        "library": attr.label(
            mandatory = True,
            allow_single_file = True,
            doc = "the shared library, under its SONAME",
        ),
        "licence": attr.label(mandatory = True, allow_single_file = True),
        "other_licences": attr.label_keyed_string_dict(
            allow_files = True,
            doc = "a text -> what it is of",
        ),
        "_compress": attr.label(cfg = "exec", default = "//aiter/dist:compress", executable = True),
        "_config": attr.label(allow_single_file = True, default = "//aiter/dist:config.cmake.in"),
        "_config_version": attr.label(
            allow_single_file = True,
            default = "//aiter/dist:config_version.cmake.in",
        ),
        "_namespace": attr.label(default = "//aiter:namespace", providers = [NamespaceInfo]),
        "_pc": attr.label(allow_single_file = True, default = "//aiter/dist:attn.pc.in"),
        "_write_dist": attr.label(
            cfg = "exec",
            default = "//aiter/dist:write_dist",
            providers = [PyToolInfo],
        ),
    },
)
