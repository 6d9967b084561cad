# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Tests with real servers of caches and of remote execution."""

load("//toolchains/python:defs.bzl", "pytest_test")

# A repository: the variables that name its programs.
_NGINX = {Label("@nginx"): {"NGINX": Label("@nginx//:usr/sbin/nginx")}}
_GRPC = {
    Label("@pypi_tools"): {
        # A module of the folder stands for it.
        "TOOLS_SITE_PACKAGES": Label("@pypi_tools//:site-packages/six.py"),
    },
    Label("@python//:tools_files"): {"TOOLS_PYTHON": Label("@python//:tools_interpreter")},
}
_EXECUTION = {Label("@justbuild"): {"JUSTBUILD": Label("@justbuild//:usr/bin/justbuild")}}
_POSTGRESQL = "@postgresql//:usr/lib/postgresql/17/bin/"
_GRID = _GRPC | {
    Label("@buildbox"): {
        "BUILDBOX_CASD": Label("@buildbox//:usr/bin/buildbox-casd"),
        "BUILDBOX_RUN": Label("@buildbox//:usr/bin/buildbox-run-hosttools"),
        "BUILDBOX_WORKER": Label("@buildbox//:usr/bin/buildbox-worker"),
    },
    Label("@postgresql"): {
        "INITDB": Label(_POSTGRESQL + "initdb"),
        "POSTGRES": Label(_POSTGRESQL + "postgres"),
    },
}

def remote_test(
        name,
        srcs,
        data = [],
        deps = [],
        env = {},
        grpc = False,
        execution = False,
        grid = False,
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
      grid: whether it starts the cluster of grid.py.
      **kwargs: of pytest_test.
    """
    servers = dict(_NGINX)
    for wanted, of in ((grpc, _GRPC), (execution, _EXECUTION), (grid, _GRID)):
        if wanted:
            servers |= of
    programs = {}
    for of in servers.values():
        programs |= of
    pytest_test(
        name = name,
        srcs = srcs,
        data = data + servers.keys() + programs.values(),
        env = env | {
            variable: "$(rlocationpath %s)" % program
            for variable, program in programs.items()
        },
        deps = deps + [Label("//toolchains/remote")],
        **kwargs
    )
