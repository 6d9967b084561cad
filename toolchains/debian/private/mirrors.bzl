# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Finds the Debian archives this machine's apt is configured with (see mirrors.py)."""

VARIABLE = "AITER_ATTN_DEBIAN_MIRROR"

_RELEASES = [
    "sid",
    "unstable",
    "testing",
    "stable",
    "oldstable",
    "oldoldstable",
    "bullseye",
    "bookworm",
    "trixie",
    "forky",
    "duke",
]

def parse_indextargets(output):
    """Returns the archive roots in apt's list of index targets, in order, each once.

    Args:
      output: lines of archive root, release and component.

    Returns:
      A list of URLs without a trailing slash.
    """
    urls = []
    for line in output.splitlines():
        fields = [f for f in line.split(" ") if f]
        if len(fields) != 3 or fields[2] != "main":
            continue
        release = fields[1].removesuffix("-updates").removesuffix("-backports")
        url = fields[0].rstrip("/")
        if release in _RELEASES and url not in urls:
            urls.append(url)
    return urls

def find_mirrors(rctx):
    """Returns the archive roots to try, best first; fails where none is known.

    Args:
      rctx: the repository context.

    Returns:
      A list of URLs, never empty.
    """
    override = [u.rstrip("/") for u in rctx.getenv(VARIABLE, "").split(" ") if u]
    if override:
        return override
    apt = rctx.which("apt-get")
    if not apt:
        fail("no apt-get here to ask for a Debian archive; set %s to a mirror's URL" % VARIABLE)
    got = rctx.execute([
        apt,
        "indextargets",
        "--no-release-info",
        "--format",
        "$(REPO_URI) $(RELEASE) $(COMPONENT)",
        "Created-By: Packages",
    ])
    urls = parse_indextargets(got.stdout)
    if not urls:
        fail(("apt is configured with no Debian archive (component main) %s; " +
              "set %s to a mirror's URL") % (got.stderr.strip(), VARIABLE))
    return urls
