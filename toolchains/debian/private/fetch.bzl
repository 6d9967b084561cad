# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Downloads the locked .deb files of a group."""

load(":mirrors.bzl", "VARIABLE", "find_mirrors")

_RELOCK = "./bazelw --relock debian"

def _group(locked, group, packages, where):
    """Returns the wanted entries of a decoded lock; fails with the choices there are."""
    groups = locked.get("groups", {}) if type(locked) == "dict" else {}
    if group not in groups:
        fail("%s: no group %r; there are %s. Add it to packages.toml and run %s" %
             (where, group, ", ".join(sorted(groups)), _RELOCK))
    entries = {}
    for entry in groups[group]["packages"]:
        for key in ("name", "version", "path", "sha256"):
            if type(entry.get(key)) != "string":
                fail("%s: group %r: entry %r has no %s; run %s" %
                     (where, group, entry, key, _RELOCK))
        digest = entry["sha256"]
        if len(digest) != 64 or digest.strip("0123456789abcdef"):
            fail("%s: group %r: package %r: sha256 is %r, not 64 hexadecimal digits; run %s" %
                 (where, group, entry["name"], digest, _RELOCK))
        entries[entry["name"]] = entry
    unknown = [p for p in packages if p not in entries]
    if unknown:
        fail("%s: group %r has no package %r; it has %s" %
             (where, group, unknown[0], ", ".join(sorted(entries))))
    return [entries[name] for name in sorted(packages or entries)]

def archive_path(entry):
    """Returns where fetch_group puts an entry's file, below the repository's root."""
    return "debs/%s.deb" % entry["sha256"]

def _download(rctx, mirrors, entries):
    """Starts all downloads, then waits. Returns the entries that could not be had."""
    waiting = [
        (entry, rctx.download(
            url = ["%s/%s" % (mirror, entry["path"]) for mirror in mirrors],
            output = archive_path(entry),
            sha256 = entry["sha256"],
            allow_fail = True,
            block = False,
        ))
        for entry in entries
    ]
    return [entry for entry, token in waiting if not token.wait().success]

def _resolve_anew(rctx, group, packages, mirrors, missing):
    """Asks the archive's signed index what replaced files that have vanished."""
    names = ", ".join(["%s %s" % (e["name"], e["version"]) for e in missing])
    if rctx.getenv("AITER_ATTN_STRICT", "") == "1":
        fail(("%s: no archive of %s serves, with the locked sha256: %s. Lock anew with %s and " +
              "commit it, or unset AITER_ATTN_STRICT") %
             (group, " ".join(mirrors), names, _RELOCK))
    python = rctx.which("python3")
    if not python:
        fail("group %s: cannot be downloaded from %s: %s. Lock anew with %s" %
             (group, " ".join(mirrors), names, _RELOCK))
    got = rctx.execute(
        [python, "-B", rctx.path(Label("//toolchains/debian:relock.py")), group],
        environment = {VARIABLE: " ".join(mirrors)},
    )
    if got.return_code:
        fail("group %s: cannot be downloaded from %s: %s, and cannot be resolved anew: %s" %
             (group, " ".join(mirrors), names, got.stderr.strip()))
    entries = _group(json.decode(got.stdout), group, packages, "the archive's index")
    paths = {e["path"]: e for e in entries}
    for old in missing:
        new = paths.get(old["path"])
        if new and new["sha256"] != old["sha256"]:
            fail(("group %s: package %r: the lock says sha256 %s, the archive's signed index " +
                  "says %s for %s: the lock is corrupted. Restore it or run %s") %
                 (group, old["name"], old["sha256"], new["sha256"], old["path"], _RELOCK))
        if new:
            fail("group %s: %s: no archive of %s serves it with sha256 %s; try again or set %s" %
                 (group, old["path"], " ".join(mirrors), old["sha256"], VARIABLE))

    # buildifier: disable=print
    print(("WARNING: the Debian lock is stale: the archive no longer has %s. Group %s was " +
           "resolved anew from the signed index; this build is not reproducible until you " +
           "run %s and commit the lock.") % (names, group, _RELOCK))
    return entries

def fetch_group(rctx, lock, group, packages = []):
    """Downloads the .deb files of a group, each to its archive_path.

    A file that has vanished from every archive is replaced by what the signed index has now,
    with a warning; with AITER_ATTN_STRICT=1 that is an error.

    Args:
      rctx: the repository context.
      lock: label of the lock.
      group: the group's name.
      packages: names of the packages wanted; all of the group's when empty.

    Returns:
      The entries that were downloaded: a list of dicts, sorted by name.
    """
    entries = _group(json.decode(rctx.read(lock), None), group, packages, str(lock))
    mirrors = find_mirrors(rctx)
    rctx.report_progress("downloading %d packages" % len(entries))
    missing = _download(rctx, mirrors, entries)
    if missing:
        entries = _resolve_anew(rctx, group, packages, mirrors, missing)
        still = _download(rctx, mirrors, [
            e
            for e in entries
            if not rctx.path(archive_path(e)).exists
        ])
        if still:
            fail("group %s: cannot be downloaded from %s, although its index names it: %s" %
                 (group, " ".join(mirrors), ", ".join([e["path"] for e in still])))
    return entries
