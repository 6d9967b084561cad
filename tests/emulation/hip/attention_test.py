# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The wheel on device arrays, forward and backward, against float64."""

from __future__ import annotations

import dataclasses
import os
import re
from typing import Any

import aiter_attn
import numpy as np
import pytest

from tests.emulation.hip import reference, wheel_contents
from tests.emulation.hip.hip import DTYPES, DeviceArray, Hip
from tests.emulation.hip.reference import Array

# In half units of the storage dtype (reference.error): rounding alone gives about 0.6.
# Probabilities are rounded (in fp16 truncated) on the way; before dk and dv are summed over a
# group, each head's are rounded.
GATES = {"out": 1.5, "lse": 0.02, "dq": 1.5, "dk": 1.5, "dv": 1.5}
NO_WINDOW, CAUSAL = (-1, -1), (-1, 0)
KINDS = [(dtype, head_size) for dtype in ("float16", "bfloat16") for head_size in (64, 128)]
LONG = os.environ.get("EMULATED_HIP_LONG") == "1"


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


# Each runs every kernel of its mode and mask, in every dtype and head size.
SHAPES = [
    Shape(((33, 47),) * 2, heads=(2, 1)),
    Shape(((77, 130),), heads=(3, 1), window=CAUSAL),
    Shape(((19, 40), (5, 0), (64, 33), (1, 1)), heads=(4, 2), group=True),
    Shape(((40, 40), (0, 7), (17, 50), (0, 0), (3, 0)), window=CAUSAL, group=True),
]
MORE_SHAPES = [
    Shape(((65, 31),), window=(9, 4)),  # rows that see no key
    Shape(((1, 40),), window=CAUSAL),
    Shape(((70, 70), (0, 9)), group=True),  # where CK's unmasked backward leaves its buffers
]
LONG_SHAPES = [
    Shape(((128, 128),) * 2, heads=(4, 4)),
    Shape(((257, 129),), heads=(6, 2), window=CAUSAL),
    Shape(((129, 300),), heads=(8, 1), window=(40, 10)),
    Shape(((200, 200), (0, 0), (31, 129), (1, 300)), heads=(4, 1), window=(64, 0), group=True),
]


class Case:
    """A problem: arrays on the host, their copies on a device, and what is right."""

    def __init__(self, hip: Hip, shape: Shape, dtype: str, head_size: int, device: int) -> None:
        """On a stream of the device, which becomes the current one."""
        hip.make_current(device)
        self.hip, self.shape, self.dtype, self.device = hip, shape, dtype, device
        self.stream = hip.stream()
        rng = np.random.default_rng(7)
        queries, keys = (sum(x) for x in zip(*shape.lengths, strict=True))
        heads_q, heads_k = shape.heads

        def draw(tokens: int, heads: int) -> Array:
            return rng.standard_normal((tokens, heads, head_size)).astype(DTYPES[dtype])

        self.q, self.dout = draw(queries, heads_q), draw(queries, heads_q)
        self.k, self.v = draw(keys, heads_k), draw(keys, heads_k)

    def on_device(self, tokens: Array) -> DeviceArray:
        if not self.shape.group:
            tokens = tokens.reshape(len(self.shape.lengths), -1, *tokens.shape[1:])
        return self.hip.array(tokens, self.stream, self.device)

    def arrays(self, *names: str) -> list[DeviceArray]:
        return [self.on_device(getattr(self, name)) for name in names]

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

    def expected(self) -> dict[str, Array]:
        """Every result, with all sequences one after the other."""
        parts, at_q, at_k = [], 0, 0
        for queries, keys in self.shape.lengths:
            q, k = slice(at_q, at_q + queries), slice(at_k, at_k + keys)
            parts.append(reference.attention(self.q[q], self.k[k], self.v[k], self.dout[q],
                                             self.shape.window))  # fmt: skip
            at_q, at_k = at_q + queries, at_k + keys
        return {
            name: np.concatenate([getattr(p, name) for p in parts], axis=int(name == "lse"))
            for name in ("out", "lse", "dq", "dk", "dv")
        }

    def check(self, **results: DeviceArray) -> None:
        expected, measured = self.expected(), {}
        for name, result in results.items():
            actual = result.read()
            if not self.shape.group:  # the sequences one after the other
                if name == "lse":
                    actual = actual.transpose(1, 0, 2).reshape(actual.shape[1], -1)
                else:
                    actual = actual.reshape(-1, *actual.shape[2:])
            measured[name] = reference.error(actual, expected[name], self.dtype)
        print(self.shape, self.dtype, {name: float(f"{e:.3g}") for name, e in measured.items()})
        for name, error in measured.items():
            assert error <= GATES[name], f"{name} is {error:.2f} half units off: {GATES[name]}"


def backward(case: Case, function: Any, *arguments: Any, **more: Any) -> Any:
    """mha_bwd or mha_varlen_bwd with the workspace that it asks for, and that workspace."""
    with pytest.raises(TypeError, match=r"pass workspace= of \d+ bytes") as caught:
        function(*arguments, **more)
    size = int(re.search(r"of (\d+) bytes", str(caught.value))[1])
    workspace = case.hip.empty((size,), "uint8", case.stream, case.device)
    return function(*arguments, workspace=workspace, **more), workspace


def mask(window: tuple[int, int]) -> dict[str, Any]:
    return {"causal": True} if window == CAUSAL else {"window_size": window}


def built(shape: Shape, dtype: str, head_size: int) -> bool:
    short = {"float16": "fp16", "bfloat16": "bf16"}[dtype]
    mode = "group" if shape.group else "batch"
    return wheel_contents.has(mode, shape.window != NO_WINDOW, short, head_size)


def cases() -> list[Any]:
    """All that the wheel has kernels for; --//kernels:variants=core has them for all."""
    if LONG:
        chosen = [(shape, *kind) for shape in LONG_SHAPES for kind in KINDS]
    else:
        chosen = [(shape, *kind) for shape in SHAPES for kind in KINDS]
        chosen += [(shape, *kind) for shape in MORE_SHAPES for kind in (KINDS[0], KINDS[3])]
    return [pytest.param(*case, id="-".join(map(str, case))) for case in chosen if built(*case)]


@pytest.mark.parametrize("arch", wheel_contents.ARCHS)
@pytest.mark.parametrize(("shape", "dtype", "head_size"), cases())
def test_forward_and_backward(
    hip: Hip, arch: str, shape: Shape, dtype: str, head_size: int
) -> None:
    check_case(Case(hip, shape, dtype, head_size, hip.device_of(arch)))


def check_case(case: Case) -> None:
    hip, stream = case.hip, case.stream
    q, k, v, dout = case.arrays("q", "k", "v", "dout")
    fwd, bwd, more = case.mode()
    options = {"stream": stream, **mask(case.shape.window)}
    out, lse = fwd(q, k, v, *more, **options)
    (dq, dk, dv), _workspace = backward(case, bwd, dout, q, k, v, out, lse, *more, **options)
    hip.synchronize(stream)
    case.check(out=out, lse=lse, dq=dq, dk=dk, dv=dv)
