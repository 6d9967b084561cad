# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Tests that look at pages in Chromium."""

load("//toolchains/python:defs.bzl", "pytest_test")

_PARTS = [
    "@chromium//:%s.br" % part
    for part in ["al2023.tar", "chromium", "fonts.tar", "swiftshader.tar"]
]

def looking_test(name, data = [], env = {}, deps = [], **kwargs):
    """A pytest_test with Chromium, for looking.look of toolchains.pages.tests.

    Args:
      name: of the test.
      data: more files.
      env: more of its environment.
      deps: more libraries.
      **kwargs: of pytest_test.
    """
    pytest_test(
        name = name,
        data = data + _PARTS,
        env = env | {"CHROMIUM": " ".join(["$(rootpath %s)" % part for part in _PARTS])},
        deps = deps + ["//toolchains/pages/tests:looking"],
        **kwargs
    )
