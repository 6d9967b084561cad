# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Checks the installed package aiter_attn on torch's CUDA tensors, against float64.

    python3 -m tests.bench.norms.check_package

Other streams than the default one, captured graphs, fp8 results, gradients of all kinds, calls that
are remembered; check.py has the types and sizes. Raises AssertionError for what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

import aiter_attn
import torch
from absl import app

F64 = torch.float64
# Of bfloat16, and of sums in float32.
TOLERANCE = {"rtol": 2.0**-7, "atol": 1e-3}


def near(got: torch.Tensor, want: torch.Tensor) -> None:
    torch.testing.assert_close(got.to(F64), want, **TOLERANCE)


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def rms(x: torch.Tensor, gamma: torch.Tensor) -> torch.Tensor:
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * gamma


def wide(*tensors: torch.Tensor) -> list[torch.Tensor]:
    return [t.detach().to(F64).requires_grad_() for t in tensors]


def check_norms(rows: int, hidden: int) -> None:
    x, residual, dy = draw(2, rows, hidden), draw(2, rows, hidden), draw(2, rows, hidden)
    gamma, beta = draw(hidden), draw(hidden)
    y, rstd, h = aiter_attn.rms_norm_fwd(x, gamma, residual=residual)
    torch.testing.assert_close(h, x + residual)
    h64, gamma64, beta64 = wide(h, gamma, beta)
    want = rms(h64, gamma64)
    near(y, want)
    dx, dgamma = aiter_attn.rms_norm_bwd(dy, h, gamma, rstd, dh=residual)
    want.backward(dy.to(F64))
    near(dx, h64.grad + residual.to(F64))
    torch.testing.assert_close(dgamma.to(F64), gamma64.grad, rtol=2.0**-7, atol=0.05)

    y, mean, rstd, _ = aiter_attn.layer_norm_fwd(x, gamma, beta)
    x64, gamma64, beta64 = wide(x, gamma, beta)
    want = torch.nn.functional.layer_norm(x64, (hidden,), gamma64, beta64, 1e-5)
    near(y, want)
    near(mean, x64.mean(-1))
    dx, dgamma, dbeta = aiter_attn.layer_norm_bwd(dy, x, gamma, mean, rstd)
    want.backward(dy.to(F64))
    near(dx, x64.grad)
    torch.testing.assert_close(dgamma.to(F64), gamma64.grad, rtol=2.0**-7, atol=0.05)
    torch.testing.assert_close(dbeta.to(F64), beta64.grad, rtol=2.0**-7, atol=0.05)


def check_softmax(queries: int, columns: int) -> None:
    x, dy = draw(3, queries, columns), draw(3, queries, columns)
    mask = torch.rand(1, queries, columns, device="cuda") < 0.3
    hidden = torch.ones(queries, columns, device="cuda").triu(columns - queries + 1) > 0
    for more, excluded, put in (
        ({}, None, 0.0),
        ({"causal": True}, hidden, -float("inf")),
        ({"mask": mask.to(torch.uint8)}, mask, -10000.0),
    ):
        (x64,) = wide(x)
        s = 0.5 * x64
        want = (s if excluded is None else s.masked_fill(excluded, put)).softmax(-1)
        y = aiter_attn.softmax_fwd(x, scale=0.5, **more)
        near(y, want)
        dx = aiter_attn.softmax_bwd(dy, y, scale=0.5, causal="causal" in more)
        want.backward(dy.to(F64))
        near(dx, x64.grad)


def check_fp8(dtype: torch.dtype) -> None:
    x, gamma = draw(64, 1024), draw(1024)
    scale, amax = torch.full((1,), 3.0, device="cuda"), torch.zeros(1, device="cuda")
    name = str(dtype).removeprefix("torch.")
    y, _, _ = aiter_attn.rms_norm_fwd(x, gamma, y_dtype=name, scale=scale, amax=amax)
    want = rms(x.to(F64), gamma.to(F64))
    assert y.dtype == dtype
    torch.testing.assert_close(
        y.to(F64), (want * 3).clamp(-448, 448), rtol=torch.finfo(dtype).eps, atol=1e-2
    )
    torch.testing.assert_close(amax.item(), want.abs().max().item(), rtol=1e-4, atol=0)


def check_streams_and_graphs(hidden: int) -> None:
    rows = 1000
    x, gamma, dy = draw(rows, hidden), draw(hidden), draw(rows, hidden)
    want, rstd, _ = aiter_attn.rms_norm_fwd(x, gamma)
    want_dx, want_dgamma = aiter_attn.rms_norm_bwd(dy, x, gamma, rstd)
    streams = [torch.cuda.Stream() for _ in range(4)]
    torch.cuda.synchronize()
    for _ in range(10):
        # Comparing waits for the GPU: all is queued first, so that the streams' work overlaps.
        results = []
        for turn in range(20):
            with torch.cuda.stream(streams[turn % 4]):
                y, rstd, _ = aiter_attn.rms_norm_fwd(x, gamma)
                results.append((y, *aiter_attn.rms_norm_bwd(dy, x, gamma, rstd)))
        torch.cuda.synchronize()
        for y, dx, dgamma in results:
            for got, wanted in ((y, want), (dx, want_dx), (dgamma, want_dgamma)):
                assert torch.equal(got, wanted)
    # Graphs beside each other and beside calls: each has barriers of its own.
    held = torch.zeros_like(x)
    graphs, results = [torch.cuda.CUDAGraph() for _ in range(3)], []
    for graph in graphs:
        with torch.cuda.graph(graph):
            y, rstd, _ = aiter_attn.rms_norm_fwd(held, gamma)
            results.append((y, *aiter_attn.rms_norm_bwd(dy, held, gamma, rstd)))
    held.copy_(x)
    torch.cuda.synchronize()
    for turn in range(12):
        with torch.cuda.stream(streams[turn % 4]):
            if turn % 4 < 3:
                graphs[turn % 4].replay()
            else:
                y, rstd, _ = aiter_attn.rms_norm_fwd(x, gamma)
                results.append((y, *aiter_attn.rms_norm_bwd(dy, x, gamma, rstd)))
    torch.cuda.synchronize()
    for y, dx, dgamma in results:
        for got, wanted in ((y, want), (dx, want_dx), (dgamma, want_dgamma)):
            assert torch.equal(got, wanted)


def check_quantised() -> None:
    x, gamma = draw(33, 4096), draw(4096)
    want = rms(x.to(F64), gamma.to(F64))
    y, scales, _, _ = aiter_attn.rms_norm_quantised(x, gamma)
    error = (y.to(F64) * scales.to(F64)[:, None] - want).abs()
    assert bool((error <= 2.0**-4 * want.abs() + scales.to(F64)[:, None] * 2.0**-9).all())


def check_remembered_calls(hidden: int) -> None:
    """Those of the same layout take the short way from the second on: with other tensors, on other
    streams, with gradients, and captured."""
    gamma = draw(hidden).requires_grad_()
    functions = (
        (aiter_attn.rms_norm, lambda x, gamma: rms(x, gamma), (gamma,)),
        (
            aiter_attn.layer_norm,
            lambda x, gamma: torch.nn.functional.layer_norm(x, (hidden,), gamma, None, 1e-5),
            (gamma,),
        ),
        (aiter_attn.softmax, lambda x: x.softmax(-1), ()),
    )
    streams = [torch.cuda.Stream() for _ in range(3)]
    for function, of_torch, weights in functions:
        inputs = [(draw(40, hidden).requires_grad_(), draw(40, hidden)) for _ in range(12)]
        torch.cuda.synchronize()
        results = []
        for turn, (x, dy) in enumerate(inputs):
            with torch.cuda.stream(streams[turn % 3]):
                y = function(x, *weights)
                results.append((y, *torch.autograd.grad(y, (x, *weights), dy)))
        torch.cuda.synchronize()
        for (x, dy), (y, dx, *dgamma) in zip(inputs, results, strict=True):
            x64, *weights64 = wide(x, *weights)
            want = of_torch(x64, *weights64)
            near(y, want)
            want.backward(dy.to(F64))
            near(dx, x64.grad)
            for got, leaf in zip(dgamma, weights64, strict=True):
                torch.testing.assert_close(got.to(F64), leaf.grad, rtol=2.0**-7, atol=0.1)
        (x, _), graph = inputs[0], torch.cuda.CUDAGraph()
        held = torch.zeros_like(x)
        with torch.no_grad(), torch.cuda.graph(graph):
            y = function(held, *weights)
        held.copy_(x.detach())
        for _ in range(3):
            graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(y, results[0][0])


def main(_argv: Sequence[str]) -> None:
    torch.manual_seed(0)
    for rows, hidden in ((5, 1000), (33, 4096), (9, 65536), (3, 50257)):
        check_norms(rows, hidden)
        print(f"norms {rows}x{hidden}", flush=True)
    for queries, columns in ((7, 1000), (16, 16), (40, 8192)):
        check_softmax(queries, columns)
        print(f"softmax {queries}x{columns}", flush=True)
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        check_fp8(dtype)
    check_quantised()
    for hidden in (64, 4096, 65536):
        check_remembered_calls(hidden)
        print(f"remembered calls {hidden}", flush=True)
    for hidden in (4096, 131072):
        check_streams_and_graphs(hidden)
        print(f"streams and graphs {hidden}", flush=True)


if __name__ == "__main__":
    app.run(main)
