# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Documents beside the published files: a release's own, its page for pip, the list of all.

    files/SHA256/NAME              every file but code objects, by the digest of its bytes
    files/SHA256/NAME.sha256       the digest of a prebuilt, beside it
    cas/SHA256                     a code object, where AITER_ATTN_STORE asks for it
    releases/KEY/release.json      one release; KEY is the sha256 of this document
    releases/KEY/index.html        its wheels, for `pip install --find-links`
    index.json                     all releases

All but index.json, and the package indexes that are made of it (simple.py), never change once they
are there.
"""

from __future__ import annotations

import dataclasses
import hashlib
import html
import json
from collections.abc import Mapping
from typing import Any

from python.release import simple
from python.release.artefacts import Artefacts, File
from python.release.checkout import Commit
from python.release.errors import ReleaseError

FORMAT = 1
INDEX = "index.json"
_PROVENANCE = "provenance"


@dataclasses.dataclass(frozen=True)
class Release:
    """One release as it is published."""

    files: tuple[File, ...]
    document: bytes
    page: bytes
    entry: Mapping[str, Any]

    @property
    def folder(self) -> str:
        return f"releases/{self.entry['key']}"


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()


def release(artefacts: Artefacts, commit: Commit, files: tuple[File, ...]) -> Release:
    """Makes the documents of a release of `files`: those of artefacts, and the documents about
    them."""
    about = {
        "commit": commit.sha,
        "modified": bool(commit.modified),
        "settings": artefacts.settings,
        "time": commit.date().isoformat(),
        "version": artefacts.version,
    }
    listed = [
        {"kind": f.kind, "name": f.name, "path": f.path, "sha256": f.sha256, "size": f.size}
        | f.about
        for f in sorted(files, key=lambda f: (f.kind, f.name))
    ]
    document = _json({"format": FORMAT, **about, "files": listed})
    # The builder, who may be another the next time, is in the provenance alone.
    built = [[f["name"], f["sha256"]] for f in listed if f["kind"] != _PROVENANCE]
    entry = {
        **about,
        "contents": hashlib.sha256(_json(built)).hexdigest(),
        "key": hashlib.sha256(document).hexdigest(),
        "wheels": simple.wheels(files),
    }
    return Release(files, document, _page(artefacts.version, files), entry)


def _page(version: str, files: tuple[File, ...]) -> bytes:
    links = [
        f'<a href="../../{html.escape(f.path)}#sha256={f.sha256}">{html.escape(f.name)}</a><br>'
        for f in sorted(files, key=lambda f: f.name)
        if f.kind in ("wheel", "pure_wheel")
    ]
    title = f"aiter-attn {html.escape(version)}"
    return "\n".join(["<!DOCTYPE html>", f"<title>{title}</title>", *links, ""]).encode()


def with_entry(index: bytes | None, entry: Mapping[str, Any], where: str) -> bytes:
    """The index with one more entry; the same bytes if it has that already.

    Raises ReleaseError where the index is not one, or where the same commit with the same settings
    is there with other contents.
    """
    entries = _entries(index, where) if index is not None else []
    for other in entries:
        same = all(other[key] == entry[key] for key in ("commit", "settings"))
        if same and not (other["modified"] or entry["modified"]):
            _check_contents(other, entry, where)
    merged = {other["key"]: other for other in entries} | {entry["key"]: dict(entry)}
    ordered = sorted(merged.values(), key=lambda e: (e["time"], e["version"], e["key"]))
    return _json({"format": FORMAT, "releases": ordered})


def pages(index: bytes) -> dict[str, bytes]:
    """Path -> contents of the pages of the package indexes, of an index as with_entry makes it."""
    return simple.pages(json.loads(index)["releases"])


def _check_contents(other: Mapping[str, Any], entry: Mapping[str, Any], where: str) -> None:
    if other["contents"] != entry["contents"]:
        raise ReleaseError(
            f"{where} has commit {entry['commit'][:12]} with these settings already, with other "
            f"bytes: releases/{other['key']}/release.json. One of the two was built with what is "
            "not in the checkout; compare them before you publish"
        )


def _entries(index: bytes, where: str) -> list[dict[str, Any]]:
    keys = {"commit", "contents", "key", "modified", "settings", "time", "version", "wheels"}
    try:
        data = json.loads(index)
        if data["format"] != FORMAT:
            raise ReleaseError(
                f"{where} has format {data['format']!r}, this program knows {FORMAT}; use the "
                "program of a newer checkout"
            )
        entries = list(data["releases"])
        if not all(keys <= set(entry) for entry in entries):
            raise ValueError("an entry lacks a field")
    except (ValueError, KeyError, TypeError) as error:
        start = index[:60].decode(errors="replace")
        raise ReleaseError(
            f"{where} is no index of releases: it starts with {start!r}. Is this the right place? "
            "Nothing was written over it"
        ) from error
    return entries
