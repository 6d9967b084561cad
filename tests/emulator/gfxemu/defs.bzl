# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Tests that execute GPU code in the emulator."""

load("//toolchains/python:defs.bzl", "pytest_test")

# Those whose code objects can be executed (gfxemu/launch.py).
EMULATED_ARCHS = [
    "gfx90a",
    "gfx942",
    "gfx950",
]

def gfxemu_test(name, srcs, deps = [], data = [], env = {}, **kwargs):
    """A pytest_test with the emulator and the llvm-mc that it decodes with.

    Args:
      name: of the test.
      srcs: files with tests.
      deps: py_library targets beside the emulator.
      data: files beside llvm-mc.
      env: of the test; $(rootpath) is expanded for data.
      **kwargs: of pytest_test.
    """
    tool = "@llvm//:llvm-mc"
    pytest_test(
        name = name,
        srcs = srcs,
        data = data + [tool],
        env = {"GFXEMU_LLVM_MC": "$(rootpath %s)" % tool} | env,
        deps = deps + [Label("//tests/emulator/gfxemu")],
        **kwargs
    )
