# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""seqused_q and seqused_k: packed sequences of which only the first rows take part.

A sequence becomes three, one behind the other: the rows that are used; the queries that are not,
with no key, so that their out is 0 and their lse -inf; and the keys that are not, with no query, so
that they are not read and their gradients are 0. All passes serve that, without a copy.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, SupportsIndex

from aiter_attn import _C
from aiter_attn._core import fp8_scales, problems
from aiter_attn._core.adapters import Array, adapter_of
from aiter_attn._core.adapters.generic import check_contiguous
from aiter_attn._core.cache_problems import check_numbers
from aiter_attn._core.errors import UnsupportedError
from aiter_attn._core.fp8_scales import Given

__all__ = ["PARTS", "Side", "check", "no_used", "per_part", "sides", "split"]

# The parts of a sequence.
PARTS: Final = 3


class Side(NamedTuple):
    """The sequences of q, or of k and v. longest, rows: max_seqlen, and how many rows there are."""

    cu_seqlens: Array
    used: Array | None
    longest: int
    rows: int


def no_used() -> UnsupportedError:
    """The error for a GPU."""
    return UnsupportedError(
        "seqused_q, seqused_k: given with arrays on a GPU; allowed there: None: pass q, k and v "
        "without the rows that are not used, and cu_seqlens_q and cu_seqlens_k of the others; or "
        "arrays in host memory"
    )


def sides(
    sequences: tuple[Array, Array, SupportsIndex, SupportsIndex],
    used: tuple[Array | None, Array | None],
    arrays: tuple[Array, Array],
) -> tuple[Side, Side]:
    """sequences: cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k. arrays: q and k."""
    rows = []
    for name, array in zip("qk", arrays, strict=True):
        problems.check_dims(name, tensor := _borrowed(name, array), problems.GROUP)
        rows.append(tensor.shape[0])
    longest = problems.lengths(0, *sequences[2:])
    return (
        Side(sequences[0], used[0], longest.max_seqlen_q, rows[0]),
        Side(sequences[1], used[1], longest.max_seqlen_k, rows[1]),
    )


def split(q: Side, k: Side) -> tuple[Any, Any]:
    """cu_seqlens_q and cu_seqlens_k of the parts, int32 [PARTS * batch + 1] each.

    Raises TypeError, ValueError or UnsupportedError for what is no array of lengths, or not in host
    memory.
    """
    starts_q, starts_k = (
        _borrowed(f"cu_seqlens_{x}", side.cu_seqlens) for x, side in (("q", q), ("k", k))
    )
    batch = problems.batch_of(starts_q, starts_k)
    lengths_q = _lengths("q", q, starts_q, batch)
    lengths_k = _lengths("k", k, starts_k, batch)
    parts_q, parts_k = [0], [0]
    for (used_q, all_q), (used_k, all_k) in zip(lengths_q, lengths_k, strict=True):
        for length_q, length_k in ((used_q, used_k), (all_q - used_q, 0), (0, all_k - used_k)):
            parts_q.append(parts_q[-1] + length_q)
            parts_k.append(parts_k[-1] + length_k)
    return _made("cu_seqlens_q", q, parts_q), _made("cu_seqlens_k", k, parts_k)


def per_part(alibi_slopes: Array | None, starts: Any) -> Any:
    """alibi_slopes for the parts that begin at starts. Raises ValueError for those of another
    batch."""
    if alibi_slopes is None:
        return None
    shape = _borrowed("alibi_slopes", alibi_slopes).shape
    if len(shape) != 2:
        return alibi_slopes
    batch = (starts.shape[0] - 1) // PARTS
    if shape[0] != batch:
        raise ValueError(
            f"alibi_slopes: shape {shape}; allowed here: [heads_q] or [{batch}, heads_q]"
        )
    repeated = [b for b in range(batch) for _ in range(PARTS)]
    adapter = adapter_of("alibi_slopes", alibi_slopes)
    slopes: Any = alibi_slopes
    return slopes[adapter.integers("alibi_slopes", alibi_slopes, repeated)]


def _made(name: str, side: Side, numbers: Sequence[int]) -> Any:
    return adapter_of(name, side.cu_seqlens).integers(name, side.cu_seqlens, numbers)


def _borrowed(name: str, array: Array) -> _C.Tensor:
    adapter = adapter_of(name, array)
    device = adapter.device(name, array)
    if device[0] != _C.DEVICE_CPU:
        raise no_used()
    return adapter.borrow(name, array, device, None)


def _lengths(x: str, side: Side, starts: _C.Tensor, batch: int) -> list[tuple[int, int]]:
    """(rows that are used, all rows) of each sequence."""
    name = f"cu_seqlens_{x}"
    check_contiguous(name, starts)
    begins = [starts.number(b) for b in range(batch + 1)]
    if begins[0] != 0 or begins[batch] != side.rows:
        raise ValueError(
            f"{name}: from {begins[0]} to {begins[batch]}; allowed here: from 0 to {side.rows}, "
            f"the rows of {x}"
        )
    lengths = [end - begin for begin, end in itertools.pairwise(begins)]
    for b, length in enumerate(lengths):
        if not 0 <= length <= side.longest:
            raise ValueError(
                f"{name}[{b + 1}] - {name}[{b}]: {length}; allowed here: 0 to {side.longest}, "
                f"max_seqlen_{x}"
            )
    if side.used is None:
        return [(length, length) for length in lengths]
    name = f"seqused_{x}"
    given = _borrowed(name, side.used)
    check_numbers(name, given, (batch,), "[batch]")
    check_contiguous(name, given)
    used = [given.number(b) for b in range(batch)]
    for b, (count, length) in enumerate(zip(used, lengths, strict=True)):
        if not 0 <= count <= length:
            raise ValueError(
                f"{name}[{b}]: {count}; allowed here: 0 to {length}, the length of the sequence"
            )
    return list(zip(used, lengths, strict=True))


def check(seqused_q: Any, seqused_k: Any, block_table: Any, scales: Given) -> None:
    """Of a call in which one of the first two is given."""
    name = "seqused_q" if seqused_k is None else "seqused_k"
    if block_table is not None:
        raise ValueError(
            f"{name}: given beside block_table; allowed: one of them; with block_table pass "
            "cu_seqlens_q and cu_seqlens_k of the rows that are used"
        )
    fp8_scales.check_none(scales, f"there is no fp8 beside {name}")
