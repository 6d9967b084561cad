# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Draws kernel instances from upstream's whole pool: a variant set that nobody wrote.

Per kind of kernel, instances are taken one after the other: each time the one that shows the most
pairs of trait values that no instance before it has shown, and among equals the first of an order
that the seed shuffles. So a small sample has every value of every trait, and most pairs of them.

Standard library only: it runs while repositories are fetched, before anything is built.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kernels.ck_fmha.ckgen.emission import RecordedPool, set_files
from kernels.ck_fmha.generate import write_files

Row = Mapping[str, Any]

# How many of each kind are drawn. dq_dk_dv and fwd are nearly all of what upstream has.
COUNTS = {
    "fwd": 16,
    "bwd_dq_dk_dv": 14,
    "bwd_dot_do_o": 1,
    "bwd_convert_dq": 3,
    "fwd_splitkv": 6,
    "fwd_splitkv_combine": 2,
    "fwd_pagedkv": 4,
    "fwd_appendkv": 4,
    "fwd_batch_prefill": 2,
}
_CANNOT_BE_PAIRED = {"head_size_qk", "head_size_v"}  # one follows from the other, nearly always


def by_kind(pool: RecordedPool) -> dict[str, list[Row]]:
    """Every instance's row, in the order of their names."""
    rows = sorted(pool.rows.values(), key=lambda row: row["name"])
    return {kind: [row for row in rows if row["kind"] == kind] for kind in COUNTS}


def _pairs(row: Row) -> set[tuple[Any, ...]]:
    singles = sorted(row["traits"].items())
    pairs = {
        (a, b)
        for a, b in itertools.combinations(singles, 2)
        if not {a[0], b[0]} <= _CANNOT_BE_PAIRED
    }
    return pairs | {(single,) for single in singles}


def sample(rows: Sequence[Row], count: int, rng: random.Random) -> list[Row]:
    """`count` of the rows, as the module says."""
    left = {row["name"]: (row, _pairs(row)) for row in rng.sample(rows, len(rows))}
    shown: set[tuple[Any, ...]] = set()
    chosen = []
    for _ in range(count):
        row, pairs = max(left.values(), key=lambda entry: len(entry[1] - shown))
        del left[row["name"]]
        chosen.append(row)
        shown |= pairs
    return chosen


def draw(pool: RecordedPool, seed: int) -> list[Row]:
    rng, rows = random.Random(seed), by_kind(pool)
    return [row for kind, count in COUNTS.items() for row in sample(rows[kind], count, rng)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pool", type=Path, required=True, help="pool.json of @ck_fmha")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True, help="the repository's folder")
    options = parser.parse_args()
    pool = RecordedPool(options.pool.read_text("utf-8"))
    chosen = [row["name"] for row in draw(pool, options.seed)]
    launches = options.pool.parent / "launch"
    files = set_files(pool, chosen, lambda name: (launches / f"{name}.inc").read_text("utf-8"))
    files["seed.bzl"] = f'"""Generated. Do not edit."""\n\nSEED = {options.seed}\n'
    write_files(files, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
