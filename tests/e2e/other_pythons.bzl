# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""@other_pythons: the Pythons with headers that this machine has, for tests of abi=host."""

_SCRIPT = Label("//toolchains/python:host_python.py")
_GIVEN = "AITER_ATTN_TEST_PYTHONS"

# Two that no locked headers are of, and one that there are locked headers of, too.
VERSIONS = ["3.10", "3.11", "3.12"]

def _candidates(rctx, version):
    """Programs that may be a Python of a version: those given, in PATH, and pyenv's."""
    given = rctx.getenv(_GIVEN) or ""
    found = [rctx.path(program) for program in given.split(":") if program.startswith("/")]
    in_path = rctx.which("python" + version)
    home = rctx.getenv("PYENV_ROOT") or (rctx.getenv("HOME") or "/nonexistent") + "/.pyenv"
    folder = rctx.path(home + "/versions")
    pyenvs = folder.readdir(watch = "no") if folder.exists else []
    return found + [
        entry.get_child("bin/python3")
        for entry in pyenvs
        if entry.basename.startswith(version + ".")
    ] + ([in_path] if in_path else [])

def _serves(rctx, python, version):
    if not python.exists:
        return False
    got = rctx.execute(
        [python, "-I", "-B", rctx.path(_SCRIPT), "describe"],
        environment = {"AITER_ATTN_PYTHON_HEADERS": ""},
    )
    if got.return_code:
        return False
    told = json.decode(got.stdout)
    return not told["trouble"] and told["version"].startswith(version + ".")

def _other_pythons_impl(rctx):
    pythons = {}
    for version in VERSIONS:
        for python in _candidates(rctx, version):
            if version not in pythons and _serves(rctx, python, version):
                pythons[version] = str(python)
    missing = [version for version in VERSIONS if version not in pythons]
    if missing:
        # buildifier: disable=print
        print(("no Python %s with headers on PATH or among pyenv's, so its tests of " +
               "--//toolchains/python:abi=host are SKIPPED. To run them name programs in %s, " +
               "with colons between them") % (" and no ".join(missing), _GIVEN))
    rctx.file("pythons.bzl", "PYTHONS = %r\n" % pythons, executable = False)
    rctx.file("BUILD.bazel", "", executable = False)

_other_pythons = repository_rule(
    implementation = _other_pythons_impl,
    configure = True,
    doc = "pythons.bzl has PYTHONS: version -> program, of VERSIONS those that are found.",
    environ = [_GIVEN, "HOME", "PATH", "PYENV_ROOT"],
    local = True,
)

def other_pythons_repositories():
    """Declares @other_pythons."""
    _other_pythons(name = "other_pythons")

def _other_pythons_extension_impl(mctx):
    other_pythons_repositories()
    return mctx.extension_metadata(reproducible = True)

other_pythons = module_extension(
    implementation = _other_pythons_extension_impl,
    doc = "Declares @other_pythons.",
)
