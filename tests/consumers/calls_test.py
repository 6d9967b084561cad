# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""aiter::mha_fwd and aiter::mha_bwd of one pin, executed, against float64. Every variant set for
training has the kernels: fp16, head size 64, batch mode, a mask."""

from __future__ import annotations

from typing import Any

import pytest

from tests.consumers.attention import Attention, Consumer
from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, MASK_TOP_LEFT, Case
from tests.emulator.hip.emulated_hip import Runtime
from tests.emulator.hip.hip import Hip

_CAUSAL = (-1, 0)
_SMALL = Case("small", ((17, 33),), 1, 1, mask=MASK_BOTTOM_RIGHT, window=_CAUSAL)
_CASES = (
    Case("causal", ((77, 130),) * 2, 2, 2, mask=MASK_BOTTOM_RIGHT, window=_CAUSAL),
    Case("one key head", ((70, 40),), 3, 1, mask=MASK_TOP_LEFT, window=_CAUSAL),
    Case("groups of heads", ((33, 65),) * 2, 4, 2, mask=MASK_BOTTOM_RIGHT, window=(20, 7)),
)


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.name)
def test_forward_and_backward(hip: Hip, consumer: Consumer, arch: str, case: Case) -> None:
    problem = Attention(hip, consumer, arch, case)
    assert problem.forward() == 0
    assert problem.backward() == 0
    problem.check()
    assert len(problem.workspaces) == int(consumer.asks_for_workspace)


def test_forward_without_lse(hip: Hip, consumer: Consumer, arch: str) -> None:
    """Kernels write one: the memory for it is HIP's pool's, and gone afterwards."""
    problem = Attention(hip, consumer, arch, _SMALL)
    assert problem.forward() == 0
    wanted = problem.results()
    problem = Attention(hip, consumer, arch, _SMALL, wants_lse=False)
    assert problem.forward() == 0
    found = problem.results()
    assert (found["o"] == wanted["o"]).all()
    assert (found["lse"] == 7).all()


def test_timed(hip: Hip, consumer: Consumer, arch: str, runtime: Runtime) -> None:
    """Milliseconds of one run; 3 runs before the 10 that are timed, as ck_tile's defaults are."""
    problem = Attention(hip, consumer, arch, _SMALL, timed=True)
    assert problem.forward() > 0
    launches = len(runtime.launches)
    assert launches > 0 and launches % 13 == 0
    assert problem.backward() > 0
    assert (len(runtime.launches) - launches) % 13 == 0
    problem.check()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"sizes": (1024, 1024)}, "head size 1024"),
        ({"heads_k": 3}, "nhead_k is 3"),
        ({"mask": 9}, "mask_type is 9"),
    ],
    ids=lambda option: next(iter(option)) if isinstance(option, dict) else "",
)
def test_refused(
    hip: Hip, consumer: Consumer, arch: str, runtime: Runtime, capfd: pytest.CaptureFixture[str],
    options: dict[str, Any], text: str,
) -> None:  # fmt: skip
    problem = Attention(hip, consumer, arch, _SMALL, **options)
    for function in (problem.forward, problem.backward):
        assert function() == -1
        assert text in capfd.readouterr().err
    assert not runtime.launches


def test_no_memory(
    hip: Hip, consumer: Consumer, arch: str, runtime: Runtime, capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Of the caller's workspace, or of HIP's pool."""
    problem = Attention(hip, consumer, arch, _SMALL)
    monkeypatch.setattr(problem, "allocate", lambda size: None)
    monkeypatch.setenv("EMULATED_HIP_FAIL", "hipMallocAsync=2")
    assert problem.backward() == -1
    asked = "workspace_alloc returned NULL" if consumer.asks_for_workspace else "hipMallocAsync"
    assert asked in capfd.readouterr().err
    assert not runtime.launches


def test_a_check_launches_nothing(
    hip: Hip, consumer: Consumer, arch: str, runtime: Runtime, capfd: pytest.CaptureFixture[str]
) -> None:
    problem = Attention(hip, consumer, arch, _SMALL, only_check=True)
    assert problem.forward() in (1, -1)
    assert problem.backward() in (1, -1)
    assert not runtime.launches
    assert not capfd.readouterr().err
