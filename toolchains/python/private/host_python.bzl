# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repository rules behind @host_python and @host_python_headers: the machine's own Python."""

_SCRIPT = Label("//toolchains/python:host_python.py")
_HEADERS = "AITER_ATTN_PYTHON_HEADERS"
_STRICT = "AITER_ATTN_STRICT"

# Variables that say which Python the machine's is; PYENV_VERSION is heeded by pyenv's python3.
_ENVIRON = [_HEADERS, "PATH", "PYENV_VERSION"]

def _run(rctx, arguments):
    """Returns what host_python.py printed, and why it failed, or None."""
    python = rctx.which("python3")
    if not python:
        return None, "no python3 on PATH; 3.10 or newer is needed"
    named = rctx.getenv(_HEADERS) or ""
    got = rctx.execute(
        [python, "-I", "-B", rctx.path(_SCRIPT)] + arguments,
        environment = {_HEADERS: named},
    )
    if got.return_code:
        return None, "%s: %s" % (python, got.stderr.strip())
    return json.decode(got.stdout), None

def _describe(rctx):
    """Returns abi, version, folder and trouble of the machine's Python, all of them strings."""
    described, trouble = _run(rctx, ["describe"])
    if trouble != None:
        described = {"abi": "", "folder": "", "trouble": trouble, "version": ""}
    return described

def _host_python_impl(rctx):
    described = _describe(rctx)

    # Headers may come after a refusal: what it looked at is looked at again.
    if described["folder"].startswith("/"):
        for header in ["Python.h", "patchlevel.h", "pyconfig.h"]:
            rctx.watch("%s/%s" % (described["folder"], header))
    rctx.file("abi.bzl", "\n".join([
        "HOST_ABI = %r" % described["abi"],
        "HOST_VERSION = %r" % described["version"],
        "HOST_TROUBLE = %r" % described["trouble"],
        "STRICT = %r" % (rctx.getenv(_STRICT) == "1"),
        "",
    ]), executable = False)
    rctx.file("BUILD.bazel", "", executable = False)

host_python = repository_rule(
    implementation = _host_python_impl,
    configure = True,
    doc = """abi.bzl describes the machine's python3, or the headers that are named in its place.

HOST_ABI is its ABI tag, like "cp312", or ""; HOST_VERSION the headers' version, HOST_TROUBLE why
nothing can be built with them, or "". STRICT: nothing but what is locked is taken unasked. It is
what --//toolchains/python:abi=auto and host stand for.""",
    environ = _ENVIRON + [_STRICT],
    local = True,
)

_BUILD = """# The headers of Python {version} that were found on this machine.
load("@rules_cc//cc:defs.bzl", "cc_library")

package(default_visibility = ["//visibility:public"])

exports_files([
    "debian_lock.json",
    "headers.json",
])

cc_library(
    name = "headers",
    hdrs = glob(["include/**/*.h"]),
    includes = [
        "include",
        "include/python{short}",
    ],
)
"""

def _host_python_headers_impl(rctx):
    described = _describe(rctx)

    # A refusal is the flag's to tell, where these headers are asked for: see resolved_abi.
    if described["trouble"]:
        rctx.file("BUILD.bazel", "", executable = False)
        return
    folder = described["folder"]
    rctx.watch_tree(folder)
    copied, trouble = _run(rctx, ["copy", "include"])
    if trouble != None:
        fail("%s: %s" % (rctx.name, trouble))

    # buildifier: disable=print
    print(("building with the headers of Python {version} of this machine ({folder}, sha256 " +
           "{sha256}): they are not locked, and the wheel says so").format(
        folder = folder,
        **copied
    ))
    rctx.file("headers.json", json.encode(copied) + "\n", executable = False)
    rctx.file("debian_lock.json", "[]\n", executable = False)
    rctx.file("BUILD.bazel", _BUILD.format(
        short = ".".join(copied["version"].split(".")[:2]),
        version = copied["version"],
    ), executable = False)

host_python_headers = repository_rule(
    implementation = _host_python_headers_impl,
    configure = True,
    doc = """The headers of the machine's Python, copied, as `:headers`.

headers.json has their version and one sha256 over all of them; debian_lock.json no package.""",
    environ = _ENVIRON,
    local = True,
)
