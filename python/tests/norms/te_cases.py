# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""TransformerEngine's norm operators: its cases (te_cases.toml), their inputs, and their results in
float64."""

from __future__ import annotations

import dataclasses
import itertools
import zlib
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy
import tomllib

TABLE = tomllib.loads(Path(__file__).with_name("te_cases.toml").read_text())
EPSILON: float = TABLE["epsilon"]
Array = numpy.ndarray
# Half a unit in the last place, and half the spacing of the subnormals.
_ROUNDING = {
    "float32": (2.0**-24, 2.0**-150),
    "bfloat16": (2.0**-8, 2.0**-134),
    "float16": (2.0**-11, 2.0**-25),
    "float8_e4m3fn": (2.0**-4, 2.0**-10),
}


def numpy_dtype(name: str) -> Any:
    return numpy.dtype(getattr(ml_dtypes, name, None) or name)


@dataclasses.dataclass(frozen=True)
class Case:
    norm: str  # layer, rms
    x: str
    y: str
    rows: int
    hidden: int
    zero_centred: bool

    def __str__(self) -> str:
        centred = "-centred" if self.zero_centred else ""
        return f"{self.norm}-{self.x}-{self.y}-{self.rows}x{self.hidden}{centred}"

    @property
    def layer(self) -> bool:
        return self.norm == "layer"


def cases() -> list[Case]:
    return [
        Case(norm, x, y, *size, centred)
        for norm in ("layer", "rms")
        for x, y, size, centred in itertools.product(
            TABLE["inputs"], TABLE["outputs"], TABLE[norm]["sizes"], TABLE["zero_centred"]
        )
    ]


@dataclasses.dataclass(frozen=True)
class Inputs:
    x: Array
    dy: Array
    gamma: Array
    beta: Array
    scale: Array  # of fp8 results


def inputs(case: Case) -> Inputs:
    random = numpy.random.default_rng(zlib.crc32(str(case).encode()))

    def uniform(*shape: int) -> Array:
        return random.uniform(*TABLE["uniform"], shape).astype(numpy_dtype(case.x))

    matrices = [uniform(case.rows, case.hidden) for _ in range(2)]
    vectors = [uniform(case.hidden) for _ in range(2)]
    return Inputs(*matrices, *vectors, random.uniform(0.5, 2, 1).astype(numpy.float32))


def expected_forward(case: Case, given: Inputs, results: dict[str, Array]) -> dict[str, Array]:
    """In float64; y and amax of the statistics that the call gave, as in TransformerEngine."""
    x = given.x.astype(float)
    mean = x.mean(-1) if case.layer else numpy.zeros(len(x))
    rstd = 1 / numpy.sqrt(numpy.square(x - mean[:, None]).mean(-1) + EPSILON)
    of_y = results["mean"].astype(float)[:, None] if case.layer else 0.0
    y = (x - of_y) * results["rstd"].astype(float)[:, None] * _factor(case, given)
    if case.layer:
        y += given.beta.astype(float)
    expected = {"rstd": rstd, "y": y}
    if case.layer:
        expected["mean"] = mean
    if case.y.startswith("float8"):
        expected["amax"] = numpy.abs(y).max(keepdims=True)[0]
        expected["y"] = numpy.clip(y * given.scale, -448, 448)
    return expected


def expected_backward(case: Case, given: Inputs, results: dict[str, Array]) -> dict[str, Array]:
    """In float64, of the statistics that the forward pass gave."""
    x, dy = given.x.astype(float), given.dy.astype(float)
    mean = results["mean"].astype(float)[:, None] if case.layer else 0.0
    rstd = results["rstd"].astype(float)[:, None]
    xhat, wdy = (x - mean) * rstd, dy * _factor(case, given)
    dx = wdy - (wdy * xhat).mean(-1, keepdims=True) * xhat
    if case.layer:
        dx -= wdy.mean(-1, keepdims=True)
    expected = {"dx": dx * rstd, "dgamma": (dy * xhat).sum(0)}
    if case.layer:
        expected["dbeta"] = dy.sum(0)
    return expected


def _factor(case: Case, given: Inputs) -> Array:
    return given.gamma.astype(float) + case.zero_centred


def _tolerance(case: Case, name: str) -> tuple[float, float]:
    table = TABLE[case.norm]
    if name == "y":
        return tuple(table["y"][case.y])
    if name == "amax":
        return tuple(TABLE["amax"])
    return tuple(TABLE["statistics"] if name in ("mean", "rstd") else table["gradients"])


def mistakes(case: Case, expected: dict[str, Array], results: dict[str, Array]) -> list[str]:
    """The results that are farther away than the tolerance and the rounding to their type."""
    found = []
    for name, want in expected.items():
        got = results[name]
        absolute, relative = _tolerance(case, name)
        rounding, spacing = _ROUNDING[got.dtype.name]
        room = absolute + (relative + rounding) * numpy.abs(want) + spacing
        off = numpy.abs(got.astype(float) - want)
        bad = numpy.argwhere(~(off <= room))
        if len(bad):
            at = tuple(bad[0])
            found.append(f"{name}: {len(bad)} wrong, first at {at}: {got[at]}, not {want[at]}")
    return found
