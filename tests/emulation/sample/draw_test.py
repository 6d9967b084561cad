# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The draw, from the pool as upstream's generator gives it."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Iterable
from pathlib import Path

import pytest

from kernels.ck_fmha.ckgen.emission import RecordedPool
from kernels.ck_fmha.ckgen.schema import parse_variant_set
from kernels.ck_fmha.ckgen.selection import select_instances
from tests.emulation.sample.draw import (
    COUNTS,
    DRAWS,
    Row,
    by_kind,
    draw,
    is_called,
    sample,
    values_of,
)


@pytest.fixture(scope="module")
def pool() -> RecordedPool:
    return RecordedPool(Path(os.environ["POOL"]).read_text("utf-8"))


@pytest.fixture(scope="module")
def large(pool: RecordedPool) -> list[Row]:
    return draw(by_kind(pool), 7, "large")


@pytest.fixture(scope="module")
def standard(pool: RecordedPool) -> dict[str, list[Row]]:
    text = Path(os.environ["STANDARD"]).read_text("utf-8")
    variant_set = parse_variant_set(text, "standard", pool.known_values)
    return by_kind(pool, set(select_instances(variant_set, pool.candidates)))


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
    small = COUNTS[kind][DRAWS.index("small")]
    drawn = sample(rows, small, random.Random(seed))
    assert len({row["name"] for row in drawn}) == small
    assert _values(drawn) == _values(rows)


def test_what_no_call_reaches_is_not_drawn(pool: RecordedPool) -> None:
    never = [row for row in pool.rows.values() if not is_called(row)]
    assert {(row["kind"], row["traits"]["head_size_qk"]) for row in never} == {
        ("fwd", 96), ("fwd", 192), ("fwd_splitkv", 96),
    }  # fmt: skip
    assert not any(row["traits"]["pad_head_size_v"] for row in never)
    assert all(is_called(row) for row in sample(never + by_kind(pool)["fwd"], 40, random.Random(7)))


def test_the_seed_decides(pool: RecordedPool) -> None:
    rows = by_kind(pool)["fwd"]
    first, again, other = (sample(rows, 5, random.Random(seed)) for seed in (7, 7, 8))
    assert first == again != other


@pytest.mark.parametrize("which", DRAWS)
def test_every_kind_is_drawn(
    pool: RecordedPool, standard: dict[str, list[Row]], which: str
) -> None:
    # The emulator executes all of the third version of forward (verify_transposed_gfx950_test).
    assert {row["kind"] for row in pool.rows.values()} - {"fwd_v3"} == COUNTS.keys()
    rows = standard if which == "standard" else by_kind(pool)
    drawn = [row["kind"] for row in draw(rows, 1, which)]
    of_draw = {kind: counts[DRAWS.index(which)] for kind, counts in COUNTS.items()}
    assert {kind: drawn.count(kind) for kind in COUNTS} == of_draw


def test_the_large_draw_has_all_of_the_small_one(pool: RecordedPool, large: list[Row]) -> None:
    """Objects compiled and executed for one are there for the other."""
    small = draw(by_kind(pool), 7, "small")
    assert {row["name"] for row in small} < {row["name"] for row in large}


def test_the_large_draw_is_large_for_every_architecture(large: list[Row]) -> None:
    for arch in os.environ["ARCHS"].split():
        assert sum(arch not in row.get("left_out", {}) for row in large) >= 120, arch


def test_300_kernels_of_standard_show_every_value_of_every_trait_that_it_has(
    standard: dict[str, list[Row]],
) -> None:
    drawn = draw(standard, 20261120, "standard")
    assert len({row["name"] for row in drawn}) == len(drawn) >= 300
    executed = {kind: [row for row in drawn if row["kind"] == kind] for kind in standard}
    of, found = values_of(standard), values_of(executed)
    assert {k: {t: set(v) for t, v in traits.items()} for k, traits in of.items()} == {
        k: {t: set(v) for t, v in traits.items()} for k, traits in found.items()
    }
    assert of["fwd_pagedkv"]["skip_min_seqlen_q"] == {"false": 24, "true": 24}


def _pairs_shown(rows: Iterable[Row], of: Iterable[Row]) -> float:
    """The share of all pairs of trait values that these rows have."""

    def pairs(rows: Iterable[Row]) -> set[object]:
        return {p for row in rows for p in itertools.combinations(sorted(row["traits"].items()), 2)}

    return len(pairs(rows)) / len(pairs(of))


def test_the_large_draw_has_nearly_all_pairs(pool: RecordedPool, large: list[Row]) -> None:
    for kind, of in by_kind(pool).items():
        assert _pairs_shown([row for row in large if row["kind"] == kind], of) > 0.97, kind
