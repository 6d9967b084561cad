# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Which kernels are shown, in which order, which are the worst, and which are drawn."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from kernels.archs.archs import read_archs
from kernels.ck_fmha.ckgen.emission import RecordedPool
from kernels.resources.figures import Figures
from kernels.resources.measured import Measured
from kernels.resources.report import (
    ALL,
    Condition,
    ReportError,
    arranged,
    as_csv,
    as_text,
    concerns_as_text,
    drawn,
    known_columns,
    records,
    worst,
    worst_as_text,
)

_POOL = RecordedPool(Path(os.environ["POOL"]).read_text("utf-8"))
_UNITS = {name: arch.compute_unit for name, arch in read_archs(os.environ["ARCHS"]).items()}
_OWN = {
    row["name"]: row
    for path in os.environ["OWN_ROWS"].split()
    for row in json.loads(Path(path).read_bytes())
}
_KERNEL = {
    "agpr_count": 0,
    "lds_size": 0,
    "max_workgroup_size": 256,
    "scratch_size": 0,
    "sgpr_count": 40,
    "sgpr_spill_count": 0,
    "vgpr_count": 64,
    "vgpr_spill_count": 0,
    "wavefront_size": 64,
}
_NAMES = [name for name, row in _POOL.rows.items() if row["kind"] == "fwd"][:4]


def _measured(
    name: str, *, loop_scratch: int = 0, cycles: int | None = 700, **kernel: int
) -> Measured:
    figures = Figures(900, loop_scratch, 0, 0, 400, 10, 2, cycles)
    return Measured(name, "gfx942", (), {**_KERNEL, **kernel}, figures)


def _records(*measured: Measured) -> list[dict[str, Any]]:
    return records(measured, {**_POOL.rows, **_OWN}, _UNITS)


def _names(of: list[Any]) -> list[str]:
    return [record["instance"] for record in of]


def test_a_record_has_traits_and_resources_of_kernels_of_all_kinds() -> None:
    forward, own = _records(_measured(_NAMES[0], vgpr_count=130), _measured("attn_sum_heads_fp16"))
    if forward["kind"] != "fwd":
        forward, own = own, forward
    assert set(forward) == set(own) == set(ALL)
    assert (forward["direction"], forward["vgpr"], forward["waves"]) == ("fwd", 130, 3)
    assert forward["head_size_qk"] == _POOL.rows[_NAMES[0]]["traits"]["head_size_qk"]
    assert (own["direction"], own["dtype"], own["mask"]) == (None, "fp16", None)
    assert (forward["provider"], own["provider"]) == ("ck", "own")


def test_the_worst_are_ordered_by_the_stated_measure() -> None:
    lds, scratch, spills, alone = _NAMES
    of = _records(
        _measured(alone, vgpr_count=300),
        _measured(spills, vgpr_count=256, vgpr_spill_count=90),
        _measured(scratch, vgpr_count=256, vgpr_spill_count=1, loop_scratch=5),
        _measured(lds, lds_size=65537),
        _measured("attn_sum_heads_fp16"),
    )
    found = worst(of)
    assert _names(found) == [lds, scratch, spills, alone]
    assert [record["concerns"] for record in found] == [
        ["no workgroup fits"],
        ["scratch in loops", "spills"],
        ["spills"],
        ["one wave"],
    ]
    assert concerns_as_text(found[1]) == "scratch in loops 5; spills 1 vector, 0 scalar"
    text = worst_as_text(of, 2)
    assert text.startswith("Of 5 kernels: no workgroup fits 1, scratch in loops 1, spills 2, one ")
    assert "  2. " in text
    assert "  3. " not in text


def test_a_figure_that_nothing_tells_is_no_concern() -> None:
    kernel = {**_KERNEL, "vgpr_count": 300, "vgpr_spill_count": None, "sgpr_spill_count": None}
    described = Measured(_NAMES[0], "gfx942", (), kernel, Figures())
    of = _records(described, _measured(_NAMES[1], vgpr_count=300, vgpr_spill_count=1))
    assert [(record["instance"], record["concerns"]) for record in worst(of)] == [
        (_NAMES[1], ["spills", "one wave"]),
        (_NAMES[0], ["one wave"]),
    ]


def test_accesses_to_scratch_count_before_spills_and_cycles_break_a_tie() -> None:
    few, many, slow, quick = _NAMES
    of = _records(
        _measured(few, loop_scratch=2, vgpr_spill_count=200),
        _measured(many, loop_scratch=3, vgpr_spill_count=1),
        _measured(slow, vgpr_count=300, cycles=900),
        _measured(quick, vgpr_count=300, cycles=None),
    )
    assert _names(worst(of)) == [many, few, slow, quick]


def test_sorting_by_columns_with_what_is_not_known_last() -> None:
    a, b, c = sorted(_NAMES[:3])
    of = _records(_measured(a, cycles=None), _measured(b, cycles=5), _measured(c, cycles=50))
    assert _names(arranged(of, ["cycles"])) == [b, c, a]
    assert _names(arranged(of, ["-cycles"])) == [c, b, a]
    assert _names(arranged(of, ["vgpr", "-instance"])) == [c, b, a]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("vgpr>64", [1]),
        ("vgpr>=64", [0, 1]),
        ("vgpr!=64", [1]),
        ("cycles<1000", [0]),
        ("kind=fwd", [0, 1]),
        ("concerns=one wave", [1]),
        ("concerns!=one wave", [0]),
    ],
)
def test_conditions(text: str, wanted: list[int]) -> None:
    names = sorted(_NAMES[:2])
    of = _records(_measured(names[0]), _measured(names[1], vgpr_count=300, cycles=None))
    assert _names(Condition.parse(text).choose(of)) == [names[i] for i in wanted]


def test_flags_are_compared_as_json_has_them() -> None:
    masked = next(n for n, r in _POOL.rows.items() if r["traits"].get("mask") is True)
    plain = next(n for n, r in _POOL.rows.items() if r["traits"].get("mask") is False)
    of = _records(_measured(masked), _measured(plain))
    assert _names(Condition.parse("mask=true").choose(of)) == [masked]
    assert _names(Condition.parse("mask!=true").choose(of)) == [plain]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("vgpr", "--where=vgpr: write COLUMN, one of <= >= != = < >, and a value, like dtype=fp16"),
        (
            "vgrp>3",
            "--where: unknown column 'vgrp'; known: instance, arch, provider, direction, kind",
        ),
        ("vgpr>many", "--where=vgpr>many: vgpr is a number, 'many' is none"),
        ("dtype>fp16", "--where=dtype>fp16: dtype is no number; compare it with = or !="),
    ],
)
def test_conditions_that_mean_nothing(text: str, words: str) -> None:
    with pytest.raises(ReportError) as refused:
        Condition.parse(text)
    assert words in str(refused.value)


def test_a_word_that_no_kernel_has_is_an_error_with_those_that_there_are() -> None:
    of = _records(_measured(_NAMES[0]))
    dtype = of[0]["dtype"]
    with pytest.raises(ReportError, match=f"no kernel has dtype 'fp61'; there are: {dtype}"):
        Condition.parse("dtype=fp61").choose(of)


def test_columns_that_are_none() -> None:
    with pytest.raises(ReportError, match="--sort: unknown column 'cycle'; known: instance, arch"):
        known_columns(["vgpr", "cycle"], "sort")
    with pytest.raises(ReportError, match="--columns: name at least one column; known: instance"):
        known_columns([], "columns")


def test_csv_and_text_have_the_same_numbers() -> None:
    of = _records(_measured(_NAMES[0], cycles=None, vgpr_count=300))
    (row,) = csv.DictReader(io.StringIO(as_csv(of, ALL)))
    assert list(row) == list(ALL)
    assert (row["instance"], row["vgpr"], row["cycles"]) == (_NAMES[0], "300", "")
    assert row["concerns"] == "one wave"
    assert as_text(of, ["vgpr", "cycles", "mask"]).splitlines()[1].split()[-3:] == [
        "300",
        "-",
        json.dumps(of[0]["mask"]),
    ]


def test_a_draw_takes_each_shape_before_a_second_of_one() -> None:
    rows = list(_POOL.rows.values())

    def shape(row: Any) -> tuple[Any, ...]:
        traits = row["traits"]
        sizes = (traits["head_size_v"], traits.get("head_size_qk"))
        return (row["kind"], traits["dtype"], *sizes)

    shapes = {shape(row) for row in rows}
    number = len(shapes)
    found = drawn(rows, number, 7)
    assert {shape(row) for row in found} == shapes
    assert found == drawn(rows[::-1], number, 7)
    assert found[:12] == drawn(rows, 12, 7)
    assert drawn(rows, 12, 8) != found[:12]
    assert len(drawn(rows, number + 5, 7)) == number + 5
    assert len(drawn(rows[:3], 9, 7)) == 3
    with pytest.raises(ReportError, match="--draw=0: name a number above 0"):
        drawn(rows, 0, 7)
