# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Would verification notice? A shipped kernel, broken in one instruction of its file; and the
reference against numerical derivatives."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable
from pathlib import Path

import launches
import numpy as np
import pytest
from attention import from_storage
from gfxemu import Checks, Device, LlvmMc
from gfxemu.code_object import parse
from gfxemu.disassembler import Instruction
from gfxemu.profile import Profile, instruction_class

from tests.emulation.verify.cases import MASK_BOTTOM_RIGHT, Case, cases
from tests.emulation.verify.reference import Expected, Inputs, draw, reference
from tests.emulation.verify.verdict import judge
from tests.emulation.verify.verification import Verification, measure, verify

ARCH = "gfx942"
_NOP = bytes.fromhex("000080bf")


@functools.cache
def _instance() -> launches.Instance:
    return next(i for i in launches.instances() if i.kind == "fwd")


@functools.cache
def _intact() -> bytes:
    paths = [Path(p) for p in os.environ["CODE_OBJECTS"].split()]
    return next(p for p in paths if p.name == f"{_instance().name}.{ARCH}.hsaco").read_bytes()


def _broken(which: Callable[[Instruction], bool], change: Callable[[bytes], bytes]) -> bytes:
    """The file with the first such instruction changed."""
    data = _intact()
    kernel = parse(data).kernel(_instance().symbol)
    entry = kernel.descriptor.entry
    listing = LlvmMc.from_environment().disassemble(kernel.code, ARCH, entry)
    chosen = next(i for i in listing if which(i))
    start = data.index(kernel.code) + chosen.address - entry
    old = data[start : start + chosen.size]
    return data[:start] + change(old) + data[start + chosen.size :]


def _failures(code: bytes) -> list[str]:
    return judge(verify(Device(ARCH, LlvmMc.from_environment()), code, _instance())).failures


def test_the_intact_code_object_passes() -> None:
    assert not _failures(_intact())


@pytest.mark.parametrize(("which", "change", "noticed"), [
    (lambda i: i.name == "s_barrier", lambda _: _NOP, "new finding: race"),
    (lambda i: i.text == "s_waitcnt lgkmcnt(0)", lambda _: _NOP, "new finding"),
    (lambda i: i.name == "ds_read_b128", lambda old: bytes([old[0] ^ 16]) + old[1:], "units off"),
    (lambda i: i.name == "v_exp_f32", lambda old: _NOP * (len(old) // 4), "units off"),
], ids=["barrier", "wait", "offset", "exponential"])  # fmt: skip
def test_a_broken_code_object_fails(
    which: Callable[[Instruction], bool], change: Callable[[bytes], bytes], noticed: str
) -> None:
    failures = _failures(_broken(which, change))
    assert any(noticed in failure for failure in failures), failures


# The reference.


def _moved(inputs: Inputs, name: str, at: tuple[int, int, int], step: int) -> Inputs:
    """One element moved by `step` units in the last place."""
    array = getattr(inputs, name).copy()
    array.view(np.int16)[at] += step
    return dataclasses.replace(inputs, **{name: array})


@pytest.mark.parametrize(
    ("name", "gradient", "features"),
    [
        ("q", "dq", {}),
        ("k", "dk", {}),
        ("v", "dv", {}),
        ("q", "dq", {"bias": "alibi", "p_drop": 0.3}),
        ("k", "dk", {"bias": "elementwise", "p_drop": 0.3}),
        ("v", "dv", {"bias": "elementwise", "p_drop": 0.3}),
        ("bias", "dbias", {"bias": "elementwise", "p_drop": 0.3}),
    ],
)
def test_gradients_are_derivatives(name: str, gradient: str, features: dict) -> None:
    window = {"mask": MASK_BOTTOM_RIGHT, "window": (5, 0)}
    case = Case("", ((9, 12),), heads_q=2, heads_k=2, **window, **features)
    inputs = draw(case, "fp16", (16, 24), seed=5, backward=True)
    dout = from_storage(inputs.dout, "fp16")
    expected = reference(case, "fp16", inputs)[gradient].value

    def loss(changed: Inputs) -> float:
        return float((reference(case, "fp16", changed)["o"].value * dout).sum())

    for at in ((0, 0, 3), (1, 1, 7), (1, 0, 6)):
        low, high = _moved(inputs, name, at, -8), _moved(inputs, name, at, 8)
        values = [from_storage(getattr(x, name), "fp16")[at] for x in (low, high)]
        slope = (loss(high) - loss(low)) / (values[1] - values[0])
        # The reference takes o as it is stored, which moves dS a little.
        assert slope == pytest.approx(expected[at], rel=0.02, abs=0.01)


def test_rows_without_a_key() -> None:
    case = Case("", ((3, 0), (4, 2)), mask=MASK_BOTTOM_RIGHT, window=(-1, 0))
    out = reference(case, "bf16", draw(case, "bf16", (8, 8), seed=1, backward=True))
    # The second sequence's first two queries see no key either.
    assert np.isneginf(out["lse"].value[:, :5]).all() and np.isfinite(out["lse"].value[:, 5:]).all()
    for name in ("o", "dq"):
        assert not out[name].value[:5].any() and out[name].value[5:].any()


def test_measure() -> None:
    expected = Expected(np.array([1.0, -np.inf, 2.0]), np.array([0.1, 0.1, 0.1]))
    right = measure(np.array([1.1, -np.inf, 2.0]), expected)
    assert right.largest == pytest.approx(1.0) and right.where == (0,)
    for wrong in ([np.nan, -np.inf, 2.0], [1.0, 0.0, 2.0], [1.0, np.inf, 2.0]):
        assert measure(np.array(wrong), expected).largest == np.inf
    untouched = Expected(np.array([np.nan, 1.0]), np.array([0.1, 0.1]))
    assert measure(np.array([np.nan, 1.05]), untouched).rms == pytest.approx(0.5)


# Cases and statistics.


def test_cases_have_different_names_and_valid_lengths() -> None:
    for instance in launches.instances():
        chosen = cases(instance)
        assert len({case.name for case in chosen}) == len(chosen)
        for case in chosen:
            assert case.heads_q % case.heads_k == 0
            assert instance.group_mode or len(set(case.lengths)) == 1
            assert instance.mask or case.mask == 0


@pytest.mark.parametrize(("name", "kind"), [
    ("v_mfma_f32_32x32x8_f16", "mfma"), ("v_add_f32", "vector"), ("ds_read_b128", "LDS"),
    ("v_accvgpr_read_b32", "accumulator move"), ("s_load_dwordx4", "scalar load"),
    ("s_waitcnt", "wait"), ("s_cbranch_scc1", "branch"), ("s_cmp_eq_u32", "scalar"),
    ("buffer_load_dword", "global"), ("scratch_load_dword", "scratch"),
])  # fmt: skip
def test_instruction_classes(name: str, kind: str) -> None:
    assert instruction_class(name) == kind


def test_a_profile_counts_what_a_launch_counts() -> None:
    device = Device(ARCH, LlvmMc.from_environment())
    checked = Verification(device, _intact(), _instance())
    case = cases(_instance())[0]
    profile = Profile(ARCH)
    outcome = checked.kernel.run(
        case, *checked.prepare(case), schedule="sliced:8", checks=Checks.none(),
        change=profile.instrument,
    )  # fmt: skip
    summary = profile.summary()
    assert summary["wave_instructions"] == outcome.report.wave_instructions
    assert sum(summary["classes"].values()) == summary["wave_instructions"]
    for efficiency in (*summary["lds_efficiency"].values(), *summary["global_efficiency"].values()):
        assert efficiency is None or 0 < efficiency <= 1
