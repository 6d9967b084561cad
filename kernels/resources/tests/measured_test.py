# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Tables and comparisons say what differs; two kernels never share a row's name."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.bench.machine_code.figures import Figures
from tests.bench.machine_code.measured import (
    Measured,
    comparison,
    machine_options,
    short_name,
    table,
)

_FORWARD = (
    "fmha_fwd_d128_bf16_batch_b128x128x32x128x32x128_r4x1x1_r4x1x1_w32x32x16_w32x32x16_"
    "qr_async_vr_psskddv_nlogits_nbias_mask_lse_ndropout_nskip_nsquant"
)
_FIGURES = Figures(
    vgpr=256,
    agpr=0,
    sgpr=60,
    lds=31744,
    scratch=384,
    spills=72,
    waves=2,
    instructions=3126,
    loop_scratch=28,
    loop=1624,
    waits=70,
    nops=55,
    cycles=4000,
)


def _measured(instance: str = _FORWARD, **changes: Any) -> Measured:
    return Measured(instance, "gfx942", (), dataclasses.replace(_FIGURES, **changes))


def test_figures_are_read_as_they_were_written() -> None:
    one = dataclasses.replace(_measured(), options=("-disable-machine-licm",))
    assert Measured.parse(one.serialised()) == one


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"figures": {"vgpr": 1}, "options": []}'])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        Measured.parse(text)


def test_machine_options_are_those_behind_mllvm() -> None:
    flags = ["-O3", "-mllvm", "-a=1", "-c", "-mllvm", "--b"]
    assert machine_options(flags) == ("-a=1", "--b")


@pytest.mark.parametrize(
    ("instance", "name"),
    [
        (_FORWARD, "fwd d128 bf16 batch qr async psskddv mask lse"),
        (_FORWARD.replace("_mask_", "_nmask_"), "fwd d128 bf16 batch qr async psskddv lse"),
        ("fmha_bwd_dot_do_o_d64_fp16_group_o2_ps", "bwd dot do o d64 fp16 group ps"),
        ("fmha_bwd_convert_dq_d32_bf16_b64x128_batch_o2_npad_ndeterministic",
         "bwd convert dq d32 bf16 batch npad"),
        ("attn_sum_heads_fp16", "attn sum heads fp16"),
    ],
)  # fmt: skip
def test_short_names_have_what_tells_kernels_apart(instance: str, name: str) -> None:
    assert short_name(instance) == name


def test_a_table_is_sorted_and_shows_what_is_not_known() -> None:
    rows = table([_measured("attn_b", cycles=None), _measured("attn_a")], ["vgpr", "cycles"])
    assert rows == "       vgpr cycles\nattn a  256   4000\nattn b  256      -\n"


def test_two_kernels_of_one_name_are_an_error_that_has_both() -> None:
    other = _FORWARD.replace("b128x128", "b64x128")
    with pytest.raises(ValueError, match=f"{_FORWARD}.*{other}|{other}.*{_FORWARD}"):
        table([_measured(), _measured(other)])


def test_a_comparison_has_what_differs_its_sums_and_the_worst_kernel() -> None:
    nmask = _FORWARD.replace("_mask_", "_nmask_")
    before = {_FORWARD: _measured(), nmask: _measured(nmask, spills=0, loop_scratch=0)}
    better = _measured(spills=0, loop_scratch=0, cycles=2000)
    after = {
        _FORWARD: dataclasses.replace(better, options=("-disable-machine-licm",)),
        nmask: _measured(nmask, spills=0, loop_scratch=0),
    }
    assert comparison(before, after).splitlines() == [
        "fwd d128 bf16 batch qr async psskddv mask lse: -disable-machine-licm",
        "    spills 72 -> 0, loopscr 28 -> 0, cycles 4000 -> 2000",
        "kernels 2",
        "spills 72 -> 0",
        "loopscr 28 -> 0",
        "cycles x 0.707, at worst x 1.000: fwd d128 bf16 batch qr async psskddv lse",
    ]


def test_a_comparison_names_what_only_one_build_has() -> None:
    lines = comparison({"attn_a": _measured("attn_a")}, {"attn_b": _measured("attn_b")})
    assert lines.splitlines()[:3] == ["only before: attn_a", "only after: attn_b", "kernels 0"]
