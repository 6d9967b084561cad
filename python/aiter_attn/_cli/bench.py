# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""`aiter-attn bench`: the time of one shape of attention, beside torch's and flash-attn's."""

from __future__ import annotations

import argparse
import functools
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import aiter_attn
from aiter_attn._cli import validate
from aiter_attn._cli.hardware import peers

__all__ = ["add_to", "bench", "operations"]

_DTYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}
_NOTHING = 2

# The times of so many runs, in milliseconds.
_Timer = Callable[[peers.Run, int], list[float]]


def add_to(commands: Any) -> None:
    """Adds the command to argparse's sub-commands."""
    added = commands.add_parser(
        "bench",
        help="measures a shape on the GPU beside torch's and flash-attn's, or on the CPU by name",
        description="Measures a shape of attention by the GPU's events, each run with cold caches; "
        "beside it torch's scaled_dot_product_attention and flash-attn, where they are installed "
        "for the same device. Exit status 2: nothing was measured.",
    )
    size = functools.partial(added.add_argument, type=validate.number_above(0), metavar="N")
    size("--batch", default=1, help="default: 1")
    size("--seqlen-q", required=True)
    size("--seqlen-k", help="default: as of q")
    size("--heads", default=8, help="default: 8")
    size("--heads-k", help="default: as of q")
    size("--head-size", default=128, help="default: 128")
    added.add_argument("--dtype", choices=_DTYPES, default="bf16", help="default: bf16")
    added.add_argument("--causal", action="store_true")
    added.add_argument("--backward", action="store_true", help="also the backward pass")
    size("--runs", default=20, help="default: 20")
    added.add_argument(
        "--device", default="0", metavar="N", help="a GPU's number, or cpu: the CPU reference"
    )
    added.add_argument("--json", action="store_true", help="the times as JSON")
    added.set_defaults(run=bench)


def operations(a: argparse.Namespace) -> dict[str, int]:
    """The floating-point operations of each pass, as flash-attn counts them: two products of
    matrices forward, five backward; the pairs that a causal mask hides are not counted."""
    seqlen_q, seqlen_k = a.seqlen_q, a.seqlen_k
    pairs = seqlen_q * seqlen_k
    if a.causal:
        # Query i sees i + 1 + seqlen_k - seqlen_q keys, or none.
        first = max(0, 1 + seqlen_k - seqlen_q)
        queries = min(seqlen_q, seqlen_k)
        pairs = queries * (first + seqlen_k) // 2
    forward = 4 * a.batch * a.heads * pairs * a.head_size
    return {"forward": forward, "backward": forward * 5 // 2}


def bench(arguments: argparse.Namespace) -> int:
    a = arguments
    a.seqlen_k = a.seqlen_k or a.seqlen_q
    a.heads_k = a.heads_k or a.heads
    if a.heads % a.heads_k:
        raise ValueError(f"--heads-k {a.heads_k}: allowed: divisors of --heads {a.heads}")
    found = _on_cpu(a) if a.device == "cpu" else _on_gpu(a)
    if found is None:
        return _NOTHING
    where, rows, missing = found
    told = {"device": where, "arguments": _shape(a), "rows": rows, "not_measured": missing}
    if a.json:
        print(json.dumps(told, indent=2))
        return 0
    print(where)
    print(f"{'pass':<9} {'by':<12} {'median ms':>10} {'least ms':>10} {'TFLOP/s':>8}   our speed")
    for row in rows:
        ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f} of it"
        print(
            f"{row['pass']:<9} {row['by']:<12} {row['median']:10.4f} {row['least']:10.4f} "
            f"{row['tflops']:8.2f}   {ratio}".rstrip()
        )
    for name, why in missing.items():
        print(f"not measured: {name}: {why}")
    step = (
        "without --device cpu the same on a GPU"
        if a.device == "cpu"
        else "aiter-attn explain says which kernels serve such a call, and why"
    )
    print(f"next: {step}")
    return 0


def _shape(a: argparse.Namespace) -> dict[str, Any]:
    names = ("batch", "seqlen_q", "seqlen_k", "heads", "heads_k", "head_size", "dtype", "causal",
             "backward", "runs")  # fmt: skip
    return {name: getattr(a, name) for name in names}


def _measured(
    a: argparse.Namespace, timer: _Timer, runs: dict[str, peers.Runs]
) -> list[dict[str, Any]]:
    """A row for each pass and each library; ours is the first of a pass. The ratio is a peer's
    median by ours: above 1, ours is faster."""
    from aiter_attn._cli.hardware.memory import summary

    counts = operations(a)
    rows = []
    for name, of_pass in runs.items():
        ours: float | None = None
        for by, run in of_pass.items():
            print(f"bench: {a.runs} runs of {name} by {by}", file=sys.stderr, flush=True)
            times = summary(timer(run, a.runs))
            ratio: float | None = None if ours is None else times["median"] / ours
            ours = ours or times["median"]
            tflops = counts[name] / times["median"] / 1e9
            rows.append({"pass": name, "by": by, **times, "tflops": tflops, "ratio": ratio})
    return rows


def _drawn(a: argparse.Namespace) -> Iterator[Any]:
    """q, k, v and dout in numpy."""
    import numpy

    from aiter_attn._cli.hardware.memory import numpy_dtype

    generator = numpy.random.default_rng(0)
    for seqlen, heads in (
        (a.seqlen_q, a.heads),
        (a.seqlen_k, a.heads_k),
        (a.seqlen_k, a.heads_k),
        (a.seqlen_q, a.heads),
    ):
        drawn = generator.standard_normal((a.batch, seqlen, heads, a.head_size))
        yield drawn.astype(numpy_dtype(_DTYPES[a.dtype]))


def _our_runs(
    a: argparse.Namespace, arrays: list[Any], made: Sequence[Any] = ()
) -> dict[str, peers.Runs]:
    """Runs that allocate nothing. made: the arrays that the calls here have asked a GPU for."""
    q, k, v, dout = arrays
    mask = {"causal": a.causal}
    out, lse = aiter_attn.mha_fwd(q, k, v, **mask)
    runs: dict[str, peers.Runs] = {
        "forward": {"aiter-attn": lambda: aiter_attn.mha_fwd(q, k, v, out=out, lse=lse, **mask)}
    }
    if a.backward:
        gradients = aiter_attn.mha_bwd(dout, q, k, v, out, lse, **mask)
        lent: dict[str, Any] = dict(zip(("dq", "dk", "dv"), gradients, strict=True))
        for array in made:
            if array.dtype == "uint8":
                lent["workspace"] = array
        runs["backward"] = {
            "aiter-attn": lambda: aiter_attn.mha_bwd(dout, q, k, v, out, lse, **mask, **lent)
        }
    return runs


def _on_gpu(a: argparse.Namespace) -> tuple[str, list[dict[str, Any]], dict[str, str]] | None:
    if not a.device.isdecimal():
        raise ValueError(f"--device {a.device}: allowed: a GPU's number, or cpu")
    opened = validate.opened("bench", int(a.device))
    if opened is None:
        return None
    memory, arch = opened
    runs = _our_runs(a, [memory.array(x) for x in _drawn(a)], memory.made)

    def timer(run: peers.Run, count: int) -> list[float]:
        return memory.times(run, count, cold=True)

    missing = _add_peers(a, runs, f"cuda:{a.device}")
    return f"device {a.device}: {memory.name()} ({arch})", _measured(a, timer, runs), missing


def _on_cpu(a: argparse.Namespace) -> tuple[str, list[dict[str, Any]], dict[str, str]]:
    try:
        runs = _our_runs(a, list(_drawn(a)))
    except ImportError as error:
        raise ValueError(f"{error}; next: pip install numpy ml_dtypes") from error

    def timer(run: peers.Run, count: int) -> list[float]:
        run()
        times = []
        for _ in range(count):
            start = time.perf_counter()
            run()
            times.append(1e3 * (time.perf_counter() - start))
        return times

    missing = _add_peers(a, runs, "cpu")
    return "cpu: the CPU reference", _measured(a, timer, runs), missing


def _add_peers(a: argparse.Namespace, runs: dict[str, peers.Runs], device: str) -> dict[str, str]:
    """Adds the peers that are here; the others, and why not."""
    if why := peers.why_no_torch(device):
        return {"torch, flash-attn": why}
    shape = peers.Shape(
        batch=a.batch,
        seqlen_q=a.seqlen_q,
        seqlen_k=a.seqlen_k,
        heads_q=a.heads,
        heads_k=a.heads_k,
        head_size=a.head_size,
        head_size_v=a.head_size,
        dtype=_DTYPES[a.dtype],
        causal=a.causal,
        backward=a.backward,
    )
    found = {"torch": peers.torch_runs(shape, device)}
    if device != "cpu":
        found["flash-attn"] = peers.flash_attn_runs(shape, device)
    missing = {}
    for name, of_peer in found.items():
        if isinstance(of_peer, str):
            missing[name] = of_peer
            continue
        for of_pass, run in of_peer.items():
            runs[of_pass][name] = run
    return missing
