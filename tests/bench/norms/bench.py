# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Bandwidth of the norm and softmax kernels and of their peers, on the device at hand.

    python3 -m tests.bench.norms.bench --out bench.json [--page bench.html]
        [--budget 500] [--peers compile --peers quack] [--hidden 2880] [--dtype fp32] [--dh]
        [--noclusters] [--nostatistics]

Each cell is the bytes that the operation must move (every input read once, every output written
once, weights left out) over its time, as a share of a 2 GiB copy's bandwidth in the same run. Times
are medians of events with a cold L2 (triton.testing.do_bench), launches included. Peers that are
installed are measured: torch, torch.compile, Liger, QuACK. Inputs are of 2^27 elements, but for two
shapes without --hidden. The forward kernels store mean and rstd, as training needs them, but not
with --nostatistics: torch.compile's do not where no gradient is wanted. With --dh the norms'
backward passes alone are measured, which add the gradient of a residual stream, another input;
peers have none. With --noclusters ours are the kernels of devices that have no clusters.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from absl import app, flags
from triton.testing import do_bench

from kernels.norm.configuration import OPERATIONS
from tests.bench.norms import cuda
from tests.bench.norms.cell import SUMS, TYPES, Cell, chosen, source_and_macros
from tests.bench.norms.peers import PEERS, Peers
from tests.bench.norms.plots import page
from tests.support.norms.choices import AMPERE, HOPPER

ELEMENTS = 1 << 27
POWERS = [1 << p for p in range(10, 18)]
SMALL = [(4096, 4096), (4096, 8192)]

_OUT = flags.DEFINE_string("out", "bench.json", "file of the results")
_PAGE = flags.DEFINE_string("page", None, "an HTML page with a plot an operation")
_BUDGET = flags.DEFINE_float("budget", 500, "seconds, then peers are left out", lower_bound=0)
_HIDDEN = flags.DEFINE_multi_integer(
    "hidden", None, "row lengths; powers of two without it", lower_bound=1
)
_DTYPE = flags.DEFINE_enum("dtype", "bf16", list(TYPES), "of all inputs")
_PEERS = flags.DEFINE_multi_enum("peers", PEERS, [*PEERS, "none"], "none: ours alone")
_CLUSTERS = flags.DEFINE_bool("clusters", True, "ours are for this device; else for sm_80")
_DH = flags.DEFINE_bool("dh", False, "norms' backward passes with the gradient of a residual")
_STATISTICS = flags.DEFINE_bool("statistics", True, "our norms' forward passes store mean and rstd")


def milliseconds(function: Callable[[], object]) -> float:
    return do_bench(function, warmup=10, rep=40, return_mode="median")


def main(_argv: Sequence[str]) -> None:
    wanted = set() if _DH.value else set(_PEERS.value) - {"none"}
    begin = time.time()
    x = torch.empty(1 << 30, dtype=torch.bfloat16, device="cuda").normal_()
    y = torch.empty_like(x)
    copy = 4 * x.numel() / milliseconds(functools.partial(y.copy_, x)) / 1e9
    del x, y
    print(f"copy {copy:.3f} TB/s, {torch.cuda.get_device_name()}, torch {torch.__version__}")
    peers = Peers() if wanted else None
    rows: list[dict] = []

    def put(who: str, operation: str, cell: Cell, function: Callable[[], object]) -> None:
        row = {"who": who, "operation": operation, "rows": cell.rows, "hidden": cell.hidden}
        try:
            function()
            torch.cuda.synchronize()
            row["ms"] = milliseconds(function)
            row["share"] = cell.bytes(operation) / row["ms"] / 1e9 / copy
        except Exception as error:  # a peer may not take the shape
            row["error"] = repr(error)[:200]
        rows.append(row)

    dtype = TYPES[_DTYPE.value]
    shapes = [(max(1, ELEMENTS // hidden), hidden) for hidden in _HIDDEN.value or POWERS]
    for count, hidden in shapes if _HIDDEN.value else shapes + SMALL:
        cell = Cell(hidden, count, dtype, _DH.value, _STATISTICS.value)
        for operation in SUMS if _DH.value else OPERATIONS:
            device = HOPPER if _CLUSTERS.value else AMPERE
            c = chosen(operation, hidden, dtype, count, _DH.value, device)
            source, macros = source_and_macros(operation, c, hidden, dtype, _DH.value)
            start = time.time()
            module = cuda.Module(cuda.compile_cubin(source, macros))
            seconds = time.time() - start
            put("ours", operation, cell, cell.launcher(operation, c, module))
            rows[-1] |= {"compile_s": seconds, "relative_error": cell.error(operation)}
        put("copy", "copy", cell, functools.partial(cell.out.copy_, cell.x))
        if peers and time.time() - begin < _BUDGET.value:
            for who, operation, function in peers.calls(cell):
                if who not in wanted:
                    continue
                put(who, operation, cell, function)
                if time.time() - begin > _BUDGET.value:
                    break
        print(f"{count}x{hidden} {time.time() - begin:.0f} s", flush=True)
        Path(_OUT.value).write_text(json.dumps({"copy_TBps": copy, "rows": rows}))
        torch.cuda.empty_cache()
    report(rows)
    if _PAGE.value:
        Path(_PAGE.value).write_text(page(copy, rows))


def report(rows: list[dict]) -> None:
    shapes = [(r["rows"], r["hidden"]) for r in rows if r["who"] == "copy"]
    print("operation, who".ljust(26), *(f"{m}x{n}".rjust(11) for m, n in shapes))
    for operation in (*OPERATIONS, "copy"):
        for who in dict.fromkeys(r["who"] for r in rows if r["operation"] == operation):
            cells = {
                (r["rows"], r["hidden"]): r
                for r in rows
                if (r["operation"], r["who"]) == (operation, who)
            }
            text = [
                f"{cells[s]['share']:11.3f}" if "share" in cells.get(s, {}) else "-".rjust(11)
                for s in shapes
            ]
            print(f"{operation}, {who}".ljust(26), *text)
    for r in rows:
        if "error" in r:
            print(r)


if __name__ == "__main__":
    app.run(main)
