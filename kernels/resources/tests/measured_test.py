# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Figures are kept as they are; two kernels never share a name; comparisons name the
differences."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from kernels.archs.archs import read_archs
from kernels.resources.figures import Figures
from kernels.resources.measured import (
    COLUMNS,
    Measured,
    comparison,
    machine_options,
    short_name,
    short_names,
    table,
)

_UNITS = {name: arch.compute_unit for name, arch in read_archs(os.environ["ARCHS"]).items()}
_FORWARD = (
    "fmha_fwd_d128_bf16_batch_b128x128x32x128x32x128_r4x1x1_r4x1x1_w32x32x16_w32x32x16_"
    "qr_async_vr_psskddv_nlogits_nbias_mask_lse_ndropout_nskip_nsquant_ntrload"
)
_NMASK = _FORWARD.replace("_mask_", "_nmask_")
_KERNEL = {
    "agpr_count": 4,
    "lds_size": 31744,
    "max_workgroup_size": 256,
    "scratch_size": 384,
    "sgpr_count": 60,
    "sgpr_spill_count": 2,
    "vgpr_count": 256,
    "vgpr_spill_count": 70,
    "wavefront_size": 64,
}
_FIGURES = Figures(
    instructions=3126,
    loop_scratch=28,
    loop_lanes=0,
    early=0,
    loop=1624,
    waits=70,
    nops=55,
    cycles=4000,
)
_MEASURED = Measured(_FORWARD, "gfx942", ("-disable-machine-licm",), _KERNEL, _FIGURES)


def _record(**changes: Any) -> dict[str, Any]:
    return {**_MEASURED.columns(_UNITS), "options": "", **changes}


def test_figures_are_read_as_they_were_written() -> None:
    assert Measured.parse(_MEASURED.serialised()) == _MEASURED


def test_an_object_that_comes_as_one_has_what_its_description_tells() -> None:
    kernel = {**_KERNEL, "agpr_count": None, "sgpr_spill_count": None, "vgpr_spill_count": None}
    record = {
        "instance": "fmha_fwd_hd128_bf16_rtne_mi300", "arch": "gfx942", "key": "0" * 64,
        "size": 25864, "kernel": kernel,
    }  # fmt: skip
    columns = Measured.parse(json.dumps(record)).columns(_UNITS)
    assert (columns["vgpr"], columns["lds"], columns["waves"]) == (256, 31744, 2)
    unknown = ("agpr", "vgpr_spills", "sgpr_spills", "instructions", "loop_scratch", "cycles")
    assert [columns[name] for name in unknown] == [None] * len(unknown)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"figures": {"loop": 1}, "options": []}'])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        Measured.parse(text)


def test_columns_are_those_that_the_readme_explains() -> None:
    assert _MEASURED.columns(_UNITS) == {
        "vgpr": 256,
        "agpr": 4,
        "sgpr": 60,
        "lds": 31744,
        "scratch": 384,
        "vgpr_spills": 70,
        "sgpr_spills": 2,
        "waves": 2,
        **dataclasses.asdict(_FIGURES),
    }
    assert list(_MEASURED.columns(_UNITS)) == list(COLUMNS)
    readme = Path(os.environ["README"]).read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", readme, re.M)
    assert dict(rows) == COLUMNS


def test_machine_options_are_those_behind_mllvm() -> None:
    flags = ["-O3", "-mllvm", "-a=1", "-c", "-mllvm", "--b"]
    assert machine_options(flags) == ("-a=1", "--b")


@pytest.mark.parametrize(
    ("instance", "name"),
    [
        (_FORWARD, "fwd d128 bf16 batch qr async psskddv mask lse"),
        (_NMASK, "fwd d128 bf16 batch qr async psskddv lse"),
        ("fmha_bwd_d64_fp16_batch_b32x128x64x32x64x32x32x64x64_r1x4x1_r4x1x1_r1x4x1_w16x16x32_"
         "w16x16x16_o1_maxq0_pd8dv8_nbias_ndbias_mask_ndropout_ndeterministic_ntrload",
         "bwd d64 fp16 batch pd8dv8 mask"),
        ("fmha_bwd_dot_do_o_d64_fp16_b64_group_o2_ps", "bwd dot do o d64 fp16 group ps"),
        ("fmha_bwd_convert_dq_d32_bf16_b64x0_batch_o2_npad_ndeterministic",
         "bwd convert dq d32 bf16 batch npad"),
        ("attn_sum_heads_fp16", "attn sum heads fp16"),
        ("attn_no_keys_bf16", "attn no keys bf16"),
    ],
)  # fmt: skip
def test_short_names_have_what_tells_kernels_apart(instance: str, name: str) -> None:
    assert short_name(instance) == name


def test_kernels_that_would_share_a_short_name_keep_their_own() -> None:
    other = _FORWARD.replace("b128x128", "b64x128")
    assert short_names([_FORWARD, other, _NMASK, _NMASK]) == {
        _FORWARD: _FORWARD,
        other: other,
        _NMASK: "fwd d128 bf16 batch qr async psskddv lse",
    }


def test_a_table_is_aligned_and_shows_what_is_not_known() -> None:
    rows = table([["", "vgpr", "cycles"], ["attn a", 256, 4000], ["b", 8, None]])
    assert rows == "       vgpr cycles\nattn a  256   4000\nb         8      -\n"


def test_a_comparison_has_what_differs_its_sums_and_the_worst_kernel() -> None:
    clean = {"vgpr_spills": 0, "sgpr_spills": 0, "loop_scratch": 0}
    before = {_FORWARD: _record(), _NMASK: _record(**clean)}
    after = {
        _FORWARD: _record(**clean, cycles=2000, options="-disable-machine-licm"),
        _NMASK: _record(**clean, waits=71),
    }
    assert comparison(before, after).splitlines() == [
        "fwd d128 bf16 batch qr async psskddv mask lse: -disable-machine-licm",
        "    vspill 70 -> 0, sspill 2 -> 0, loopscr 28 -> 0, cycles 4000 -> 2000",
        "fwd d128 bf16 batch qr async psskddv lse: the compiler's defaults",
        "    waits 70 -> 71",
        "kernels 2",
        "vspill 70 -> 0",
        "sspill 2 -> 0",
        "loopscr 28 -> 0",
        "cycles x 0.707, at worst x 1.000: fwd d128 bf16 batch qr async psskddv lse",
    ]


def test_a_comparison_names_what_only_one_build_has() -> None:
    lines = comparison({"attn_a": _record()}, {"attn_b": _record()})
    assert lines.splitlines()[:3] == ["only before: attn_a", "only after: attn_b", "kernels 0"]
