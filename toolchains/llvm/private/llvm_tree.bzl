# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repository rule behind @llvm: unpacked packages plus a wrapper for every tool."""

load("//toolchains/debian:debian.bzl", "debian_tree")
load("//toolchains/locks:fetch.bzl", "lock_identity")
load("//toolchains/versions:llvm.bzl", "LLVM")
load(
    ":tools.bzl",
    "ALLOCATOR",
    "ALLOCATOR_USERS",
    "PROGRAMS",
    "PROGRAMS_FOLDER",
    "RESOURCES_FOLDER",
    "TOOLS",
)

# The packages that decide what a compile or a link writes. The other packages of the group
# serve tools that only look; a new version of theirs must not recompile every kernel.
_COMPILER_PACKAGES = [
    "clang-" + LLVM,
    "libc6",
    "libclang-common-%s-dev" % LLVM,
    "libclang-cpp" + LLVM,
    "libgcc-s1",
    "libllvm" + LLVM,
    "libstdc++6",
    "libz3-4",
    "libzstd1",
    "lld-" + LLVM,
    "zlib1g",
]

def _llvm_tree_impl(rctx):
    locked = debian_tree(
        rctx,
        rctx.attr.group,
        keep = [PROGRAMS_FOLDER + program for program in PROGRAMS] + [
            RESOURCES_FOLDER + "/include/*",
            "usr/lib/x86_64-linux-gnu/lib*.so*",
            "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
            "usr/share/doc/*/copyright",
        ],
        exclude = ["usr/lib/x86_64-linux-gnu/*/*"],
    )
    for tool in TOOLS:
        options = "--preload \"$libs/%s\" " % ALLOCATOR if tool in ALLOCATOR_USERS else ""
        rctx.template(
            "bin/" + tool,
            rctx.attr.wrapper,
            {
                "@OPTIONS@": options,
                "@PROGRAMS@": PROGRAMS_FOLDER,
            },
            executable = True,
        )
    missing = [package for package in _COMPILER_PACKAGES if package not in locked]
    if missing:
        fail("group %r lacks %s, which the compiler consists of; it has %s" %
             (rctx.attr.group, ", ".join(missing), ", ".join(sorted(locked))))
    identity = lock_identity(rctx, {package: locked[package] for package in _COMPILER_PACKAGES})
    rctx.file("identity.bzl", "COMPILER_DIGEST = \"%s\"\n" % identity, executable = False)
    rctx.file("BUILD.bazel", rctx.read(rctx.attr.build_file), executable = False)

llvm_tree = repository_rule(
    implementation = _llvm_tree_impl,
    doc = """clang, lld and LLVM's tools from locked packages, with all they load.

`identity.bzl` has COMPILER_DIGEST: a sha256 over the lock entries that decide what a compile
or a link writes.""",
    attrs = {
        "build_file": attr.label(mandatory = True, allow_single_file = True),
        "group": attr.string(default = "llvm", doc = "group of the lock"),
        "wrapper": attr.label(
            default = "//toolchains/llvm:tool.sh",
            allow_single_file = True,
            doc = "script that each bin/TOOL is a copy of",
        ),
    },
)
