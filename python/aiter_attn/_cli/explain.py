# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""`aiter-attn explain`: which kernels would serve a call, and why."""

from __future__ import annotations

import argparse
import functools
import json
import math
from typing import Any

import aiter_attn

__all__ = ["add_to", "explained"]

_DTYPES = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp8-e4m3fn": "float8_e4m3fn",
    "fp8-e4m3fnuz": "float8_e4m3fnuz",
}
_OUT_DTYPES = {"bf16": "bfloat16", "fp32": "float32"}


def add_to(commands: Any) -> None:
    """Adds the command to argparse's sub-commands."""
    explained = commands.add_parser("explain", help="which kernels would serve a call, and why")
    explained.add_argument("--arch", help="such as gfx942, here or not; default: the first GPU's")
    explained.add_argument("--dtype", choices=_DTYPES, required=True)
    explained.add_argument("--out-dtype", choices=_OUT_DTYPES, help="of fp8; default: --dtype")
    number = functools.partial(explained.add_argument, type=int, metavar="N")
    number("--batch", default=1, help="default: 1")
    number("--seqlen-q", required=True, help="with --varlen: of each sequence")
    number("--seqlen-k", help="default: as of q")
    number("--heads-q", default=1, help="default: 1")
    number("--heads-k", help="default: as of q")
    number("--head-size", required=True, help="of q and k")
    number("--head-size-v", help="default: as of q and k")
    explained.add_argument("--causal", action="store_true")
    explained.add_argument(
        "--window", nargs=2, type=int, default=(-1, -1), metavar=("LEFT", "RIGHT")
    )
    explained.add_argument("--varlen", action="store_true", help="sequences of different lengths")
    explained.add_argument("--backward", action="store_true")
    explained.add_argument("--dropout", type=float, default=0.0, metavar="P")
    explained.add_argument("--softcap", type=float, default=0.0, metavar="CAP")
    explained.add_argument("--bias", action="store_true", help="an elementwise one")
    explained.add_argument("--bias-grad", action="store_true", help="and its gradient")
    explained.add_argument("--alibi", action="store_true")
    explained.add_argument("--sink", action="store_true", help="with --backward: and its gradient")
    explained.add_argument("--deterministic", action="store_true", help="the backward pass")
    number("--min-seqlen-q", default=0, help="sequences of so many queries or fewer are left out")
    explained.add_argument(
        "--cache",
        action="store_true",
        help="over a key-value cache with room for --seqlen-k keys; with --varlen and without "
        "--page-size, keys listed one by one",
    )
    number("--page-size", default=0, help="of a cache in pages; default: in place")
    number("--splits", default=0, help="of the keys; default: as many as fill the GPU")
    number("--append", default=0, help="new keys of each sequence")
    explained.add_argument("--rotary", choices=("interleaved", "halves"), help="rotates new keys")
    explained.add_argument("--lse", action="store_true", help="the call returns it")
    explained.add_argument("--json", action="store_true", help="text and kernels as JSON")
    explained.set_defaults(run=explain)


def explained(arguments: argparse.Namespace) -> aiter_attn.Explanation:
    """The answer to the command's arguments. Raises ValueError, AttnError."""
    _refuse_contradictions(arguments)
    return _explain_cache(arguments) if arguments.cache else _explain_attention(arguments)


def explain(arguments: argparse.Namespace) -> int:
    found = explained(arguments)
    if arguments.json:
        print(json.dumps(found._asdict(), indent=2))
    else:
        print(found.text, end="")
    return 0


# The flags that each of these flags of `explain` needs; another must not be there.
_NEEDS = {
    "bias_grad": ("backward", "bias"),
    "min_seqlen_q": ("varlen",),
    "page_size": ("cache",),
    "splits": ("cache",),
    "append": ("cache",),
    "rotary": ("cache", "append"),
    "lse": ("cache",),
}
_EXCLUDES = {
    "alibi": ("bias",),
    "cache": ("backward", "dropout", "bias", "deterministic", "min_seqlen_q", "out_dtype"),
    "out_dtype": ("backward",),
    "append": ("varlen",),
}


def _refuse_contradictions(arguments: argparse.Namespace) -> None:
    def is_given(flag: str) -> bool:
        return bool(getattr(arguments, flag))

    def shown(flag: str) -> str:
        return "--" + flag.replace("_", "-")

    for flag, needed in _NEEDS.items():
        for other in needed:
            if is_given(flag) and not is_given(other):
                raise ValueError(f"{shown(flag)}: allowed with {shown(other)} only")
    for flag, excluded in _EXCLUDES.items():
        for other in excluded:
            if is_given(flag) and is_given(other):
                raise ValueError(f"{shown(flag)}: not beside {shown(other)}; drop one of them")


def _explain_attention(a: argparse.Namespace) -> aiter_attn.Explanation:
    seqlen_k, heads_k, head_size_v = _keys(a)
    rows_q: tuple[int, ...] = (a.batch, a.seqlen_q)
    rows_k: tuple[int, ...] = (a.batch, seqlen_k)
    if a.varlen:
        rows_q, rows_k = (math.prod(rows_q),), (math.prod(rows_k),)
    return aiter_attn.explain(
        (*rows_q, a.heads_q, a.head_size),
        (*rows_k, heads_k, a.head_size),
        (*rows_k, heads_k, head_size_v),
        backward=a.backward,
        causal=a.causal,
        window_size=tuple(a.window),
        sequences=(a.batch, a.seqlen_q, seqlen_k) if a.varlen else None,
        dropout_p=a.dropout,
        softcap=a.softcap,
        bias="alibi" if a.alibi else "elementwise" if a.bias else None,
        bias_grad=a.bias_grad,
        deterministic=a.deterministic,
        min_seqlen_q=a.min_seqlen_q,
        sink=a.sink,
        dtype=_DTYPES[a.dtype],
        out_dtype=_OUT_DTYPES.get(a.out_dtype),
        arch=a.arch,
    )


def _explain_cache(a: argparse.Namespace) -> aiter_attn.Explanation:
    seqlen_k, heads_k, head_size_v = _keys(a)
    rows: tuple[int, ...] = (a.batch, seqlen_k)  # in place
    table = None
    if a.page_size < 0:
        raise ValueError(f"--page-size: {a.page_size}; allowed: 1 or more, or 0: in place")
    if a.page_size:
        table = (a.batch, -(-seqlen_k // a.page_size))
        rows = (math.prod(table), a.page_size)
    elif a.varlen:
        rows = (a.batch * seqlen_k,)  # listed one by one
    return aiter_attn.explain_kvcache(
        (*((a.batch * a.seqlen_q,) if a.varlen else (a.batch, a.seqlen_q)), a.heads_q, a.head_size),
        (*rows, heads_k, a.head_size),
        (*rows, heads_k, head_size_v),
        block_table=table,
        sequences=(a.batch, a.seqlen_q, seqlen_k) if a.varlen else None,
        causal=a.causal,
        window_size=tuple(a.window),
        softcap=a.softcap,
        alibi=a.alibi,
        seqlen_new=a.append,
        rotary=a.rotary,
        num_splits=a.splits,
        return_lse=a.lse,
        sink=a.sink,
        dtype=_DTYPES[a.dtype],
        arch=a.arch,
    )


def _keys(a: argparse.Namespace) -> tuple[int, int, int]:
    """Length, heads and head size of v, which are as of q where they are not given."""
    return (
        a.seqlen_q if a.seqlen_k is None else a.seqlen_k,
        a.heads_q if a.heads_k is None else a.heads_k,
        a.head_size if a.head_size_v is None else a.head_size_v,
    )
