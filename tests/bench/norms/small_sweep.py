# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Searches launch configurations of few rows on the device at hand; prints the best of each cell.

    python3 -m tests.bench.norms.small_sweep [--shape 8x4096] [--operations rms_forward] [--best 3]

A cell is timed as small.py does, with starts ahead of the end of the call before. The candidates
are all ways in which one CTA or a cluster can share a row out whose threads have one to eight
vectors each; those whose results are wrong are named, and end the program with an error. A line has
the time, the vectors of a thread and the fields of the configuration that README.md explains.
"""

from __future__ import annotations

import concurrent.futures
import itertools
import multiprocessing
from collections.abc import Iterator, Sequence

import torch
from absl import app, flags

from kernels.norm.configuration import OPERATIONS, Configuration, TableError
from tests.bench.norms import cuda
from tests.bench.norms.cell import SUMS, TYPES, Cell, chosen, source_and_macros, vector_of
from tests.bench.norms.graphs import SHAPES, check_shapes, microseconds, read_shape

_SHAPES = flags.DEFINE_multi_string("shape", SHAPES, "rows x columns")
_DTYPE = flags.DEFINE_enum("dtype", "bf16", list(TYPES), "of all inputs")
_OPERATIONS = flags.DEFINE_multi_enum("operations", OPERATIONS, OPERATIONS, "to search for")
_BEST = flags.DEFINE_integer("best", 3, "of a cell, to be printed", lower_bound=1)
_PROCESSES = flags.DEFINE_integer("processes", 14, "that compile", lower_bound=1)

check_shapes(_SHAPES)

PACKS, CLUSTERS, IN_HAND = (1, 2, 3, 4, 8), (1, 2, 4, 8), (1, 2, 4)
COLUMN_LANES = (8, 16, 32)  # of few_rows
HELD_BYTES = 64  # of a row, by a thread
REGISTERS = 65536  # of a multiprocessor
LEAST_REGISTERS = 32  # of a thread


def candidates(operation: str, hidden: int, dtype: torch.dtype) -> Iterator[Configuration]:
    vector = vector_of(hidden, dtype)
    vectors = -(-hidden // vector)
    sums, norm = operation in SUMS, not operation.startswith("softmax")
    for packs, cluster, rows, stages, keep, column_lanes in itertools.product(
        PACKS,
        CLUSTERS,
        (1,) if sums else IN_HAND,
        (0,) if hidden % vector else (0, 1),
        (1,) if sums else (0, 1) if norm and not hidden % vector else (0,),
        COLUMN_LANES if sums else (0,),
    ):
        lanes = -(-vectors // (packs * cluster * 32)) * 32
        if packs * vector * dtype.itemsize > HELD_BYTES or (packs > 1 and lanes * packs > vectors):
            continue
        threads = lanes * rows
        ctas = max(1, min(4, REGISTERS // (threads * 4 * LEAST_REGISTERS)))
        c = Configuration(
            threads, lanes, cluster, stages, ctas, 0, keep, 1, 0, 0, few_rows=column_lanes
        )
        try:
            c.check()
        except TableError:
            continue
        yield c


def compile_one(job: tuple[str, int, Configuration]) -> bytes | str:
    operation, hidden, c = job
    source, macros = source_and_macros(operation, c, hidden, TYPES[_DTYPE.value])
    try:
        return cuda.compile_cubin(source, macros)
    except cuda.CompileError as error:
        return str(error)


def described(us: float, c: Configuration, hidden: int, vector: int) -> str:
    fields = (c.cluster, c.threads, c.lanes, c.stages, c.keep_weights, c.few_rows)
    return f"{us:.2f} p{c.packs(hidden, vector)} c{'/'.join(map(str, fields))}"


def main(_argv: Sequence[str]) -> None:
    dtype = TYPES[_DTYPE.value]
    shapes = [read_shape(text) for text in _SHAPES.value]
    jobs = [
        (operation, hidden, c)
        for hidden in dict.fromkeys(hidden for _, hidden in shapes)
        for operation in _OPERATIONS.value
        for c in candidates(operation, hidden, dtype)
    ]
    chose = {
        (operation, rows, hidden): chosen(operation, hidden, dtype, rows)
        for rows, hidden in shapes
        for operation in _OPERATIONS.value
    }
    jobs += [(operation, hidden, c) for (operation, _, hidden), c in chose.items()]
    jobs = list(dict.fromkeys(jobs))
    print(f"{len(jobs)} kernels; us, then vectors of a thread and", end=" ")
    print("cluster/threads/lanes/stages/keep_weights/few_rows", flush=True)
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(_PROCESSES.value, context) as pool:
        cubins = dict(zip(jobs, pool.map(compile_one, jobs, chunksize=2), strict=True))
    wrong = []
    modules = {}
    with torch.cuda.stream(torch.cuda.Stream()):
        for rows, hidden in shapes:
            cell = Cell(hidden, rows, dtype)
            for operation in _OPERATIONS.value:
                times = []
                for job in jobs:
                    if job[:2] != (operation, hidden):
                        continue
                    c, cubin = job[2], cubins[job]
                    if isinstance(cubin, str):
                        wrong.append((job, cubin[-300:]))
                        continue
                    try:
                        if job not in modules:
                            modules[job] = cuda.Module(cubin)
                        cell.out.fill_(float("nan"))
                        us = microseconds(cell.launcher(operation, c, modules[job]))
                    except RuntimeError as error:  # too many registers for its threads, say
                        wrong.append((job, repr(error)[-300:]))
                        continue
                    if not (error := cell.error(operation)) < 1e-2:
                        wrong.append((job, f"relative error {error}"))
                        continue
                    times.append((us, c))
                times.sort(key=lambda pair: pair[0])
                best = [described(us, c, hidden, vector_of(hidden, dtype)) for us, c in times]
                taken = chose[operation, rows, hidden]
                ours = next((us for us, c in times if c == taken), float("nan"))
                shown = " | ".join(best[: _BEST.value])
                name = "".join(part[0] for part in operation.split("_"))
                print(f"{name} {rows}x{hidden} ours {ours:.2f} | {shown}", flush=True)
    for job, why in wrong[:10]:
        print("wrong", *job, why)
    if len(wrong) > len(jobs) // 4:
        raise SystemExit(f"{len(wrong)} of {len(jobs)} candidates failed")


if __name__ == "__main__":
    app.run(main)
