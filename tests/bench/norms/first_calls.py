# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The cost of a kernel's first call: compiled by NVRTC, and found in the disk cache.

    python3 -m tests.bench.norms.first_calls --library libaiter_attn.so [--hidden 4096 ...]

Nine typical kernels, bf16, through the library's C ABI. Each turn has a new cache folder and two
new processes: the first compiles, the second reads the folder. The time of opening NVRTC is on a
line of its own, from another kernel ahead of the nine. Times are of the host, in milliseconds, to
the end of the kernel; CUDA's own cache of compiles is off. Prints a row per kernel: the median and
the greatest of the turns.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence

import torch
from absl import app, flags

from tests.bench.norms.library import Library

_LIBRARY = flags.DEFINE_string("library", None, "libaiter_attn.so", required=True)
_HIDDEN = flags.DEFINE_multi_integer("hidden", [4096, 8192], "columns of a row", lower_bound=1)
_TURNS = flags.DEFINE_integer("turns", 5, "how often all is compiled", lower_bound=1)

ROWS = 512
OPENING = "(opening NVRTC, with another kernel)"


def calls(path: str, hidden: int) -> Mapping[str, Callable[[], None]]:
    """Name -> what makes and runs the call, from the first question to the library on."""

    def rows() -> torch.Tensor:
        return torch.randn(ROWS, hidden, device="cuda").to(torch.bfloat16)

    x, g, y, residual, total = (rows() for _ in range(5))
    w, b, dw, db = (torch.ones(hidden, device="cuda", dtype=torch.bfloat16) for _ in range(4))
    mean, rstd = (torch.ones(ROWS, device="cuda") for _ in range(2))
    mask = torch.zeros(ROWS, hidden, device="cuda", dtype=torch.uint8)
    rms, layer = Library(path), Library(path, layer=True)
    softmax = {kind: Library(path, mask=kind) for kind in ("none", "explicit", "causal")}
    epsilon, none = 1e-5, (None, None)

    def norm(library: Library, beta: torch.Tensor | None, *add: torch.Tensor | None) -> None:
        library.norm_forward(x, w, beta, y, mean, rstd, epsilon, *add, *none)()

    def backward(library: Library, dbeta: torch.Tensor | None) -> None:
        library.norm_backward(x, g, w, mean, rstd, y, dw, dbeta, None)()

    def scores(kind: str) -> None:
        given = mask if kind == "explicit" else None
        softmax[kind].softmax_forward(x, y, 0.5, ROWS, given, 1)()

    return {
        "LayerNorm forward": lambda: norm(layer, b, *none),
        "LayerNorm backward": lambda: backward(layer, db),
        "RMSNorm forward": lambda: norm(rms, None, *none),
        "RMSNorm forward with add": lambda: norm(rms, None, residual, total),
        "RMSNorm backward": lambda: backward(rms, None),
        "softmax forward, scaled": lambda: scores("none"),
        "softmax forward, masked": lambda: scores("explicit"),
        "softmax forward, causal": lambda: scores("causal"),
        "softmax backward": lambda: softmax["none"].softmax_backward(x, g, y, 0.5, ROWS)(),
    }


def measure(path: str, folder: str, hidden: int) -> dict[str, float]:
    """Milliseconds of each first call of this process, which has loaded nothing before."""
    os.environ["AITER_ATTN_CACHE_DIR"] = folder
    os.environ["CUDA_CACHE_DISABLE"] = "1"
    torch.randn(8, device="cuda").to(torch.bfloat16).sum().item()  # the context, torch's kernels
    found = {}

    def timed(name: str, call: Callable[[], None]) -> None:
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        found[name] = (time.perf_counter() - start) * 1e3

    timed(OPENING, calls(path, 64)["softmax forward, scaled"])
    for name, call in calls(path, hidden).items():
        timed(name, call)
    return found


def main(_argv: Sequence[str]) -> None:
    context = multiprocessing.get_context("spawn")
    for hidden in _HIDDEN.value:
        compiled: list[dict[str, float]] = []
        cached: list[dict[str, float]] = []
        for _ in range(_TURNS.value):
            with tempfile.TemporaryDirectory() as folder:
                for found in (compiled, cached):
                    with context.Pool(1) as pool:
                        job = functools.partial(measure, _LIBRARY.value, folder)
                        found += pool.map(job, [hidden])
        print(
            f"\n| {hidden} columns | compiled, ms | at most | from the disk cache, ms | at most |"
        )
        print("|---|---|---|---|---|")
        for name in compiled[0]:
            cells = []
            for found in (compiled, cached):
                times = [turn[name] for turn in found]
                cells += [f"{statistics.median(times):.1f}", f"{max(times):.1f}"]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    app.run(main)
