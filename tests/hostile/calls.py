# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Calls of the Python functions by arguments' names, and their documented errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import aiter_attn

from tests.hostile.explore import Counts
from tests.hostile.memory import Array
from tests.hostile.problems import Arrays, Problem

# Exceptions that the documentation of the functions names; no subclass of these.
_DOCUMENTED = (
    TypeError,
    ValueError,
    aiter_attn.UnsupportedError,
    aiter_attn.DriverError,
    aiter_attn.OutOfMemoryError,
    aiter_attn.CorruptError,
)
_NAMES = (
    "alibi_slopes|bias|bias_grad|block_table|causal|cu_seqlens_k|cu_seqlens_q|dbias|"
    "deterministic|dk|dout|dq|dropout_p|dsink|dv|k|lse|max_seqlen_k|max_seqlen_q|out|q|"
    "return_attn_probs|rng_state|sink|softcap|softmax_scale|stream|v|window_size|workspace"
)
_BEGINS_WITH_A_NAME = re.compile(rf"(?:{_NAMES})(?:, (?:{_NAMES}))*(?:\[|\.|:|=| )")


def arguments(problem: Problem, arrays: Arrays, function: str) -> dict[str, Any]:
    """Arguments of a right call of a function of aiter_attn, but for the results' arrays.

    A backward one passes the arrays' own `out` and `lse`.
    """
    given: dict[str, Any] = {name: arrays[name] for name in ("q", "k", "v")}
    if function.endswith("bwd"):
        given |= {name: arrays[name] for name in ("dout", "out", "lse")}
    if "varlen" in function:
        given |= {name: arrays[name] for name in ("cu_seqlens_q", "cu_seqlens_k")}
        given |= {"max_seqlen_q": problem.longest(0), "max_seqlen_k": problem.longest(1)}
    given |= {
        "softmax_scale": problem.scale,
        "causal": problem.causal,
        "window_size": problem.window,
    }
    return given


def function_of(problem: Problem, kind: str) -> str:
    """kind: fwd, bwd, func -> the function of the problem's mode"""
    if kind == "func":
        return "flash_attn_varlen_func" if problem.varlen else "flash_attn_func"
    return f"mha_varlen_{kind}" if problem.varlen else f"mha_{kind}"


def call(counts: Counts, function: str, given: dict[str, Any]) -> Any:
    counts[f"{function}: done"] += 1
    return getattr(aiter_attn, function)(**given)


def attempt(counts: Counts, function: str, given: dict[str, Any]) -> bool:
    """Whether a call was done; asserts of one that was refused that it was as documented."""
    return attempted(counts, function, lambda: getattr(aiter_attn, function)(**given))


def attempted(counts: Counts, kind: str, made: Callable[[], Array]) -> bool:
    try:
        made()
    except Exception as error:
        assert type(error) in _DOCUMENTED, f"{type(error).__name__} is not documented: {error}"
        text = str(error)
        assert _BEGINS_WITH_A_NAME.match(text), f"begins with no argument's name: {text}"
        assert text.isprintable(), f"not to be read: {text!r}"
        counts[f"{kind}: {type(error).__name__}"] += 1
        return False
    counts[f"{kind}: done"] += 1
    return True
