# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repositories of the Python toolchain: interpreters and headers per ABI."""

load("//toolchains/python/private:host_python.bzl", "host_python", "host_python_headers")
load("//toolchains/python/private:python_hub.bzl", "python_hub")
load("//toolchains/python/private:python_tree.bzl", "python_tree")
load("//toolchains/versions:abis.bzl", "ABIS", "TOOLS_ABI")

def python_repositories():
    """Declares @python_3_NN for every ABI, @python with aliases of them, and the machine's own.

    These are @host_python, which describes it, and @host_python_headers.
    """
    trees = {}
    for abi in ABIS:
        minor = abi.removeprefix("cp3")
        trees[abi] = "python_3_" + minor
        python_tree(
            name = trees[abi],
            group = "python3" + minor,
            version = "3." + minor,
        )
    python_hub(
        name = "python",
        tools_abi = TOOLS_ABI,
        trees = trees,
    )
    host_python(name = "host_python")
    host_python_headers(name = "host_python_headers")
