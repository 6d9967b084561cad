# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Tests with real servers of caches and of remote execution."""

load("//toolchains/python:defs.bzl", "pytest_test")

def remote_test(
        name,
        srcs,
        data = [],
        deps = [],
        env = {},
        grpc = False,
        execution = False,
        **kwargs):
    """A pytest_test that can start the servers of servers.py.

    Args:
      name: of the test.
      srcs: the files with tests.
      data: of the test, beside the servers.
      deps: of the test, beside //toolchains/remote.
      env: of the test, beside where the servers are.
      grpc: whether it starts BuildGrid: two thousand files more.
      execution: whether it starts justbuild.
      **kwargs: of pytest_test.
    """
    programs = {"NGINX": Label("@nginx//:usr/sbin/nginx")}
    files = [Label("@nginx")]
    if grpc:
        programs |= {
            "TOOLS_PYTHON": Label("@python//:tools_interpreter"),
            # A module of the folder stands for it.
            "TOOLS_SITE_PACKAGES": Label("@pypi_tools//:site-packages/six.py"),
        }
        files += [
            Label("@pypi_tools"),
            Label("@python//:tools_files"),
        ]
    if execution:
        programs["JUSTBUILD"] = Label("@justbuild//:usr/bin/justbuild")
        files.append(Label("@justbuild"))
    pytest_test(
        name = name,
        srcs = srcs,
        data = data + files + programs.values(),
        env = env | {
            variable: "$(rlocationpath %s)" % program
            for variable, program in programs.items()
        },
        deps = deps + [Label("//toolchains/remote")],
        **kwargs
    )
