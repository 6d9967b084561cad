# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Finds names in Markdown files that the tree does not have: files, headings, packages."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

_LINK = re.compile(r"\]\(([^)\s]+)\)")
# A label of this repository: //package, //package:target, //package/...
_LABEL = re.compile(r"(?<![\w@:/])//([a-z_][\w/.-]*?)(?::[\w.*{},-]+|/\.\.\.)?(?=[`'\s,;)|]|$)")
_HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)
_SOURCE = r"[\w.]+\.(?:\*|bzl|cc|cpp|h|hpp|py|toml|tpl)"
# A file in backticks, with folders or without; and files that a tree of folders lists.
_FILE = re.compile(rf"`((?:[\w.-]+/)*{_SOURCE})`")
_LISTED = re.compile(rf"^ {{4,}}({_SOURCE}(?:, {_SOURCE})*)(?=  |$)", re.MULTILINE)
# Placeholders; files of other projects and of repositories that are made.
_FOREIGN = re.compile(
    r".*\b[A-Z]+\.toml|Python\.h|archs\.bzl|(example/ck_tile|flash_attn|jax_aiter|qola)/.*"
)
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """The anchors of a Markdown file's headings, by the rule of the usual hosts."""
    found = set()
    for heading in _HEADING.findall(_FENCE.sub("", text)):
        words = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
        found.add(words.strip().replace(" ", "-"))
    return found


def _broken(root: Path, path: str, target: str) -> str | None:
    name, _, anchor = target.partition("#")
    file = posixpath.normpath(posixpath.join(posixpath.dirname(path), name)) if name else path
    if not (root / file).exists():
        return f"{target}: there is no {file}"
    if not anchor or not file.endswith(".md"):
        return None
    there = anchors((root / file).read_text(encoding="utf-8"))
    return None if anchor in there else f"{target}: {file} has no such heading"


def _absent(text: str, files: Sequence[str]) -> Iterator[str]:
    """Names of source files that no path ends with; `NAME.*` stands for any ending."""
    named = _FILE.findall(text)
    named += [name for names in _LISTED.findall(text) for name in names.split(", ")]
    ends = {end for f in files for end in (f, f.rpartition(".")[0] + ".*")}
    for name in named:
        there = any(f"/{end}".endswith("/" + name.removeprefix("../")) for end in ends)
        if not there and not _FOREIGN.fullmatch(name):
            yield name


def findings(root: Path, files: Sequence[str]) -> Iterator[str]:
    """Yields a line for each link, label or file name that leads nowhere."""
    packages = {posixpath.dirname(f) for f in files if f.endswith("BUILD.bazel")}
    folders = {"/".join(p.split("/")[:n]) for p in packages for n in range(1, p.count("/") + 2)}
    for path in files:
        if not path.endswith(".md"):
            continue
        text = (root / path).read_text(encoding="utf-8")
        for target in _LINK.findall(_FENCE.sub("", text)):
            if re.match(r"[a-z]+:", target):
                continue
            why = _broken(root, path, target)
            if why:
                yield f"{path}: {why}"
        for package in _LABEL.findall(text):
            if package.rstrip("/") not in packages | folders:
                yield f"{path}: //{package}: there is no such package"
        yield from (f"{path}: {name}: there is no such file" for name in _absent(text, files))
