# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Locked files in repository rules: fetch.py for Starlark."""

# Variables that fetch.py heeds. A change of one fetches anew.
_VARIABLES = [
    "AITER_ATTN_DEBIAN_MIRROR",
    "AITER_ATTN_DEBIAN_SNAPSHOT",
    "AITER_ATTN_MIRROR",
    "AITER_ATTN_NPM_REGISTRY",
    "AITER_ATTN_PYPI_INDEX",
    "AITER_ATTN_STRICT",
    "BAZELW_CACHE",
]

def _try(rctx, arguments):
    """Returns fetch.py's output, and why it failed, or None."""
    python = rctx.which("python3")
    if not python:
        fail("no python3 on PATH, which fetches what is locked; 3.10 or newer is needed")
    environment = {name: rctx.getenv(name) for name in _VARIABLES}
    got = rctx.execute(
        [python, "-B", rctx.path(Label("//toolchains/locks:fetch.py"))] + arguments,
        environment = {name: value for name, value in environment.items() if value != None},
        timeout = 7200,
    )
    if got.return_code:
        return None, got.stderr.strip()
    if got.stderr:
        # buildifier: disable=print
        print(got.stderr.strip())
    return got.stdout.strip(), None

def fetch_locked(rctx, registry, folder, arguments):
    """Puts locked files into a folder of the repository that rctx makes.

    A package that vanished from Debian's archives is replaced by their signed index's, with a
    warning. With AITER_ATTN_STRICT=1 that is an error (0 is as if it were not set, other values are
    refused), as anything else that is not there always is.

    Args:
      rctx: the repository context.
      registry: the label of a fetch.py, with fetched(); lock.json lies beside it.
      folder: below the repository's root.
      arguments: which files: a group and names of packages; a distribution and a file's kind; a
        package.

    Returns:
      A list of dicts of the files, sorted by name: name, version (of a Debian package) or filename
      (of a Python distribution's file), sha256, and file, the path below the repository's root.
    """
    files, trouble = try_fetch_locked(rctx, registry, folder, arguments)
    if trouble != None:
        fail("%s: %s" % (rctx.name, trouble))
    return files

def try_fetch_locked(rctx, registry, folder, arguments):
    """The same for files that a build can do without.

    Args:
      rctx: the arguments of fetch_locked, all four.
      registry: the label of a fetch.py.
      folder: below the repository's root.
      arguments: which files.

    Returns:
      The result of fetch_locked and None; or an empty list, and why the files cannot be had.
    """
    rctx.read(registry.same_package_label("lock.json"))  # a change of the lock fetches anew
    rctx.report_progress("fetching locked files: " + " ".join(arguments))
    module = "%s/%s" % (registry.package, registry.name.removesuffix(".py"))
    printed, trouble = _try(rctx, [module.replace("/", "."), folder] + arguments)
    return (json.decode(printed), None) if trouble == None else ([], trouble)

def lock_identity(rctx, digests):
    """One digest for many; their order does not matter.

    Args:
      rctx: the repository context.
      digests: dict of name -> sha256 of a locked file, or of something made of such.

    Returns:
      A sha256, 64 hex digits, over names and digests.
    """
    printed, trouble = _try(rctx, ["identity"] + ["%s=%s" % item for item in digests.items()])
    if trouble != None:
        fail("%s: %s" % (rctx.name, trouble))
    return printed
