# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Problems on a device, the wheel's arguments for them, and the right results."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import aiter_attn
import numpy as np
import pytest

from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, MASK_NONE, Case
from tests.emulation.harness.reference import (
    Array,
    Expected,
    Inputs,
    draw,
    from_storage,
    gradients,
    reference,
)
from tests.emulation.verify.verdict import GATES, Gate
from tests.emulator.hip.hip import DTYPES, DeviceArray, Hip

# Those of single kernels. exp and log of a GPU have errors of their own, which the emulator lacks.
_GATES = {name: GATES["o"] for name in ("o", "dq", "dk", "dv")} | {"lse": Gate(2.0, 8.0)}
NO_WINDOW, CAUSAL = (-1, -1), (-1, 0)
SHORT = {"float16": "fp16", "bfloat16": "bf16"}


@dataclasses.dataclass(frozen=True)
class Shape:
    """Lengths of the sequences: all equal in batch mode, any in group mode."""

    lengths: tuple[tuple[int, int], ...]  # seqlen_q, seqlen_k of each sequence
    heads: tuple[int, int] = (2, 2)
    window: tuple[int, int] = NO_WINDOW
    group: bool = False

    def __str__(self) -> str:
        lengths = "_".join(f"{q}x{k}" for q, k in self.lengths)
        left, right = self.window
        return (f"{'group' if self.group else 'batch'}-{lengths}-h{self.heads[0]}_{self.heads[1]}"
                f"-w{left}_{right}")  # fmt: skip


class Problem:
    """Arrays on the host, their copies on a device, and the right results."""

    def __init__(self, hip: Hip, shape: Shape, dtype: str, head_size: int, device: int) -> None:
        """On a stream of the device, which becomes the current one."""
        hip.make_current(device)
        self.hip, self.shape, self.dtype, self.device = hip, shape, dtype, device
        self.stream = hip.stream()
        mask = MASK_NONE if shape.window == NO_WINDOW else MASK_BOTTOM_RIGHT
        self.case = Case("", shape.lengths, *shape.heads, mask=mask, window=shape.window)
        self.inputs = draw(self.case, SHORT[dtype], (head_size, head_size), seed=7, backward=True)

    def array(self, tokens: Array) -> DeviceArray:
        """Of bits [tokens][heads][head_size]."""
        tokens = tokens.view(DTYPES[self.dtype])
        if not self.shape.group:
            tokens = tokens.reshape(len(self.shape.lengths), -1, *tokens.shape[1:])
        return self.hip.array(tokens, self.stream, self.device)

    def mode(self) -> tuple[Any, Any, list[Any]]:
        """The functions of this mode, and the arguments that only it has."""
        if not self.shape.group:
            return aiter_attn.mha_fwd, aiter_attn.mha_bwd, []
        starts = [
            self.hip.array(np.cumsum([0, *lengths], dtype=np.int32), self.stream, self.device)
            for lengths in zip(*self.shape.lengths, strict=True)
        ]
        longest = [max(lengths) for lengths in zip(*self.shape.lengths, strict=True)]
        return aiter_attn.mha_varlen_fwd, aiter_attn.mha_varlen_bwd, [*starts, *longest]

    def read(self, name: str, result: DeviceArray) -> Array:
        """With all sequences one after the other."""
        actual = result.read()
        if self.shape.group:
            return actual
        if name == "lse":
            return actual.transpose(1, 0, 2).reshape(actual.shape[1], -1)
        return actual.reshape(-1, *actual.shape[2:])

    def check(self, **results: DeviceArray) -> None:
        actual = {name: self.read(name, result) for name, result in results.items()}
        dtype = SHORT[self.dtype]
        stored = {name: np.ascontiguousarray(x).view(np.uint16) for name, x in actual.items()
                  if name != "lse"}  # fmt: skip
        expected = reference(self.case, dtype, self.inputs, stored["o"])
        expected |= gradients(self.case, dtype, expected)
        numbers = {name: from_storage(x, dtype) for name, x in stored.items()}
        numbers["lse"] = actual["lse"].astype(np.float64)
        errors = {name: expected[name].error(x) for name, x in numbers.items()}
        print(self.shape, self.dtype, errors)
        for name, error in errors.items():
            gate = _GATES[name]
            assert gate.allows(error.rms, error.largest), f"{name}: {error}, allowed: {gate}"


def forward_and_backward(problem: Problem) -> None:
    """Both passes on the problem's stream, and all their results against float64."""
    inputs = problem.inputs
    q, k, v, dout = map(problem.array, (inputs.q, inputs.k, inputs.v, inputs.dout))
    fwd, bwd, more = problem.mode()
    options = {"stream": problem.stream, **mask(problem.shape.window)}
    out, lse = fwd(q, k, v, *more, **options)
    (dq, dk, dv), _workspace = backward(problem, bwd, dout, q, k, v, out, lse, *more, **options)
    problem.hip.synchronize(problem.stream)
    problem.check(o=out, lse=lse, dq=dq, dk=dk, dv=dv)


def backward(problem: Problem, function: Any, *arguments: Any, **more: Any) -> Any:
    """mha_bwd or mha_varlen_bwd with the workspace that it asks for, and that workspace."""
    with pytest.raises(TypeError, match=r"pass workspace= of \d+ bytes") as caught:
        function(*arguments, **more)
    size = int(re.search(r"of (\d+) bytes", str(caught.value))[1])
    workspace = problem.hip.empty((size,), "uint8", problem.stream, problem.device)
    return function(*arguments, workspace=workspace, **more), workspace


def dsink_of(case: Case, dtype: str, inputs: Inputs, stored: Array) -> Expected:
    """Of o as it was stored."""
    expected = reference(case, dtype, inputs, stored)
    lse, delta = (expected[name].value for name in ("lse", "delta"))
    sink = inputs.sink
    assert sink is not None
    with np.errstate(invalid="ignore"):
        weight = np.where(np.isneginf(lse), 0.0, np.exp(sink.astype(float)[:, None] - lse))
    parts = -weight * delta / (1 - case.p_drop)
    spread = weight * (expected["delta"].unit + 2e-6 * np.abs(delta)) / (1 - case.p_drop)
    unit = np.sqrt((spread**2).sum(axis=1)) + 1e-30
    return Expected(parts.sum(axis=1), unit)


def check_with_sink(problem: Problem, out: Any, lse: Any, gradients: Any) -> None:
    dq, dk, dv, dsink = gradients
    problem.check(o=out, lse=lse, dq=dq, dk=dk, dv=dv)
    bits = np.ascontiguousarray(problem.read("o", out)).view(np.uint16)
    expected = dsink_of(problem.case, SHORT[problem.dtype], problem.inputs, bits)
    error = expected.error(dsink.read().astype(float))
    print(error)
    assert error.largest < 8, error


def mask(window: tuple[int, int]) -> dict[str, Any]:
    return {"causal": True} if window == CAUSAL else {"window_size": window}
