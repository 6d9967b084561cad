# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Package indexes: their pages, from the list of releases.

    SETTINGS/simple/index.html              the distributions of one variant set and its archs
    SETTINGS/simple/DISTRIBUTION/index.html its wheels, with hashes (PEP 503)
    slim.SETTINGS/simple/...                the same with the slim wheel

Beside each index.html is index.v1+json with the same facts (PEP 691), for a server that looks at
what a client accepts. An index has one file of a name: that of the newest commit.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping
from typing import Any

from packaging.utils import parse_wheel_filename

from python.release.artefacts import File

# Kinds of files -> the beginning of the name of the indexes that have them.
_COMMON = ("kernels_wheel", "pure_wheel")
_INDEXES = {"": ("wheel", *_COMMON), "slim.": ("slim_wheel", *_COMMON)}
_KINDS = frozenset(kind for kinds in _INDEXES.values() for kind in kinds)
# Settings that most builds have: an index is not named after them.
_USUAL = {"namespace": "aiter", "on_demand": "none", "patches": "default"}
_API = "1.0"
# From a distribution's page to the folder that releases are in.
_UP = "../../../"


def wheels(files: Iterable[File]) -> list[dict[str, Any]]:
    """The facts of a release's wheels that pages have."""
    return [
        {
            "kind": file.kind,
            "name": file.name,
            "path": file.path,
            "requires_python": file.about["requires_python"],
            "sha256": file.sha256,
            "size": file.size,
        }
        for file in sorted(files, key=lambda file: (file.kind, file.name))
        if file.kind in _KINDS
    ]


def folder(settings: Mapping[str, Any]) -> str:
    """The name of the index of builds with these settings: "core.gfx942.gfx950"."""
    # Releases of before a setting have none of it.
    chosen = {name: settings.get(name, usual) for name, usual in _USUAL.items()}
    unusual = [f"{name}-{value}" for name, value in chosen.items() if value != _USUAL[name]]
    return ".".join([settings["variant_set"], *settings["archs"], *unusual])


def pages(releases: Iterable[Mapping[str, Any]]) -> dict[str, bytes]:
    """Path -> contents of the pages of all indexes. `releases`: entries, the oldest first."""
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for release in releases:
        for start, kinds in _INDEXES.items():
            index = found.setdefault(start + folder(release["settings"]), {})
            index.update((w["name"], w) for w in release["wheels"] if w["kind"] in kinds)
    made: dict[str, bytes] = {}
    for name, files in found.items():
        made |= _index(f"{name}/simple", list(files.values()))
    return made


def _index(root: str, files: list[Mapping[str, Any]]) -> dict[str, bytes]:
    by_distribution: dict[str, list[Mapping[str, Any]]] = {}
    for file in sorted(files, key=lambda file: file["name"]):
        by_distribution.setdefault(parse_wheel_filename(file["name"])[0], []).append(file)
    made = _page(
        root,
        "distributions",
        [f'<a href="{name}/">{name}</a>' for name in sorted(by_distribution)],
        {"projects": [{"name": name} for name in sorted(by_distribution)]},
    )
    for name, its in by_distribution.items():
        made |= _page(
            f"{root}/{name}",
            name,
            [_link(file) for file in its],
            {
                "name": name,
                "files": [
                    {
                        "filename": file["name"],
                        "hashes": {"sha256": file["sha256"]},
                        "requires-python": file["requires_python"],
                        "size": file["size"],
                        "url": _UP + file["path"],
                    }
                    for file in its
                ],
            },
        )
    return made


def _link(file: Mapping[str, Any]) -> str:
    url = html.escape(f"{_UP}{file['path']}#sha256={file['sha256']}")
    python = html.escape(file["requires_python"])
    return f'<a href="{url}" data-requires-python="{python}">{html.escape(file["name"])}</a>'


def _page(
    path: str, title: str, links: Iterable[str], facts: Mapping[str, Any]
) -> dict[str, bytes]:
    lines = [
        "<!DOCTYPE html>",
        f'<meta name="pypi:repository-version" content="{_API}">',
        f"<title>{html.escape(title)}</title>",
        *(f"{link}<br>" for link in links),
        "",
    ]
    data = {"meta": {"api-version": _API}, **facts}
    return {
        f"{path}/index.html": "\n".join(lines).encode(),
        f"{path}/index.v1+json": (json.dumps(data, indent=1, sort_keys=True) + "\n").encode(),
    }
