# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Processor time of calls that take microseconds, beside that of others, as a table."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

__all__ = ["Call", "least", "table"]

Call = Callable[[], Any]


def _microseconds(call: Call, calls: int, finish: Callable[[Any], object]) -> float:
    before = time.process_time()
    for _ in range(calls):
        result = call()
    finish(result)
    return (time.process_time() - before) / calls * 1e6


def least(
    calls: list[Call],
    runs: int = 15,
    repeats: int = 2000,
    finish: Callable[[Any], object] = lambda result: None,
) -> list[float]:
    """The times of each call, taken in turn, so that other load of the machine sways all alike.
    finish waits for a result that is on its way."""
    times = [[_microseconds(call, repeats, finish) for call in calls] for _ in range(runs)]
    return [min(column) for column in zip(*times, strict=True)]


def table(rows: list[tuple[str, str, float, float]]) -> str:
    """rows: a call, its peer, microseconds of both."""
    lines = [f"{'call':<32}{'us':>8}   {'beside':<38}{'us':>8}{'ratio':>8}{'more':>8}"]
    for name, beside, ours, theirs in rows:
        lines.append(
            f"{name:<32}{ours:>8.1f}   {beside:<38}{theirs:>8.1f}{ours / theirs:>8.1f}"
            f"{ours - theirs:>8.1f}"
        )
    return "\n".join(lines)
