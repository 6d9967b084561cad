# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""LayerNorm, RMSNorm and softmax on a GPU against float64, by the checks of attention's calls.

Which of its kernels serves a call of theirs the library does not tell: a report has operations.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy

import aiter_attn
from aiter_attn._cli.hardware.checks import Output, check
from aiter_attn._cli.hardware.memory import Memory, numpy_dtype, summary

__all__ = ["Case", "cases", "run_case"]

_EPSILON = 1e-5
# Few short rows, many rows, which a backward pass sums in two launches, and rows that workgroups
# share.
_SHAPES = ((7, 100), (1200, 1024), (3, 70000))
_OPERATIONS = ("rms_norm", "layer_norm", "softmax")


@dataclasses.dataclass(frozen=True)
class Case:
    """A forward and a backward pass over rows."""

    operation: str
    dtype: str
    rows: int
    columns: int

    @property
    def name(self) -> str:
        return f"{self.operation} {self.dtype} {self.rows}x{self.columns} fwd+bwd"


def cases(quick: bool) -> Iterator[Case]:
    """quick: of short rows alone."""
    for operation in _OPERATIONS:
        for dtype in ("float16", "bfloat16", "float32"):
            for shape in _SHAPES[:1] if quick else _SHAPES:
                yield Case(operation, dtype, *shape)


class _Call:
    """Arrays on the host and on a GPU, and the calls."""

    def __init__(self, memory: Memory, case: Case, seed: int) -> None:
        self.case = case
        generator = numpy.random.default_rng(seed)
        dtype = numpy_dtype(case.dtype)

        def draw(*shape: int) -> Any:
            return generator.standard_normal(shape).astype(dtype)

        self.host = {"x": draw(case.rows, case.columns), "dy": draw(case.rows, case.columns)}
        if case.operation != "softmax":
            self.host["gamma"] = draw(case.columns)
        if case.operation == "layer_norm":
            self.host["beta"] = draw(case.columns)
        self.arrays: dict[str, Any] = {n: memory.array(data) for n, data in self.host.items()}

    def forward(self) -> dict[str, Any]:
        x: Any = self.arrays["x"]
        gamma: Any = self.arrays.get("gamma")
        if self.case.operation == "softmax":
            return {"y": aiter_attn.softmax_fwd(x)}
        if self.case.operation == "rms_norm":
            y, rstd, _ = aiter_attn.rms_norm_fwd(x, gamma, epsilon=_EPSILON)
            return {"y": y, "rstd": rstd}
        beta = self.arrays["beta"]
        y, mean, rstd, _ = aiter_attn.layer_norm_fwd(x, gamma, beta, epsilon=_EPSILON)
        return {"y": y, "mean": mean, "rstd": rstd}

    def backward(self, given: dict[str, Any]) -> dict[str, Any]:
        """given: what the forward pass gave."""
        x: Any = self.arrays["x"]
        dy: Any = self.arrays["dy"]
        gamma: Any = self.arrays.get("gamma")
        if self.case.operation == "softmax":
            return {"dx": aiter_attn.softmax_bwd(dy, given["y"])}
        if self.case.operation == "rms_norm":
            dx, dgamma = aiter_attn.rms_norm_bwd(dy, x, gamma, given["rstd"])
            return {"dx": dx, "dgamma": dgamma}
        dx, dgamma, dbeta = aiter_attn.layer_norm_bwd(dy, x, gamma, given["mean"], given["rstd"])
        return {"dx": dx, "dgamma": dgamma, "dbeta": dbeta}

    def expected(self, y: Any) -> dict[str, tuple[Any, Any]]:
        """Each result in float64, and the terms of its error. y: as it was stored, of which a
        softmax's backward pass is a function."""
        wide = {name: data.astype(numpy.float64) for name, data in self.host.items()}
        x, dy = wide["x"], wide["dy"]
        if self.case.operation == "softmax":
            weights = numpy.exp(x - x.max(axis=1, keepdims=True))
            right = weights / weights.sum(axis=1, keepdims=True)
            y = y.astype(numpy.float64)
            dx = y * (dy - (y * dy).sum(axis=1, keepdims=True))
            return {"y": (right, None), "dx": (dx, _largest(dx))}
        layer = self.case.operation == "layer_norm"
        mean = x.mean(axis=1, keepdims=True) if layer else numpy.zeros_like(x[:, :1])
        rstd = 1 / numpy.sqrt(numpy.square(x - mean).mean(axis=1, keepdims=True) + _EPSILON)
        xhat, weighted = (x - mean) * rstd, dy * wide["gamma"]
        right = xhat * wide["gamma"] + (wide["beta"] if layer else 0.0)
        dx = weighted - xhat * (weighted * xhat).mean(axis=1, keepdims=True)
        if layer:
            dx = dx - weighted.mean(axis=1, keepdims=True)
        dx = dx * rstd
        # Of a mean the terms are x.
        return {
            "y": (right, _largest(right)),
            "mean": (mean[:, 0], numpy.abs(x).max(axis=1)),
            "rstd": (rstd[:, 0], None),
            "dx": (dx, _largest(dx)),
            "dgamma": ((dy * xhat).sum(axis=0), _length(dy * xhat)),
            "dbeta": (dy.sum(axis=0), _length(dy)),
        }


def _largest(rows: Any) -> Any:
    return numpy.abs(rows).max(axis=1, keepdims=True)


def _length(terms: Any) -> Any:
    """The size of a sum over rows whose terms have any sign."""
    return numpy.sqrt(numpy.square(terms).sum(axis=0))


def run_case(memory: Memory, case: Case, seed: int, repeat: int, timed: int) -> dict[str, Any]:
    """See attention.run_case."""
    call = _Call(memory, case, seed)
    memory.wait()
    memory.made.clear()
    try:
        forwards = [call.forward() for _ in range(repeat)]
        backwards = [call.backward(forwards[0]) for _ in range(repeat)]
        memory.wait()
        expected = call.expected(forwards[0]["y"].read())
        outputs = [
            Output(
                name,
                [made[name] for made in passes],
                expected[name][0],
                "float32" if name in ("mean", "rstd") else case.dtype,
                same=True,
                terms=expected[name][1],
                view=lambda got: got,
            )
            for passes in (forwards, backwards)
            for name in passes[0]
        ]
        told = check(memory, outputs, call.arrays, call.host)
        times = {}
        if timed:
            times["forward"] = summary(memory.times(call.forward, timed, cold=True))
            times["backward"] = summary(
                memory.times(lambda: call.backward(forwards[0]), timed, cold=True)
            )
        return {**told, "repeats": repeat, "milliseconds": times}
    finally:
        memory.made.clear()
