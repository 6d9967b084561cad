# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Tests that pytest runs."""

load("@rules_python//python:defs.bzl", "py_test")

def pytest_test(name, srcs, deps = [], args = [], **kwargs):
    """A test that runs pytest on its sources, with the Python of --//toolchains/python:abi.

    A run that collects no test fails. `--test_filter=EXPRESSION` is pytest's -k;
    `shard_count` is honoured, test by test.

    Args:
      name: of the test.
      srcs: the files with tests; a conftest.py among them is loaded, not run.
      deps: py_library targets; pytest itself is added.
      args: more arguments for pytest.
      **kwargs: of py_test.
    """
    main = Label("//toolchains/python:pytest_main.py")
    tests = [src for src in srcs if src.split("/")[-1].split(":")[-1] != "conftest.py"]
    if not tests:
        fail("pytest_test %s: srcs has no file with tests, only %s" % (name, srcs))
    py_test(
        name = name,
        srcs = srcs + [main],
        args = ["$(rootpath %s)" % test for test in tests] + args,
        main = main,
        deps = deps + [Label("@pypi_pytest")],
        **kwargs
    )
