# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""QoLA's functions of the namespaces that a program is linked with, executed, against float64."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.consumers.attention import Attention, Consumer
from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, Case
from tests.emulator.hip.emulated_hip import Runtime
from tests.emulator.hip.hip import Hip

_PREFIXES = os.environ["PREFIXES"].split(",")
_PROGRAM = Path(os.environ["CONSUMER"]).absolute()
_CONSUMERS = {prefix: Consumer(_PROGRAM, prefix) for prefix in _PREFIXES}
_WINDOW = {"mask": MASK_BOTTOM_RIGHT, "window": (-1, 0)}
_CASES = (
    Case("heads", ((70, 130),) * 2, 2, 2, **_WINDOW),
    Case("one key head", ((33, 65),), 3, 1, **_WINDOW),
    Case("groups of heads", ((33, 65),) * 2, 4, 2, **_WINDOW),
)

each_namespace = pytest.mark.parametrize("prefix", _PREFIXES)
each_case = pytest.mark.parametrize("case", _CASES, ids=lambda case: case.name)


@each_namespace
@each_case
def test_forward_and_backward(hip: Hip, arch: str, prefix: str, case: Case) -> None:
    consumer = _CONSUMERS[prefix]
    problem = Attention(hip, consumer, arch, case)
    assert problem.forward() == 0
    assert problem.backward() == 0
    problem.check()
    # The size that was told is the size that was asked for.
    assert problem.workspaces == [consumer.answer("bwd_workspace_size", problem.call)]


def test_taking_turns(hip: Hip, arch: str) -> None:
    """Calls of all namespaces, each of which has an error of its own in between."""
    problems = [Attention(hip, consumer, arch, _CASES[0]) for consumer in _CONSUMERS.values()]
    for problem in problems:
        assert problem.forward() == 0
    wrong = [Attention(hip, c, arch, _CASES[0], heads_k=3) for c in _CONSUMERS.values()]
    assert [problem.forward() for problem in wrong] == [-1] * len(wrong)
    for problem in problems[::-1]:
        assert problem.backward() == 0
    for problem in problems:
        problem.check()


@each_namespace
def test_the_first_version_of_the_function(hip: Hip, arch: str, prefix: str) -> None:
    consumer = _CONSUMERS[prefix]
    problem, other = (Attention(hip, consumer, arch, _CASES[0]) for _ in range(2))
    assert consumer.forward_on(problem.call, problem.stream) == 0
    assert other.forward() == 0
    assert (problem.results()["o"] == other.results()["o"]).all()


@each_namespace
def test_questions(
    hip: Hip, arch: str, prefix: str, runtime: Runtime, capfd: pytest.CaptureFixture[str]
) -> None:
    consumer = _CONSUMERS[prefix]
    call = Attention(hip, consumer, arch, _CASES[0]).call
    assert consumer.answer("serves_sinks", call) == 1
    if consumer.has("splits"):
        assert consumer.answer("splits", call) == 1
        assert consumer.answer("fwd_workspace_size", call) == 0
    assert not capfd.readouterr().err
    # More heads of keys than of queries.
    call.heads_k = 3
    assert consumer.answer("serves_sinks", call) == 0
    assert not capfd.readouterr().err
    assert consumer.answer("bwd_workspace_size", call) == 0
    assert "qola::mha_bwd_workspace_size: nhead_k is 3" in capfd.readouterr().err
    assert not runtime.launches
