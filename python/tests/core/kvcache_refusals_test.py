# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Refusals of calls over key-value caches: each names the argument, the value and the allowed ones.
Nothing is written by a call that is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aiter_attn
import numpy
import pytest
from aiter_attn._core.refusals import ARGUMENTS, asked

from tests.support.python.caches import numbers
from tests.support.python.calls import STARTS_Q, Q, Refusal, check_refused, draw
from tests.support.python.dlpack_exporter import KDL_ROCM, Exporter

# Q is [2, 5, 4, 8]; caches have entries of 12 keys, or 6 pages of 4.
K, V = draw(3, 12, 2, 8), draw(3, 12, 2, 16)
PAGES_K, PAGES_V = draw(6, 4, 2, 8), draw(6, 4, 2, 16)
TABLE = numbers([0, 1, 2], [3, 4, 5])
NEW_K, NEW_V = draw(2, 5, 2, 8), draw(2, 5, 2, 16)
WIDE_Q, WIDE_K, NEW_WIDE = draw(2, 5, 4, 32), draw(2, 12, 2, 32), draw(2, 5, 2, 32)
TABLES = draw(12, 8)
PREFILL_Q, PREFILL_K, INDPTR = draw(5, 4, 8), draw(9, 2, 8), numbers(0, 3, 7)


def cached(**changes: Any) -> Any:
    usual = {"q": Q, "k_cache": K, "v_cache": V}
    return aiter_attn.flash_attn_with_kvcache(**{**usual, **changes})


def appended(**changes: Any) -> Any:
    usual = {"k": NEW_K, "v": NEW_V, "cache_seqlens": 3}
    return cached(**{**usual, **changes})


def turned(**changes: Any) -> Any:
    usual = {"q": WIDE_Q, "k_cache": WIDE_K, "v_cache": WIDE_K, "k": NEW_WIDE, "v": NEW_WIDE}
    return appended(**{**usual, "rotary_cos": TABLES, "rotary_sin": TABLES, **changes})


def paged(**changes: Any) -> Any:
    return cached(**{"k_cache": PAGES_K, "v_cache": PAGES_V, "block_table": TABLE, **changes})


def varlen(**changes: Any) -> Any:
    usual = {
        "q": draw(5, 4, 8),
        "k": PAGES_K,
        "v": PAGES_V,
        "cu_seqlens_q": STARTS_Q,
        "cu_seqlens_k": numbers(0, 3, 12),
        "max_seqlen_q": 3,
        "max_seqlen_k": 9,
        "block_table": TABLE,
    }
    return aiter_attn.flash_attn_varlen_func(**{**usual, **changes})


def prefill(**changes: Any) -> Any:
    usual = {
        "q": PREFILL_Q,
        "k": PREFILL_K,
        "v": PREFILL_K,
        "cu_seqlens_q": STARTS_Q,
        "kv_indptr": INDPTR,
        "kv_page_indices": numpy.arange(7, dtype=numpy.int32),
        "max_seqlen_q": 3,
        "max_seqlen_k": 4,
    }
    return aiter_attn.mha_batch_prefill(**{**usual, **changes})


def explained(**changes: Any) -> Any:
    shape = (2, 12, 2, 64)
    usual = {"q": (2, 5, 4, 64), "k": shape, "v": shape, "dtype": "float16", "arch": "gfx942"}
    return aiter_attn.explain_kvcache(**{**usual, **changes})


def misaligned(array: Any) -> Any:
    memory = numpy.zeros(array.nbytes + 1, numpy.uint8)
    return memory[1:].view(array.dtype).reshape(array.shape)


def read_only(array: Any) -> Any:
    made = array.copy()
    made.flags.writeable = False
    return made


LENGTHS: dict[str, Refusal] = {
    "a length beyond the room": (
        cached,
        {"cache_seqlens": 13},
        ValueError,
        "cache_seqlens: 13; allowed: 0 to 12, the room of a sequence",
    ),
    "a length below zero": (
        cached,
        {"cache_seqlens": -1},
        ValueError,
        "cache_seqlens: -1; allowed: 0 to 12, the room of a sequence",
    ),
    "one of the lengths beyond the room": (
        cached,
        {"cache_seqlens": numbers(12, 13)},
        ValueError,
        "cache_seqlens[1] is 13, but must be from 0 to 12, the room of a sequence",
    ),
    "one of the lengths below zero": (
        paged,
        {"cache_seqlens": numbers(-4, 1)},
        ValueError,
        "cache_seqlens[0] is -4, but must be from 0 to 12, the room of a sequence",
    ),
    "no room for the new keys": (
        appended,
        {"cache_seqlens": 8},
        ValueError,
        "cache_seqlens: 8; allowed: 0 to 7, the room of a sequence less the new keys, 5",
    ),
    "no room for new keys of one sequence": (
        appended,
        {"cache_seqlens": numbers(7, 8)},
        ValueError,
        "cache_seqlens[1] is 8, but must be from 0 to 7, the room of a sequence less the new keys",
    ),
    "more new keys than room": (
        appended,
        {"k": draw(2, 13, 2, 8), "v": draw(2, 13, 2, 16), "cache_seqlens": 0},
        ValueError,
        "k: 13 new keys (shape (2, 13, 2, 8)); allowed: up to 12, the room of a sequence",
    ),
    "lengths of three sequences": (
        cached,
        {"cache_seqlens": numbers(1, 2, 3)},
        ValueError,
        "cache_seqlens: shape (3,); allowed here: (2,) [batch]",
    ),
    "lengths of 64 bits": (
        appended,
        {"cache_seqlens": numpy.array([1, 2])},
        TypeError,
        "cache_seqlens: dtype int64; allowed: int32",
    ),
    "lengths with holes": (
        cached,
        {"cache_seqlens": numbers(1, 0, 2, 0)[::2]},
        ValueError,
        "cache_seqlens: strides (2,)",
    ),
    "a length of text": (
        cached,
        {"cache_seqlens": "3"},
        TypeError,
        "cache_seqlens: '3'; allowed: an int, or an int32 array [batch]",
    ),
    "a list of lengths": (
        appended,
        {"cache_seqlens": [3, 4]},
        TypeError,
        "cache_seqlens: [3, 4]; allowed: an int, or an int32 array [batch]",
    ),
}

PLACES: dict[str, Refusal] = {
    "a page beyond the cache": (
        paged,
        {"block_table": numbers([0, 1, 2], [3, 6, 5]), "cache_seqlens": numbers(1, 5)},
        ValueError,
        "block_table[4] is 6, but the cache has 6 pages, numbered from 0",
    ),
    "a page below zero": (
        varlen,
        {"block_table": numbers([-1, 1, 2], [3, 4, 5])},
        ValueError,
        "block_table[0] is -1, but the cache has 6 pages, numbered from 0",
    ),
    "a page that is appended to twice": (
        paged,
        {
            "block_table": numbers([0, 1, 2], [3, 1, 5]),
            "k": NEW_K,
            "v": NEW_V,
            "cache_seqlens": 3,
        },
        ValueError,
        "block_table[4] is 1, but is that of block_table[1], too",
    ),
    "a table of one sequence": (
        paged,
        {"block_table": TABLE[:1]},
        ValueError,
        "block_table: shape (1, 3); allowed here: (2, 3) [batch, pages of a sequence]",
    ),
    "a table of one dimension": (
        paged,
        {"block_table": TABLE[0]},
        ValueError,
        "block_table: shape (3,); allowed here: (2, 0) [batch, pages of a sequence]",
    ),
    "a table of 64 bits": (
        varlen,
        {"block_table": TABLE.astype(numpy.int64)},
        TypeError,
        "block_table: dtype int64; allowed: int32",
    ),
    "a table with holes": (
        paged,
        {"block_table": numpy.repeat(TABLE, 2, axis=1)[:, ::2]},
        ValueError,
        "block_table: strides (6, 2)",
    ),
    "pages of no key": (
        paged,
        {"k_cache": draw(6, 0, 2, 8), "v_cache": draw(6, 0, 2, 16)},
        ValueError,
        "k_cache: pages of 0 keys (shape (6, 0, 2, 8)); allowed: 1 or more",
    ),
    "an entry beyond the cache": (
        cached,
        {"cache_batch_idx": numbers(2, 3)},
        ValueError,
        "cache_batch_idx[1] is 3, but the cache has 3 entries, numbered from 0",
    ),
    "an entry that is appended to twice": (
        appended,
        {"cache_batch_idx": numbers(1, 1)},
        ValueError,
        "cache_batch_idx[1] is 1, but is that of cache_batch_idx[0], too",
    ),
    "entries of 64 bits": (
        cached,
        {"cache_batch_idx": numpy.array([0, 1])},
        TypeError,
        "cache_batch_idx: dtype int64; allowed: int32",
    ),
    "entries of three sequences": (
        cached,
        {"cache_batch_idx": numbers(0, 1, 2)},
        ValueError,
        "cache_batch_idx: shape (3,); allowed here: (2,) [batch]",
    ),
    "entries and pages": (
        paged,
        {"cache_batch_idx": numbers(0, 1)},
        ValueError,
        "cache_batch_idx: given beside block_table; allowed: one of them",
    ),
    "fewer entries than sequences": (
        cached,
        {"k_cache": K[:1], "v_cache": V[:1]},
        ValueError,
        "k_cache: 1 entries (shape (1, 12, 2, 8)); allowed: 2 or more, the batch of q",
    ),
    "a longest sequence beyond the table": (
        varlen,
        {"max_seqlen_k": 13},
        ValueError,
        "max_seqlen_k: 13; allowed here: 0 to 12: block_table has 3 pages of 4 keys",
    ),
    "a sequence longer than the longest": (
        varlen,
        {"max_seqlen_k": 8},
        ValueError,
        "cu_seqlens_k[2] - cu_seqlens_k[1] is 9, but must not exceed",
    ),
    "pages that are listed and not there": (
        prefill,
        {"kv_page_indices": numbers(0, 1, 2, 3, 4, 5, 9)},
        ValueError,
        "kv_page_indices[6] is 9, but the cache has 9 pages, numbered from 0",
    ),
    "a list shorter than what is used": (
        prefill,
        {"kv_page_indices": numbers(0, 1, 2, 3, 4, 5)},
        ValueError,
        "kv_indptr[2] is 7; allowed here: up to 6, the entries of kv_page_indices",
    ),
    "a list whose sequences shrink": (
        prefill,
        {"kv_indptr": numbers(0, 4, 3)},
        ValueError,
        "kv_indptr[2] is 3, but must not be less than the one before, 4",
    ),
    "a list of a longer sequence": (
        prefill,
        {"kv_indptr": numbers(0, 1, 7)},
        ValueError,
        "kv_indptr[2] - kv_indptr[1] is 6, but must not exceed the room of a sequence, 4",
    ),
    "a list of other sequences": (
        prefill,
        {"kv_indptr": numbers(0, 7)},
        ValueError,
        "kv_indptr: shape (2,); allowed here: (3,) [batch + 1]",
    ),
    "a list of two dimensions": (
        prefill,
        {"kv_page_indices": TABLE},
        ValueError,
        "kv_page_indices: shape (2, 3); allowed here: (2,) [keys of all sequences]",
    ),
    "a list of halves": (
        prefill,
        {"kv_page_indices": draw(7)},
        TypeError,
        "kv_page_indices: dtype float16; allowed: int32",
    ),
    "pages of two keys in a list": (
        prefill,
        {"k": PAGES_K},
        ValueError,
        "k: shape (6, 4, 2, 8); allowed: [pages, heads, head size]",
    ),
}

LEFT_OUT: dict[str, Refusal] = {
    "more left out than there are": (
        cached,
        {"cache_leftpad": numbers(4, 6), "cache_seqlens": numbers(4, 5)},
        ValueError,
        "cache_leftpad[1]: 6; allowed here: 0 to 5, the keys that the sequence has in the cache",
    ),
    "new keys left out": (
        appended,
        {"cache_leftpad": numbers(4, 0)},
        ValueError,
        "cache_leftpad[0]: 4; allowed here: 0 to 3, the keys that the sequence has in the cache",
    ),
    "fewer than none left out": (
        cached,
        {"cache_leftpad": numbers(-1, 0)},
        ValueError,
        "cache_leftpad[0]: -1; allowed here: 0 to 12, the keys",
    ),
    "keys left out of more than the room": (
        cached,
        {"cache_leftpad": numbers(1, 1), "cache_seqlens": numbers(12, 13)},
        ValueError,
        "cache_seqlens[1]: 13; allowed here: 0 to 12, the room of a sequence",
    ),
    "keys left out where new ones find no room": (
        appended,
        {"cache_leftpad": numbers(1, 1), "cache_seqlens": numbers(7, 8)},
        ValueError,
        "cache_seqlens[1]: 8; allowed here: 0 to 7, the room of a sequence less the new keys, 5",
    ),
    "keys left out of an entry that is not there": (
        cached,
        {"cache_leftpad": numbers(1, 1), "cache_batch_idx": numbers(0, 3)},
        ValueError,
        "cache_batch_idx[1]: 3; allowed here: 0 to 2, the entries of k_cache",
    ),
    "keys left out of one sequence alone": (
        cached,
        {"cache_leftpad": numbers(1)},
        ValueError,
        "cache_leftpad: shape (1,); allowed here: (2,) [batch]",
    ),
    "keys left out in int64": (
        cached,
        {"cache_leftpad": numpy.array([1, 1])},
        TypeError,
        "cache_leftpad: dtype int64; allowed: int32",
    ),
    "keys left out of pages": (
        paged,
        {"cache_leftpad": numbers(1, 1)},
        ValueError,
        "cache_leftpad: given beside block_table; allowed: one of them",
    ),
    "keys left out of caches without reshape": (
        cached,
        {"cache_leftpad": numbers(1, 1), "k_cache": Exporter(K)},
        TypeError,
        "k_cache: Exporter has no reshape(), by which cache_leftpad sees keys one by one; pass",
    ),
    "keys left out on a GPU": (
        cached,
        {
            name: Exporter(array, device=(KDL_ROCM, 0))
            for name, array in {
                "q": Q,
                "k_cache": K,
                "v_cache": V,
                "cache_leftpad": numbers(1, 1),
            }.items()
        },
        aiter_attn.UnsupportedError,
        "cache_leftpad: given with arrays on a GPU, for which Composable Kernel has no kernel that "
        "leaves the first keys out; pass None",
    ),
}

ARRAYS: dict[str, Refusal] = {
    "a cache of three dimensions": (
        cached,
        {"k_cache": K[0]},
        ValueError,
        "k_cache: shape (12, 2, 8); allowed: [entries, seqlen, heads, head size]",
    ),
    "pages of three dimensions": (
        paged,
        {"v_cache": PAGES_V[0]},
        ValueError,
        "v_cache: shape (4, 2, 16); allowed: [pages, page size, heads, head size]",
    ),
    "heads that do not divide": (
        cached,
        {"k_cache": draw(3, 12, 3, 8)},
        ValueError,
        "k_cache: 3 heads (shape (3, 12, 3, 8)), but q has 4; q's must be a multiple of k_cache's",
    ),
    "another head size": (
        cached,
        {"k_cache": draw(3, 12, 2, 16)},
        ValueError,
        "k_cache: shape (3, 12, 2, 16); allowed here: (3, 12, 2, 8) [entries, seqlen, heads, head "
        "size]: head size 16 instead of 8",
    ),
    "values of other entries": (
        cached,
        {"v_cache": V[:2]},
        ValueError,
        "v_cache: shape (2, 12, 2, 16); allowed here: (3, 12, 2, 16)",
    ),
    "a cache of another dtype": (
        cached,
        {"v_cache": V.astype(numpy.float32)},
        TypeError,
        "v_cache: dtype float32; allowed here: float16, as q has",
    ),
    "a cache of integers": (
        paged,
        {"k_cache": PAGES_K.astype(numpy.int8)},
        TypeError,
        "k_cache: dtype int8; allowed: float16, bfloat16, and on the CPU float32",
    ),
    "a cache with holes": (
        cached,
        {"k_cache": draw(3, 12, 2, 16)[..., ::2]},
        ValueError,
        "k_cache: strides (384, 32, 16, 2)",
    ),
    "a cache on another device": (
        cached,
        {"k_cache": Exporter(K, device=(KDL_ROCM, 0))},
        ValueError,
        "k_cache: on ROCm:0, but q is on CPU; all arrays of a call are on one device",
    ),
    "a cache that cannot be written": (
        appended,
        {"k_cache": read_only(K)},
        ValueError,
        "k_cache: is read-only, and k and v are appended in place; pass writable arrays",
    ),
    "values that cannot be written": (
        appended,
        {"v_cache": read_only(V)},
        ValueError,
        "v_cache: is read-only",
    ),
    "new keys of another batch": (
        appended,
        {"k": draw(3, 5, 2, 8)},
        ValueError,
        "k: shape (3, 5, 2, 8); allowed here: (2, 5, 2, 8) [batch, seqlen, heads, head size]",
    ),
    "new keys of more heads": (
        appended,
        {"k": draw(2, 5, 4, 8)},
        ValueError,
        "k: shape (2, 5, 4, 8); allowed here: (2, 5, 2, 8)",
    ),
    "fewer new values than keys": (
        appended,
        {"v": NEW_V[:, :4]},
        ValueError,
        "v: shape (2, 4, 2, 16); allowed here: (2, 5, 2, 16)",
    ),
    "new keys of another dtype": (
        appended,
        {"k": NEW_K.astype(numpy.float32)},
        TypeError,
        "k: dtype float32; allowed here: float16, as q has",
    ),
    "new keys that are the cache's": (
        appended,
        {"k_cache": K, "k": K[:2, :5]},
        ValueError,
        "k_cache overlaps k",
    ),
    "keys and values in the same place": (
        appended,
        {"v_cache": K, "v": NEW_K},
        ValueError,
        "k_cache overlaps v_cache",
    ),
    "slopes of another number of heads": (
        cached,
        {"alibi_slopes": draw(2, dtype=numpy.float32)},
        ValueError,
        "alibi_slopes: shape (2,); allowed here: (4,) [heads] or (2, 4) [batch, heads]",
    ),
    "slopes of another batch": (
        paged,
        {"alibi_slopes": draw(3, 4, dtype=numpy.float32)},
        ValueError,
        "alibi_slopes: shape (3, 4); allowed here: (4,) [heads] or (2, 4) [batch, heads]",
    ),
    "slopes of halves": (
        varlen,
        {"alibi_slopes": draw(4)},
        TypeError,
        "alibi_slopes: dtype float16; allowed: float32",
    ),
    "slopes with holes": (
        prefill,
        {"alibi_slopes": draw(8, dtype=numpy.float32)[::2]},
        ValueError,
        "alibi_slopes: strides (2,)",
    ),
    "values of more pages": (
        prefill,
        {"k": draw(3, 2, 8)},
        ValueError,
        "v: shape (9, 2, 8); allowed here: (3, 2, 8)",
    ),
    "out of another shape": (
        prefill,
        {"out": draw(5, 2, 8)},
        ValueError,
        "out: shape (5, 2, 8); allowed here: (5, 4, 8)",
    ),
}

ATTENDING: dict[str, Refusal] = {
    "a q that is not aligned": (appended, {"q": misaligned(Q)}, ValueError, "q.data is 0x"),
    "slopes that are not aligned": (
        appended,
        {"alibi_slopes": misaligned(numpy.zeros(4, numpy.float32))},
        ValueError,
        "alibi_slopes is 0x",
    ),
}

ROTARY: dict[str, Refusal] = {
    "a rotation of nothing new": (
        cached,
        {"rotary_cos": TABLES, "rotary_sin": TABLES},
        ValueError,
        "rotary_cos: given, but k is None; pass k, too, or rotary_cos=None",
    ),
    "cosines alone": (
        turned,
        {"rotary_sin": None},
        ValueError,
        "rotary_cos: given, but rotary_sin is None; pass rotary_sin, too, or rotary_cos=None",
    ),
    "sines alone": (
        turned,
        {"rotary_cos": None},
        ValueError,
        "rotary_sin: given, but rotary_cos is None",
    ),
    "cosines of one dimension": (
        turned,
        {"rotary_cos": TABLES[0]},
        ValueError,
        "rotary_cos: shape (8,); allowed: [seqlen, rotary size / 2]",
    ),
    "sines of another shape": (
        turned,
        {"rotary_sin": TABLES[:11]},
        ValueError,
        "rotary_sin: shape (11, 8); allowed here: (12, 8), as rotary_cos has",
    ),
    "tables of another dtype": (
        turned,
        {"rotary_sin": TABLES.astype(numpy.float32)},
        TypeError,
        "rotary_sin: dtype float32; allowed here: float16, as q has",
    ),
    "tables too short": (
        turned,
        {"rotary_cos": TABLES[:11], "rotary_sin": TABLES[:11]},
        ValueError,
        "the length of rotary_cos is 11, but must be at least 12, the room of a sequence",
    ),
    "tables too short for the queries": (
        turned,
        {"k": NEW_WIDE[:, :3], "v": NEW_WIDE[:, :3], "causal": True, "cache_seqlens": 9},
        ValueError,
        "the length of rotary_cos is 12, but tokens up to 14 are rotated: the 9 of sequence 0",
    ),
    "half a unit": (
        turned,
        {"rotary_cos": draw(12, 4), "rotary_sin": draw(12, 4)},
        ValueError,
        "twice the columns of rotary_cos is 8, but must be a multiple of 16 from 16 to the head "
        "size, 32",
    ),
    "more than a head": (
        turned,
        {"rotary_cos": draw(12, 24), "rotary_sin": draw(12, 24)},
        ValueError,
        "twice the columns of rotary_cos is 48, but must be ",
    ),
    "tables with holes": (
        turned,
        {"rotary_cos": draw(12, 16)[:, ::2]},
        ValueError,
        "rotary_cos: strides (16, 2)",
    ),
    "flags for interleaved": (
        turned,
        {"rotary_interleaved": "yes"},
        TypeError,
        "rotary_interleaved: 'yes'; allowed: True or False",
    ),
}

OPTIONS: dict[str, Refusal] = {
    "keys without values": (
        appended,
        {"v": None},
        ValueError,
        "k: given, but v is None; pass v, too, or k=None",
    ),
    "values without keys": (appended, {"k": None}, ValueError, "v: given, but k is None"),
    "new keys behind nothing known": (
        appended,
        {"cache_seqlens": None},
        ValueError,
        "k: given, but cache_seqlens is None; pass cache_seqlens, too",
    ),
    "too many splits": (
        cached,
        {"num_splits": 129},
        ValueError,
        "num_splits: 129; allowed: 1 to 128, or 0: as many as fill the GPU",
    ),
    "splits below zero": (cached, {"num_splits": -1}, ValueError, "num_splits: -1; allowed: 1 to"),
    "half a split": (cached, {"num_splits": 0.5}, TypeError, "num_splits: 0.5; allowed: 1 to 128"),
    "a scale below zero": (
        paged,
        {"softmax_scale": -1.0},
        ValueError,
        "softmax_scale: -1.0; allowed: ",
    ),
    "a cap below zero": (prefill, {"softcap": -1.0}, ValueError, "softcap: -1.0; allowed: "),
    "a window of one number": (varlen, {"window_size": 3}, TypeError, "window_size: 3; allowed"),
    "text for causal": (cached, {"causal": "no"}, TypeError, "causal: 'no'; allowed: True or"),
    "text for the lse": (
        cached,
        {"return_softmax_lse": "no"},
        TypeError,
        "return_softmax_lse: 'no'; allowed: True or False",
    ),
    "dropout of keys in pages": (
        varlen,
        {"dropout_p": 0.5, "rng_state": (1, 2)},
        NotImplementedError,
        "dropout_p: 0.5 beside block_table; Composable Kernel has no kernel that drops weights",
    ),
    "a stream for host memory": (
        prefill,
        {"stream": 3},
        ValueError,
        "stream: the arrays are in host memory; pass stream=None",
    ),
}
EXPLAINED: dict[str, Refusal] = {
    "an unknown rotation": (
        explained,
        {"rotary": "half", "seqlen_new": 1},
        ValueError,
        'rotary: \'half\'; allowed: "interleaved", "halves", or None',
    ),
    "a rotation of nothing": (
        explained,
        {"rotary": "halves"},
        ValueError,
        "rotary: halves, but seqlen_new is 0; allowed: None without new keys",
    ),
    "new keys behind nothing": (
        explained,
        {"cache_seqlens": False, "seqlen_new": 1},
        ValueError,
        "seqlen_new: 1; allowed here: 0, as only flash_attn_with_kvcache with cache_seqlens",
    ),
    "new keys beyond the room": (
        explained,
        {"seqlen_new": 13},
        ValueError,
        "k: 13 new keys",
    ),
    "a table of another batch": (
        explained,
        {"block_table": (3, 3)},
        ValueError,
        "block_table: shape (3, 3); allowed here: (2, 3) [batch, pages of a sequence]",
    ),
    "a flag": (explained, {"alibi": "yes"}, TypeError, "alibi: 'yes'; allowed: True or False"),
    "a sink": (explained, {"sink": 1.0}, TypeError, "sink: 1.0; allowed: True or False"),
    "splits": (explained, {"num_splits": 129}, ValueError, "num_splits: 129; allowed: 1 to 128"),
    "sequences": (explained, {"sequences": 3}, TypeError, "sequences: 3; allowed: (batch, max_"),
}
TABLES_OF_WRONG = (LENGTHS, PLACES, LEFT_OUT, ARRAYS, ATTENDING, ROTARY, OPTIONS, EXPLAINED)
WRONG = {name: refusal for table in TABLES_OF_WRONG for name, refusal in table.items()}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named(name: str) -> None:
    check_refused(WRONG[name])


# Those that reach what would append, with caches that can be written.
WRITING = [
    name
    for name, (function, changes, *_) in WRONG.items()
    if function in (appended, turned) and not {"k_cache", "v_cache"} & {*changes}
]


@pytest.mark.parametrize("name", WRITING)
def test_a_refused_call_leaves_the_cache_as_it_was(name: str) -> None:
    function, changes, kind, _ = WRONG[name]
    shapes = (WIDE_K, WIDE_K) if function is turned else (K, V)
    k, v = (numpy.zeros_like(x) for x in shapes)
    ones = {} if function is turned else {"k": NEW_K + 1, "v": NEW_V + 1}
    with pytest.raises(kind):
        function(**{"k_cache": k, "v_cache": v, **ones, **changes})
    assert not k.any()
    assert not v.any()


@pytest.mark.parametrize(
    ("field", "message", "want"),
    [
        (
            "seqlen_q",
            "seqlen_q is 9, but must not exceed 7 with 8 splits of the keys",
            "seqlen_q is 9, but must not exceed 7 with 8 splits of the keys",
        ),
        (
            "",
            "no kernel for 2 splits, seqlen_k 64",
            "no kernel for 2 splits, seqlen_k 64",
        ),
        (
            "k.stride_seq",
            "k.stride_seq is 1, but over 3 splits: k must be v's",
            "k_cache.stride_seq is 1, but over 3 splits: k_cache must be v's",
        ),
        ("k", "k overlaps k_new: splits, v", "k_cache overlaps k: splits, v"),
        ("splits", "splits is 9, but seqlen_k is 8", "num_splits is 9, but seqlen_k is 8"),
    ],
)
def test_the_field_alone_gets_the_name_of_its_argument(field: str, message: str, want: str) -> None:
    class OfLibrary(ValueError):
        def __init__(self, message: str) -> None:
            super().__init__(message)
            self.field = field

    def refuse() -> None:
        raise OfLibrary(message)

    with pytest.raises(OfLibrary) as caught:
        asked(ARGUMENTS | {"k": "k_cache", "v": "v_cache", "k_new": "k"}, refuse)
    assert str(caught.value) == want


def test_names_are_unique() -> None:
    assert len(WRONG) == sum(map(len, TABLES_OF_WRONG))


@pytest.mark.parametrize(
    "call",
    [
        lambda: paged(cache_seqlens=13),
        lambda: paged(cache_seqlens=numbers(12, 13)),
        lambda: varlen(max_seqlen_k=13),
    ],
    ids=["a number", "an array", "max_seqlen_k"],
)
def test_lengths_beyond_the_block_table_are_runtime_errors_too(call: Callable[[], Any]) -> None:
    with pytest.raises(RuntimeError) as caught:
        call()
    assert isinstance(caught.value, aiter_attn.RoomError)
    assert isinstance(caught.value, ValueError)
