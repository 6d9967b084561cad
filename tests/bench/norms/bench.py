# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Bandwidth of the norm and softmax kernels and of their peers, on the device at hand.

    python3 -m tests.bench.norms.bench --out bench.json [--page bench.html]
        [--budget 500] [--peers compile --peers quack] [--hidden 2880] [--dtype fp32]

Each cell is the bytes that the operation must move (every input read once, every output written
once, weights left out) over its time, as a share of a 2 GiB copy's bandwidth in the same run. Times
are medians of events with a cold L2 (triton.testing.do_bench), launches included. Peers that are
installed are measured: torch, torch.compile, Liger, QuACK. Inputs are of 2^27 elements, but for two
shapes without --hidden. The forward kernels store mean and rstd, as training needs them.
"""

from __future__ import annotations

import functools
import importlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from absl import app, flags
from triton.testing import do_bench

from kernels.norm.configuration import OPERATIONS, load
from tests.bench.norms import cuda
from tests.bench.norms.cell import TYPES, Cell, chosen, source_and_macros
from tests.bench.norms.plots import page

PEERS = ("torch", "compile", "liger", "quack")
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


def milliseconds(function: Callable[[], object]) -> float:
    return do_bench(function, warmup=10, rep=40, return_mode="median")


def optional(name: str):
    """The module, or None with the reason printed."""
    try:
        return importlib.import_module(name)
    except Exception as error:  # a peer may fail on import in any way
        print(f"no {name}: {error!r}"[:200])
        return None


class Peers:
    """Calls of the peers, at the lowest level that each makes public."""

    def __init__(self) -> None:
        self.liger = {
            op: optional(f"liger_kernel.ops.{module}")
            for op, module in (("rms", "rms_norm"), ("layer", "layer_norm"), ("softmax", "softmax"))
        }
        self.quack = {"rms": optional("quack.rmsnorm"), "softmax": optional("quack.softmax")}
        torch._dynamo.config.cache_size_limit = 256
        plain = {
            "rms": lambda x, w: F.rms_norm(x, (x.shape[-1],), w, 1e-6),
            "layer": lambda x, w, b: F.layer_norm(x, (x.shape[-1],), w, b, 1e-6),
            "softmax": lambda x: torch.softmax(x, -1),
        }
        self.functions = {"torch": plain}
        self.functions["compile"] = {k: torch.compile(f, dynamic=False) for k, f in plain.items()}

    def calls(self, cell: Cell) -> Iterator[tuple[str, str, Callable[[], object]]]:
        """(peer, operation, call); a call may raise."""
        x, w, b, g = cell.x, cell.w, cell.b, cell.g
        arguments = {"rms": (x, w), "layer": (x, w, b), "softmax": (x,)}
        functions = dict(self.functions)
        liger = {}
        if self.liger["rms"]:
            rms = self.liger["rms"].LigerRMSNormFunction
            liger["rms"] = lambda x, w: rms.apply(x, w, 1e-6, 0.0, "llama", False)
        if self.liger["layer"]:
            layer = self.liger["layer"].LigerLayerNormFunction
            liger["layer"] = lambda x, w, b: layer.apply(x, w, b, 1e-6)
        if self.liger["softmax"]:
            liger["softmax"] = self.liger["softmax"].LigerSoftmaxFunction.apply
        functions["liger"] = liger
        for peer, table in functions.items():
            for op, function in table.items():
                values = arguments[op]

                def forward(function=function, values=values):
                    with torch.no_grad():
                        return function(*values)

                yield peer, f"{op}_forward", forward
                yield peer, f"{op}_backward", self._backward(function, values, g)
        rms, softmax = self.quack["rms"], self.quack["softmax"]
        if rms:
            wf, bf = w.float(), b.float()
            yield "quack", "rms_forward", lambda: rms.rmsnorm_fwd(x, w, store_rstd=True)
            yield "quack", "rms_backward", lambda: rms.rmsnorm_bwd(x, w, g, cell.rms_rstd)
            yield "quack", "layer_forward", lambda: rms.layernorm_fwd(x, wf, bf, 1e-6, True, True)
            if hasattr(rms, "layernorm_bwd"):
                yield (
                    "quack",
                    "layer_backward",
                    lambda: rms.layernorm_bwd(x, wf, g, cell.ln_rstd, cell.mean),
                )
        if softmax:
            yield "quack", "softmax_forward", lambda: softmax.softmax_fwd(x)
            yield "quack", "softmax_backward", lambda: softmax.softmax_bwd(g, cell.softmax)

    @staticmethod
    def _backward(function, values, g):
        """Autograd's backward pass alone; the forward pass runs at the first call."""
        state = []

        def call():
            if not state:
                inputs = [v.detach().clone().requires_grad_() for v in values]
                state.extend((inputs, function(*inputs)))
            return torch.autograd.grad(state[1], state[0], g, retain_graph=True)

        return call


def main(_argv: Sequence[str]) -> None:
    wanted = set(_PEERS.value) - {"none"}
    begin = time.time()
    x = torch.empty(1 << 30, dtype=torch.bfloat16, device="cuda").normal_()
    y = torch.empty_like(x)
    copy = 4 * x.numel() / milliseconds(functools.partial(y.copy_, x)) / 1e9
    del x, y
    print(f"copy {copy:.3f} TB/s, {torch.cuda.get_device_name()}, torch {torch.__version__}")
    peers = Peers() if wanted else None
    table = load()
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
        cell = Cell(hidden, count, dtype)
        for operation in OPERATIONS:
            c = chosen(table, operation, hidden, dtype)
            source, macros = source_and_macros(operation, c, hidden, dtype)
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
