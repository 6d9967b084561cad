# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""LayerNorm, RMSNorm and softmax in float64, and how far float32 arithmetic may be from it."""

from __future__ import annotations

import dataclasses

import ml_dtypes
import numpy as np

Array = np.ndarray
TYPES = {
    "fp32": np.dtype(np.float32),
    "fp16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "fp8_e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "fp8_e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "e8m0": np.dtype(np.uint8),  # exponents with 127 added
}
SATURATING = ("fp8_e4m3", "fp8_e5m2")  # largest values in place of infinities
# Half a unit in the last place, and the spacing of the subnormals.
_ROUNDING = {
    "fp32": (2.0**-24, 0.0),
    "bf16": (2.0**-8, 2.0**-133),
    "fp16": (2.0**-11, 2.0**-24),
    "fp8_e4m3": (2.0**-4, 2.0**-9),
    "fp8_e5m2": (2.0**-3, 2.0**-16),
}
_FLOAT32 = 1e-5  # of the largest element of a row, for arithmetic in float32


@dataclasses.dataclass(frozen=True)
class Expected:
    """A result in float64, and the error that may be added to the rounding of its type."""

    value: Array
    slack: Array | float

    def mistake(self, got: Array, dtype: str) -> str:
        """The first element that is wrong, in words; "" where all are right."""
        value = self.value
        relative, spacing = _ROUNDING[dtype]
        if dtype in SATURATING:
            largest = float(ml_dtypes.finfo(TYPES[dtype]).max)
            value = np.where(np.isnan(value), value, np.clip(value, -largest, largest))
        elif dtype == "fp16":
            value = np.where(np.abs(value) >= 65520, np.copysign(np.inf, value), value)
        wide = got.astype(np.float64)
        exact = (wide == value) | (np.isnan(wide) & np.isnan(value))
        with np.errstate(invalid="ignore"):
            room = 1.02 * relative * np.abs(value) + spacing + self.slack
            near = np.isfinite(value) & (np.abs(wide - value) <= room)
        bad = np.argwhere(~exact & ~near)
        if not len(bad):
            return ""
        at = tuple(bad[0])
        return f"{len(bad)} of {got.size} wrong, first at {at}: {wide[at]!r}, not {value[at]!r}"

    def divided(self, by: Array) -> Expected:
        return Expected(self.value / by, self.slack / by)


BLOCK = 32  # columns with a scale
_SCALE_SLACK = 1e-4  # relative


def _largest_number(y: Array) -> Array:
    return np.where(np.isnan(y), 0, np.abs(y)).max(-1)


def mistakes_of_row_scales(y: Array, scales: Array, dtype: str) -> list[str]:
    """y in float64, and the scale that each row should be divided by."""
    want = _largest_number(y) / float(ml_dtypes.finfo(TYPES[dtype]).max)
    want = np.maximum(want, 2.0**-100)
    got = scales.astype(np.float64)
    bad = ~((got == want) | (np.abs(got - want) <= _SCALE_SLACK * want))
    return [f"row {row}: {got[row]!r}, not {want[row]!r}" for row in np.flatnonzero(bad)]


def mistakes_of_block_scales(y: Array, exponents: Array, dtype: str) -> list[str]:
    """The same of blocks; exponents have 127 added."""
    largest = _largest_number(y.reshape(*exponents.shape, BLOCK))
    room = float(ml_dtypes.finfo(TYPES[dtype]).max) * np.exp2(exponents.astype(np.float64) - 127)
    fits = largest * (1 - _SCALE_SLACK) <= room
    least = (exponents == 0) | (largest * (1 + _SCALE_SLACK) > room / 2)
    bad = np.argwhere(~(fits & least))
    return [f"block {at}: {exponents[tuple(at)]} of {largest[tuple(at)]!r}" for at in bad]


# inf - inf and the like are NaN here as they are on a GPU.
_invalid_is_nan = np.errstate(invalid="ignore")


def _largest(x: Array) -> Array:
    return np.where(np.isfinite(x), np.abs(x), 0).max(-1, keepdims=True)


def _finite(x: Array, otherwise: float = 0.0) -> Array:
    return np.where(np.isfinite(x), x, otherwise)


@dataclasses.dataclass(frozen=True)
class Moments:
    """Of rows: mean (0 for RMSNorm) and 1 / standard deviation, and how ill the rows are
    conditioned."""

    mean: Array
    rstd: Array
    condition: Array


@_invalid_is_nan
def moments(x: Array, layer: bool, epsilon: float) -> Moments:
    mean = x.mean(-1, keepdims=True) if layer else np.zeros_like(x[:, :1])
    rstd = 1 / np.sqrt(np.square(x - mean).mean(-1, keepdims=True) + epsilon)
    # Where all elements are equal, float32 has their mean, and nothing is left of any.
    varies = (x != x[:, :1]).any(-1, keepdims=True)
    condition = np.where(varies, np.maximum(_finite(_largest(x) * rstd, 1.0), 1), 1)
    return Moments(mean, rstd, condition if layer else np.ones_like(condition))


@_invalid_is_nan
def norm_forward(x: Array, m: Moments, factor: Array, beta: Array | float) -> Expected:
    """(x - mean) * rstd * factor + beta; factor is gamma, or gamma + 1 if it is zero-centred."""
    y = (x - m.mean) * m.rstd * factor + beta
    return Expected(y, _FLOAT32 * _largest(y) * m.condition)


def statistics(x: Array, m: Moments) -> tuple[Expected, Expected]:
    """mean and rstd as outputs."""
    mean = Expected(m.mean[:, 0], 1e-6 * _largest(x)[:, 0])
    return mean, Expected(m.rstd[:, 0], 2e-6 * _finite(m.rstd * m.condition)[:, 0])


@dataclasses.dataclass(frozen=True)
class Gradients:
    dx: Expected
    dgamma: Expected
    dbeta: Expected


@_invalid_is_nan
def norm_backward(
    x: Array, dy: Array, dh: Array | float, m: Moments, factor: Array, layer: bool
) -> Gradients:
    """m holds the statistics that the kernel gets, in float32; dh is added to dx."""
    xhat = (x - m.mean) * m.rstd
    wdy = dy * factor
    dx = wdy - xhat * (wdy * xhat).mean(-1, keepdims=True)
    if layer:
        dx = dx - wdy.mean(-1, keepdims=True)
    dx = dx * m.rstd
    spread = np.maximum(_finite(_largest(xhat), 1.0), 1)
    slack = _finite(_FLOAT32 * _largest(wdy * m.rstd) * m.condition**2 * spread)
    dx = dx + dh
    slack = slack + _FLOAT32 * _largest(dx)
    uncertain = np.abs(dy) * (np.abs(xhat) + (m.condition if layer else 0))
    return Gradients(
        Expected(dx, slack),
        Expected((dy * xhat).sum(0), _FLOAT32 * uncertain.sum(0)),
        Expected(dy.sum(0), _FLOAT32 * np.abs(dy).sum(0)),
    )


def causal_columns(rows: int, columns: int, queries: int) -> Array:
    """Whether a column takes part in a row: query q of `queries` has the first
    q + columns - queries + 1."""
    query = np.arange(rows)[:, None] % queries
    return np.arange(columns) <= query + columns - queries


@_invalid_is_nan
def softmax_forward(x: Array, scale: float, masked: Array | None, allowed: Array) -> Expected:
    """masked: where the score is -10000; rows whose largest score is that give 0. Others than the
    allowed columns are 0."""
    s = x * scale
    if masked is not None:
        s = np.where(masked, -10000.0, s)
    s = np.where(allowed, s, -np.inf)
    largest = s.max(-1, keepdims=True)
    e = np.exp(s - largest)
    y = e / e.sum(-1, keepdims=True)
    if masked is not None:
        y = np.where(largest == -10000, 0.0, y)
    y = np.where(allowed, y, 0.0)
    return Expected(y, _FLOAT32 * (_largest(y) + _finite(y)))


def softmax_backward(y: Array, dy: Array, scale: float, allowed: Array) -> Expected:
    kept = np.where(allowed, y, 0.0)
    dx = scale * kept * (dy - (kept * dy).sum(-1, keepdims=True))
    return Expected(dx, _FLOAT32 * (_largest(dx) + np.abs(kept)))
