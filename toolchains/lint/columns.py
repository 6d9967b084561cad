# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Finds lines that are too long in files that no formatter wraps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

LIMIT = 100
_NAMES = (".bazelrc", ".ci/run", ".gitignore", ".ruff.toml", "WORKSPACE")
_ENDINGS = (".bazel", ".bzl", ".html", ".ini", ".lds", ".md", ".nix", ".sh", ".toml", ".tpl")


# Written by programs, one name a line.
_GENERATED = ".lock.bzl"


def is_unwrapped(path: str) -> bool:
    if path.endswith(_GENERATED):
        return False
    return path.endswith(_ENDINGS) or path in _NAMES


def too_long(root: Path, path: str) -> Iterator[str]:
    """Yields a line per finding. Of Markdown only prose counts: no code, no table."""
    code = False
    for number, line in enumerate((root / path).read_text(encoding="utf-8").splitlines(), 1):
        if path.endswith(".md"):
            code ^= line.startswith("```")
            if code or line.startswith(("|", "    ")):
                continue
        if len(line) > LIMIT:
            yield f"{path}:{number}: {len(line)} columns, at most {LIMIT} are allowed"


def findings(root: Path, paths: Iterable[str]) -> Iterator[str]:
    """The findings of all these files."""
    for path in paths:
        yield from too_long(root, path)
