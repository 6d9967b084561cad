# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repository rule behind @llvm: unpacked packages plus a wrapper for every tool."""

load("//toolchains/debian:debian.bzl", "debian_tree")
load("//toolchains/debian:identity.bzl", "lock_identity")
load(":tools.bzl", "PROGRAMS", "TOOLS")

# The packages that decide what a compile or a link writes. The other packages of the group
# serve tools that only look; a new version of theirs must not recompile every kernel.
_COMPILER_PACKAGES = [
    "clang-22",
    "libc6",
    "libclang-common-22-dev",
    "libclang-cpp22",
    "libgcc-s1",
    "libllvm22",
    "libstdc++6",
    "libz3-4",
    "libzstd1",
    "lld-22",
    "zlib1g",
]

def _llvm_tree_impl(rctx):
    debian_tree(
        rctx,
        rctx.attr.lock,
        rctx.attr.group,
        keep = ["usr/lib/llvm-22/bin/" + program for program in PROGRAMS] + [
            "usr/lib/llvm-22/lib/clang/22/include/*",
            "usr/lib/x86_64-linux-gnu/lib*.so*",
            "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
        ],
        exclude = ["usr/lib/x86_64-linux-gnu/*/*"],
    )
    wrapper = rctx.read(rctx.attr.wrapper)
    for tool in TOOLS:
        rctx.file("bin/" + tool, wrapper, executable = True)

    entries = json.decode(rctx.read("debian_lock.json"))
    locked = {entry["name"]: entry["sha256"] for entry in entries}
    missing = [package for package in _COMPILER_PACKAGES if package not in locked]
    if missing:
        fail("%s: group %r lacks %s, which the compiler consists of; it has %s" %
             (rctx.attr.lock, rctx.attr.group, ", ".join(missing), ", ".join(sorted(locked))))
    identity = lock_identity({package: locked[package] for package in _COMPILER_PACKAGES})
    rctx.file("identity.bzl", "COMPILER_DIGEST = \"%s\"\n" % identity, executable = False)
    rctx.file("BUILD.bazel", rctx.read(rctx.attr.build_file), executable = False)
    rctx.file("WORKSPACE", "workspace(name = \"%s\")\n" % rctx.name, executable = False)

llvm_tree = repository_rule(
    implementation = _llvm_tree_impl,
    doc = """clang, lld and LLVM's tools from locked packages, with all they load.

`identity.bzl` has COMPILER_DIGEST: a sha256 over the lock entries that decide what a compile
or a link writes.""",
    attrs = {
        "build_file": attr.label(mandatory = True, allow_single_file = True),
        "group": attr.string(default = "llvm", doc = "group of the lock"),
        "lock": attr.label(default = "//toolchains/debian:lock.json", allow_single_file = True),
        "wrapper": attr.label(
            default = "//toolchains/llvm:tool.sh",
            allow_single_file = True,
            doc = "script that each bin/TOOL is a copy of",
        ),
    },
)
