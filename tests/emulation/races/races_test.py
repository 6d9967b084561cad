# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The races of docs/races.md: exactly those in CK's kernels as they are, none with added barriers.

CK_BARRIERS is what the code objects were compiled with, a value of //kernels/ck_fmha:barriers.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

import launches
import pytest
from attention import GATES, Attention, Result, Runner, Shape, errors
from gfxemu import Checks, Device, LlvmMc

from tests.emulation import known_findings

_NAMES = {Path(p).name for p in os.environ["EMULATION_CODE_OBJECTS"].split()}
_ARCH = "gfx942"
# Waves advance together, evenly or finely; a wave runs ahead as far as it may; by chance.
_SCHEDULES = ("sliced:8", "sliced:1", "barrier", "random:1", "random:2")
_KINDS = ("race", "unwaited-read", "unwaited-write")
# A race makes numbers wrong by far more than any rounding.
_WRONG = 30.0

INSTANCES = [i for i in launches.instances() if f"{i.name}.{_ARCH}.hsaco" in _NAMES]


def expected(instance: launches.Instance) -> set[str]:
    known = known_findings.signatures(f"{instance.name}.{_ARCH}")
    return {s for s in known if s.startswith(_KINDS)}


@functools.cache
def _runner() -> Runner:
    return Runner(Device(_ARCH, LlvmMc.from_environment()))


@functools.cache
def _attention(instance: launches.Instance) -> Attention:
    """Several tiles both ways, the last ones not full."""
    lengths = (2 * instance.tile_seqlen_q + 1, 3 * instance.tile_seqlen_k - 1)
    return Attention(instance, Shape((lengths,), heads_q=1, heads_k=1))


@functools.cache
def _run(instance: launches.Instance, schedule: str) -> Result:
    checks = Checks(uninitialised=False)
    return _runner().run(instance, _attention(instance), schedule=schedule, checks=checks)


def test_all_instances_are_here() -> None:
    assert len(INSTANCES) == len(_NAMES) > 0


@pytest.mark.parametrize("schedule", _SCHEDULES)
@pytest.mark.parametrize("instance", INSTANCES, ids=str)
def test_findings(instance: launches.Instance, schedule: str) -> None:
    """The same in every schedule: no run has to go wrong for a race to be found."""
    findings = _run(instance, schedule).report.findings
    for finding in findings:
        print(instance, schedule, finding)
    assert {finding.signature for finding in findings} == expected(instance)


@pytest.mark.parametrize("schedule", _SCHEDULES)
@pytest.mark.parametrize("instance", INSTANCES, ids=str)
def test_numbers(instance: launches.Instance, schedule: str) -> None:
    """A race shows itself where a wave runs ahead, in the outputs it is over and in no other."""
    racing = {"fwd": {"o", "lse"}, "bwd_dq_dk_dv": {"dq_acc"}}[instance.kind]
    racy = any(s.startswith("race") for s in expected(instance))
    measured = errors(_attention(instance), _run(instance, schedule))
    for name, error in measured.items():
        if not (racy and name in racing and not schedule.startswith("sliced")):
            assert error <= GATES[name], f"{name} is {error:.2f} units off, {GATES[name]} allowed"
    if racy and schedule == "barrier":
        assert max(measured[name] for name in racing) > _WRONG
