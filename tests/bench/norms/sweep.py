# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Searches launch configurations on the device at hand; prints the best few of each cell.

    python3 -m tests.bench.norms.sweep --budget 300 --out sweep.jsonl
        [--operations rms_backward] [--hidden 4096 --hidden 8192] [--dtype fp32] [--per_cell 300]
        [--noclusters]

The candidates are what the table gives, and variations of that. Every one is compiled by NVRTC in a
pool of processes, checked against a float32 reference of the same rows and timed with a cold L2;
the best of a cell are timed again. The share is bytes moved once over time, as a share of a large
copy's bandwidth in the same run. --noclusters: of devices that have no clusters.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import itertools
import json
import multiprocessing
import random
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from absl import app, flags

from kernels.norm.configuration import (
    OPERATIONS,
    REGISTER_ELEMENTS,
    WEIGHTS_IN_SHARED_MEMORY,
    Configuration,
    TableError,
)
from tests.bench.norms import cuda
from tests.bench.norms.cell import TYPES, Cell, chosen, source_and_macros, vector_of
from tests.bench.norms.operations import span
from tests.support.norms.choices import AMPERE, HOPPER

ELEMENTS = 1 << 27
SPARE_REGISTERS = 24  # of a thread, for addresses and temporaries

_BUDGET = flags.DEFINE_float("budget", 300, "seconds", lower_bound=0)
_OUT = flags.DEFINE_string("out", "sweep.jsonl", "all that was measured, a line each")
_OPERATIONS = flags.DEFINE_multi_enum("operations", OPERATIONS, OPERATIONS, "of which to search")
_HIDDEN = flags.DEFINE_multi_integer(
    "hidden", [1 << p for p in range(10, 18)], "row lengths", lower_bound=1
)
_DTYPE = flags.DEFINE_enum("dtype", "bf16", list(TYPES), "of all matrices")
_PER_CELL = flags.DEFINE_integer("per_cell", 60, "candidates drawn for a cell", lower_bound=1)
_CLUSTERS = flags.DEFINE_bool("clusters", True, "for this device; else for sm_80")
_PROCESSES = flags.DEFINE_integer("processes", 14, "that compile", lower_bound=1)


def shared_out(hidden: int, dtype: torch.dtype, *way: int) -> Configuration | None:
    """A configuration whose threads have `packs` vectors of a row each: (packs, rows in hand,
    cluster, and the fields from stages on). None where a CTA cannot have so many threads."""
    packs, rows, cluster, *rest = way
    vectors = -(-hidden * dtype.itemsize // 16)
    lanes = -(-vectors // (cluster * packs))
    lanes = -(-lanes // 32) * 32 if lanes > 16 else 1 << (lanes - 1).bit_length()
    threads = -(-lanes * rows // 32) * 32
    if threads > 1024 or threads % lanes:
        return None
    return Configuration(threads, lanes, cluster, *rest)


def can_be_fast(operation: str, hidden: int, dtype: torch.dtype, c: Configuration) -> bool:
    """Whether a device can run it, with registers and shared memory for all that it keeps."""
    vector = vector_of(hidden, dtype)
    backward, norm = operation.endswith("backward"), not operation.startswith("softmax")
    weights = 2 if operation.startswith("layer") else 1
    sums = weights if norm and backward else 0
    columns = c.packs(span(hidden, vector, sums), vector) * vector  # of a thread
    words = columns * dtype.itemsize // 4  # registers of them as they are stored
    room = min(255, 65536 // (c.threads * c.ctas_per_sm)) - SPARE_REGISTERS
    size = dtype.itemsize
    beyond = vector if sums and hidden % vector else 0
    shared = c.ring_bytes(span(hidden, vector, sums), vector, size * (2 if backward else 1), beyond)
    shared += c.weights_bytes(hidden, vector, size * weights if norm and not backward else 0)
    try:
        c.check()
    except TableError:
        return False
    if columns > (REGISTER_ELEMENTS if c.hold_row else 2 * REGISTER_ELEMENTS) or not (
        192 <= c.threads * c.ctas_per_sm <= 2048
    ):
        return False
    if c.ctas_per_sm * (shared + 3072) > HOPPER.shared_bytes:
        return False
    if norm and backward:
        kept = columns * weights + words * (c.keep_weights > 0)
        kept += 2 * words * c.hold_row * (1 + c.lag)
        return columns <= REGISTER_ELEMENTS and kept <= room + 16
    if c.waves == 0 and (c.stages > 1 or c.keep_weights == WEIGHTS_IN_SHARED_MEMORY):
        return False  # a CTA has one row
    held = columns if operation == "softmax_forward" else words * (1 + backward)
    kept = {1: words, 2: columns}.get(c.keep_weights, 0) * weights if norm else 0
    # Warps of several rows stay for the weights alone.
    stays = c.stages > 0 or (c.lanes < 32 and norm)
    return held * c.hold_row + kept <= room and (c.waves == 0 or stays)


def candidates(
    operation: str, hidden: int, dtype: torch.dtype, start: Configuration, count: int
) -> list[Configuration]:
    """`start` and others that differ from it, most in one to four ways."""
    backward, norm = operation.endswith("backward"), not operation.startswith("softmax")
    sums = norm and backward
    vectors = -(-hidden * dtype.itemsize // 16)
    packs = -(-vectors // (start.cluster * start.lanes))
    fields = dataclasses.astuple(dataclasses.replace(start, split=0))
    way = (packs, start.threads // start.lanes, *fields[2:])
    axes = (
        (1, 2, 3, 4, 5, 6, 7, 8, 12, 16),
        (1, 2, 3, 4, 6, 8, 16, 32),
        (1, 2, 4, 8, 16) if _CLUSTERS.value else (1,),
        (0, 1, 2, 3, 4, 6) if _CLUSTERS.value else (0,),
        (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20),
        (1,) if sums else (0, 1),
        ((1, 2) if backward else (0, 1, 2, 3)) if norm else (0,),
        (0, 1),
        (0, 1) if sums else (0,),
        (0,) if sums or not _CLUSTERS.value else (0, 1),
    )
    found = {start: None}
    for _ in range(300 * count):
        if len(found) >= count:
            break
        changed = list(way)
        for i in random.sample(range(len(axes)), random.choice((1, 2, 2, 3, 3, 4, len(axes)))):
            changed[i] = random.choice(axes[i])
        c = shared_out(hidden, dtype, *changed)
        if c and can_be_fast(operation, hidden, dtype, c):
            found[c] = None
    return list(found)


def compile_one(job: tuple) -> tuple:
    operation, hidden, c = job
    source, macros = source_and_macros(operation, c, hidden, TYPES[_DTYPE.value])
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
    dtype = TYPES[_DTYPE.value]
    for hidden, operation in itertools.product(_HIDDEN.value, _OPERATIONS.value):
        device = HOPPER if _CLUSTERS.value else AMPERE
        start = chosen(operation, hidden, dtype, ELEMENTS // hidden, device=device)
        drawn = candidates(operation, hidden, dtype, start, _PER_CELL.value)
        jobs += [(operation, hidden, c) for c in drawn]
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
                cell = Cell(hidden, ELEMENTS // hidden, dtype)
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
