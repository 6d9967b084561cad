# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repository rule behind @host_python: only the version of the host's python3."""

_PROGRAM = "import sys; print('cp%d%d' % sys.version_info[:2])"

def _host_python_impl(rctx):
    python = rctx.which("python3")
    got = rctx.execute([python, "-I", "-c", _PROGRAM]) if python else None
    abi = got.stdout.strip() if got and got.return_code == 0 else ""
    rctx.file("abi.bzl", "HOST_ABI = \"%s\"\n" % abi, executable = False)
    rctx.file("BUILD.bazel", "", executable = False)

host_python = repository_rule(
    implementation = _host_python_impl,
    configure = True,
    doc = """abi.bzl has HOST_ABI: the ABI tag of the host's python3, like "cp311", or "".

It is what --//toolchains/python:abi=auto stands for. Nothing of that python3 is used.""",
    environ = ["PATH"],
    local = True,
)
