# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The package index this machine's pip is configured with, and its pages."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import html.parser
import json
import os
import pathlib
import re
import subprocess
import sys
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from toolchains.locks import web
from toolchains.locks.errors import LocksError

VARIABLE = "AITER_ATTN_PYPI_INDEX"

_T = TypeVar("_T")
_PIP_DEFAULT = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"


@dataclasses.dataclass(frozen=True)
class File:
    """One file of an index page; sha256 is empty where the page has none."""

    filename: str
    url: str
    sha256: str


def parse_pip_config(output: str, option: str = "index-url") -> str | None:
    """Returns an option from the output of `pip config list`, or None.

    pip's own precedence: environment, then site, user and global files.
    """
    found: dict[str, str] = {}
    for line in output.splitlines():
        m = re.fullmatch(
            rf"(:env:|site|user|global|install|download)\.{option}='(.*)'", line.strip()
        )
        if m:
            found[m[1]] = m[2]
    for level in (":env:", "site", "user", "global", "install", "download"):
        if found.get(level):
            return found[level].rstrip("/")
    return None


@functools.cache
def _python_with_pip() -> str | None:
    """Returns a Python that has pip: this one, or the first of PATH that has it.

    A hermetic Python has no pip, and a build that runs under it is on the same machine, with the
    same configuration of pip.
    """
    folders = os.get_exec_path()
    for python in (sys.executable, *(os.path.join(folder, "python3") for folder in folders)):
        with contextlib.suppress(OSError):
            if not subprocess.run([python, "-c", "import pip"], capture_output=True).returncode:
                return python
    return None


def _python(*arguments: str) -> str | None:
    python = _python_with_pip()
    if not python:
        return None
    got = subprocess.run([python, *arguments], capture_output=True, text=True)
    return got.stdout.strip() if got.returncode == 0 else None


def find(environ: Mapping[str, str] = os.environ) -> str:
    """Returns the URL of a simple index, without a trailing slash.

    AITER_ATTN_PYPI_INDEX wins, then pip's configuration, then pip's built-in default.
    Raises LocksError where none of them is to be had.
    """
    if environ.get(VARIABLE):
        return environ[VARIABLE].rstrip("/")
    configured = parse_pip_config(_python("-m", "pip", "config", "list") or "")
    url = configured or _python("-c", _PIP_DEFAULT)
    if not url:
        raise LocksError(
            f"neither {sys.executable} nor a python3 of PATH has a pip to ask for a package index; "
            f"set {VARIABLE} to a simple index's URL"
        )
    return url.rstrip("/")


def _read_links(place: str) -> list[File]:
    """Returns the files of a place of find-links: a folder, or a page."""
    folder = pathlib.Path(place.removeprefix("file://"))
    if folder.is_absolute() and folder.is_dir():
        return [File(path.name, path.as_uri(), "") for path in sorted(folder.iterdir())]
    return read(place, lambda pieces: parse_page(b"".join(pieces).decode(), place))


def read_added(distribution: str, environ: Mapping[str, str] = os.environ) -> list[File]:
    """Returns the files of the places that pip's configuration adds: find-links, extra-index-url.

    They serve what a machine adds, not what the lock names: only local versions ("1.0+cpu"), which
    public indexes do not take, are looked for in them. A place that cannot be read has none.
    AITER_ATTN_PYPI_INDEX stands for all of pip's configuration.
    """
    if environ.get(VARIABLE):
        return []
    output = _python("-m", "pip", "config", "list") or ""
    # Lists, one place a line or several.
    links, indexes = (
        (parse_pip_config(output, option) or "").replace(r"\n", " ").split()
        for option in ("find-links", "extra-index-url")
    )
    files = []
    for place in links:
        with contextlib.suppress(LocksError):
            files += _read_links(place)
    for url in indexes:
        with contextlib.suppress(LocksError):
            files += read_page(url.rstrip("/"), distribution)
    return files


def is_local(version: str) -> bool:
    """Tells whether a version, or the name of a file, is a local one."""
    return "+" in version


class _Anchors(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.hrefs: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.hrefs += [value for key, value in attrs if key == "href" and value]


def parse_page(text: str, page_url: str) -> list[File]:
    """Returns the files of an index page: HTML, or the JSON form of the same."""
    if text.lstrip().startswith("{"):
        return [
            File(
                entry["filename"],
                urllib.parse.urljoin(page_url, entry["url"]),
                entry.get("hashes", {}).get("sha256", ""),
            )
            for entry in json.loads(text)["files"]
        ]
    anchors = _Anchors()
    anchors.feed(text)
    files = []
    for href in anchors.hrefs:
        url, fragment = urllib.parse.urldefrag(urllib.parse.urljoin(page_url, href))
        filename = urllib.parse.unquote(urllib.parse.urlsplit(url).path.rsplit("/", 1)[-1])
        m = re.fullmatch(r"sha256=([0-9a-f]{64})", fragment)
        files.append(File(filename, url, m[1] if m else ""))
    return files


def project(distribution: str) -> str:
    """Returns what the index calls a distribution: "jax" for "jax@0.6", another version of it."""
    return distribution.partition("@")[0]


def page_url(index: str, distribution: str) -> str:
    """Returns the URL of a distribution's page, its name normalised as indexes do."""
    name = re.sub(r"[-_.]+", "-", distribution).lower()
    page = "index.html" if index.startswith("file:") else ""
    return f"{index}/{name}/{page}"


def read(url: str, take: Callable[[Iterator[bytes]], _T]) -> _T:
    """Returns what `take` makes of what `url` serves. Raises LocksError naming the URL."""
    try:
        return web.fetch(url, take)
    except (web.Trouble, ValueError, KeyError) as e:
        raise LocksError(
            f"{web.shown(url)}: {e}; check the name and the network, or set {VARIABLE}"
        ) from e


def read_page(index: str, distribution: str) -> list[File]:
    """Fetches and parses a distribution's page. Raises LocksError naming the URL."""
    url = page_url(index, distribution)
    return read(url, lambda pieces: parse_page(b"".join(pieces).decode(), url))
