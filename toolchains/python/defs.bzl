# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Python in this repository: programs for actions, and tests.

py_library, py_binary and py_test are rules_python's; the toolchain that they run with is the one
of --//toolchains/python:abi.
"""

load(
    "//toolchains/python/private:each_abi.bzl",
    _abi_binary = "abi_binary",
    _abi_independent = "abi_independent",
    _abi_test = "abi_test",
    _each_abi = "each_abi",
    _for_each_abi = "for_each_abi",
)
load(
    "//toolchains/python/private:py_extension.bzl",
    _ABI_TAGS = "ABI_TAGS",
    _py_extension = "py_extension",
)
load(
    "//toolchains/python/private:py_tool.bzl",
    _PyToolInfo = "PyToolInfo",
    _py_tool = "py_tool",
    _run_py_tool = "run_py_tool",
)
load("//toolchains/python/private:pytest_test.bzl", _pytest_test = "pytest_test")
load("//toolchains/versions:abis.bzl", _ABIS = "ABIS")

ABIS = _ABIS
ABI_TAGS = _ABI_TAGS
PyToolInfo = _PyToolInfo
abi_binary = _abi_binary
abi_independent = _abi_independent
abi_test = _abi_test
each_abi = _each_abi
for_each_abi = _for_each_abi
py_extension = _py_extension
py_tool = _py_tool
pytest_test = _pytest_test
run_py_tool = _run_py_tool
