# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Runs a property until it has made as many calls as were asked for, and counts them.

HOSTILE_CALLS is how many calls each of the test's parts makes, HOSTILE_PARTS how many parts there
are. Every part has its own seed, so a run of the same tree draws the same examples.
"""

from __future__ import annotations

import collections
import os
import tempfile
from typing import Any, Protocol

import hypothesis
import pytest
from hypothesis import configuration
from hypothesis import strategies as st

# The memory of hypothesis beside its examples, which are not kept.
configuration.set_hypothesis_home_dir(os.environ.get("TEST_TMPDIR", tempfile.gettempdir()))

_EXAMPLES_AT_ONCE = 400

Counts = collections.Counter[str]


class Property(Protocol):
    __name__: str

    def __call__(self, example: Any, counts: Counts, /) -> None: ...


def parts() -> Any:
    """Parametrizes a test by `part`."""
    return pytest.mark.parametrize("part", range(int(os.environ.get("HOSTILE_PARTS", "1"))))


def explore(
    check: Property, strategy: st.SearchStrategy[Any], part: int, capsys: Any, share: float = 1.0
) -> Counts:
    """Has `check` judge examples; it counts its calls by kind. Returns the counts.

    Raises AssertionError, with the least example found, where one is not as it should be.
    share: of HOSTILE_CALLS.
    """
    wanted = int(int(os.environ.get("HOSTILE_CALLS", "300")) * share)
    counts: Counts = collections.Counter()

    def judge(example: Any) -> None:
        check(example, counts)

    judge.__name__ = judge.__qualname__ = check.__name__
    seed = part << 16
    while counts.total() < wanted:
        # About as many as are missing; an example makes several calls.
        examples = max(10, min(_EXAMPLES_AT_ONCE, (wanted - counts.total()) // 4))
        settings = hypothesis.settings(
            database=None,
            deadline=None,
            max_examples=examples,
            phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
            suppress_health_check=list(hypothesis.HealthCheck),
            print_blob=False,
        )
        hypothesis.seed(seed)(settings(hypothesis.given(strategy)(judge)))()
        seed += 1
    with capsys.disabled():
        print(f"\n{check.__name__.strip('_')}, part {part}: {counts.total()} calls")
        for kind, count in sorted(counts.items()):
            print(f"  {count:8d} {kind}")
    assert counts.total() >= wanted
    return counts
