# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Tests with PyTorch."""

load("//toolchains/python:defs.bzl", "abi_test", "pytest_test")

# The Python of the Debian suite that torch is locked from: toolchains/debian/packages.toml.
_ABI = "cp313"

def torch_test(name, srcs, deps = [], data = [], **kwargs):
    """A pytest_test with torch, on the Python that torch is locked for, whatever is built for.

    Args:
      name: of the test.
      srcs: the files with tests.
      deps: py_library targets, beside torch and pytest.
      data: files that they read.
      **kwargs: of the test: size, tags, shard_count, ...
    """
    pytest_test(
        name = name + "." + _ABI,
        srcs = srcs,
        data = data,
        tags = ["manual"],
        deps = deps + ["@torch"],
    )
    abi_test(
        name = name,
        abi = _ABI,
        args = ["%s/%s" % (native.package_name(), src) for src in srcs],
        test = ":%s.%s" % (name, _ABI),
        **kwargs
    )
