# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention over key-value caches, on the CPU: against float64, and against the same keys packed
otherwise, bit by bit."""

from __future__ import annotations

from typing import Any

import aiter_attn
import ml_dtypes
import numpy
import pytest
from aiter_attn._cli import selftest

from tests.support.python.attention import attention
from tests.support.python.caches import GATES, draw, gathered, in_pages, numbers, rotated
from tests.support.python.dlpack_exporter import Exporter, Standard

BATCH, HEADS_Q, HEADS_K, SIZE, SIZE_V = 3, 4, 2, 32, 24
ROOM, PAGE = 24, 4
LENGTHS = numbers(5, 0, 17)
DTYPES = {"float16": numpy.float16, "bfloat16": ml_dtypes.bfloat16, "float32": numpy.float32}
SLOPES = numpy.float32([0.5, 0.25, 0.125, 0.0625])
MASKS: dict[str, dict[str, Any]] = {
    "no mask": {},
    "causal": {"causal": True},
    "a window": {"window_size": (6, 1)},
    "causal with a window": {"causal": True, "window_size": (4, 9)},
}
each_dtype = pytest.mark.parametrize("dtype", DTYPES)
each_mask = pytest.mark.parametrize("mask", MASKS)
each_place = pytest.mark.parametrize("paged", [False, True], ids=["in place", "in pages"])


def queries(seqlen: int, dtype: str = "float32") -> Any:
    return draw(BATCH, seqlen, HEADS_Q, SIZE, dtype=DTYPES[dtype], seed=1)


def caches(dtype: str = "float32", entries: int = BATCH) -> tuple[Any, Any]:
    k = draw(entries, ROOM, HEADS_K, SIZE, dtype=DTYPES[dtype], seed=2)
    return k, draw(entries, ROOM, HEADS_K, SIZE_V, dtype=DTYPES[dtype], seed=3)


def new(seqlen: int, dtype: str = "float32") -> tuple[Any, Any]:
    k = draw(BATCH, seqlen, HEADS_K, SIZE, dtype=DTYPES[dtype], seed=4)
    return k, draw(BATCH, seqlen, HEADS_K, SIZE_V, dtype=DTYPES[dtype], seed=5)


def check(got: Any, exact: Any, dtype: str) -> None:
    assert got.dtype.name == dtype
    assert selftest.ulp_error(numpy, got, exact, dtype) <= GATES[dtype]


def check_all(got: Any, q: Any, k: Any, v: Any, lengths: Any, **options: Any) -> None:
    """got: (out, lse) of keys in place."""
    out, lse = got
    window = options.pop("window_size", (-1, -1))
    for b, length in enumerate(lengths):
        exact = attention(q[b], k[b, :length], v[b, :length], window=window, **options)
        check(out[b], exact[0], out.dtype.name)
        infinite = numpy.isneginf(exact[1])
        numpy.testing.assert_array_equal(numpy.isneginf(lse[b]), infinite)
        check(lse[b][~infinite], exact[1][~infinite], "float32")


@each_place
@each_mask
@each_dtype
def test_lengths_per_sequence(dtype: str, mask: str, paged: bool) -> None:
    q, (k, v) = queries(3, dtype), caches(dtype)
    given_k, given_v, more = k, v, {}
    if paged:
        given_k, table = in_pages(k, PAGE, spare=2)
        given_v, _ = in_pages(v, PAGE, spare=2)
        more = {"block_table": table}
    got = aiter_attn.flash_attn_with_kvcache(
        q,
        given_k,
        given_v,
        cache_seqlens=LENGTHS,
        return_softmax_lse=True,
        **MASKS[mask],
        **more,
    )
    check_all(got, q, k, v, LENGTHS, **MASKS[mask])


@each_place
def test_one_length_for_all_and_none(paged: bool) -> None:
    q, (k, v) = queries(2), caches()
    given_k, given_v, more = k, v, {}
    if paged:
        (given_k, table), (given_v, _) = in_pages(k, PAGE, 1), in_pages(v, PAGE, 1)
        more = {"block_table": table}
    for given, length in ((7, 7), (numpy.int64(7), 7), (0, 0), (ROOM, ROOM), (None, ROOM)):
        got = aiter_attn.flash_attn_with_kvcache(
            q, given_k, given_v, cache_seqlens=given, return_softmax_lse=True, **more
        )
        check_all(got, q, k, v, [length] * BATCH)


def test_slopes_and_a_cap() -> None:
    q, (k, v) = queries(3), caches()
    for causal in (False, True):
        for slopes in (SLOPES, numpy.stack([SLOPES * (b + 1) for b in range(BATCH)])):
            out, lse = aiter_attn.flash_attn_with_kvcache(
                q,
                k,
                v,
                cache_seqlens=LENGTHS,
                causal=causal,
                alibi_slopes=slopes,
                softcap=2.0,
                return_softmax_lse=True,
            )
            for b, length in enumerate(LENGTHS):
                exact = attention(
                    q[b],
                    k[b, :length],
                    v[b, :length],
                    causal=causal,
                    softcap=2.0,
                    slopes=slopes if slopes.ndim == 1 else slopes[b],
                )
                numpy.testing.assert_allclose(out[b], exact[0], 1e-4, 1e-6)
                numpy.testing.assert_allclose(lse[b], exact[1], 1e-5, 1e-6)


def test_entries_of_a_larger_cache() -> None:
    q, (k, v) = queries(3), caches(entries=7)
    chosen = numbers(6, 0, 6)
    got = aiter_attn.flash_attn_with_kvcache(
        q, k, v, cache_seqlens=LENGTHS, cache_batch_idx=chosen, return_softmax_lse=True
    )
    check_all(got, q, k[chosen], v[chosen], LENGTHS)


def test_one_causal_query_sees_all_keys() -> None:
    """flash-attn takes no mask then; with ALiBi it does, which is in the lse."""
    q, (k, v) = queries(1), caches()
    options: dict[str, Any] = {"cache_seqlens": LENGTHS, "return_softmax_lse": True}
    got = aiter_attn.flash_attn_with_kvcache(q, k, v, causal=True, **options)
    for one, other in zip(got, aiter_attn.flash_attn_with_kvcache(q, k, v, **options), strict=True):
        numpy.testing.assert_array_equal(one, other)
    out, lse = aiter_attn.flash_attn_with_kvcache(
        q, k, v, causal=True, alibi_slopes=SLOPES, **options
    )
    exact = attention(q[2], k[2, :17], v[2, :17], causal=True, slopes=SLOPES)
    numpy.testing.assert_allclose(out[2], exact[0], 1e-4, 1e-6)
    numpy.testing.assert_allclose(lse[2], exact[1], 1e-5)


@each_place
@each_dtype
def test_what_is_appended_is_attended_to(dtype: str, paged: bool) -> None:
    q, (k, v), (new_k, new_v) = queries(3, dtype), caches(dtype), new(3, dtype)
    want_k, want_v = k.copy(), v.copy()
    for b, length in enumerate(LENGTHS):
        want_k[b, length : length + 3], want_v[b, length : length + 3] = new_k[b], new_v[b]
    given_k, given_v, more = k, v, {}
    if paged:
        (given_k, table), (given_v, _) = in_pages(k, PAGE, 2), in_pages(v, PAGE, 2)
        more = {"block_table": table}
    given_q, lengths = q.copy(), LENGTHS.copy()
    got = aiter_attn.flash_attn_with_kvcache(
        given_q,
        given_k,
        given_v,
        new_k,
        new_v,
        cache_seqlens=lengths,
        causal=True,
        return_softmax_lse=True,
        **more,
    )
    check_all(got, q, want_k, want_v, LENGTHS + 3, causal=True)
    for cache, want in ((given_k, want_k), (given_v, want_v)):
        after = gathered(cache, more["block_table"]) if paged else cache
        numpy.testing.assert_array_equal(after, want)
    if paged:
        spare = sorted({*range(len(given_k))} - {*more["block_table"].flat})
        assert numpy.isnan(given_k[spare].astype(numpy.float32)).all()
    numpy.testing.assert_array_equal(given_q, q)
    numpy.testing.assert_array_equal(lengths, LENGTHS)


def test_appending_to_chosen_entries_and_to_equal_lengths() -> None:
    q, (k, v), (new_k, new_v) = queries(1), caches(entries=5), new(2)
    before_k, before_v = k.copy(), v.copy()
    chosen = numbers(4, 0, 2)
    aiter_attn.flash_attn_with_kvcache(
        q, k, v, new_k, new_v, cache_seqlens=9, cache_batch_idx=chosen
    )
    before_k[chosen, 9:11], before_v[chosen, 9:11] = new_k, new_v
    numpy.testing.assert_array_equal(k, before_k)
    numpy.testing.assert_array_equal(v, before_v)


@each_place
@each_mask
@pytest.mark.parametrize("interleaved", [True, False], ids=["interleaved", "halves"])
def test_rotary_embedding(interleaved: bool, mask: str, paged: bool) -> None:
    """With a mask query i is as the token cache_seqlens + i; without one, as cache_seqlens."""
    q, (k, v), (new_k, new_v) = queries(3), caches(), new(3)
    angles = numpy.outer(numpy.arange(ROOM + 5), 0.7 ** numpy.arange(8))
    cos, sin = numpy.cos(angles).astype(numpy.float32), numpy.sin(angles).astype(numpy.float32)
    given_k, given_v, more = k.copy(), v.copy(), {}
    if paged:
        (given_k, table), (given_v, _) = in_pages(k, PAGE, 0), in_pages(v, PAGE, 0)
        more = {"block_table": table}
    given_q = q.copy()
    out, lse = aiter_attn.flash_attn_with_kvcache(
        given_q,
        given_k,
        given_v,
        new_k,
        new_v,
        cos,
        sin,
        cache_seqlens=LENGTHS,
        rotary_interleaved=interleaved,
        return_softmax_lse=True,
        **MASKS[mask],
        **more,
    )
    numpy.testing.assert_array_equal(given_q, q)
    after = gathered(given_k, more["block_table"]) if paged else given_k
    options = dict(MASKS[mask])
    window = options.pop("window_size", (-1, -1))
    for b, length in enumerate(LENGTHS):
        tokens = length + numpy.arange(3)
        turned_k = rotated(new_k[b], tokens, cos, sin, interleaved)
        numpy.testing.assert_allclose(after[b, length : length + 3], turned_k, 1e-5, 1e-6)
        numpy.testing.assert_array_equal(after[b, :length], k[b, :length])
        numpy.testing.assert_array_equal(after[b, length + 3 :], k[b, length + 3 :])
        turned_q = rotated(
            q[b], tokens if mask != "no mask" else length.repeat(3), cos, sin, interleaved
        )
        exact = attention(
            turned_q,
            numpy.concatenate([k[b, :length], turned_k]),
            numpy.concatenate([v[b, :length], new_v[b]]),
            window=window,
            **options,
        )
        numpy.testing.assert_allclose(out[b], exact[0], 1e-4, 1e-5)
        numpy.testing.assert_allclose(lse[b], exact[1], 1e-5, 1e-5)


def test_decoding_step_by_step_is_attention_at_once() -> None:
    q, (k, v) = queries(6, "bfloat16"), new(6, "bfloat16")
    cache_k, cache_v = caches("bfloat16")
    for start, end in ((0, 3), (3, 4), (4, 6)):
        rows = slice(start, end)
        out = aiter_attn.flash_attn_with_kvcache(
            q[:, rows], cache_k, cache_v, k[:, rows], v[:, rows], cache_seqlens=start, causal=True
        )
        for b in range(BATCH):
            exact = attention(q[b, rows], k[b, :end], v[b, :end], causal=True)[0]
            check(out[b], exact, "bfloat16")


def test_by_place_the_arguments_are_those_of_flash_attn() -> None:
    q, (k, v), (new_k, new_v) = queries(2), caches(), new(2)
    cos, sin = draw(ROOM, 16), draw(ROOM, 16, seed=1)
    chosen = numbers(2, 1, 0)
    copies = [(k.copy(), v.copy()) for _ in range(2)]
    got = aiter_attn.flash_attn_with_kvcache(
        q, *copies[0], new_k, new_v, cos, sin, LENGTHS, chosen, None, None, 0.4, True, (5, -1),
        1.5, False, SLOPES, 3, True,
    )  # fmt: skip
    want = aiter_attn.flash_attn_with_kvcache(
        q,
        *copies[1],
        k=new_k,
        v=new_v,
        rotary_cos=cos,
        rotary_sin=sin,
        cache_seqlens=LENGTHS,
        cache_batch_idx=chosen,
        cache_leftpad=None,
        block_table=None,
        softmax_scale=0.4,
        causal=True,
        window_size=(5, -1),
        softcap=1.5,
        rotary_interleaved=False,
        alibi_slopes=SLOPES,
        num_splits=3,
        return_softmax_lse=True,
    )
    for one, other in zip(got, want, strict=True):
        numpy.testing.assert_array_equal(one, other)


@each_mask
@each_dtype
def test_keys_left_out(dtype: str, mask: str) -> None:
    """Keys left out, and the room behind, hold NaN: neither is read. Entries are chosen; ALiBi
    counts from the first key that is not left out."""
    q, (k, v) = queries(3, dtype), caches(dtype, 4)
    entries, left_out = numbers(3, 1, 1), numbers(2, 0, 9)
    for b, entry in enumerate(entries[:2]):
        for cache in (k, v):
            cache[entry, : left_out[b]] = cache[entry, LENGTHS[b] :] = numpy.nan
    for cache, fresh in zip((k, v), caches(dtype), strict=True):  # of the second and the third
        cache[1, 9:17] = fresh[0, 9:17]
    slopes = None if "window" in mask else SLOPES
    got = aiter_attn.flash_attn_with_kvcache(
        q,
        k,
        v,
        cache_seqlens=LENGTHS,
        cache_batch_idx=entries,
        cache_leftpad=left_out,
        return_softmax_lse=True,
        alibi_slopes=slopes,
        **MASKS[mask],
    )
    for b, entry in enumerate(entries):
        out, lse, queries_b = (x[b : b + 1] for x in (*got, q))
        keys_b, values_b = (x[entry : entry + 1, left_out[b] : LENGTHS[b]] for x in (k, v))
        lengths = [LENGTHS[b] - left_out[b]]
        check_all((out, lse), queries_b, keys_b, values_b, lengths, slopes=slopes, **MASKS[mask])


@pytest.mark.parametrize("strided", [False, True], ids=["contiguous", "strided"])
@each_mask
def test_keys_left_out_beside_new_ones(mask: str, strided: bool) -> None:
    """New keys are written, and rotated, as without: tokens count the keys that are left out."""
    q, (k, v), (new_k, new_v) = queries(4), caches(), new(3)
    if strided:  # a cache whose keys cannot be told by one stride
        k, v = (numpy.concatenate([x, x], 1)[:, :ROOM] for x in (k, v))
    cos, sin = draw(ROOM + 4, 8, seed=8), draw(ROOM + 4, 8, seed=9)
    left_out = numbers(5, 0, 9)
    for b in range(BATCH):
        k[b, : left_out[b]] = v[b, : left_out[b]] = numpy.nan
    before_k, before_v = k.copy(), v.copy()
    appended = {"rotary_cos": cos, "rotary_sin": sin, "cache_seqlens": LENGTHS}
    other_k, other_v = k.copy(), v.copy()
    aiter_attn.flash_attn_with_kvcache(q, other_k, other_v, new_k, new_v, **appended)
    out, lse = aiter_attn.flash_attn_with_kvcache(
        q, k, v, new_k, new_v, **appended, cache_leftpad=left_out, return_softmax_lse=True,
        **MASKS[mask],
    )  # fmt: skip
    numpy.testing.assert_array_equal(k, other_k)
    numpy.testing.assert_array_equal(v, other_v)
    options = dict(MASKS[mask])
    window = options.pop("window_size", (-1, -1))
    for b, length in enumerate(LENGTHS):
        tokens = length + numpy.arange(4)
        turned_q = rotated(q[b], tokens if mask != "no mask" else length.repeat(4), cos, sin, True)
        keys = numpy.concatenate(
            [before_k[b, left_out[b] : length], rotated(new_k[b], tokens[:3], cos, sin, True)]
        )
        values = numpy.concatenate([before_v[b, left_out[b] : length], new_v[b]])
        exact = attention(turned_q, keys, values, window=window, **options)
        numpy.testing.assert_allclose(out[b], exact[0], 1e-4, 1e-5)
        numpy.testing.assert_allclose(lse[b], exact[1], 1e-5, 1e-5)


@each_mask
def test_varlen_queries_over_pages(mask: str) -> None:
    lengths_q, lengths_k = (3, 0, 5), (7, 4, 16)
    k, v = caches()
    (pages_k, table), (pages_v, _) = in_pages(k, PAGE, 3), in_pages(v, PAGE, 3)
    starts_q, starts_k = (
        numpy.cumsum([0, *lengths], dtype=numpy.int32) for lengths in (lengths_q, lengths_k)
    )
    q = draw(8, HEADS_Q, SIZE, seed=6)
    out, lse, probabilities = aiter_attn.flash_attn_varlen_func(
        q,
        pages_k,
        pages_v,
        starts_q,
        starts_k,
        5,
        16,
        block_table=table,
        return_attn_probs=True,
        **MASKS[mask],
    )
    assert probabilities.shape == (0,)
    packed = [numpy.concatenate([x[b, :n] for b, n in enumerate(lengths_k)]) for x in (k, v)]
    want = aiter_attn.mha_varlen_fwd(q, *packed, starts_q, starts_k, 5, 16, **MASKS[mask])
    for one, other in zip((out, lse), want, strict=True):
        numpy.testing.assert_array_equal(one, other)
    options = dict(MASKS[mask])
    window = options.pop("window_size", (-1, -1))
    for b in range(BATCH):
        rows = slice(starts_q[b], starts_q[b + 1])
        exact = attention(
            q[rows], k[b, : lengths_k[b]], v[b, : lengths_k[b]], window=window, **options
        )
        check(out[rows], exact[0], "float32")


@each_mask
@each_dtype
def test_keys_listed_one_by_one(dtype: str, mask: str) -> None:
    lengths_q, lengths_k = (2, 4, 0), (9, 4, 1)
    starts_q, starts_k = (
        numpy.cumsum([0, *lengths], dtype=numpy.int32) for lengths in (lengths_q, lengths_k)
    )
    k = draw(40, HEADS_K, SIZE, dtype=DTYPES[dtype], seed=7)
    v = draw(40, HEADS_K, SIZE_V, dtype=DTYPES[dtype], seed=8)
    q = draw(6, HEADS_Q, SIZE, dtype=DTYPES[dtype], seed=9)
    # Longer than what is in use, as a server's own table is.
    listed = numpy.random.default_rng(0).permutation(40).astype(numpy.int32)[:20]
    given = numpy.empty((6, HEADS_Q, SIZE_V), DTYPES[dtype])
    out, lse = aiter_attn.mha_batch_prefill(
        q, k, v, starts_q, starts_k, listed, 4, 9, out=given, return_lse=True, **MASKS[mask]
    )
    assert out is given
    used = listed[: starts_k[-1]]
    want = aiter_attn.mha_varlen_fwd(q, k[used], v[used], starts_q, starts_k, 4, 9, **MASKS[mask])
    for one, other in zip((out, lse), want, strict=True):
        numpy.testing.assert_array_equal(one, other)
    alone = aiter_attn.mha_batch_prefill(q, k, v, starts_q, starts_k, listed, 4, 9, **MASKS[mask])
    numpy.testing.assert_array_equal(alone, out)
    options = dict(MASKS[mask])
    window = options.pop("window_size", (-1, -1))
    for b in range(2):
        rows, keys = slice(starts_q[b], starts_q[b + 1]), listed[starts_k[b] : starts_k[b + 1]]
        exact = attention(q[rows], k[keys], v[keys], window=window, **options)
        check(out[rows], exact[0], dtype)


def test_keys_and_values_in_one_buffer_are_read_and_written_there() -> None:
    """As vLLM has them: [pages, 2, page_size, heads, head_size]."""
    rows_k, rows_v = caches()
    rows_v = numpy.ascontiguousarray(draw(BATCH, ROOM, HEADS_K, SIZE, seed=9))
    (pages_k, table), (pages_v, _) = in_pages(rows_k, PAGE, 1), in_pages(rows_v, PAGE, 1)
    buffer = numpy.stack([pages_k, pages_v], axis=1)
    q, new_k, new_v = queries(1), new(1)[0], draw(BATCH, 1, HEADS_K, SIZE, seed=10)
    out = aiter_attn.flash_attn_with_kvcache(
        q, buffer[:, 0], buffer[:, 1], new_k, new_v, cache_seqlens=LENGTHS, block_table=table
    )
    for b, length in enumerate(LENGTHS):
        rows_k[b, length], rows_v[b, length] = new_k[b, 0], new_v[b, 0]
        exact = attention(q[b], rows_k[b, : length + 1], rows_v[b, : length + 1])[0]
        check(out[b], exact, "float32")
    numpy.testing.assert_array_equal(gathered(buffer[:, 0], table), rows_k)
    numpy.testing.assert_array_equal(gathered(buffer[:, 1], table), rows_v)


def test_every_array_is_borrowed_once_and_given_back() -> None:
    """The arrays of another producer of DLPack, which knows neither + nor a copy."""
    k, v = (Exporter(x) for x in caches())
    new_k, new_v = (Exporter(x) for x in new(2))
    lent = [k, v, new_k, new_v]
    q = Standard(queries(2), numpy.empty)
    want = aiter_attn.flash_attn_with_kvcache(
        q.array, *(x.array.copy() for x in lent), cache_seqlens=LENGTHS, causal=True
    )
    out = aiter_attn.flash_attn_with_kvcache(q, *lent, cache_seqlens=LENGTHS.copy(), causal=True)
    numpy.testing.assert_array_equal(out.array, want)
    assert [(len(x.streams), x.released) for x in [q, *lent]] == [(1, 1)] * 5
    with pytest.raises(TypeError, match=r"^cache_seqlens: Exporter has no \+ for the lengths"):
        aiter_attn.flash_attn_with_kvcache(q, *lent, cache_seqlens=Exporter(LENGTHS))
    with pytest.raises(TypeError, match=r"^cache_seqlens: an array of 5 cannot be made"):
        aiter_attn.flash_attn_with_kvcache(q, *lent, cache_seqlens=5)
    tables = {"rotary_cos": draw(ROOM, 8), "rotary_sin": draw(ROOM, 8)}
    with pytest.raises(TypeError, match=r"^q: Standard cannot be copied, as it does not follow"):
        aiter_attn.flash_attn_with_kvcache(q, *lent, cache_seqlens=LENGTHS, **tables)


def test_nothing_to_compute() -> None:
    k, v = caches()
    assert aiter_attn.flash_attn_with_kvcache(queries(2)[:0], k, v).shape == (0, 2, 4, SIZE_V)
    assert aiter_attn.flash_attn_with_kvcache(queries(0), k, v).shape == (3, 0, 4, SIZE_V)
    out, lse = aiter_attn.flash_attn_with_kvcache(
        queries(2), k[:, :0], v[:, :0], return_softmax_lse=True
    )
    assert not out.any()
    assert numpy.isneginf(lse).all()
    nothing = new(0)
    before = k.copy()
    out = aiter_attn.flash_attn_with_kvcache(queries(2), k, v, *nothing, cache_seqlens=LENGTHS)
    want = aiter_attn.flash_attn_with_kvcache(queries(2), k, v, cache_seqlens=LENGTHS)
    numpy.testing.assert_array_equal(out, want)
    numpy.testing.assert_array_equal(k, before)


def test_arrays_in_host_memory_need_no_kernel() -> None:
    k, v = caches("float16")
    told = aiter_attn.explain_kvcache(queries(2, "float16"), k, v, seqlen_new=1)
    assert told.kernels == []
    assert "CPU" in told.text
