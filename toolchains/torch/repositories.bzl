# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repositories of PyTorch that tests run with: versions.bzl."""

load("@python//:trees.bzl", "TOOLS_INTERPRETER", "TREES")
load("//toolchains/debian:debian.bzl", "debian_tree")
load("//toolchains/pypi:bytecode.bzl", "compile_python")
load(":versions.bzl", "TORCHES")
load(":wheel.bzl", "torch_wheel")

# Thousands of files: a test finds them beside the one that it starts with, whose path tells where.
_BUILD = """load("@rules_python//python:defs.bzl", "py_library")

py_library(
    name = "torch",
    testonly = True,
    srcs = ["sitecustomize.py"],
    data = ["debian_lock.json"],
    imports = ["."],
    visibility = ["//visibility:public"],
    deps = ["@pypi_numpy"],
)
"""
_MODULES = "usr/lib/python3/dist-packages"

def _torch_tree_impl(rctx):
    debian_tree(
        rctx,
        "torch",
        keep = [
            _MODULES + "/*",
            "usr/lib/*.so*",
        ],
        exclude = [
            _MODULES + "/torch/include/*",
            _MODULES + "/torch/test",  # a link to what is not here
        ],
    )
    rctx.file("sitecustomize.py", rctx.read(rctx.attr.start), executable = False)
    rctx.file("BUILD.bazel", _BUILD, executable = False)

    # Without bytecode each start compiles a thousand modules.
    compile_python(rctx, rctx.attr.interpreter, _MODULES)

_torch_tree = repository_rule(
    implementation = _torch_tree_impl,
    attrs = {
        "interpreter": attr.label(mandatory = True, doc = "the Python that torch is built for"),
        "start": attr.label(mandatory = True, doc = "the code that that Python runs as it starts"),
    },
)

def torch_repositories():
    """Declares @torch and @torch_newest, py_libraries."""
    _torch_tree(
        name = "torch",
        interpreter = TOOLS_INTERPRETER,
        start = Label("//toolchains/torch:sitecustomize.py"),
    )
    abi = TORCHES["_newest"].abi
    tree = TREES["python_3_" + abi.removeprefix("cp3")]
    torch_wheel(
        name = "torch_newest",
        distribution = "torch",
        interpreter = tree.relative(":bin/python3"),
        kind = abi,
        needs = ["@pypi_" + name for name in [
            "filelock",
            "fsspec",
            "jinja2",
            "networkx",
            "numpy",
            "sympy",
            "typing_extensions",
        ]],
        start = Label("//toolchains/torch:wheel_sitecustomize.py"),
        target = "torch_newest",
    )
