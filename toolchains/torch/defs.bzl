# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Tests and measurements with PyTorch."""

load("@rules_python//python:defs.bzl", "py_binary")
load("//toolchains/python:defs.bzl", "abi_binary", "abi_test", "pytest_test")
load(":versions.bzl", "TORCHES")

def torch_test(name, srcs, deps = [], data = [], tags = [], versions = [""], **kwargs):
    """A pytest_test with torch, on the Python that torch is locked for, under any flag.

    Args:
      name: of the test.
      srcs: the files with tests.
      deps: py_library targets, beside torch and pytest.
      data: files that they read.
      tags: of the test; that with another torch than the first is a long one in any case.
      versions: of TORCHES (versions.bzl): with each there is a test, NAME + VERSION.
      **kwargs: of the test: size, shard_count, ...
    """
    for version in versions:
        torch = TORCHES[version]
        test = "%s%s.%s" % (name, version, torch.abi)
        pytest_test(
            name = test,
            srcs = srcs,
            data = data,
            tags = ["manual"],
            deps = deps + [torch.library],
        )
        abi_test(
            name = name + version,
            abi = torch.abi,
            args = ["%s/%s" % (native.package_name(), src) for src in srcs],
            # Of a download that not each package index has: @torch_newest.
            tags = tags if not version or "long" in tags else tags + ["long"],
            test = ":" + test,
            **kwargs
        )

def torch_binary(name, srcs, deps = [], version = "", **kwargs):
    """A program with a torch for `bazel run`, on the Python that torch is locked for.

    Args:
      name: of the program.
      srcs: its file.
      deps: py_library targets, beside torch.
      version: of TORCHES (versions.bzl).
      **kwargs: of both targets: visibility, ...
    """
    torch = TORCHES[version]
    py_binary(
        name = "%s.%s" % (name, torch.abi),
        testonly = True,
        srcs = srcs,
        main = srcs[0],
        tags = ["manual"],
        deps = deps + [torch.library],
        **kwargs
    )
    abi_binary(
        name = name,
        testonly = True,
        abi = torch.abi,
        program = ":%s.%s" % (name, torch.abi),
        tags = ["manual"],
        **kwargs
    )
