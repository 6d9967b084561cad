# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Comparisons and the traffic between lanes and scalar registers (CDNA3 ISA, VOPC, VOP3)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gfxemu import scalars
from gfxemu.decoder import Decoding, Execute, opcodes
from gfxemu.operands import float16, float32, float64, scalar32, vector32, vector64
from gfxemu.scalars import Scalar
from gfxemu.wave import LANES, Wave

Array = np.ndarray

COMPARE_INTEGER: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "f": lambda a, b: np.zeros(np.broadcast_shapes(a.shape, b.shape), bool),
    "t": lambda a, b: np.ones(np.broadcast_shapes(a.shape, b.shape), bool),
}

# Ordered comparisons are false with a NaN; the n-forms are their negations. lg is "less or
# greater", u "unordered", o "ordered".
_COMPARE_FLOAT: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lg": lambda a, b: (a < b) | (a > b),
    "o": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "u": lambda a, b: np.isnan(a) | np.isnan(b),
    "neq": np.not_equal,
    "nlt": lambda a, b: ~(a < b),
    "nle": lambda a, b: ~(a <= b),
    "ngt": lambda a, b: ~(a > b),
    "nge": lambda a, b: ~(a >= b),
    "nlg": lambda a, b: ~((a < b) | (a > b)),
    "f": COMPARE_INTEGER["f"],
    "tru": COMPARE_INTEGER["t"],
}

_INTEGER_VIEWS: dict[str, Callable[[Array], Array]] = {
    "u32": lambda x: x,
    "i32": lambda x: x.view(np.int32),
    "u16": lambda x: x & np.uint32(0xFFFF),
    "i16": lambda x: (x << np.uint32(16)).view(np.int32),
    "u64": lambda x: x,
    "i64": lambda x: x.view(np.int64),
}


def store_mask(w: Wave, to: int, value: Array) -> None:
    """Write a comparison's result: bits of inactive lanes are zero."""
    if w.all_lanes and value.shape == w.lanes.shape:
        w.write_mask(to, value)
    else:
        w.write_mask(to, np.logical_and(value, w.lanes))


def mask_destination(d: Decoding) -> Callable[[Wave, Array], None]:
    """The function that writes a comparison's result, which v_cmpx makes the new EXEC too."""
    to = d.operands[0].index
    if not d.name.startswith("v_cmpx"):
        return lambda w, value: store_mask(w, to, value)

    def store(w: Wave, value: Array) -> None:
        store_mask(w, to, value)
        w.set_exec_mask(w.read_mask(to))

    return store


def _both(*comparisons: str) -> list[str]:
    """The names of comparisons, and of those that write EXEC beside their result."""
    return [f"{prefix}_{c}" for prefix in ("v_cmp", "v_cmpx") for c in comparisons]


def compare_function(name: str) -> Callable[[Array, Array], Array]:
    """The comparison of raw 32- or 64-bit integer lanes that v_cmp[x]_<relation>_<type> makes."""
    _, _, relation, kind = name.split("_")
    function, view = COMPARE_INTEGER[relation], _INTEGER_VIEWS[kind]
    return lambda a, b: function(view(a), view(b))


INTEGER_COMPARES = _both(*(f"{r}_{k}" for r in COMPARE_INTEGER for k in _INTEGER_VIEWS))


@opcodes(*INTEGER_COMPARES)
def _compare_integer(d: Decoding) -> Execute:
    store, function = mask_destination(d), compare_function(d.name)
    read = vector64 if d.name.endswith("64") else vector32
    a, b = read(d.operands[1]), read(d.operands[2])
    return lambda w: store(w, function(a(w), b(w)))


@opcodes(*_both(*(f"{r}_{k}" for r in _COMPARE_FLOAT for k in ("f32", "f16", "f64"))))
def _compare_float(d: Decoding) -> Execute:
    _, _, relation, kind = d.name.split("_")
    store, function = mask_destination(d), _COMPARE_FLOAT[relation]
    read = {"f32": float32, "f16": float16, "f64": float64}[kind]
    a, b = read(d.operands[1]), read(d.operands[2])
    return lambda w: store(w, function(a(w), b(w)))


# Bits of the fraction, and of all.
_CLASS_FORMATS = {"f16": (10, 16), "f32": (23, 32), "f64": (52, 64)}


@opcodes(*_both(*(f"class_{k}" for k in _CLASS_FORMATS)))
def _compare_class(d: Decoding) -> Execute:
    """S1 selects classes: signalling NaN, quiet NaN, -inf, -normal, -denormal, -0, +0, ..."""
    kind = d.name.rpartition("_")[2]
    fraction, bits = _CLASS_FORMATS[kind]
    read, store = vector64 if bits == 64 else vector32, mask_destination(d)
    a, b = read(d.operands[1], kind), vector32(d.operands[2])
    sign, normal = 1 << (bits - 1), 1 << fraction
    infinity = sign - normal
    quiet = infinity | normal >> 1

    def execute(w: Wave) -> None:
        x, wanted = a(w), b(w)
        integer = x.dtype.type
        magnitude = x & integer(sign - 1)
        negative = x & integer(sign) != 0
        number = np.select(
            [magnitude >= integer(quiet), magnitude > integer(infinity),
             magnitude == integer(infinity), magnitude >= integer(normal), magnitude != 0],
            [np.uint32(1), np.uint32(0), np.where(negative, 2, 9), np.where(negative, 3, 8),
             np.where(negative, 4, 7)],
            np.where(negative, 5, 6),
        ).astype(np.uint32)  # fmt: skip
        store(w, (wanted >> number) & np.uint32(1) != 0)

    return execute


@opcodes("v_readfirstlane_b32")
def _read_first_lane(d: Decoding) -> Execute:
    """Of the lowest active lane; of lane 0 where none is."""
    to, source = d.operands[0].index, d.vector_range(d.operands[1], 1)

    def execute(w: Wave) -> None:
        if w.all_lanes:
            values = w.v[source][:, 0]
        else:
            values = w.v[source][np.arange(w.size), w.lanes.argmax(axis=1)]
        w.write32(to, scalars.collapse(values.astype(np.uint64)))

    return execute


@opcodes("v_readlane_b32")
def _read_lane(d: Decoding) -> Execute:
    to, source = d.operands[0].index, d.vector_range(d.operands[1], 1)
    lane = scalar32(d.operands[2])

    def execute(w: Wave) -> None:
        values = w.v[source][np.arange(w.size), _lane_index(lane(w))]
        w.write32(to, scalars.collapse(values.astype(np.uint64)))

    return execute


@opcodes("v_writelane_b32")
def _write_lane(d: Decoding) -> Execute:
    """For any EXEC."""
    to, value, lane = d.destination(), scalar32(d.operands[1]), scalar32(d.operands[2])

    def execute(w: Wave) -> None:
        x = value(w)
        w.v[to][np.arange(w.size), _lane_index(lane(w))] = (
            x if type(x) is int else x.astype(np.uint32)
        )

    return execute


def _lane_index(lane: Scalar) -> int | Array:
    return lane & (LANES - 1) if type(lane) is int else (lane & (LANES - 1)).astype(np.int64)


@opcodes("v_swap_b32")
def _swap(d: Decoding) -> Execute:
    a, b = d.destination(), d.vector_range(d.operands[1], 1)

    def execute(w: Wave) -> None:
        old_a, old_b = w.v[a].copy(), w.v[b].copy()
        w.write_vector(a, old_b)
        w.write_vector(b, old_a)

    return execute


@opcodes("v_permlane32_swap_b32", "v_permlane16_swap_b32")
def _permute_lanes(d: Decoding) -> Execute:
    """gfx950: exchange the upper half of each group of lanes of D with the lower half of S."""
    half = 32 if "32_swap" in d.name else 16
    a, b = d.destination(), d.vector_range(d.operands[1], 1)

    def execute(w: Wave) -> None:
        x = w.v[a].reshape(w.size, -1, 2, half).copy()
        y = w.v[b].reshape(w.size, -1, 2, half).copy()
        new_a = np.stack([x[:, :, 0], y[:, :, 0]], axis=2).reshape(w.size, LANES)
        new_b = np.stack([x[:, :, 1], y[:, :, 1]], axis=2).reshape(w.size, LANES)
        w.write_vector(a, new_a)
        w.write_vector(b, new_b)

    return execute
