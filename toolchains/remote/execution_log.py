# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Reads the file of Bazel's --execution_log_json_file: one JSON object per spawn."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


@dataclasses.dataclass(frozen=True)
class Spawn:
    """One command of a build. `action` is the hash by which caches know it, "" if they do not.

    `outputs` are paths and the hashes of what is there; `cached`: no command ran here; `runner`:
    the strategy that ran it; `properties`: of its platform.
    """

    mnemonic: str
    label: str
    action: str
    outputs: tuple[tuple[str, str], ...]
    cached: bool
    runner: str = ""
    properties: tuple[tuple[str, str], ...] = ()


def entries(log: Path) -> Iterator[dict[str, Any]]:
    """Yields the JSON objects of a log's spawns, in the order in which they ended.

    Raises OSError or ValueError for what is not one.
    """
    decoder, text, at = json.JSONDecoder(), log.read_text(encoding="utf-8"), 0
    while at < len(text):
        entry, at = decoder.raw_decode(text, at)
        yield entry
        while at < len(text) and text[at].isspace():
            at += 1


def read(log: Path) -> list[Spawn]:
    """Returns the spawns of a log. Raises OSError or ValueError for what is not one."""
    return [
        Spawn(
            mnemonic=entry["mnemonic"],
            label=entry.get("targetLabel", ""),
            action=entry.get("digest", {}).get("hash", ""),
            outputs=tuple(
                (output["path"], output.get("digest", {}).get("hash", ""))
                for output in entry.get("actualOutputs", [])
            ),
            cached=bool(entry.get("cacheHit")),
            runner=entry.get("runner", ""),
            properties=tuple(
                (property["name"], property["value"])
                for property in entry.get("platform", {}).get("properties", [])
            ),
        )
        for entry in entries(log)
    ]
