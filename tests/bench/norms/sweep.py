# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Searches launch configurations on the device at hand; prints the best few of each cell.

    python3 -m tests.bench.norms.sweep --budget 300 --out sweep.jsonl
        [--operations rms_backward ...] [--hidden 4096 ...] [--per-cell 300]

Every candidate is compiled by NVRTC in a pool of processes, checked against a float32 reference of
the same rows and timed with a cold L2; the best of a cell are timed again. The share is bytes moved
once over time, as a share of a large copy's bandwidth in the same run.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import itertools
import json
import multiprocessing
import random
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from kernels.norm.configuration import (
    OPERATIONS,
    REGISTER_ELEMENTS,
    SHARED_BYTES_PER_SM,
    Configuration,
)
from tests.bench.norms import cuda
from tests.bench.norms.operations import (
    norm_backward,
    norm_forward,
    norm_macros,
    softmax_backward,
    softmax_forward,
    softmax_macros,
)

ELEMENTS = 1 << 27
TYPE = torch.bfloat16
VECTOR = 8


SPARE_REGISTERS = 24  # of a thread, for addresses and temporaries
WEIGHT_BYTES = {"rms_forward": 2, "layer_forward": 4}  # of a column of gamma and beta, bf16


def shapes(hidden: int) -> Iterator[Configuration]:
    """Ways to share a row out and to fill a multiprocessor, without regard to the operation."""
    for cluster, lanes, threads, per_sm, stages in itertools.product(
        (1, 2, 4, 8, 16),
        (32, 64, 128, 256, 512, 1024),
        (64, 128, 256, 384, 512, 768, 1024),
        (1, 2, 3, 4, 6, 8, 16),
        (0, 1, 2, 3, 4, 6, 8),
    ):
        per_thread = hidden / (cluster * lanes)
        if (
            per_thread in (8, 16, 32, 64, 128)
            and (cluster == 1 or (threads == lanes and hidden // cluster >= 4096))
            and threads % lanes == 0
            and (lanes == 32 or threads // lanes <= 15)
            and 256 <= threads * per_sm <= 2048
        ):
            yield Configuration(threads, lanes, cluster, stages, per_sm, 1, 1, 1, 0, 0)


def norm_backward_variants(c: Configuration, per_thread: int, layer: bool) -> Iterator[tuple]:
    """(keep_weights, hold_row, lag, waves, on_demand) that registers have room for."""
    registers = 65536 // (c.threads * c.ctas_per_sm) - SPARE_REGISTERS
    words = per_thread // 2  # registers of a row of one matrix
    need = per_thread * (2 if layer else 1) + words  # dgamma and dbeta, gamma
    if per_thread > (64 if layer else 32) or need > registers or c.stages < 2 or c.threads < 128:
        return
    for keep, (hold, lag) in itertools.product((1, 2), ((0, 0), (1, 0), (1, 1))):
        if lag and (c.lanes == 32 or need + 3 * words > registers):
            continue
        if (keep == 1 or need + words <= registers) and (hold or c.stages >= 3):
            yield keep, hold, lag, 1, 0


def other_variants(
    c: Configuration, hidden: int, per_thread: int, operation: str
) -> Iterator[tuple]:
    """As above, for operations that keep nothing from row to row."""
    registers = 65536 // (c.threads * c.ctas_per_sm) - SPARE_REGISTERS
    softmax = operation.startswith("softmax")
    words = per_thread // 2  # registers of a row, or of one kept vector of weights
    held = per_thread if softmax else words
    if c.stages == 0 and c.threads * c.ctas_per_sm < 1024 and not softmax:
        return
    for keep, hold, (waves, on_demand) in itertools.product(
        (0,) if softmax else (0, 1, 3), (0, 1), ((0, 0), (1, 0), (1, 1))
    ):
        kept = words * (2 if operation.startswith("layer") else 1) if keep == 1 else 0
        if (held if hold else 0) + kept > registers or (hold and per_thread > REGISTER_ELEMENTS):
            continue
        if waves == 0 and (c.stages > 1 or keep == 3 or (c.stages == 0 and not hold)):
            continue
        if waves and (c.stages == 0 or (hidden >= 4096) != bool(on_demand)):
            continue
        if on_demand and (c.threads != c.lanes or c.lanes * c.cluster == 32):
            continue
        yield keep, hold, 0, waves, on_demand


def candidates(operation: str, hidden: int) -> list[Configuration]:
    """Every configuration of `operation` that could be fast for bf16 rows of `hidden`."""
    backward, norm = operation.endswith("backward"), not operation.startswith("softmax")
    found = []
    weight_bytes = WEIGHT_BYTES.get(operation, 0)
    for c in shapes(hidden):
        ring = c.ring_bytes(hidden, VECTOR, 4 if backward else 2)
        if c.stages and c.ctas_per_sm * ring < 24 * 1024:
            continue
        per_thread = hidden // (c.cluster * c.lanes)
        if norm and backward:
            variants = norm_backward_variants(c, per_thread, operation.startswith("layer"))
        else:
            variants = other_variants(c, hidden, per_thread, operation)
        for keep, hold, lag, waves, on_demand in variants:
            candidate = dataclasses.replace(
                c, keep_weights=keep, hold_row=hold, lag=lag, waves=waves, on_demand=on_demand
            )
            weights = candidate.weights_bytes(hidden, VECTOR, weight_bytes)
            if c.ctas_per_sm * (ring + weights + 3072) <= SHARED_BYTES_PER_SM:
                found.append(candidate)
    return found


def source_and_macros(operation: str, c: Configuration, hidden: int) -> tuple[str, dict]:
    if operation.startswith("softmax"):
        return "softmax.cpp", softmax_macros(c, hidden, VECTOR, TYPE, "none")
    layer, backward = operation.startswith("layer"), operation.endswith("backward")
    source = "norm_backward.cpp" if backward else "norm_forward.cpp"
    types = (TYPE, TYPE, TYPE)
    return source, norm_macros(
        c, layer, hidden, VECTOR, types, backward=backward, beta=layer and not backward
    )


def compile_one(job: tuple) -> tuple:
    operation, hidden, c = job
    source, macros = source_and_macros(operation, c, hidden)
    try:
        return job, cuda.compile_cubin(source, macros)
    except cuda.CompileError as error:
        return job, str(error)


class Cell:
    """Tensors and references of one operation and hidden size."""

    def __init__(self, hidden: int, rows: int) -> None:
        self.hidden, self.rows = hidden, rows
        d = {"device": "cuda", "dtype": TYPE}
        torch.manual_seed(hidden)
        self.x = torch.randn(rows, hidden, **d)
        self.g = torch.randn(rows, hidden, **d)
        self.w, self.b = torch.randn(hidden, **d), torch.randn(hidden, **d)
        self.out = torch.empty_like(self.x)
        self.dw, self.db = torch.empty_like(self.w), torch.empty_like(self.w)
        f = torch.float32
        self.mean = torch.empty(rows, device="cuda", dtype=f)
        self.rms_rstd, self.ln_rstd = torch.empty_like(self.mean), torch.empty_like(self.mean)
        self.stats = (torch.empty_like(self.mean), torch.empty_like(self.mean))
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
        return norm_backward(module, c, self.x, self.g, self.w, mean, rstd, self.out, self.dw, db)

    def error(self, operation: str) -> float:
        """The largest relative error (norm over norm) of what was written."""

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
        return (3 if operation.endswith("backward") else 2) * self.x.numel() * 2


class Clock:
    """Times a function with a cold L2, as triton.testing.do_bench does: median of events."""

    def __init__(self) -> None:
        self.flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
        self.events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(200)]

    def __call__(self, function, repeats: int = 9) -> float:
        """Milliseconds."""
        function()
        pairs = self.events[:repeats]
        for start, end in pairs:
            self.flush.zero_()
            start.record()
            function()
            end.record()
        torch.cuda.synchronize()
        times = sorted(start.elapsed_time(end) for start, end in pairs)
        return times[len(times) // 2]


def copy_bandwidth(clock: Clock) -> float:
    """TB/s of a copy of 2 GiB, read and written bytes."""
    x = torch.empty(1 << 30, dtype=torch.bfloat16, device="cuda").normal_()
    y = torch.empty_like(x)
    return 2 * x.numel() * 2 / clock(lambda: y.copy_(x), 25) / 1e9


@dataclasses.dataclass
class Result:
    """A candidate that ran."""

    operation: str
    hidden: int
    configuration: Configuration
    share: float
    error: float
    registers: int
    local: int
    cubin: bytes

    def right(self) -> bool:
        return self.error < 1e-2

    def line(self) -> str:
        """For the file."""
        fields = dataclasses.asdict(self)
        del fields["cubin"]
        return json.dumps(fields | fields.pop("configuration"))

    def __str__(self) -> str:
        shape = " ".join(f"{f[:4]}={v}" for f, v in dataclasses.asdict(self.configuration).items())
        return (
            f"{self.operation:16} {self.hidden:6} {self.share:.3f} {shape} r{self.registers}"
            f" l{self.local} e{self.error:.1e}"
        )


def measure_again(
    cell: Cell, clock: Clock, copy: float, results: list[Result], best: int = 8
) -> None:
    """The best of each operation once more, with more repeats: the first time favours luck."""
    for operation in OPERATIONS:
        right = [r for r in results if r.operation == operation and r.right()]
        right.sort(key=lambda r: -r.share)
        for r in right[:best]:
            run = cell.launcher(operation, r.configuration, cuda.Module(r.cubin))
            r.share = cell.bytes(operation) / clock(run, 60) / 1e9 / copy
        for r in right[best:]:
            r.cubin = b""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=float, default=300, help="seconds")
    parser.add_argument("--out", type=Path, default=Path("sweep.jsonl"))
    parser.add_argument("--operations", nargs="*", default=list(OPERATIONS), choices=OPERATIONS)
    parser.add_argument("--hidden", nargs="*", type=int, default=[1 << p for p in range(10, 18)])
    parser.add_argument("--per-cell", type=int, default=60, help="candidates drawn for a cell")
    parser.add_argument("--processes", type=int, default=14)
    arguments = parser.parse_args()
    begin = time.time()
    random.seed(0)
    jobs = []
    for hidden, operation in itertools.product(arguments.hidden, arguments.operations):
        drawn = candidates(operation, hidden)
        random.shuffle(drawn)
        jobs += [(operation, hidden, c) for c in drawn[: arguments.per_cell]]
    print("candidates", len(jobs), flush=True)
    results: list[Result] = []
    failures = []
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(arguments.processes, context) as pool:
        futures = pool.map(compile_one, jobs, chunksize=2)
        clock = Clock()
        copy = copy_bandwidth(clock)
        print(f"copy {copy:.3f} TB/s, {torch.cuda.get_device_name()}", flush=True)
        cell, first = None, 0
        for (operation, hidden, c), cubin in futures:
            if time.time() - begin > arguments.budget:
                print("out of time", flush=True)
                pool.shutdown(wait=False, cancel_futures=True)
                break
            if isinstance(cubin, str):
                failures.append((operation, hidden, c, cubin[-400:]))
                continue
            if cell is None or cell.hidden != hidden:
                if cell:
                    measure_again(cell, clock, copy, results[first:])
                cell, first = None, len(results)  # frees its tensors ahead of the next one's
                cell = Cell(hidden, ELEMENTS // hidden)
                print(f"hidden {hidden}: {time.time() - begin:.0f} s", flush=True)
            try:
                run = cell.launcher(operation, c, cuda.Module(cubin))
                cell.out.fill_(float("nan"))
                share = cell.bytes(operation) / clock(run) / 1e9 / copy
                error = cell.error(operation)
            except torch.AcceleratorError as failure:
                print("the device failed:", operation, hidden, c, repr(failure)[-200:])
                pool.shutdown(wait=False, cancel_futures=True)
                raise
            except RuntimeError as failure:
                failures.append((operation, hidden, c, repr(failure)[-300:]))
                continue
            kernel = run.kernel
            results.append(
                Result(
                    operation,
                    hidden,
                    c,
                    share,
                    error,
                    kernel.registers,
                    kernel.local_bytes,
                    cubin,
                )
            )
        if cell:
            measure_again(cell, clock, copy, results[first:])
    arguments.out.write_text("".join(r.line() + "\n" for r in results))
    report(results, failures)
    if not results or sum(not r.right() for r in results) + len(failures) > len(results) / 2:
        raise SystemExit("most candidates failed")


def report(results: list[Result], failures: list[tuple]) -> None:
    wrong = [r for r in results if not r.right()]
    for r in wrong[:8]:
        print("wrong", r)
    for failure in failures[:8]:
        print("failed", *failure)
    print("failures", len(failures), "wrong", len(wrong), "right", len(results) - len(wrong))
    for cell in sorted({(OPERATIONS.index(r.operation), r.hidden) for r in results}):
        best = [r for r in results if (OPERATIONS.index(r.operation), r.hidden) == cell]
        for r in sorted((r for r in best if r.right()), key=lambda r: -r.share)[:3]:
            print(r)


if __name__ == "__main__":
    main()
