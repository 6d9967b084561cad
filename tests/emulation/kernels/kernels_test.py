# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Our kernels, executed: numbers against float64, in three schedules, with all checks on."""

from __future__ import annotations

import dataclasses
import functools
import re

import pytest
from gfxemu.errors import MemoryFault

from tests.emulation import known_findings
from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, MASK_NONE, Case
from tests.emulation.harness.kernel import Kernel, Prepared, kernels, prepare
from tests.emulation.harness.launches import Instance
from tests.emulation.verify.verdict import TOGETHER, excused, gates_of

SCHEDULES = (TOGETHER, "barrier", "random:1")


_CAUSAL = {"mask": MASK_BOTTOM_RIGHT, "window": (-1, 0)}
_BATCH_CASES = [
    Case("full tiles", ((128, 128),), heads_k=2),
    Case("causal; heads 4:2", ((77, 200),) * 2, heads_q=4, heads_k=2, **_CAUSAL),
    Case("rows without a key", ((129, 65),), heads_k=2, mask=MASK_BOTTOM_RIGHT, window=(40, 10)),
    Case("one key", ((17, 1),), heads_k=2, amplitude=30.0),
]
_GROUP_CASES = [
    Case("empty sequences", ((100, 120), (0, 64), (64, 1), (1, 130)), heads_k=2, **_CAUSAL),
    Case("heads 4:1", ((130, 70), (33, 0)), heads_q=4, mask=MASK_BOTTOM_RIGHT, window=(30, -1),
         amplitude=4.0),
]  # fmt: skip
_CASES = [
    (kernel, case)
    for kernel in kernels()
    for case in (_GROUP_CASES if kernel.instance.group_mode else _BATCH_CASES)
]


@functools.cache
def _prepared(instance: Instance, case: Case) -> Prepared:
    if not instance.mask and "dot_do_o" not in instance.kind:
        case = dataclasses.replace(case, mask=MASK_NONE, window=(-1, -1))
    return prepare(instance, case)


def _known_fault(known: set[str], case: Case) -> str | None:
    """The opcode at which a kernel is known to fault on the case. The known fault is that of a
    sequence with keys but no query; it takes several heads, whose buffer sizes underflow."""
    if case.heads_q == 1 or not any(q == 0 < k for q, k in case.lengths):
        return None
    faults = (re.fullmatch(r"MemoryFault: (\w+), keys without a query", s) for s in known)
    return next((fault[1] for fault in faults if fault), None)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("kernel", "case"), _CASES, ids=lambda x: x.name)
def test_kernel(kernel: Kernel, case: Case, schedule: str) -> None:
    known = known_findings.signatures(kernel.name)
    launch = functools.partial(kernel.run, _prepared(kernel.instance, case), schedule=schedule)
    if fault := _known_fault(known, case):
        with pytest.raises(MemoryFault, match=rf": {fault} "):
            launch()
        return
    outcome = launch()
    report = outcome.report
    print(f"{report.wave_instructions} wave instructions, {report.microseconds_per_instruction:.1f}"
          f" us each, errors {outcome.errors}")  # fmt: skip
    findings = [f"{f.signature}\n{f}" for f in report.findings if f.signature not in known]
    assert not findings, "\n".join(findings)
    racy = any(f.kind == "race" for f in report.findings)
    run = {"schedule": schedule}
    for name, error in outcome.errors.items():
        if not (racy and excused(kernel.instance.kind, name, run, known)):
            gate = gates_of(known)[name]
            assert gate.allows(error.rms, error.largest), f"{name}: {error}, allowed: {gate}"
