# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The kernels of attention sinks in every case of theirs: numbers against float64, races and
unwritten memory, at the largest head size and at one that is no multiple of a vector."""

from __future__ import annotations

import pytest

from tests.emulation.harness.cases import Case
from tests.emulation.harness.kernel import Kernel, kernels, prepare
from tests.emulation.harness.kinds.registry import cases
from tests.emulation.verify.verdict import GATES, TOGETHER

CASES = [(kernel, case) for kernel in kernels() for case in cases(kernel.instance)]


@pytest.mark.parametrize(("size", "schedule"), [(20, TOGETHER), (256, TOGETHER), (64, "random:1")])
@pytest.mark.parametrize(("kernel", "case"), CASES, ids=lambda x: getattr(x, "name", str(x)))
def test_kernel(kernel: Kernel, case: Case, size: int, schedule: str) -> None:
    outcome = kernel.run(prepare(kernel.instance, case, (size, size)), schedule=schedule)
    assert not outcome.report.findings, "\n".join(map(str, outcome.report.findings))
    assert outcome.errors
    for name, error in outcome.errors.items():
        assert GATES[name].allows(error.rms, error.largest), f"{name}: {error}"
