# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The defects of AITER's kernels: the numbers that they make wrong, and launches without them
(docs/asm-findings.md)."""

from __future__ import annotations

import math
import re

import pytest
from gfxemu.checks import COMPARED, LEFT_OUT

from kernels.aiter_asm.table import AsmObject
from tests.emulation.aiter_asm import launches
from tests.emulation.aiter_asm.launches import Result
from tests.emulation.aiter_asm.problems import BEHIND, problems
from tests.emulation.harness.cases import MASK_TOP_LEFT, Case
from tests.emulation.verify.verdict import GATES

_OBJECTS = {chosen.file: chosen for chosen in launches.objects().objects}
_TWO_TILES = Case("two tiles", ((513, 777),), 1, 1)
_LENGTHS = Case("lengths", ((300, 40), (3, 31), (257, 300)), 2, 1)


def _forward(name: str) -> AsmObject:
    return _OBJECTS[f"gfx950/fmha_v3_fwd/{name}.co"]


def _backward(name: str, arch: str = "gfx950") -> AsmObject:
    return _OBJECTS[f"{arch}/fmha_v3_bwd/{name}.co"]


def _wrong(result: Result) -> set[str]:
    gates = GATES | {"dq": GATES["dk"], "dk, summed": GATES["dk"], "dv, summed": GATES["dv"]}
    return {n for n, e in result.errors.items() if not gates[n].allows(e.rms, e.largest)}


def _right(result: Result) -> None:
    assert not result.fault and not result.signatures, result
    assert result.errors and not _wrong(result), result.errors
    assert result.gaps_untouched


def test_p_makes_outputs_wrong() -> None:
    chosen = _forward("fwd_hd128_bf16_causal")
    assert "o" in _wrong(launches.forward(chosen, _TWO_TILES, schedule="random:1"))


@pytest.mark.parametrize("schedule", ["sliced:8", "random:1"])
@pytest.mark.parametrize("case", [_TWO_TILES, _LENGTHS], ids=lambda case: case.name)
def test_tiles_as_sequences_avoid_p(case: Case, schedule: str) -> None:
    chosen = _forward("fwd_hd128_bf16_causal_group")
    assert launches.forward(chosen, case).signatures
    _right(launches.forward(chosen, case, schedule=schedule, tiles_as_sequences=True))


@pytest.mark.parametrize(("dtype", "schedule"), [("bf16", "random:1"), ("fp16", "random:2")])
def test_q_makes_outputs_wrong(dtype: str, schedule: str) -> None:
    chosen = _backward(f"bwd_hd128_{dtype}_causal_br_a32_psskddv")
    assert _wrong(launches.backward(chosen, _TWO_TILES, schedule=schedule)) & {"dk", "dv"}


@pytest.mark.parametrize("bottom_right", [False, True])
@pytest.mark.parametrize(
    ("dtype", "schedule"), [("bf16", "sliced:8"), ("bf16", "random:1"), ("fp16", "sliced:8")]
)
def test_tiles_as_sequences_avoid_q(dtype: str, schedule: str, bottom_right: bool) -> None:
    """In float32: the 16-bit sums of dq have a place for each sequence."""
    causal, unmasked = (
        _backward(f"bwd_hd128_{dtype}{mask}_a32_psskddv_group") for mask in ("_causal", "")
    )
    case = Case("lengths", ((300, 40), (157, 600), (0, 9), (600, 520)), 2, 1)
    _right(
        launches.backward(
            causal, case, schedule=schedule, unmasked=unmasked, bottom_right=bottom_right
        )
    )


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_s_takes_what_lies_behind(arch: str) -> None:
    chosen = _backward("bwd_hd128_bf16_swa_a32_rtne_psskddv", arch)
    case = Case("window", ((100, 252),) * 2, 2, 1, mask=MASK_TOP_LEFT, window=(70, 30))
    _right(launches.backward(chosen, case, behind=BEHIND))
    assert _wrong(launches.backward(chosen, case, behind=(BEHIND[0], math.nan))) >= {"dk", "dv"}


@pytest.mark.parametrize("mode", ["", "_group"])
def test_option_5_is_for_multiples_of_8_heads(mode: str) -> None:
    """With a mask, in batch mode, it maps the workgroups of other counts to heads and rows that
    there are not."""
    causal, plain = (
        _OBJECTS[f"gfx942/fmha_v3_fwd/MI300/fwd_hd128_bf16{mask}_rtne{mode}.co"]
        for mask in ("_causal", "")
    )
    three, eight = (Case(f"{heads} heads", ((600, 97),), heads, 1) for heads in (3, 8))
    odd = launches.forward(causal, three, option=5)
    if mode == "_group":
        _right(odd)
    else:
        assert odd.fault or _wrong(odd), odd
    _right(launches.forward(causal, three, option=3))
    _right(launches.forward(causal, eight, option=5))
    _right(launches.forward(plain, three, option=5))


@pytest.mark.parametrize("mode", ["", "_group"])
def test_the_kernels_rely_on_soffset_in_range_checks(mode: str) -> None:
    """By the other rule gfx942's forward kernels read behind K, even for a single key."""
    chosen = _OBJECTS[f"gfx942/fmha_v3_fwd/MI300/fwd_hd128_bf16_rtne{mode}.co"]
    case = problems(chosen)[0].case
    signatures = launches.forward(chosen, case, soffset=COMPARED).signatures
    assert signatures
    assert all(signature.startswith("soffset: buffer_load_dword") for signature in signatures)
    fault = launches.forward(chosen, case, soffset=LEFT_OUT).fault
    assert re.search(r"MemoryFault: .*nearest: k .* and v ", fault), fault
