# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The races of docs/races.md: exactly those in upstream's kernels, none in the patched ones.

CK_PATCHES is the value of //kernels/ck_fmha:patches that the code objects were compiled with.
"""

from __future__ import annotations

import functools

import pytest
from gfxemu import Checks

from tests.emulation import known_findings
from tests.emulation.harness.cases import Case
from tests.emulation.harness.kernel import Kernel, Outcome, Prepared, kernels, prepare
from tests.emulation.harness.kinds.registry import kind_of
from tests.emulation.verify.verdict import gates_of, with_memory

# Waves advance together, evenly or finely; a wave runs ahead as far as it may; by chance.
_SCHEDULES = ("sliced:8", "sliced:1", "barrier", "random:1", "random:2")
_KINDS = ("race", "unwaited-read", "unwaited-write")
# A race makes numbers wrong by far more than any rounding.
_WRONG = 30.0


def expected(kernel: Kernel) -> set[str]:
    return {s for s in known_findings.signatures(kernel.name) if s.startswith(_KINDS)}


@functools.cache
def _prepared(kernel: Kernel) -> Prepared:
    """Several tiles both ways, the last ones not full."""
    i = kernel.instance
    # Defect W is one of two tiles. Sums of dq that are not deterministic have no tiles of keys.
    tiles = 2 if i.kind == "fwd_v3" else 3
    lengths = (2 * i.tile_seqlen_q + 1, tiles * (i.tile_seqlen_k or 64) - 1)
    page_size = kind_of(i).page_size(i)
    return prepare(i, Case("several tiles", (lengths,), heads_q=1, page_size=page_size))


@functools.cache
def _run(kernel: Kernel, schedule: str) -> Outcome:
    return kernel.run(_prepared(kernel), schedule=schedule, checks=Checks(uninitialised=False))


def test_there_are_kernels() -> None:
    assert kernels()


@pytest.mark.parametrize("schedule", _SCHEDULES)
@pytest.mark.parametrize("kernel", kernels(), ids=str)
def test_findings(kernel: Kernel, schedule: str) -> None:
    """The same in every schedule: no run has to go wrong for a race to be found."""
    findings = _run(kernel, schedule).report.findings
    for finding in findings:
        print(kernel, schedule, finding)
    assert {finding.signature for finding in findings} == expected(kernel)


@pytest.mark.parametrize("schedule", _SCHEDULES)
@pytest.mark.parametrize("kernel", kernels(), ids=str)
def test_numbers(kernel: Kernel, schedule: str) -> None:
    """A race shows itself where a wave runs ahead, in the outputs it is over and in no other; one
    with memory always."""
    racing = {"fwd": {"o", "lse"}, "fwd_v3": {"o"}}.get(kernel.instance.kind, set())
    racy = any(s.startswith("race") for s in expected(kernel))
    known = known_findings.signatures(kernel.name)
    gates = gates_of(known)
    errors = _run(kernel, schedule).errors
    print(kernel, schedule, errors)
    for name, error in errors.items():
        together = schedule.startswith("sliced") and not with_memory(known)
        if not (racy and name in racing and not together):
            gate = gates[name]
            assert gate.allows(error.rms, error.largest), f"{name}: {error}, allowed: {gate}"
    if racy and schedule == "barrier":
        assert not max(errors[name].rms for name in racing) <= _WRONG  # it may be NaN
