# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The cases of check.py: types, sizes, strides, masks, rows on demand, rare kinds."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import torch

from tests.bench.norms import operations

HIDDEN = (1, 3, 40, 64, 100, 127, 256, 768, 1000, 1024, 1025, 2048, 2304, 2881, 3072, 4096, 4097)
HIDDEN += (5120, 8192, 8193, 8200, 12288, 12289, 16384, 20480, 32768, 50257, 65536, 131072, 131073)
HIDDEN += (201089, 262144)
MIXED_HIDDEN = (768, 1003, 1024, 4096, 16384, 50257, 65536)
ODD_HIDDEN = (1025, 2881, 4097, 8193, 12289, 50257, 131073, 201089)
SMALL_HIDDEN = (3, 1000, 1003, 1024, 16384, 65536)
MANY = 1 << 20  # rows
B, H, F = torch.bfloat16, torch.float16, torch.float32
E4, E5 = torch.float8_e4m3fn, torch.float8_e5m2
TYPES = ((B, B, B), (H, H, H), (F, F, F), (F, F, B), (F, F, H), (B, F, B), (H, F, H))
FP8_TYPES = ((B, B, E4), (F, F, E4), (H, H, E5), (B, B, E5))
KIND_HIDDEN = (64, 1000, 1003, 4096, 8192, 32768, 131072)
# Many rows and few; of 4096 columns every kind of few (configure.h: few_rows).
KIND_ROWS = {4096: (601, 300, 40, 12), 131072: (80, 12)}


@dataclasses.dataclass(frozen=True)
class Case:
    operation: str
    hidden: int
    rows: int
    types: tuple[torch.dtype, torch.dtype, torch.dtype]
    add: bool = False
    zero_centred: bool = False
    padding: int = 0  # elements between rows
    mask: str = "none"
    queries: int = 1
    groups: int | None = None  # clusters that share the rows out, where they stay
    count: int | None = None  # rows for which the kernel is chosen, where not for `rows`
    gamma: bool = True
    beta: bool = True  # of LayerNorm
    gradients: bool = True  # of gamma and beta
    in_place: bool = False  # y is x where their types are one, the sum is the residual
    scales: int = operations.NO_SCALES

    def __str__(self) -> str:
        types = "/".join(operations.TYPE_NAMES[t] for t in self.types)
        rest = f"add={self.add} centred={self.zero_centred} pad={self.padding} mask={self.mask}"
        rest += f" groups={self.groups}" if self.groups else ""
        rest += f" count={self.count}" if self.count else ""
        names = ("gamma", "beta", "gradients")
        rest += "".join(f" {name}=False" for name in names if not getattr(self, name))
        rest += " in place" if self.in_place else ""
        rest += f" scales={self.scales}" if self.scales else ""
        return f"{self.operation} {self.rows}x{self.hidden} {types} {rest}"

    @property
    def backward(self) -> bool:
        return self.operation.endswith("backward")

    @property
    def layer(self) -> bool:
        return self.operation.startswith("layer")

    @property
    def has_beta(self) -> bool:
        return self.layer and self.beta

    @property
    def wants_dgamma(self) -> bool:
        return self.gamma and self.gradients

    @property
    def wants_dbeta(self) -> bool:
        return self.has_beta and self.gradients

    def reads(self) -> list[torch.dtype]:
        x, _, y = self.types
        if self.operation.startswith("softmax"):
            return [x, x] if self.backward else [x]
        return [x] * (2 if self.add else 1) + ([y] if self.backward else [])

    def weight_bytes(self) -> int:
        """Of a column of gamma and beta, as norm_forward reads them; without gamma the same."""
        if self.operation.startswith("softmax") or self.backward:
            return 0
        return self.types[1].itemsize * (2 if self.has_beta else 1)

    def sums(self) -> int:
        """Vectors that norm_backward writes where they are wanted."""
        if self.operation.startswith("softmax") or not self.backward:
            return 0
        return 2 if self.layer else 1

    def vector(self) -> int:
        x, w, y = self.types
        vector = 16 // min(max(t.itemsize, 2) for t in (x, w, y))
        if self.hidden % vector and self.hidden > vector:
            return vector  # rows.h: SHIFTED, REALIGNED
        stride = self.hidden + self.padding
        while self.hidden % vector or stride % vector:
            vector //= 2
        return vector


def norm_cases(operation: str, small: bool) -> Iterator[Case]:
    """Of many rows, and of few, which have kernels of their own (configure.h: few_rows)."""
    for rows, count in ((5, MANY), (5, None)) if small else ((601, None), (40, None)):

        def case(hidden: int, types: tuple = (B, B, B), rows: int = rows, **more: Any) -> Case:
            return Case(operation, hidden, rows, types, count=count, **more)  # noqa: B023

        for hidden in SMALL_HIDDEN if small else HIDDEN:
            yield case(hidden, rows=rows if hidden < 1 << 17 else min(rows, 80))
        for hidden in (1024,) if small else MIXED_HIDDEN:
            for types in TYPES[1:]:
                yield case(hidden, types)
            yield case(hidden, zero_centred=True, padding=24)
            yield case(hidden, padding=1)
            if operation.startswith("rms"):
                yield case(hidden, add=True)
                yield case(hidden, (F, F, F), add=True)
            if operation.endswith("forward"):
                for types in FP8_TYPES:
                    yield case(hidden, types)
    for hidden in (1003, 50257) if small else ODD_HIDDEN if operation.endswith("backward") else ():
        yield Case(operation, hidden, 40, (B, B, B), add=True, count=MANY)
        yield Case(operation, hidden, 40, (B, B, F), count=MANY)
    yield Case(operation, 4096, 1, (B, B, B))
    yield Case(operation, 8192, 128, (B, B, B))
    yield Case(operation, 8192, 129, (B, B, B))


def kinds(small: bool) -> Iterator[Case]:
    """Of the macros that most kernels are without: no gamma, no gradients of weights, in place,
    and scales that the pass makes."""
    for hidden in (64, 1003) if small else KIND_HIDDEN:
        for rows in (5,) if small else KIND_ROWS.get(hidden, (601, 40)):
            for t in (B, F):

                def case(operation: str, y: torch.dtype = t, **more: Any) -> Case:
                    return Case(operation, hidden, rows, (t, t, y), **more)  # noqa: B023

                for norm in ("rms", "layer"):
                    forward, backward = f"{norm}_forward", f"{norm}_backward"
                    yield case(forward, gamma=False, beta=False)
                    yield case(forward, in_place=True)
                    yield case(forward, in_place=True, add=True)
                    yield case(backward, gamma=False, beta=False)
                    yield case(backward, gradients=False)
                yield case("layer_forward", gamma=False)
                yield case("layer_backward", gamma=False)
                for y in (E4, E5):
                    yield case("rms_forward", y, scales=operations.ROW_SCALES)
                    if hidden % operations.SCALE_BLOCK == 0:
                        yield case("rms_forward", y, scales=operations.BLOCK_SCALES)
    # Single columns: rows that registers do not hold are read from memory again, and so are those
    # beyond the table and those too wide for a ring.
    for norm in ("rms", "layer"):
        for hidden in (4096,) if small else (4096, 8192, 131072):
            operation, rows = f"{norm}_forward", 5 if small else 80
            yield Case(operation, hidden, rows, (B, B, B), add=True, padding=1, in_place=True)
        for hidden, t in () if small else ((1 << 18, F), (600001, B)):
            yield Case(f"{norm}_forward", hidden, 20, (t, t, t), add=True, in_place=True)
    for scales in (operations.ROW_SCALES, operations.BLOCK_SCALES):
        quantised = functools.partial(Case, "rms_forward", types=(B, B, E4), scales=scales)
        for hidden in (32, 64):  # the lanes of a block of single columns are a warp
            yield quantised(hidden, 5 if small else 601, padding=1)
        for hidden in () if small else (4096, 32768):
            yield quantised(hidden, 80, add=True, in_place=True)
            yield quantised(hidden, 80, zero_centred=True, padding=32)
            yield quantised(hidden, 80, gamma=False)
        for hidden in () if small else (32768, 65536):
            yield quantised(hidden, 90, groups=2)


def cases(small: bool) -> Iterator[Case]:
    for operation in ("rms_forward", "layer_forward", "rms_backward", "layer_backward"):
        yield from norm_cases(operation, small)
    for operation in ("softmax_forward", "softmax_backward"):
        for mask in operations.MASKS:
            for hidden in SMALL_HIDDEN if small else HIDDEN:
                queries = min(hidden, 3 if small else 50)
                yield Case(operation, hidden, 6 * queries, (B, B, B), mask=mask, queries=queries)
            for hidden in (1024,) if small else MIXED_HIDDEN:
                for t in (H, F):
                    yield Case(operation, hidden, 12, (t, t, t), mask=mask, queries=2)
                yield Case(operation, hidden, 12, (H, H, H), mask=mask, queries=2, padding=8)
        if not small:
            yield Case(operation, 64, 6 * 64, (B, B, B), mask="causal", queries=64)
            yield Case(operation, 64, 6 * 100, (B, B, B), mask="causal", queries=100)
    # More bytes than rows.h lets L2 keep the output of.
    if not small:
        for operation in ("rms_forward", "layer_forward", "softmax_forward"):
            for hidden in (1024, 131072):
                yield Case(operation, hidden, (1 << 26) // hidden + 1, (B, B, B))
        # More than the registers of a cluster hold.
        for operation in ("rms_backward", "layer_backward"):
            for hidden in (1 << 20, (1 << 20) + 1):
                yield Case(operation, hidden, 70, (B, B, B), add=hidden % 2 > 0)
    # Few clusters and many rows: most rows are dealt on demand.
    for operation in ("rms_forward", "layer_forward", "softmax_forward", "softmax_backward"):
        for hidden in (65536,) if small else (8192, 16384, 32768, 65536, 131072):
            for groups in (2,) if small else (1, 2, 7):
                yield Case(operation, hidden, 24 if small else 90, (B, B, B), groups=groups)
    yield from kinds(small)
