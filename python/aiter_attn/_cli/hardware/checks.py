# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The checks of a call's results on a GPU: their numbers, their repeats, the memory beside them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy

from aiter_attn._cli import selftest
from aiter_attn._cli.hardware.memory import DeviceArray, Memory

__all__ = ["GATES", "Output", "check"]

# Greatest error that passes, in ulp, by selftest's rule. A GPU's kernels round the terms of a sum
# to 16 bits, too, on which the values of a row depend alike.
GATES: Final = {"float16": 4.0, "bfloat16": 4.0, "float32": 16.0}


@dataclasses.dataclass(frozen=True)
class Output:
    """A result of a call that was made several times.

    same: whether each repeat must give the same bits. terms: see selftest.ulp_error. view: the
    result in the shape of `expected`.
    """

    name: str
    repeats: Sequence[DeviceArray]
    expected: Any
    dtype: str
    same: bool
    terms: Any
    view: Callable[[Any], Any]


def check(
    memory: Memory,
    outputs: Sequence[Output],
    inputs: Mapping[str, DeviceArray],
    unchanged: Mapping[str, Any],
) -> dict[str, Any]:
    """Findings, and errors by output.

    inputs: arrays whose margins must be untouched. unchanged: the content that some of them had and
    must still have.
    """
    findings: list[str] = []
    errors: dict[str, float] = {}
    for output in outputs:
        errors[output.name] = _numbers(output, findings)
    named = {array: f"{o.name} of repeat {i}" for o in outputs for i, array in _numbered(o)}
    for array in dict.fromkeys([*named, *memory.made]):
        if damage := array.damage():
            findings.append(f"guard: {named.get(array, 'a workspace')}: {damage}")
    for name, array in inputs.items():
        if damage := array.damage():
            findings.append(f"guard: {name}, which is an input: {damage}")
        if name in unchanged and not _same_bits(array.read(), unchanged[name]):
            findings.append(f"input: {name} was changed")
    return {
        "findings": findings,
        "errors": errors,
        "gates": {output.name: GATES[output.dtype] for output in outputs},
        "bit_identical": [output.name for output in outputs if output.same],
        "within_tolerance": [output.name for output in outputs if not output.same],
    }


def _numbered(output: Output) -> list[tuple[int, DeviceArray]]:
    return list(enumerate(output.repeats))


def _numbers(output: Output, findings: list[str]) -> float:
    """The greatest error of the repeats, of which those that must be the same are compared once."""
    first, greatest = None, 0.0
    for i, array in _numbered(output):
        got = array.read()
        if first is not None and output.same:
            if not _same_bits(got, first):
                findings.append(f"repeat: {output.name}: {_difference(i, got, first)}")
            continue
        if first is None:
            first = got
        seen = output.view(got)
        error = selftest.ulp_error(numpy, seen, output.expected, output.dtype, output.terms)
        greatest = max(greatest, error)
        if not error <= GATES[output.dtype]:
            findings.append(f"numbers: {output.name}: {_worst(i, error, seen, output)}")
    return greatest


def _bits(array: Any) -> Any:
    return numpy.ascontiguousarray(array).reshape(-1).view(numpy.uint8)


def _same_bits(one: Any, other: Any) -> bool:
    return bool(numpy.array_equal(_bits(one), _bits(other)))


def _difference(repeat: int, got: Any, first: Any) -> str:
    item = got.dtype.itemsize
    other = (_bits(got) != _bits(first)).reshape(-1, item).any(axis=1).reshape(got.shape)
    at = tuple(int(i) for i in numpy.argwhere(other)[0])
    return (
        f"{int(other.sum())} of {got.size} elements of repeat {repeat} differ from the first, at "
        f"{list(at)}: {float(got[at]):g}, not {float(first[at]):g}"
    )


def _worst(repeat: int, error: float, got: Any, output: Output) -> str:
    wide = got.astype(numpy.float64)
    with numpy.errstate(invalid="ignore"):
        distance = numpy.abs(wide - output.expected)
    distance = numpy.where(wide == output.expected, 0.0, distance)
    distance = numpy.where(numpy.isnan(distance), numpy.inf, distance)
    at = numpy.unravel_index(int(distance.argmax()), distance.shape)
    told = "not finite where it must be" if math.isinf(error) else f"{error:.1f} ulp"
    return (
        f"repeat {repeat} is wrong by {told} (allowed: {GATES[output.dtype]:g}), the most at "
        f"{[int(i) for i in at]}: {float(wide[at]):g}, not {float(output.expected[at]):g}"
    )
