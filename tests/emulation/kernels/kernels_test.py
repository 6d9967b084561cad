# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Our kernels, executed: numbers against float64, in three schedules, with all checks on."""

from __future__ import annotations

import dataclasses
import functools
import re

import launches
import pytest
from attention import GATES, Attention, Runner, Shape, errors
from gfxemu import Device, LlvmMc
from gfxemu.errors import MemoryFault

from tests.emulation import known_findings

SCHEDULES = ("sliced:8", "barrier", "random:1")

_BATCH_SHAPES = [
    Shape(),
    Shape(((77, 200),), batch=2, heads_q=4, heads_k=2, window=(-1, 0)),
    Shape(((129, 65),), window=(40, 10)),  # rows without a key
    Shape(((17, 1),), amplitude=30.0),
]
_GROUP_SHAPES = [
    Shape(((100, 120), (0, 64), (64, 1), (1, 130)), window=(-1, 0)),
    Shape(((130, 70), (33, 0)), heads_q=4, heads_k=1, window=(30, -1), amplitude=4.0),
]
_CASES = [
    (instance, shape)
    for instance in launches.instances()
    for shape in (_GROUP_SHAPES if instance.group_mode else _BATCH_SHAPES)
]


@functools.cache
def _runner(arch: str) -> Runner:
    return Runner(Device(arch, LlvmMc.from_environment()))


@functools.cache
def _attention(instance: launches.Instance, shape: Shape) -> Attention:
    return Attention(instance, shape)


def _known_fault(known: set[str], shape: Shape) -> str | None:
    """The opcode at which a kernel is known to fault on the shape. The known fault is that of a
    sequence with keys but no query; it takes several heads, whose buffer sizes underflow."""
    if shape.heads_q == 1 or not any(q == 0 < k for q, k in shape.lengths):
        return None
    faults = (re.fullmatch(r"MemoryFault: (\w+), keys without a query", s) for s in known)
    return next((fault[1] for fault in faults if fault), None)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("instance", "shape"), _CASES, ids=str)
@pytest.mark.parametrize("arch", launches.archs())
def test_kernel(arch: str, instance: launches.Instance, shape: Shape, schedule: str) -> None:
    if shape.window is not None and not instance.mask and "dot_do_o" not in instance.kind:
        shape = dataclasses.replace(shape, window=None)
    attention = _attention(instance, shape)
    known = known_findings.signatures(f"{instance.name}.{arch}")
    if fault := _known_fault(known, shape):
        with pytest.raises(MemoryFault, match=rf": {fault} "):
            _runner(arch).run(instance, attention, schedule=schedule)
        return
    result = _runner(arch).run(instance, attention, schedule=schedule)
    measured = errors(attention, result)
    report = result.report
    print(f"{arch} {instance} {shape} {schedule}: {report.wave_instructions} wave instructions, "
          f"{report.microseconds_per_instruction:.1f} us each, errors {measured}")  # fmt: skip
    findings = [f"{f.signature}\n{f}" for f in report.findings if f.signature not in known]
    assert not findings, "\n".join(findings)
    racy = any(f.kind == "race" for f in report.findings)
    for name, error in measured.items():
        # The known race is over dS, which only dq is made of; it shows where a wave runs ahead.
        if name == "dq_acc" and racy and schedule != "sliced:8":
            continue
        assert error <= GATES[name], f"{name} is {error:.2f} units off, {GATES[name]} allowed"
