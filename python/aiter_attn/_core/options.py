# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The options of attention: one record, made and checked once by the function that a user calls.
All behind it pass the record on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from aiter_attn._core import reading

__all__ = [
    "FIELDS",
    "GREATEST_SCALE",
    "LEAST_SCALE",
    "Options",
    "folded",
    "names",
    "numbers",
    "options",
    "schema",
]

# Float32's normal numbers.
LEAST_SCALE: Final = 2.0**-126
GREATEST_SCALE: Final = (2 - 2**-23) * 2.0**127
_RANGE: Final = f"{LEAST_SCALE:.3g} to {GREATEST_SCALE:.3g}"


class Options(NamedTuple):
    """Numbers and flags, by the names and in the order of public functions. The arrays beside them
    are no part of it."""

    dropout_p: float = 0.0
    softmax_scale: float | None = None  # None: 1 / sqrt(head_size)
    causal: bool = False
    window_size: tuple[int, int] = (-1, -1)
    softcap: float = 0.0
    deterministic: bool = False
    bias_grad: bool = False
    min_seqlen_q: int = 0


class _Field(NamedTuple):
    """c: the fields of the C structs that an option becomes. schema: it as an argument of torch's
    operators."""

    c: tuple[str, ...]
    schema: str


def _probability(value: Any) -> float:
    if type(value) is float and 0.0 <= value < 1.0:
        return value
    allowed = "a probability below 1; 0.0: none"
    probability = reading.number("dropout_p", value, allowed)
    if not 0.0 <= probability < 1.0:
        raise ValueError(f"dropout_p: {probability}; allowed: {allowed}")
    return probability


def _scale(value: Any) -> float | None:
    if value is None:
        return None
    scale = reading.number("softmax_scale", value, "a number, or None")
    if not LEAST_SCALE <= scale <= GREATEST_SCALE:
        raise ValueError(
            f"softmax_scale: {scale}; allowed: {_RANGE}, or None; for a scale below 0 pass -q"
        )
    return scale


def _cap(value: Any) -> float:
    if type(value) is float and value == 0.0:
        return value
    cap = reading.number("softcap", value, "a number above 0; 0.0: no cap")
    if cap != 0.0 and not LEAST_SCALE <= cap <= GREATEST_SCALE:
        raise ValueError(f"softcap: {cap}; allowed: {_RANGE}; 0.0: no cap")
    return cap


def _window(value: Any) -> tuple[int, int]:
    if type(value) is tuple and len(value) == 2 and type(value[0]) is type(value[1]) is int:
        return value
    return reading.pair("window_size", value, "two integers (left, right), -1: no bound")


FIELDS: Final = {
    "dropout_p": _Field(("dropout_p",), "float dropout_p"),
    "softmax_scale": _Field(("softmax_scale",), "float? softmax_scale"),
    "causal": _Field(("mask", "window_right"), "bool causal"),
    "window_size": _Field(
        ("mask", "window_left", "window_right"), "SymInt window_left, SymInt window_right"
    ),
    "softcap": _Field(("logits_soft_cap",), "float softcap"),
    "deterministic": _Field(("deterministic",), "bool deterministic"),
    "bias_grad": _Field(("bias_grad",), "bool bias_grad"),
    "min_seqlen_q": _Field(("min_seqlen_q",), "SymInt min_seqlen_q"),
}


def names(*without: str) -> tuple[str, ...]:
    """The options of a call in which none of its passes has one of its own, but for some."""
    of_passes = {"bias_grad", "min_seqlen_q"}
    return tuple(name for name in Options._fields if name not in of_passes.union(without))


def options(
    dropout_p: Any = 0.0,
    softmax_scale: Any = None,
    causal: Any = False,
    window_size: Any = (-1, -1),
    softcap: Any = 0.0,
    deterministic: Any = False,
    bias_grad: Any = False,
    min_seqlen_q: Any = 0,
) -> Options:
    """The record of a caller's arguments. Raises TypeError or ValueError for one that no problem
    takes."""
    return Options(
        _probability(dropout_p),
        _scale(softmax_scale),
        reading.flag("causal", causal),
        _window(window_size),
        _cap(softcap),
        reading.flag("deterministic", deterministic),
        reading.flag("bias_grad", bias_grad),
        reading.integer("min_seqlen_q", min_seqlen_q),
    )


def numbers(options: Options) -> dict[str, Any]:
    """The options that are one field of the C structs, by its name."""
    fields = zip(FIELDS.values(), options, strict=True)
    return {field.c[0]: value for field, value in fields if len(field.c) == 1}


def schema(names: Iterable[str]) -> str:
    """These options as arguments of a torch operator."""
    return ", ".join(FIELDS[name].schema for name in names)


def folded(names: Iterable[str], numbers: Iterable[Any]) -> dict[str, Any]:
    """options()' arguments of those that schema() tells."""
    rest = iter(numbers)
    return {n: (next(rest), next(rest)) if n == "window_size" else next(rest) for n in names}
