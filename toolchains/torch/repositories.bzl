# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repository of PyTorch that tests run with: @torch."""

load("@python//:trees.bzl", "TOOLS_INTERPRETER")
load("//toolchains/debian:debian.bzl", "debian_tree")

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
    got = rctx.execute(
        [
            rctx.path(rctx.attr.interpreter),
            "-m",
            "compileall",
            "-q",
            "-j0",
            "--invalidation-mode",
            "unchecked-hash",
            _MODULES,
        ],
        environment = {"PYTHONHASHSEED": "0"},
    )
    if got.return_code:
        fail("cannot compile the modules of torch: %s%s" % (got.stdout, got.stderr))

_torch_tree = repository_rule(
    implementation = _torch_tree_impl,
    attrs = {
        "interpreter": attr.label(mandatory = True, doc = "the Python that torch is built for"),
        "start": attr.label(mandatory = True, doc = "what that Python runs as it starts"),
    },
)

def torch_repositories():
    """Declares @torch, a py_library."""
    _torch_tree(
        name = "torch",
        interpreter = TOOLS_INTERPRETER,
        start = Label("//toolchains/torch:sitecustomize.py"),
    )
