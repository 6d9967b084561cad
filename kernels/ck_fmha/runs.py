# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Programs that go over many kernels for hours: each run does a part of it, within a time."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path


class Trouble(Exception):
    """An obstacle, for the user."""


def shard(names: Sequence[str], text: str) -> list[str]:
    """The part I/N of some names. Raises Trouble for a text that is none."""
    part, _, parts = text.partition("/")
    if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
        raise Trouble(f"--shard={text}: not a part; allowed: I/N with I from 1 to N, like 2/7")
    return list(names[int(part) - 1 :: int(parts)])


class Budget:
    """The minutes that a run has; None: no end. Raises Trouble for no time."""

    def __init__(self, minutes: float | None):
        if minutes is not None and minutes <= 0:
            raise Trouble(f"--budget={minutes:g}: no time; allowed: minutes above 0")
        self._end = None if minutes is None else time.monotonic() + 60 * minutes

    def in_time(self) -> bool:
        return self._end is None or time.monotonic() < self._end


def checkout(program: str) -> Path:
    """The checkout that Bazel runs a program in. Raises Trouble where it does not."""
    root = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    if not root:
        raise Trouble(f"run it through Bazel: ./bazelw run {program}")
    return Path(root)
