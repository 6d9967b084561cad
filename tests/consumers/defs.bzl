# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""consumer_test: a program that calls AITER's interface, on the emulated HIP runtime."""

load("//tests/emulation:known_findings.bzl", "PATCHES_ENV")
load("//tests/emulator/gfxemu:defs.bzl", "EMULATED_ARCHS", "gfxemu_test")

_HIP = "//tests/emulator/hip:libamdhip64.so.6"

def consumer_test(name, srcs, consumer, data = [], deps = [], env = {}, **kwargs):
    """A gfxemu_test that loads a consumer, on a device of each arch that kernels are built for.

    Args:
      name: of the test.
      srcs: files with tests, beside conftest.py.
      consumer: a shared object of calls.cc.
      data: files beside it.
      deps: py_library targets beside those of conftest.py.
      env: of the test; $(rootpath) is expanded for data.
      **kwargs: of gfxemu_test.
    """
    archs = {}
    for arch in EMULATED_ARCHS:
        archs = archs | select({
            "//kernels:%s.selected" % arch: {"BUILT_FOR_" + arch: "1"},
            "//conditions:default": {},
        })
    gfxemu_test(
        name = name,
        size = "medium",
        srcs = ["conftest.py"] + srcs,
        data = data + [
            _HIP,
            consumer,
        ],
        env = {
            "CONSUMER": "$(rootpath %s)" % consumer,
            "EMULATED_HIP": "$(rootpath %s)" % _HIP,
        } | env | archs | PATCHES_ENV,
        deps = deps + [
            "//tests/consumers:attention",
            "//tests/emulation:known_findings",
            "//tests/emulator/hip:emulated_hip",
            "//tests/emulator/hip:fixtures",
        ],
        **kwargs
    )
