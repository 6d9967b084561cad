# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Compiles every configuration of the table with NVRTC; needs no GPU.

    python3 -m tests.bench.norms.compile_table [--archs sm_90 --archs sm_100]

bf16, every mask. Prints seconds and bytes per kernel; exits with 1 if one does not compile.
"""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import re
import statistics
import time
from collections.abc import Sequence

import torch
from absl import app, flags

from kernels.norm.configuration import load
from tests.bench.norms import cuda, operations
from tests.bench.norms.cell import SUMS, WEIGHTS
from tests.support.norms.choices import HOPPER, Device, Rows, choose

# Of compute capability 8.0.
AMPERE = Device(warp=32, bulk_copies=False, named_barriers=True, shared_bytes=163 * 1024)
GENERAL_HIDDEN = 1 << 19  # beyond every tuned row
VECTOR = 8  # of bf16

_ARCHS = flags.DEFINE_multi_string("archs", ["sm_80", "sm_90", "sm_100"], "to compile for")
_PROCESSES = flags.DEFINE_integer(
    "processes", multiprocessing.cpu_count(), "that compile", lower_bound=1
)
flags.register_validator(
    _ARCHS,
    lambda archs: all(re.fullmatch(r"sm_\d+", arch) for arch in archs),
    "an arch is sm_ and the compute capability without its point: sm_90",
)


def jobs(archs: list[str]) -> list[tuple[str, str, dict[str, object]]]:
    """(arch, source, macros) of every configuration."""
    found = []
    types = (torch.bfloat16,) * 3
    for operation, entry in load().items():
        backward = operation.endswith("backward")
        for hidden in [hidden for hidden, _ in entry.tuned] + [GENERAL_HIDDEN]:
            for arch in archs:
                device = HOPPER if int(arch.removeprefix("sm_")) >= 90 else AMPERE
                rows = Rows(
                    operation,
                    hidden,
                    VECTOR,
                    2,
                    4 if backward else 2,
                    2 * WEIGHTS.get(operation, 0),
                    SUMS.get(operation, 0),
                    device=device,
                )
                (c,) = choose([rows])
                if operation.startswith("softmax"):
                    for mask in operations.MASKS:
                        macros = operations.softmax_macros(
                            c, hidden, VECTOR, types[0], mask, backward=backward
                        )
                        found.append((arch, "softmax.cpp", macros))
                    continue
                layer = operation.startswith("layer")
                beta = layer and not backward
                macros = operations.norm_macros(
                    c, layer, hidden, VECTOR, types, backward=backward, beta=beta
                )
                source = operations.backward_source(c) if backward else "norm_forward.cpp"
                found.append((arch, source, macros))
                if backward:
                    columns = operations.columns_macros(hidden, VECTOR, types[1])
                    found.append((arch, "norm_columns.cpp", columns))
    return found


def compile_job(job: tuple[str, str, dict[str, object]]) -> tuple[float, int, str]:
    arch, source, macros = job
    start = time.time()
    try:
        cubin = cuda.compile_cubin(source, macros, arch)
    except cuda.CompileError as error:
        return 0.0, 0, str(error)
    return time.time() - start, len(cubin), ""


def main(_argv: Sequence[str]) -> int:
    work = jobs(_ARCHS.value)
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(_PROCESSES.value, context) as pool:
        results = list(pool.map(compile_job, work))
    failed = [text for _, _, text in results if text]
    for text in failed:
        print(text[:1000])
    for arch in _ARCHS.value:
        of_arch = [r for job, r in zip(work, results, strict=True) if job[0] == arch and not r[2]]
        if of_arch:
            seconds = [r[0] for r in of_arch]
            print(
                f"{arch}: {len(of_arch)} compiled, {statistics.median(seconds):.2f} s each at the"
                f" median, {max(seconds):.2f} s at most,"
                f" {statistics.median(r[1] for r in of_arch) / 1024:.0f} KiB"
            )
    return 1 if failed else 0


if __name__ == "__main__":
    app.run(main)
