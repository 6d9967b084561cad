# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Downloads one locked file of a Python distribution from the machine's package index."""

load(":index.bzl", "find_file")

VARIABLE = "AITER_ATTN_PYPI_INDEX"
_RELOCK = "./bazelw --relock pypi"

def _entry(locked, distribution, kind, where):
    distributions = locked.get("distributions", {}) if type(locked) == "dict" else {}
    if distribution not in distributions:
        fail("%s: no distribution %r; there are %s. Add it to requirements.toml and run %s" %
             (where, distribution, ", ".join(sorted(distributions)), _RELOCK))
    files = distributions[distribution].get("files", {})
    if kind not in files:
        fail("%s: distribution %r has no file of kind %r; there are %s. Add it to " %
             (where, distribution, kind, ", ".join(sorted(files))) +
             "requirements.toml and run %s" % _RELOCK)
    entry = files[kind]
    digest = entry.get("sha256", "")
    if len(digest) != 64 or digest.strip("0123456789abcdef"):
        fail("%s: distribution %r: sha256 of %r is %r, not 64 hexadecimal digits; run %s" %
             (where, distribution, entry.get("filename"), digest, _RELOCK))
    return entry

def _index(rctx):
    url = rctx.getenv(VARIABLE, "")
    if not url:
        python = rctx.which("python3")
        if not python:
            fail("no python3 here to ask for pip's index; set %s to a simple index's URL" %
                 VARIABLE)
        got = rctx.execute([python, "-B", rctx.path(Label("//toolchains/pypi:index.py"))])
        if got.return_code:
            fail(got.stderr.strip())
        url = got.stdout.strip()
    return url.rstrip("/")

def _page_url(index, distribution):
    name = distribution.lower()
    for _ in range(len(name)):
        name = name.replace("_", "-").replace(".", "-").replace("--", "-")
    return "%s/%s/%s" % (index, name, "index.html" if index.startswith("file:") else "")

def fetch_file(rctx, lock, distribution, kind, output):
    """Downloads a locked file and checks its sha256; fails with the next step otherwise.

    Args:
      rctx: the repository context.
      lock: label of the lock.
      distribution: its name, as in the lock.
      kind: kind of the file: "sdist", "any", "cp311" ...
      output: path below the repository's root that the file is written to.

    Returns:
      The lock's entry: a dict with filename and sha256.
    """
    entry = _entry(json.decode(rctx.read(lock), None), distribution, kind, str(lock))
    filename = entry["filename"]
    page_url = _page_url(_index(rctx), distribution)
    page = rctx.download(page_url, ".page", allow_fail = True)
    if page.success:
        url = find_file(rctx.read(".page"), page_url, filename)
        rctx.delete(".page")
        if not url:
            fail("%s does not list the locked file %s; correct requirements.toml and run %s" %
                 (page_url, filename, _RELOCK))
    else:
        # Bazel's repository cache goes by the sha256: without a network it may have the file.
        url = page_url + filename
    rctx.report_progress("downloading " + filename)
    got = rctx.download(url, output, sha256 = entry["sha256"], allow_fail = True)
    if not page.success and not got.success:
        fail("cannot read %s; check the network, or set %s to a simple index's URL" %
             (page_url, VARIABLE))
    if not got.success:
        fail(("%s cannot be had from %s with the locked sha256 %s (the warning above says " +
              "why); if the lock is wrong, restore it or run %s") %
             (filename, url, entry["sha256"], _RELOCK))
    return entry
