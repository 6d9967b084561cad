# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Searches launch configurations on the device at hand; prints the best few of each cell.

    python3 -m tests.bench.norms.sweep --budget 300 --out sweep.jsonl
        [--operations rms_backward] [--hidden 4096 --hidden 8192] [--per_cell 300]

Every candidate is compiled by NVRTC in a pool of processes, checked against a float32 reference of
the same rows and timed with a cold L2; the best of a cell are timed again. The share is bytes moved
once over time, as a share of a large copy's bandwidth in the same run.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import itertools
import json
import multiprocessing
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from absl import app, flags

from kernels.norm.configuration import (
    HOPPER,
    OPERATIONS,
    REGISTER_ELEMENTS,
    Configuration,
)
from tests.bench.norms import cuda
from tests.bench.norms.cell import VECTOR, WEIGHT_BYTES, Cell, source_and_macros

ELEMENTS = 1 << 27
SPARE_REGISTERS = 24  # of a thread, for addresses and temporaries

_BUDGET = flags.DEFINE_float("budget", 300, "seconds", lower_bound=0)
_OUT = flags.DEFINE_string("out", "sweep.jsonl", "all that was measured, a line each")
_OPERATIONS = flags.DEFINE_multi_enum("operations", OPERATIONS, OPERATIONS, "of which to search")
_HIDDEN = flags.DEFINE_multi_integer(
    "hidden", [1 << p for p in range(10, 18)], "row lengths", lower_bound=1
)
_PER_CELL = flags.DEFINE_integer("per_cell", 60, "candidates drawn for a cell", lower_bound=1)
_PROCESSES = flags.DEFINE_integer("processes", 14, "that compile", lower_bound=1)


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
            if c.ctas_per_sm * (ring + weights + 3072) <= HOPPER.shared_bytes:
                found.append(candidate)
    return found


def compile_one(job: tuple) -> tuple:
    operation, hidden, c = job
    source, macros = source_and_macros(operation, c, hidden)
    try:
        return job, cuda.compile_cubin(source, macros)
    except cuda.CompileError as error:
        return job, str(error)


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


def main(_argv: Sequence[str]) -> None:
    begin = time.time()
    random.seed(0)
    jobs = []
    for hidden, operation in itertools.product(_HIDDEN.value, _OPERATIONS.value):
        drawn = candidates(operation, hidden)
        random.shuffle(drawn)
        jobs += [(operation, hidden, c) for c in drawn[: _PER_CELL.value]]
    print("candidates", len(jobs), flush=True)
    results: list[Result] = []
    failures = []
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(_PROCESSES.value, context) as pool:
        futures = pool.map(compile_one, jobs, chunksize=2)
        clock = Clock()
        copy = copy_bandwidth(clock)
        print(f"copy {copy:.3f} TB/s, {torch.cuda.get_device_name()}", flush=True)
        cell, first = None, 0
        for (operation, hidden, c), cubin in futures:
            if time.time() - begin > _BUDGET.value:
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
    Path(_OUT.value).write_text("".join(r.line() + "\n" for r in results))
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
    app.run(main)
