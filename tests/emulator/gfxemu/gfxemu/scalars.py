# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Scalar values of a batch of workgroups.

A wave object stands for the same wave of several workgroups that run in step (see wave.py). An
SGPR is therefore either a Python int, when all of them hold the same value, or a uint64 array with
one element per workgroup. Both obey the same operators, so most semantics are written once;
the helpers here cover the places where the two differ. Values are never negative.
"""

from __future__ import annotations

import numpy as np

Scalar = int | np.ndarray
Condition = int | np.ndarray  # 0/1, or bool per workgroup

MASK32 = 0xFFFF_FFFF
MASK64 = 0xFFFF_FFFF_FFFF_FFFF


def signed32(x: Scalar) -> Scalar:
    """Interpret the low 32 bits as signed: an int, or an int64 array."""
    if type(x) is int:
        return x - (1 << 32) if x & 0x8000_0000 else x
    return x.astype(np.uint32).view(np.int32).astype(np.int64)


def signed64(x: Scalar) -> Scalar:
    if type(x) is int:
        return x - (1 << 64) if x >> 63 else x
    return x.view(np.int64)


def wrap32(x: Scalar) -> Scalar:
    """Reduce any integer result to 32 bits."""
    if type(x) is int:
        return x & MASK32
    return (x & MASK32).astype(np.uint64)


def wrap64(x: Scalar) -> Scalar:
    """Reduce to 64 bits; arrays wrap by themselves."""
    if type(x) is int:
        return x & MASK64
    return x.astype(np.uint64)


def truth(x: Scalar) -> Condition:
    """x != 0"""
    if type(x) is int:
        return 1 if x else 0
    return x != 0


def condition(x: object) -> Condition:
    """The result of a comparison as a Condition."""
    if isinstance(x, np.ndarray):
        return x
    return 1 if x else 0


def as_number(c: Condition) -> Scalar:
    """A condition as the number 0 or 1."""
    return c if type(c) is int else c.astype(np.uint64)


def select(c: Condition, if_set: Scalar, if_clear: Scalar) -> Scalar:
    if type(c) is int:
        return if_set if c else if_clear
    return np.where(c, np.asarray(if_set, np.uint64), np.asarray(if_clear, np.uint64))


def pick(x: Scalar, chosen: np.ndarray) -> Scalar:
    """The value for the chosen workgroups only."""
    return x if type(x) is int else collapse(x[chosen])


def collapse(x: np.ndarray) -> Scalar:
    """Turn an array whose elements agree into an int."""
    first = x[0]
    if x.size == 1 or (x == first).all():
        return int(first)
    return x


def shift_left(x: Scalar, n: Scalar) -> Scalar:
    """x << n without Python's unbounded growth; n < 64."""
    if type(x) is int and type(n) is int:
        return (x << n) & MASK64
    return np.asarray(x, np.uint64) << np.asarray(n, np.uint64)


def shift_right(x: Scalar, n: Scalar) -> Scalar:
    if type(x) is int and type(n) is int:
        return x >> n
    return np.asarray(x, np.uint64) >> np.asarray(n, np.uint64)


def arithmetic_shift_right(x: Scalar, n: Scalar) -> Scalar:
    """x is signed (from signed32 or signed64)."""
    if type(x) is int and type(n) is int:
        return x >> n
    return np.asarray(x, np.int64) >> np.asarray(n, np.int64)


def map_elements(function, *values: Scalar) -> Scalar:
    """Apply a function of Python ints element by element: for rare, bit-twiddling operations."""
    if all(type(v) is int for v in values):
        return function(*values)
    size = max(v.size for v in values if type(v) is not int)
    columns = [[v] * size if type(v) is int else v.tolist() for v in values]
    return collapse(np.array([function(*row) for row in zip(*columns, strict=True)], np.uint64))
