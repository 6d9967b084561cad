# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The draw, from the pool as upstream's generator gives it."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from pathlib import Path

import pytest

from kernels.ck_fmha.ckgen.emission import RecordedPool
from tests.emulation.sample.draw import COUNTS, Row, by_kind, draw, sample


@pytest.fixture(scope="module")
def pool() -> RecordedPool:
    return RecordedPool(Path(os.environ["POOL"]).read_text("utf-8"))


def _values(rows: Iterable[Row]) -> dict[str, set[object]]:
    out: dict[str, set[object]] = {}
    for row in rows:
        for name, value in row["traits"].items():
            out.setdefault(name, set()).add(value)
    return out


@pytest.mark.parametrize("kind", ["fwd", "bwd_dq_dk_dv"])
@pytest.mark.parametrize("seed", [1, 20261120])
def test_every_value_of_every_trait_is_drawn(pool: RecordedPool, kind: str, seed: int) -> None:
    rows = by_kind(pool)[kind]
    drawn = sample(rows, COUNTS[kind], random.Random(seed))
    assert len({row["name"] for row in drawn}) == COUNTS[kind]
    assert _values(drawn) == _values(rows)


def test_the_seed_decides(pool: RecordedPool) -> None:
    rows = by_kind(pool)["fwd"]
    first, again, other = (sample(rows, 5, random.Random(seed)) for seed in (7, 7, 8))
    assert first == again != other


def test_every_kind_is_drawn(pool: RecordedPool) -> None:
    assert {row["kind"] for row in pool.rows.values()} == COUNTS.keys()
    drawn = [row["kind"] for row in draw(pool, 1)]
    assert {kind: drawn.count(kind) for kind in COUNTS} == COUNTS
