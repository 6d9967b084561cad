# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Finds the Debian archives that this machine's own apt is configured with."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping

from toolchains.locks.errors import LocksError

VARIABLE = "AITER_ATTN_DEBIAN_MIRROR"

# Asks for one line per configured index: archive root, release, component.
INDEXTARGETS = (
    "apt-get",
    "indextargets",
    "--no-release-info",
    "--format",
    "$(REPO_URI) $(RELEASE) $(COMPONENT)",
    "Created-By: Packages",
)

# An apt configuration may also hold third parties' archives. Only Debian's own suites are
# published from the archive that has the pool; the security archive has another pool.
_SUITES = re.compile(
    r"(sid|unstable|testing|stable|oldstable|oldoldstable|bullseye|bookworm|trixie|forky|duke)"
    r"(-updates|-backports)?"
)


def parse_indextargets(output: str) -> list[str]:
    """Returns the archive roots named by the output of INDEXTARGETS, in order, each once."""
    urls: list[str] = []
    for line in output.splitlines():
        fields = line.split()
        if len(fields) != 3:
            continue
        url, release, component = fields[0].rstrip("/"), fields[1], fields[2]
        if component == "main" and _SUITES.fullmatch(release) and url not in urls:
            urls.append(url)
    return urls


def find(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Returns the archive roots to try, best first; never empty.

    AITER_ATTN_DEBIAN_MIRROR (URLs separated by blanks) wins over apt's configuration.
    Raises LocksError where neither gives one.
    """
    override = environ.get(VARIABLE, "").split()
    if override:
        return [url.rstrip("/") for url in override]
    try:
        out = subprocess.run(INDEXTARGETS, check=True, capture_output=True, text=True).stdout
    except FileNotFoundError as e:
        raise LocksError(
            f"no apt-get here to ask for a Debian archive; set {VARIABLE} to a mirror's URL"
        ) from e
    except subprocess.CalledProcessError as e:
        raise LocksError(
            f"apt-get indextargets failed ({e.stderr.strip()}); set {VARIABLE} to a mirror's URL"
        ) from e
    urls = parse_indextargets(out)
    if not urls:
        raise LocksError(
            "apt is configured with no Debian archive (component main); "
            f"set {VARIABLE} to a mirror's URL"
        )
    return urls
