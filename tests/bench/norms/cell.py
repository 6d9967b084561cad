# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""One shape of the bench: its tensors, the right results, and a launch of each operation on it."""

from __future__ import annotations

import torch

from kernels.norm.configuration import Configuration
from tests.bench.norms import cuda
from tests.bench.norms.operations import (
    backward_source,
    norm_backward,
    norm_forward,
    norm_macros,
    softmax_backward,
    softmax_forward,
    softmax_macros,
    span,
)
from tests.support.norms.choices import HOPPER, Device, Rows, choose

TYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}
WEIGHTS = {"rms_forward": 1, "layer_forward": 2}  # vectors that norm_forward reads
SUMS = {"rms_backward": 1, "layer_backward": 2}  # vectors that norm_backward writes


def vector_of(hidden: int, dtype: torch.dtype) -> int:
    """Columns that a thread moves at once; rows that none divides are taken apart."""
    vector = 16 // dtype.itemsize
    if hidden > vector:
        return vector
    while hidden % vector:
        vector //= 2
    return vector


def chosen(
    operation: str,
    hidden: int,
    dtype: torch.dtype,
    count: int,
    dh: bool = False,
    device: Device = HOPPER,
) -> Configuration:
    """The library's choice for `count` dense rows of one type. dh: of a norm's backward pass that
    adds the gradient of a residual stream. device: that it is made for."""
    size, vector = dtype.itemsize, vector_of(hidden, dtype)
    rows = Rows(
        operation,
        span(hidden, vector, SUMS.get(operation, 0)),
        vector,
        size,
        size * (2 + dh if operation.endswith("backward") else 1),
        size * WEIGHTS.get(operation, 0),
        SUMS.get(operation, 0),
        sixteen_bytes=vector * size == 16,
        shifted=hidden % vector > 0,
        largest_bytes=size,
        count=count,
        device=device,
    )
    return choose([rows])[0]


def source_and_macros(
    operation: str, c: Configuration, hidden: int, dtype: torch.dtype, dh: bool = False
) -> tuple[str, dict]:
    """dh: as chosen() has it."""
    layer, backward = operation.startswith("layer"), operation.endswith("backward")
    vector = vector_of(hidden, dtype)
    if operation.startswith("softmax"):
        return "softmax.cpp", softmax_macros(c, hidden, vector, dtype, "none", backward=backward)
    source = backward_source(c) if backward else "norm_forward.cpp"
    types = (dtype, dtype, dtype)
    return source, norm_macros(
        c, layer, hidden, vector, types, backward=backward, add=dh, beta=layer and not backward
    )


class Cell:
    """Tensors and references of one operation and hidden size. dh: norms' backward passes have it,
    as chosen() says. statistics: norms' forward passes store mean and rstd."""

    def __init__(
        self,
        hidden: int,
        rows: int,
        dtype: torch.dtype,
        dh: bool = False,
        statistics: bool = True,
    ) -> None:
        self.hidden, self.rows = hidden, rows
        d = {"device": "cuda", "dtype": dtype}
        torch.manual_seed(hidden)
        self.dh = torch.randn(rows, hidden, **d) if dh else None
        self.x = torch.randn(rows, hidden, **d)
        self.g = torch.randn(rows, hidden, **d)
        self.w, self.b = torch.randn(hidden, **d), torch.randn(hidden, **d)
        self.out = torch.empty_like(self.x)
        self.dw, self.db = torch.empty_like(self.w), torch.empty_like(self.w)
        f = torch.float32
        self.mean = torch.empty(rows, device="cuda", dtype=f)
        self.rms_rstd, self.ln_rstd = torch.empty_like(self.mean), torch.empty_like(self.mean)
        self.stats: list[torch.Tensor | None] = [None, None]
        if statistics:
            self.stats = [torch.empty_like(self.mean), torch.empty_like(self.mean)]
        self.softmax = torch.empty_like(self.x)
        dw = {"rms": 0, "layer": 0}
        self.dbeta = 0
        step = max(1, (1 << 22) // hidden)
        for i in range(0, rows, step):
            x, g = self.x[i : i + step].float(), self.g[i : i + step].float()
            self.mean[i : i + step] = x.mean(-1)
            self.ln_rstd[i : i + step] = (x.var(-1, unbiased=False) + 1e-6).rsqrt()
            self.rms_rstd[i : i + step] = (x.square().mean(-1) + 1e-6).rsqrt()
            self.softmax[i : i + step] = x.softmax(-1)
            dw["rms"] += (g * x * self.rms_rstd[i : i + step, None]).sum(0)
            centred = (x - self.mean[i : i + step, None]) * self.ln_rstd[i : i + step, None]
            dw["layer"] += (g * centred).sum(0)
            self.dbeta += g.sum(0)
        self.dgamma = dw
        self.sample = slice(rows // 2, rows // 2 + max(1, min(64, rows // 2)))
        s = self.sample
        x, g, w, b = self.x[s].double(), self.g[s].double(), self.w.double(), self.b.double()
        want = {}
        r = self.rms_rstd[s, None].double()
        want["rms_forward"] = x * r * w
        h = x * r
        want["rms_backward"] = (g * w - h * (h * g * w).mean(-1, keepdim=True)) * r
        r = self.ln_rstd[s, None].double()
        h = (x - self.mean[s, None].double()) * r
        want["layer_forward"] = h * w + b
        want["layer_backward"] = (
            g * w - (g * w).mean(-1, keepdim=True) - h * (h * g * w).mean(-1, keepdim=True)
        ) * r
        if self.dh is not None:
            for operation in SUMS:
                want[operation] += self.dh[s].double()
        want["softmax_forward"] = x.softmax(-1)
        y = self.softmax[s].double()
        want["softmax_backward"] = y * (g - (y * g).sum(-1, keepdim=True))
        self.want = want

    def launcher(self, operation: str, c: Configuration, module: cuda.Module):
        layer = operation.startswith("layer")
        if operation == "softmax_forward":
            return softmax_forward(module, c, self.x, self.out)
        if operation == "softmax_backward":
            return softmax_backward(module, c, self.softmax, self.g, self.out)
        if operation.endswith("forward"):
            beta, mean = (self.b, self.stats[0]) if layer else (None, None)
            return norm_forward(
                module, c, self.x, self.w, beta, self.out, mean, self.stats[1], 1e-6
            )
        mean, rstd = (self.mean, self.ln_rstd) if layer else (None, self.rms_rstd)
        db = self.db if layer else None
        return norm_backward(
            module, c, self.x, self.g, self.w, mean, rstd, self.out, self.dw, db, self.dh
        )

    def error(self, operation: str) -> float:
        """The largest relative error (norm over norm) of the results."""

        def off(a, b):
            value = ((a.double() - b.double()).norm() / b.double().norm()).item()
            return value if value == value else float("inf")

        worst = off(self.out[self.sample], self.want[operation])
        if operation in ("rms_backward", "layer_backward"):
            worst = max(worst, off(self.dw, self.dgamma[operation.split("_")[0]]))
        if operation == "layer_backward":
            worst = max(worst, off(self.db, self.dbeta))
        return worst

    def bytes(self, operation: str) -> int:
        matrices = 3 if operation.endswith("backward") else 2
        if operation in SUMS and self.dh is not None:
            matrices += 1
        return matrices * self.x.nbytes
