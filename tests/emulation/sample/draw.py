# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Draws kernel instances from upstream's whole pool, or a variant set: another, made by chance.

Per kind of kernel, instances are taken one after the other: each time the one that shows the most
pairs of trait values that no instance before it has shown, and among equals the first of an order
that the seed shuffles. So a small sample has every value of every trait, and most pairs of them.

Standard library only: it runs while repositories are fetched, before anything is built.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import random
import sys
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernels.ck_fmha.ckgen.emission import RecordedPool, set_files
from kernels.ck_fmha.ckgen.schema import parse_variant_set
from kernels.ck_fmha.ckgen.selection import select_instances
from kernels.ck_fmha.generate import write_files

Row = Mapping[str, Any]

# standard is drawn from that variant set, and its objects are those of the set's build.
DRAWS = ("small", "large", "standard")
# The number that is drawn of each kind: in the small draw, in the large one, which has all of the
# small one, and of standard. dq_dk_dv and fwd are nearly all of upstream's instances. A new kind
# goes to the end: what is drawn of a kind depends on the kinds before it.
COUNTS = {
    "fwd": (16, 40, 84),
    "bwd_dq_dk_dv": (14, 40, 96),
    "bwd_dot_do_o": (1, 11, 14),
    "bwd_convert_dq": (3, 10, 20),
    "fwd_splitkv": (6, 16, 44),
    "fwd_splitkv_combine": (2, 10, 12),
    "fwd_pagedkv": (4, 8, 14),
    "fwd_appendkv": (4, 13, 16),
    "fwd_batch_prefill": (2, 8, 6),
}
# Traits of gfx950's further kernels, which are the same in all others.
_OF_ONE_ARCH = {"max_seqlen_k", "max_seqlen_q", "transposed_loads"}
_CANNOT_BE_PAIRED = {"head_size_qk", "head_size_v"}  # one follows from the other, nearly always


def by_kind(pool: RecordedPool, among: Container[str] | None = None) -> dict[str, list[Row]]:
    """The rows of all instances, or of those that are among some, in the order of their names; but
    those of fp8, whose numbers are not the harness's: //tests/emulation/wheel:fp8_test executes
    some; and those with transposed loads and for them, which one arch has:
    //tests/emulation:verify_core_gfx950 executes them."""
    drawn = [
        row
        for row in pool.rows.values()
        # Of the archs that the emulator has.
        if "gfx9" in row["targets"]
        and not row["traits"]["dtype"].startswith("fp8")
        and "gfx942" not in row.get("left_out", {})
        and (among is None or row["name"] in among)
    ]
    rows = sorted(drawn, key=lambda row: row["name"])
    return {kind: [row for row in rows if row["kind"] == kind] for kind in COUNTS}


def is_called(row: Row) -> bool:
    """Whether any call reaches an instance. Where heads are not padded they fill its tiles, also
    those of 128 that upstream has for heads of 96, and upstream's dispatcher asks for as much."""
    traits, tile = row["traits"], row["tile"]
    return not any(
        traits.get(f"pad_{size}") is False and traits[size] < tile[size]
        for size in ("head_size_qk", "head_size_v")
    )


def _pairs(row: Row) -> set[tuple[Any, ...]]:
    singles = sorted(each for each in row["traits"].items() if each[0] not in _OF_ONE_ARCH)
    pairs = {
        (a, b)
        for a, b in itertools.combinations(singles, 2)
        if not {a[0], b[0]} <= _CANNOT_BE_PAIRED
    }
    return pairs | {(single,) for single in singles}


def sample(rows: Sequence[Row], count: int, rng: random.Random) -> list[Row]:
    """`count` of the rows, as the module says, of those that are called."""
    shuffled = [row for row in rng.sample(rows, len(rows)) if is_called(row)]
    pairs = [_pairs(row) for row in shuffled]
    # The number of a row's new pairs only falls: the numbers here are the most that it can be.
    most = [(-len(of_row), place) for place, of_row in enumerate(pairs)]
    heapq.heapify(most)
    shown: set[tuple[Any, ...]] = set()
    chosen: list[Row] = []
    while len(chosen) < count:
        was, place = most[0]
        new = -len(pairs[place] - shown)
        if new != was:
            heapq.heapreplace(most, (new, place))
            continue
        heapq.heappop(most)
        chosen.append(shuffled[place])
        shown |= pairs[place]
    return chosen


def draw(rows: Mapping[str, Sequence[Row]], seed: int, which: str) -> list[Row]:
    """One of DRAWS, of the rows by_kind()."""
    rng, column = random.Random(seed), DRAWS.index(which)
    return [
        row for kind, counts in COUNTS.items() for row in sample(rows[kind], counts[column], rng)
    ]


def values_of(rows: Mapping[str, Sequence[Row]]) -> dict[str, dict[str, dict[str, int]]]:
    """Kind -> trait -> JSON of a value -> the number of instances."""
    found: dict[str, dict[str, dict[str, int]]] = {}
    for kind, of_kind in rows.items():
        counted: dict[str, Counter[str]] = {}
        for row in of_kind:
            for name, value in row["traits"].items():
                counted.setdefault(name, Counter())[json.dumps(value)] += 1
        found[kind] = {name: dict(sorted(values.items())) for name, values in counted.items()}
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pool", type=Path, required=True, help="pool.json of @ck_fmha")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--draw", choices=DRAWS, required=True)
    parser.add_argument("--standard", type=Path, required=True, help="standard.toml")
    parser.add_argument("--out", type=Path, required=True, help="the repository's folder")
    options = parser.parse_args()
    pool = RecordedPool(options.pool.read_text("utf-8"))
    among = None
    if options.draw == "standard":
        text = options.standard.read_text("utf-8")
        variant_set = parse_variant_set(text, options.standard.name, pool.known_values)
        among = dict.fromkeys(select_instances(variant_set, pool.candidates))
    rows = by_kind(pool, among)
    chosen = [row["name"] for row in draw(rows, options.seed, options.draw)]
    launches = options.pool.parent / "launch"
    files = set_files(
        pool,
        chosen,
        lambda name: (launches / f"{name}.inc").read_text("utf-8"),
        beside=among or (),
    )
    files["drawn_from/values.json"] = json.dumps(values_of(rows), indent=1) + "\n"
    files["drawn_from/BUILD.bazel"] = (
        '# Generated. Do not edit.\nexports_files(["values.json"], '
        'visibility = ["//visibility:public"])\n'
    )
    files["drawn.bzl"] = (
        f'"""Generated. Do not edit."""\n\nDRAW = "{options.draw}"\nSEED = "{options.seed}"\n'
    )
    write_files(files, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
