# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Calls through a wheel with AITER's assembly, and the kernels that they launched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import aiter_attn
import pytest
from aiter_attn._cli.main import main

from tests.emulation.wheel import problems
from tests.emulation.wheel.problems import Problem, Shape, mask
from tests.emulator.hip import emulated_hip
from tests.emulator.hip.hip import Hip

FILLED = "attn_no_keys_bf16"


_CALL = re.compile(r"^\| `(--arch (\w+) .*?)` \| `(\w+)` \| (.*) \|$", re.M)


def documented_calls(arch: str) -> list[tuple[str, str, str]]:
    """Those of the table "Ten calls": arguments of `aiter-attn explain`, the kernel or provider
    that serves the call, and the reason against the other."""
    text = Path("kernels/aiter_asm/README.md").read_text("utf-8")
    calls = _CALL.findall(text)
    assert len(calls) == 10
    return [(arguments, served, why) for arguments, of, served, why in calls if of == arch]


def expect_explained(
    capsys: pytest.CaptureFixture[str], arguments: str, served: str, why: str
) -> None:
    """That the command says so."""
    assert main(["explain", *arguments.split()]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"  {'asm' if served == 'ck' else 'ck'} passed over: {why}" in lines
    if served == "ck":
        assert "  provider asm" not in lines
    else:
        assert any(re.fullmatch(rf"\w+_asm\w*: {served}", line) for line in lines), lines


def symbol(stem: str) -> str:
    return f"_ZN5aiter{len(stem)}{stem}E"


@pytest.fixture(autouse=True)
def settled() -> Iterator[None]:
    yield
    aiter_attn.configure(kernels=None)


def forward(hip: Hip, runtime: emulated_hip.Runtime, shape: Shape, dtype: str) -> list[str]:
    """A forward pass, whose results are held against float64: the symbols that it launched."""
    problem = Problem(hip, shape, dtype, 128, 0)
    inputs = problem.inputs
    q, k, v = map(problem.array, (inputs.q, inputs.k, inputs.v))
    function, _, more = problem.mode()
    runtime.launches.clear()
    out, lse = function(q, k, v, *more, stream=problem.stream, **mask(shape.window))
    hip.synchronize(problem.stream)
    problem.check(o=out, lse=lse)
    return [launch.symbol for launch in runtime.launches]


def backward_by(
    hip: Hip, runtime: emulated_hip.Runtime, shape: Shape, head_size: int, kernels: str | None
) -> list[str]:
    """Both passes, the second one by these kernels, and all results against float64: the symbols
    that backward launched."""
    problem = Problem(hip, shape, "bfloat16", head_size, 0)
    inputs = problem.inputs
    q, k, v, dout = map(problem.array, (inputs.q, inputs.k, inputs.v, inputs.dout))
    fwd, bwd, more = problem.mode()
    options = {"stream": problem.stream, **mask(shape.window)}
    out, lse = fwd(q, k, v, *more, **options)
    hip.synchronize(problem.stream)
    aiter_attn.configure(kernels=kernels)
    runtime.launches.clear()
    gradients, _workspace = problems.backward(
        problem, bwd, dout, q, k, v, out, lse, *more, **options
    )
    hip.synchronize(problem.stream)
    problem.check(o=out, lse=lse, **dict(zip(("dq", "dk", "dv"), gradients, strict=True)))
    return [launch.symbol for launch in runtime.launches]


def expect_backward(
    hip: Hip, runtime: emulated_hip.Runtime, shape: Shape, head_size: int, stem: str
) -> None:
    """That AITER's kernel serves backward, between Composable Kernel's."""
    before, main, after, *sums = backward_by(hip, runtime, shape, head_size, None)
    assert main == symbol(stem)
    assert "dot_do_o" in before and "convert_dq" in after
    assert len(sums) == (0 if shape.heads[0] == shape.heads[1] else 2)
    assert all("sum_heads" in name for name in sums)
