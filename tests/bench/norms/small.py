# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Times of small calls, ours and the peers', on the device at hand.

    python3 -m tests.bench.norms.small --out small.json [--peers torch] [--dtype fp32]
        [--shape 1x4096 --shape 64x8192] [--serial] [--noclusters]

A time is the GPU's, in microseconds a call: of a CUDA graph of 20 calls, one after the other, the
median of 30 replays. All that the calls read and write stays in L2. Peers that are installed are
measured in the same run: torch, torch.compile, Liger, QuACK.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from absl import app, flags

from kernels.norm.configuration import OPERATIONS
from tests.bench.norms import cuda, operations
from tests.bench.norms.cell import TYPES, Cell, chosen, source_and_macros
from tests.bench.norms.graphs import SHAPES, check_shapes, microseconds, read_shape
from tests.bench.norms.peers import PEERS, Peers
from tests.support.norms.choices import AMPERE, HOPPER

_OUT = flags.DEFINE_string("out", "small.json", "file of the results")
_SHAPES = flags.DEFINE_multi_string("shape", SHAPES, "rows x columns")
_DTYPE = flags.DEFINE_enum("dtype", "bf16", list(TYPES), "of all inputs")
_OPERATIONS = flags.DEFINE_multi_enum("operations", OPERATIONS, OPERATIONS, "to measure")
_SERIAL = flags.DEFINE_bool("serial", False, "ours start when the call before has ended")
_CLUSTERS = flags.DEFINE_bool("clusters", True, "ours are for this device; else for sm_80")
_PEERS = flags.DEFINE_multi_enum("peers", PEERS, [*PEERS, "none"], "none: ours alone")
check_shapes(_SHAPES)


def main(_argv: Sequence[str]) -> None:
    wanted = set(_PEERS.value) - {"none"}
    dtype = TYPES[_DTYPE.value]
    if _SERIAL.value:
        operations.SHORT_ELEMENTS = 0
    peers = Peers() if wanted else None
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, us a call")
    results: list[dict] = []
    with torch.cuda.stream(torch.cuda.Stream()):
        for rows, hidden in map(read_shape, _SHAPES.value):
            cell = Cell(hidden, rows, dtype)
            found: dict[str, dict[str, float | str]] = {op: {} for op in _OPERATIONS.value}
            for operation, times in found.items():
                device = HOPPER if _CLUSTERS.value else AMPERE
                c = chosen(operation, hidden, dtype, rows, device=device)
                source, macros = source_and_macros(operation, c, hidden, dtype)
                module = cuda.Module(cuda.compile_cubin(source, macros))
                times["ours"] = microseconds(cell.launcher(operation, c, module))
                if not (error := cell.error(operation)) < 1e-2:
                    raise SystemExit(f"{operation} {rows}x{hidden}: relative error {error}")
            for who, operation, function in peers.calls(cell) if peers else ():
                if who not in wanted or operation not in found:
                    continue
                try:
                    found[operation][who] = microseconds(function)
                except Exception as error:  # a peer may not take the shape, or not be captured
                    found[operation][who] = repr(error)[:200]
            for operation, times in found.items():
                results.append(
                    {"operation": operation, "rows": rows, "hidden": hidden, "us": times}
                )
                text = ", ".join(
                    f"{who} {us:.2f}" if isinstance(us, float) else f"{who} -"
                    for who, us in times.items()
                )
                print(f"{operation:16} {rows:5} x {hidden:6}: {text}", flush=True)
            Path(_OUT.value).write_text(json.dumps(results))


if __name__ == "__main__":
    app.run(main)
