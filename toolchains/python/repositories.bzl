# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repositories of the Python toolchain: interpreters, and the default ABI."""

load("//toolchains/python/private:host_python.bzl", "host_python")
load("//toolchains/python/private:python_tree.bzl", "python_tree")

def python_repositories():
    """Declares @python_3_11, @python_3_13 and @host_python."""
    python_tree(
        name = "python_3_11",
        group = "python311",
        version = "3.11",
    )
    python_tree(
        name = "python_3_13",
        group = "python313",
        version = "3.13",
    )
    host_python(name = "host_python")
