# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The headers that kernels read, by pipeline: headers.toml, and the files of @ck_headers.

Which headers a source can read follows from the text of its #include lines and of the headers'
own, without the conditions around them: so it holds for every arch and definition, and a compile
that has these alone has all that it may ask for.
"""

from __future__ import annotations

import dataclasses
import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import tomllib

TABLE = Path(__file__).parents[1] / "headers.toml"

# Upstream's header of all pipelines, from the first include directory, and what its lines begin
# with.
_OF_ALL = "ck_tile/ops/fmha.hpp"
_FMHA = "ck_tile/ops/fmha/"

# From a tree's root, in the order of the compiler's flags: composable_kernel.BUILD.bazel.
INCLUDES = ("include", "example/ck_tile/01_fmha")

_EVERY = "every"

# Also `__has_include(...)`, whose answer is the header's.
_INCLUDE = re.compile(
    r"""^[ \t]*\#[ \t]*(?P<word>include\w*|import)[ \t]*(?P<name>[^\n]*)
      | __has_include\w*[ \t]*\((?P<asked>[^)\n]*)\)?""",
    re.MULTILINE | re.VERBOSE,
)
_NAME = re.compile(r'[ \t]*(?:"(?P<quoted>[^"]+)"|<(?P<angled>[^>]+)>)')


class HeadersError(Exception):
    """headers.toml or upstream's headers say something that this reading of them does not know."""


@dataclasses.dataclass(frozen=True)
class Section:
    """A section of headers.toml.

    source  what the sources of its kernels include, in order
    fmha    what they need of upstream's fmha.hpp, from its folder
    """

    source: tuple[str, ...]
    fmha: frozenset[str]


class Sections:
    """headers.toml. Raises HeadersError for a text that is none."""

    def __init__(self, text: str):
        try:
            document = tomllib.loads(text)
            every = frozenset(document.pop(_EVERY)["fmha"])
            self.by_name = {
                name: Section(tuple(entry["source"]), every | frozenset(entry["fmha"]))
                for name, entry in document.items()
            }
        except (KeyError, TypeError, ValueError) as error:
            raise HeadersError(f"headers.toml cannot be read: {error!r}") from error

    def of(self, pipeline: str) -> str:
        """The name of a pipeline's section, without regard to what is behind a "+"."""
        name = pipeline.partition("+")[0]
        found = [each for each in self.by_name if f"{name}_".startswith(f"{each}_")]
        if not found:
            raise HeadersError(
                f"headers.toml has no section for the pipeline {name}; it has "
                f"{', '.join(self.by_name)}: add one with what its kernels need of fmha.hpp"
            )
        return max(found, key=len)


def included(text: str, name: str) -> Iterator[tuple[str, bool]]:
    """Yields the headers that a text names, and whether in quotes.

    Raises HeadersError for a line that computes its header.
    """
    for found in _INCLUDE.finditer(text):
        header = _NAME.match(found["name"] if found["asked"] is None else found["asked"])
        if not header or found["word"] not in ("include", None):
            raise HeadersError(
                f"{name}: {found[0].strip()!r}: only #include lines with a header's name can be "
                "followed"
            )
        yield header["quoted"] or header["angled"], bool(header["quoted"])


class Tree:
    """Upstream's headers in a folder."""

    def __init__(self, root: Path):
        self._texts = {
            path.relative_to(root).as_posix(): path.read_text("utf-8", "replace")
            for include in INCLUDES
            for path in sorted((root / include).rglob("*.hpp"))
        }

    def _found(self, name: str, quoted: bool, folder: str) -> str | None:
        """Where the compiler finds a header: None is elsewhere, as those of the toolchain."""
        folders = ([folder] if quoted else []) + list(INCLUDES)
        paths = (posixpath.normpath(posixpath.join(each, name)) for each in folders)
        return next((path for path in paths if path in self._texts), None)

    def of_all(self, section: Section) -> str:
        """The text of a section's own fmha.hpp. Raises HeadersError."""
        upstream = [name for name, _ in included(self._texts[f"{INCLUDES[0]}/{_OF_ALL}"], _OF_ALL)]
        if unknown := section.fmha - {name.removeprefix(_FMHA) for name in upstream}:
            raise HeadersError(
                f"headers.toml: {', '.join(sorted(unknown))}: upstream's {_OF_ALL} includes no such"
            )
        # Those of other folders are small, and anything may use them.
        wanted = [
            name
            for name in upstream
            if not name.startswith(_FMHA) or name.removeprefix(_FMHA) in section.fmha
        ]
        return "".join(["#pragma once\n", *(f'#include "{name}"\n' for name in wanted)])

    def read_by(self, section: Section) -> list[str]:
        """The headers that a section's sources can read, beside its fmha.hpp: paths, sorted.

        Raises HeadersError.
        """
        roots = [*section.source, *(name for name, _ in included(self.of_all(section), _OF_ALL))]
        left = [path for name in roots if (path := self._found(name, False, ""))]
        if len(left) < len(roots):
            raise HeadersError(f"upstream has not all of {', '.join(roots)}")
        read = set()
        while left:
            if (path := left.pop()) in read:
                continue
            read.add(path)
            for name, quoted in included(self._texts[path], path):
                found = self._found(name, quoted, posixpath.dirname(path))
                if found and name != _OF_ALL:
                    left.append(found)
        return sorted(read)


def headers_files(sections: Sections, trees: Mapping[str, Path]) -> dict[str, str]:
    """Path -> text of @ck_headers. Raises HeadersError.

    trees  name of a repository of upstream's headers -> its folder
    """
    read: dict[str, dict[str, Sequence[str]]] = {}
    files: dict[str, str] = {}
    for repository, root in trees.items():
        tree = Tree(root)
        for name, section in sections.by_name.items():
            read.setdefault(name, {})[repository] = tree.read_by(section)
            text = tree.of_all(section)
            if files.setdefault(f"{name}/{_OF_ALL}", text) != text:
                raise HeadersError(f"{repository}: a patch changes {_OF_ALL}: it must not")
    files["headers.bzl"] = (
        '"""Generated from headers.toml and upstream\'s #include lines. Do not edit."""\n\n'
        "# Section -> repository -> what its kernels read of it.\n"
        f"HEADERS = {json.dumps(read, indent=1)}\n"
    )
    return files


def check_source(text: str, section: Section, name: str) -> None:
    """Raises HeadersError for a source that includes other than its section says."""
    found = tuple(header for header, _ in included(text, name))
    if found != section.source:
        raise HeadersError(
            f"{name} includes {list(found)}, its section of headers.toml says "
            f"{list(section.source)}: write what upstream's sources include"
        )
