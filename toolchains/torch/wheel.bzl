# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""PyTorch of a locked wheel, where this machine can have it."""

load("//toolchains/locks:fetch.bzl", "try_fetch_locked")
load("//toolchains/pypi:bytecode.bzl", "compile_python")
load("//toolchains/pypi:pypi.bzl", "PYPI")

_BUILD = """load("@rules_python//python:defs.bzl", "py_library")

py_library(
    name = "{name}",
    testonly = True,
    srcs = ["sitecustomize.py"],
    data = ["lock_digest.bzl"],
    imports = ["."],
    target_compatible_with = {compatible_with},
    visibility = ["//visibility:public"],
    deps = {deps},
)
"""
_SITE = "site-packages"

# Parts that C++ extensions of torch are made and tested with, and a module for newer Pythons alone.
_UNUSED = [
    "torch/include",
    "torch/share",
    "torch/test",
    "torch/testing/_internal/py312_intrinsics.py",
]

def _torch_wheel_impl(rctx):
    attr = rctx.attr
    got, trouble = try_fetch_locked(rctx, PYPI, ".archive", [attr.distribution, attr.kind])
    for entry in got:
        rctx.report_progress("unpacking " + entry["filename"])
        rctx.extract(entry["file"], _SITE)
        rctx.delete(".archive")
        for folder in _UNUSED:
            rctx.delete("%s/%s" % (_SITE, folder))
        compile_python(rctx, attr.interpreter, _SITE)
    if trouble:
        # buildifier: disable=print
        print(("%s\nSo tests with @%s are SKIPPED. To run them, add a place that has the file to " +
               "pip's configuration (find-links or extra-index-url), then: " +
               "./bazelw fetch --force --repo=@%s") % (trouble, attr.target, attr.target))
    rctx.file("lock_digest.bzl", "LOCK_DIGESTS = %r\n" % [entry["sha256"] for entry in got])
    rctx.file("sitecustomize.py", rctx.read(attr.start), executable = False)
    rctx.file("BUILD.bazel", _BUILD.format(
        name = attr.target,
        compatible_with = [] if got else ["@platforms//:incompatible"],
        deps = attr.needs if got else [],
    ), executable = False)

torch_wheel = repository_rule(
    implementation = _torch_wheel_impl,
    doc = """PyTorch of a locked wheel for the CPU, which only places that a machine adds have.

Without it the library is incompatible, and so are the tests that need it.""",
    attrs = {
        "distribution": attr.string(mandatory = True, doc = "its name, as in the lock"),
        "interpreter": attr.label(mandatory = True, doc = "the Python that the wheel is for"),
        "kind": attr.string(mandatory = True, doc = "which of its files: the ABI"),
        "needs": attr.string_list(doc = "labels of what it imports"),
        "start": attr.label(mandatory = True, doc = "the code that that Python runs as it starts"),
        "target": attr.string(mandatory = True, doc = "name of the py_library"),
    },
)
