# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""As problems.py, for calls over a key-value cache: from shapes, dtypes and options to the problem,
and to the numbers of the cache. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, SupportsIndex

from aiter_attn import _C
from aiter_attn._core import problems, reading
from aiter_attn._core.errors import RoomError, UnsupportedError
from aiter_attn._core.options import Options
from aiter_attn._core.problems import HasShape, Lengths, ShapeDtype

__all__ = [
    "SPLITS",
    "Cached",
    "Rotary",
    "appended",
    "appending",
    "cached",
    "check_entries",
    "check_no_dropout",
    "check_numbers",
    "keys_left",
    "no_leftpad",
    "rotary",
]

_IN_PLACE: Final = ("entries", "seqlen", "heads", "head size")
_PAGES: Final = ("pages", "page size", "heads", "head size")
_PAGES_OF_ONE: Final = ("pages", "heads", "head size")
# The greatest num_splits, and what is allowed in words.
SPLITS: Final = (128, "1 to 128, or 0: as many as fill the GPU")


class Cached(NamedTuple):
    """attention: the problem in host memory, and its results. numbers: those of attn_kvcache.
    room: keys that a sequence can have."""

    attention: problems.Attention
    numbers: dict[str, int]
    splits: int
    room: int


class Rotary(NamedTuple):
    """The fields of attn_append_kv_args for rotary embedding."""

    kind: int = 0
    size: int = 0
    length: int = 0


def cached(
    q: HasShape,
    k: HasShape,
    v: HasShape,
    names: tuple[str, str],
    *,
    block_table: HasShape | None = None,
    page_list: bool = False,
    chooses_entries: bool = False,
    sequences: Lengths | None = None,
    options: Options,
    alibi_slopes: HasShape | None = None,
    splits: SupportsIndex = 0,
) -> Cached:
    """names: of the arguments that are k and v. chooses_entries: whether the call says which entry
    each sequence has.

    Raises TypeError or ValueError for arguments that no device would take.
    """
    parts = reading.integer("num_splits", splits, *SPLITS)
    problems.check_dims("q", q, problems.BATCH if sequences is None else problems.GROUP)
    dims = _PAGES_OF_ONE if page_list else _IN_PLACE if block_table is None else _PAGES
    _check_cache(q, k, v, names, dims)
    entries, heads_k, head_size = k.shape[0], k.shape[-2], k.shape[-1]
    page_size = 1 if page_list else 0 if block_table is None else k.shape[1]
    if block_table is not None and page_size < 1:
        raise ValueError(
            f"{names[0]}: pages of {page_size} keys (shape {k.shape}); allowed: 1 or more"
        )
    batch = q.shape[0] if sequences is None else sequences.batch
    stride = 0 if block_table is None else _pages_of_a_sequence(block_table, batch)
    room = _room(k, sequences, page_size, stride, page_list)
    if block_table is None and not page_list and not chooses_entries and entries < batch:
        raise ValueError(
            f"{names[0]}: {entries} entries (shape {k.shape}); allowed: {batch} or more, the batch "
            "of q, or cache_batch_idx, which says the entry of each"
        )
    # One query sits at the last key: with ALiBi the mask says how the lse is counted.
    longest_q = q.shape[1] if sequences is None else sequences.max_seqlen_q
    if options.causal and longest_q == 1 and alibi_slopes is None:
        options = options._replace(causal=False)
    lead = (batch, room) if sequences is None else (0,)
    attention = problems.attention(
        q,
        ShapeDtype((*lead, heads_k, head_size), k.dtype),
        ShapeDtype((*lead, heads_k, v.shape[-1]), v.dtype),
        options,
        sequences,
        problems.beside(alibi_slopes=alibi_slopes),
    )
    numbers = {"entries": entries, "page_size": page_size, "block_table_stride": stride}
    return Cached(attention, numbers, parts, room)


def appended(over: Cached, k: HasShape, v: HasShape, turned: Rotary) -> dict[str, int]:
    """The numbers of attn_append_kv_args. Raises TypeError or ValueError where k and v are no new
    keys and values of the cache."""
    p = over.attention.problem
    dtype, dims = over.attention.out.dtype, over.attention.out.dims
    if len(k.shape) != len(dims):
        raise ValueError(f"k: shape {k.shape}; allowed: [{', '.join(dims)}]")
    seqlen_new = k.shape[1]
    rows = (p.batch, seqlen_new, p.heads_k)
    problems.check("k", k, ShapeDtype((*rows, p.head_size_qk), dtype, dims))
    problems.check("v", v, ShapeDtype((*rows, p.head_size_v), dtype, dims))
    if seqlen_new > over.room:
        raise ValueError(
            f"k: {seqlen_new} new keys (shape {k.shape}); allowed: up to {over.room}, the room of "
            "a sequence in the cache"
        )
    return {
        "seqlen_new": seqlen_new,
        "rotary": turned.kind,
        "rotary_size": turned.size,
        "rotary_length": turned.length,
    }


def rotary(cos: HasShape, sin: HasShape, q: HasShape, interleaved: bool) -> Rotary:
    """Raises TypeError or ValueError for what are no tables of cosines and sines."""
    if len(cos.shape) != 2:
        raise ValueError(f"rotary_cos: shape {cos.shape}; allowed: [seqlen, rotary size / 2]")
    for name, table in (("rotary_cos", cos), ("rotary_sin", sin)):
        if table.dtype != q.dtype:
            raise TypeError(f"{name}: dtype {table.dtype}; allowed here: {q.dtype}, as q has")
    if sin.shape != cos.shape:
        raise ValueError(
            f"rotary_sin: shape {sin.shape}; allowed here: {cos.shape}, as rotary_cos has"
        )
    length, pairs = cos.shape
    kind = _C.ROTARY_INTERLEAVED if interleaved else _C.ROTARY_HALVES
    columns = reading.integer("rotary_cos: columns", pairs, reading.INT32_MAX // 2)
    return Rotary(kind, 2 * columns, reading.integer("rotary_cos: rows", length))


def no_leftpad() -> UnsupportedError:
    """The error for cache_leftpad on a GPU."""
    return UnsupportedError(
        "cache_leftpad: given with arrays on a GPU, for which Composable Kernel has no kernel that "
        "leaves the first keys out; pass None, and caches whose keys begin at 0, or arrays in "
        "host memory"
    )


def keys_left(
    lengths: Sequence[int],
    left_out: Sequence[int],
    entries: Sequence[int],
    cache: tuple[int, int],
    new: int,
) -> tuple[list[int], list[int]]:
    """(page_indptr, page_indices) of the keys behind those that each sequence leaves out, where
    every key of a cache is a page.

    lengths, left_out, entries: of each sequence: its keys, new ones among them, how many of the
    first are left out, and its entry. cache: its entries, and their room. Raises ValueError for
    numbers that are out of range.
    """
    count, room = cache
    reading.integer("k_cache: keys in all entries, beside cache_leftpad", count * room, 2**31 - 1)
    starts, keys = [0], list[int]()
    for b, (length, first, entry) in enumerate(zip(lengths, left_out, entries, strict=True)):
        if not new <= length <= room:
            less = f" less the new keys, {new}" if new else ""
            raise RoomError(
                f"cache_seqlens[{b}]: {length - new}; allowed here: 0 to {room - new}, the room of "
                f"a sequence{less}"
            )
        if not 0 <= first <= length - new:
            raise ValueError(
                f"cache_leftpad[{b}]: {first}; allowed here: 0 to {length - new}, the keys that "
                "the sequence has in the cache"
            )
        if not 0 <= entry < count:
            raise ValueError(
                f"cache_batch_idx[{b}]: {entry}; allowed here: 0 to {count - 1}, the entries of "
                "k_cache"
            )
        keys.extend(range(entry * room + first, entry * room + length))
        starts.append(len(keys))
    return starts, keys


def check_numbers(name: str, given: HasShape, shape: tuple[int, ...], dims: str) -> None:
    """Raises TypeError or ValueError where an array of lengths, entries or offsets is none."""
    if given.dtype != "int32":
        raise TypeError(f"{name}: dtype {given.dtype}; allowed: int32")
    if given.shape != shape:
        raise ValueError(f"{name}: shape {given.shape}; allowed here: {shape} {dims}")


def _check_cache(
    q: HasShape, k: HasShape, v: HasShape, names: tuple[str, str], dims: tuple[str, ...]
) -> None:
    """All that problems.attention would say of k and v, of a cache's shapes."""
    for name, array in zip(names, (k, v), strict=True):
        problems.check_dims(name, array, dims)
    problems.check_heads(names[0], k.shape, q.shape[-2])
    problems.check(names[0], k, ShapeDtype((*k.shape[:-1], q.shape[-1]), q.dtype, dims))
    problems.check(names[1], v, ShapeDtype((*k.shape[:-1], v.shape[-1]), q.dtype, dims))


def _pages_of_a_sequence(table: HasShape, batch: int) -> int:
    pages = table.shape[1] if len(table.shape) == 2 else 0
    check_numbers("block_table", table, (batch, pages), "[batch, pages of a sequence]")
    return pages


def _room(
    k: HasShape, sequences: Lengths | None, page_size: int, pages: int, page_list: bool
) -> int:
    if page_list and sequences is not None:
        return sequences.max_seqlen_k
    room = pages * page_size if page_size else k.shape[1]
    if sequences is not None and sequences.max_seqlen_k > room:
        raise RoomError(
            f"max_seqlen_k: {sequences.max_seqlen_k}; allowed here: 0 to {room}: block_table has "
            f"{pages} pages of {page_size} keys for a sequence"
        )
    return reading.integer("block_table: keys of a sequence", room)


def check_no_dropout(dropout_p: Any) -> None:
    """Of keys in pages."""
    if reading.number("dropout_p", dropout_p, "0.0 with block_table") != 0.0:
        raise UnsupportedError(
            f"dropout_p: {dropout_p} beside block_table; Composable Kernel has no kernel that "
            "drops weights of keys in pages; pass 0.0"
        )


def check_entries(cache_batch_idx: Any, cache_leftpad: Any, block_table: Any) -> None:
    for name, given in (("cache_batch_idx", cache_batch_idx), ("cache_leftpad", cache_leftpad)):
        if block_table is not None and given is not None:
            raise ValueError(f"{name}: given beside block_table; allowed: one of them")


def appending(k: Any, v: Any, cos: Any, sin: Any, cache_seqlens: Any) -> tuple[Any, Any] | None:
    """(rotary_cos, rotary_sin). Raises ValueError where one argument lacks another."""
    for name, given, other, needed in (
        ("k", k, "v", v),
        ("v", v, "k", k),
        ("k", k, "cache_seqlens", cache_seqlens),
        ("rotary_cos", cos, "rotary_sin", sin),
        ("rotary_sin", sin, "rotary_cos", cos),
        ("rotary_cos", cos, "k", k),
    ):
        if given is not None and needed is None:
            raise ValueError(
                f"{name}: given, but {other} is None; pass {other}, too, or {name}=None"
            )
    return None if cos is None or sin is None else (cos, sin)
