# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Locked files in repository rules: what fetch.py does, for Starlark."""

# What fetch.py heeds. A change of one fetches anew.
_VARIABLES = [
    "AITER_ATTN_DEBIAN_MIRROR",
    "AITER_ATTN_DEBIAN_SNAPSHOT",
    "AITER_ATTN_MIRROR",
    "AITER_ATTN_NPM_REGISTRY",
    "AITER_ATTN_PYPI_INDEX",
    "AITER_ATTN_STRICT",
    "BAZELW_CACHE",
]

_LOCKS = {kind: Label("//toolchains/%s:lock.json" % kind) for kind in ["debian", "pypi", "npm"]}

def _run(rctx, arguments):
    python = rctx.which("python3")
    if not python:
        fail("no python3 on PATH, which fetches what is locked; 3.11 or newer is needed")
    environment = {name: rctx.getenv(name) for name in _VARIABLES}
    got = rctx.execute(
        [python, "-B", rctx.path(Label("//toolchains/locks:fetch.py"))] + arguments,
        environment = {name: value for name, value in environment.items() if value != None},
        timeout = 7200,
    )
    if got.return_code:
        fail("%s: %s" % (rctx.name, got.stderr.strip()))
    if got.stderr:
        # buildifier: disable=print
        print(got.stderr.strip())
    return got.stdout.strip()

def fetch_locked(rctx, kind, folder, arguments):
    """Puts locked files into a folder of the repository that rctx makes.

    What has vanished from Debian's archives is replaced by what their signed index has now, with a
    warning. With AITER_ATTN_STRICT=1 that is an error (0 is as if it were not set, other values are
    refused), as anything else that is not there always is.

    Args:
      rctx: the repository context.
      kind: "debian", "pypi" or "npm".
      folder: below the repository's root.
      arguments: which files: a group and names of packages; a distribution and a file's kind; a
        package.

    Returns:
      A list of dicts of the files, sorted by name: name, version (of a Debian package) or filename
      (of a Python distribution's file), sha256, and file, the path below the repository's root.
    """
    rctx.read(_LOCKS[kind])  # a change of the lock fetches anew
    rctx.report_progress("fetching locked files: " + " ".join(arguments))
    return json.decode(_run(rctx, [kind, folder] + arguments))

def lock_identity(rctx, digests):
    """Returns a sha256, 64 hex digits, over names and digests; their order does not matter.

    Args:
      rctx: the repository context.
      digests: dict of name -> sha256 of a locked file, or of something made of such.
    """
    return _run(rctx, ["identity"] + ["%s=%s" % item for item in digests.items()])
