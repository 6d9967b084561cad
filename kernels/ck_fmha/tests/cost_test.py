# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The estimate of compile cost: its model on made-up figures, and the figures against core's."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kernels.ck_fmha.ckgen.emission import RecordedPool
from kernels.ck_fmha.groups.cost import FIGURES, CostModel
from kernels.matrix.counts import rows_of_set

TEXT = """
object = 1
[fwd]
alone = 10
sibling = 4
head_sizes = { 256 = 2.0, 64 = 1.0 }
[small]
alone = 3
sibling = 1
head_sizes = { 256 = 1.0 }
"""


def row(kind: str, head_size_qk: int, head_size_v: int) -> dict[str, Any]:
    return {
        "kind": kind,
        "traits": {"head_size_qk": head_size_qk, "head_size_v": head_size_v},
    }


ROWS = {
    "a": row("fwd", 64, 64),
    "b": row("fwd", 32, 64),
    "c": row("fwd", 64, 128),
    "d": row("small", 256, 256),
}
GROUPS = [["p:a", "p:b"], ["p:c", "q:d"]]


def test_alone() -> None:
    model = CostModel(TEXT, ROWS)
    assert [model.alone(row) for row in ROWS.values()] == [11, 11, 21, 4]
    estimate = model.estimate(["a", "c", "d"], [])
    assert (estimate.seconds, estimate.alone, estimate.grouped) == (36, 36, 0)


def test_a_group_is_compiled_as_a_whole() -> None:
    groups = [["p:a", "p:b", "p:e"]]
    estimate = CostModel(TEXT, {**ROWS, "e": ROWS["a"]}).estimate(["a", "b"], groups)
    # The third is compiled, and no object made of it.
    assert estimate.seconds == 10 + 4 + 4 + 2 * 1
    assert estimate.alone == 22
    assert (estimate.grouped, estimate.groups, estimate.others) == (2, 1, 1)


def test_a_group_that_costs_more_than_its_wanted_members_is_left_out() -> None:
    estimate = CostModel(TEXT, ROWS).estimate(["a", "c"], GROUPS)
    assert (estimate.seconds, estimate.alone) == (32, 32)
    assert (estimate.grouped, estimate.groups, estimate.others) == (0, 0, 0)


def test_the_costliest_of_a_group_is_its_first() -> None:
    estimate = CostModel(TEXT, ROWS).estimate(["d", "c"], GROUPS)
    assert estimate.seconds == 2 * 10 + 1 + 2
    assert (estimate.grouped, estimate.groups, estimate.others) == (2, 1, 0)


@pytest.fixture(scope="module")
def pool() -> RecordedPool:
    return RecordedPool(Path(os.environ["POOL"]).read_text("utf-8"))


def test_there_are_figures_for_every_instance(pool: RecordedPool) -> None:
    model = CostModel(FIGURES.read_text("utf-8"), pool.rows)
    assert min(map(model.alone, pool.rows.values())) > 1


def test_core_takes_what_it_was_measured_to_take(pool: RecordedPool) -> None:
    """222.4 s of the older sources, of which 1.2.0 takes .95, and 9 of descriptions:
    docs/performance.md."""
    listed = rows_of_set(pool, Path(os.environ["README"]).parent / "core.toml")
    core = [each for each in listed if "gfx942" not in each.get("left_out", {})]
    model = CostModel(FIGURES.read_text("utf-8"), pool.rows)
    estimate = model.estimate([each["name"] for each in core], pool.groups.values())
    assert estimate.seconds == pytest.approx(0.95 * 222.4 + 9, rel=0.05)
    assert (estimate.grouped, estimate.others) == (48, 0)
