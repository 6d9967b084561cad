# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Would verification notice? A shipped kernel, broken in one instruction of its file."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest
from gfxemu import Checks, Device, LlvmMc
from gfxemu.code_object import parse
from gfxemu.disassembler import Instruction
from gfxemu.profile import Profile, instruction_class

from tests.emulation.harness import launches
from tests.emulation.harness.kernel import code_objects, prepare
from tests.emulation.harness.kinds.registry import cases, kind_of
from tests.emulation.verify.verdict import judge
from tests.emulation.verify.verification import Verification, verify

ARCH = "gfx942"
_NOP = bytes.fromhex("000080bf")


@functools.cache
def _instance() -> launches.Instance:
    return next(i for i in launches.instances() if i.kind == "fwd")


def _intact() -> bytes:
    return code_objects()[ARCH, _instance().name]


def _broken(which: Callable[[Instruction], bool], change: Callable[[bytes], bytes]) -> bytes:
    """The file with the first such instruction changed."""
    data = _intact()
    kernel = parse(data).kernel(_instance().name)
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
    # soffset, the last byte, becomes 64.
    (lambda i: i.name.startswith("buffer_store"), lambda old: old[:7] + bytes([128 + 64]),
     "new finding: soffset"),
], ids=["barrier", "wait", "offset", "exponential", "soffset"])  # fmt: skip
def test_a_broken_code_object_fails(
    which: Callable[[Instruction], bool], change: Callable[[bytes], bytes], noticed: str
) -> None:
    failures = _failures(_broken(which, change))
    assert any(noticed in failure for failure in failures), failures


# Cases and statistics.


def test_cases_have_different_names_and_valid_lengths() -> None:
    for instance in launches.instances():
        chosen = cases(instance)
        assert len({case.name for case in chosen}) == len(chosen)
        for case in chosen:
            assert case.heads_q % case.heads_k == 0
            group_mode = kind_of(instance).group_mode(instance, case)
            assert group_mode or len(set(case.lengths)) == 1
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
    profile = Profile(ARCH)
    outcome = checked.kernel.run(
        prepare(_instance(), cases(_instance())[0]), schedule="sliced:8", checks=Checks.none(),
        change=profile.instrument,
    )  # fmt: skip
    summary = profile.summary()
    assert summary["wave_instructions"] == outcome.report.wave_instructions
    assert sum(summary["classes"].values()) == summary["wave_instructions"]
    for efficiency in (*summary["lds_efficiency"].values(), *summary["global_efficiency"].values()):
        assert efficiency is None or 0 < efficiency <= 1
