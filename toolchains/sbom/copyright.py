# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The licence of a source file: in a machine-readable copyright file of a Debian package (DEP-5),
or by the file's own word."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator

# Of a line of C; one licence, with or without an exception: the kernel names those of the GPL by
# SPDX's older words.
_NAMED = re.compile(
    r"SPDX-License-Identifier: ([\w.+-]+)( WITH [\w.-]+)?\s*(\*/)?\s*$", re.MULTILINE
)
_OLDER = {
    "GPL-2.0": "GPL-2.0-only",
    "GPL-2.0+": "GPL-2.0-or-later",
}

_FORMAT = "debian.org/doc/packaging-manuals/copyright-format/1.0"

# Debian's short names, in lower case; another name is unknown.
_SPDX = {
    "apache-2": "Apache-2.0",
    "apache-2.0": "Apache-2.0",
    "apache-2-llvm-exceptions": "Apache-2.0 WITH LLVM-exception",
    "bsd-2-clause": "BSD-2-Clause",
    "bsd-3-clause": "BSD-3-Clause",
    "expat": "MIT",
    "mit": "MIT",
    "ncsa": "NCSA",
    "zlib": "Zlib",
}


def is_machine_readable(text: str) -> bool:
    first = next(iter(_paragraphs(text)), {})
    return _FORMAT in first.get("format", "")


def _paragraphs(text: str) -> Iterator[dict[str, str]]:
    """Each as field -> value, names in lower case; lines that go on are joined by newlines."""
    fields: dict[str, str] = {}
    name = ""
    for line in [*text.splitlines(), ""]:
        if not line.strip():
            if fields:
                yield fields
            fields, name = {}, ""
        elif line[0] in " \t" and name:
            fields[name] += "\n" + line.strip()
        elif line[0] != "#" and ":" in line:
            name, _, value = line.partition(":")
            name = name.strip().lower()
            fields[name] = value.strip()


def licence(text: str, sources: Iterable[str]) -> str | None:
    """An SPDX expression for all of these files of the package's source.

    None where the file does not say, or has a licence that is not known here. As the format has
    it, of several paragraphs that match a file the last one holds.
    """
    paragraphs = [p for p in _paragraphs(text) if "files" in p]
    found: set[str] = set()
    for source in sources:
        names = [
            p.get("license", "").split("\n")[0].strip().lower()
            for p in paragraphs
            if any(fnmatch.fnmatchcase(source, pattern) for pattern in p["files"].split())
        ]
        if not names or names[-1] not in _SPDX:
            return None
        found.add(_SPDX[names[-1]])
    return " AND ".join(sorted(found)) or None


def named_licence(text: str) -> str | None:
    """The SPDX expression that a source file itself names; None where it names none, or several
    licences."""
    match = _NAMED.search(text)
    if match is None:
        return None
    return _OLDER.get(match[1], match[1]) + (match[2] or "")
