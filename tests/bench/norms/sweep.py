# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Searches launch configurations on the device at hand; prints the best few of each cell.

    python3 -m tests.bench.norms.sweep --budget 300 --out sweep.jsonl
        [--operations rms_backward ...] [--hidden 4096 ...] [--per-cell 300]

Every candidate is compiled by NVRTC in a pool of processes, checked against a float32 reference of
the same rows and timed with a cold L2. The share is bytes moved once over time, as a share of a
large copy's bandwidth in the same run.
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
            yield Configuration(threads, lanes, cluster, stages, per_sm, 1, 1, 1, 0)


def norm_backward_variants(c: Configuration, per_thread: int, layer: bool) -> Iterator[tuple]:
    """(keep_weights, hold_row, lag, waves) that registers have room for."""
    registers = 65536 // (c.threads * c.ctas_per_sm) - SPARE_REGISTERS
    words = per_thread // 2  # registers of a row of one matrix
    need = per_thread * (2 if layer else 1) + words  # dgamma and dbeta, gamma
    if per_thread > (64 if layer else 32) or need > registers or c.stages < 2 or c.threads < 128:
        return
    for keep, (hold, lag) in itertools.product((1, 2), ((0, 0), (1, 0), (1, 1))):
        if lag and (c.lanes == 32 or need + 3 * words > registers):
            continue
        if (keep == 1 or need + words <= registers) and (hold or c.stages >= 3):
            yield keep, hold, lag, 1


def other_variants(
    c: Configuration, hidden: int, per_thread: int, operation: str
) -> Iterator[tuple]:
    """(keep_weights, hold_row, lag, waves) for operations that keep nothing from row to row."""
    registers = 65536 // (c.threads * c.ctas_per_sm) - SPARE_REGISTERS
    need = {
        "softmax_forward": per_thread + 8,
        "softmax_backward": per_thread,
    }.get(operation, per_thread // 2)
    holds = [0] if c.stages else []
    if need <= registers and per_thread <= REGISTER_ELEMENTS:
        holds.append(1)
    keeps = (0,) if operation.startswith("softmax") else (0, 1)
    if c.stages == 0 and c.threads * c.ctas_per_sm < 1024:
        return
    for waves, keep, hold in itertools.product((0, 1, 2, 4, 8), keeps, holds):
        if (waves > 0 or c.stages < 2) and (waves < 2 or c.cluster > 1 or hidden >= 8192):
            yield keep, hold, 0, waves


def candidates(operation: str, hidden: int) -> list[Configuration]:
    """Every configuration of `operation` that could be fast for bf16 rows of `hidden`."""
    backward, norm = operation.endswith("backward"), not operation.startswith("softmax")
    found = []
    for c in shapes(hidden):
        ring = c.ctas_per_sm * c.ring_bytes(hidden, VECTOR, 4 if backward else 2)
        if ring + c.ctas_per_sm * 3072 > SHARED_BYTES_PER_SM or (c.stages and ring < 24 * 1024):
            continue
        per_thread = hidden // (c.cluster * c.lanes)
        if norm and backward:
            variants = norm_backward_variants(c, per_thread, operation.startswith("layer"))
        else:
            variants = other_variants(c, hidden, per_thread, operation)
        found += [
            dataclasses.replace(c, keep_weights=keep, hold_row=hold, lag=lag, waves=waves)
            for keep, hold, lag, waves in variants
        ]
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
    jobs = {}
    for hidden in arguments.hidden:
        for operation in arguments.operations:
            drawn = candidates(operation, hidden)
            random.shuffle(drawn)
            jobs[hidden, operation] = drawn[: arguments.per_cell]
    print("candidates", sum(map(len, jobs.values())), flush=True)
    results, failures = [], []
    context = multiprocessing.get_context("fork")
    lines = arguments.out.open("w")
    with concurrent.futures.ProcessPoolExecutor(arguments.processes, context) as pool:
        ordered = [(o, h, c) for (h, o), drawn in jobs.items() for c in drawn]
        futures = pool.map(compile_one, ordered, chunksize=2)
        clock = Clock()
        copy = copy_bandwidth(clock)
        print(f"copy {copy:.3f} TB/s, {torch.cuda.get_device_name()}", flush=True)
        cell = None
        for (operation, hidden, c), cubin in futures:
            if time.time() - begin > arguments.budget:
                print("out of time", flush=True)
                pool.shutdown(wait=False, cancel_futures=True)
                break
            if isinstance(cubin, str):
                failures.append((operation, hidden, c, cubin[-400:]))
                continue
            if cell is None or cell.hidden != hidden:
                cell = None
                cell = Cell(hidden, ELEMENTS // hidden)
                print(f"hidden {hidden}: {time.time() - begin:.0f} s", flush=True)
            try:
                module = cuda.Module(cubin)
                run = cell.launcher(operation, c, module)
                cell.out.fill_(float("nan"))
                milliseconds = clock(run)
                error = cell.error(operation)
            except torch.AcceleratorError as failure:
                print("the device failed:", operation, hidden, c, repr(failure)[-200:])
                pool.shutdown(wait=False, cancel_futures=True)
                break
            except RuntimeError as failure:
                failures.append((operation, hidden, c, repr(failure)[-300:]))
                continue
            result = {
                "operation": operation,
                "hidden": hidden,
                "share": cell.bytes(operation) / milliseconds / 1e9 / copy,
                "error": error,
                "registers": run.kernel.registers,
                "local": run.kernel.local_bytes,
                **dataclasses.asdict(c),
            }
            results.append(result)
            lines.write(json.dumps(result) + "\n")
            lines.flush()
    wrong = [r for r in results if not r["error"] < 1e-2]
    for r in wrong[:8]:
        print("wrong", r)
    for failure in failures[:8]:
        print("failed", *failure)
    print("failures", len(failures), "wrong", len(wrong), "right", len(results) - len(wrong))
    for operation in arguments.operations:
        for hidden in arguments.hidden:
            best = [
                r
                for r in results
                if (r["operation"], r["hidden"]) == (operation, hidden) and r["error"] < 1e-2
            ]
            best.sort(key=lambda r: -r["share"])
            for r in best[:3]:
                fields = [f.name for f in dataclasses.fields(Configuration)]
                shape = " ".join(f"{f[:4]}={r[f]}" for f in fields)
                print(
                    f"{operation:16} {hidden:6} {r['share']:.3f} {shape} r{r['registers']}"
                    f" l{r['local']} e{r['error']:.1e}"
                )
    if len(wrong) + len(failures) > len(results) / 2:
        raise SystemExit("most candidates failed")


if __name__ == "__main__":
    main()
