# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Results in memory that the call uses otherwise, and those that only look like it."""

from __future__ import annotations

from typing import Any

import aiter_attn
import numpy
import pytest

from tests.support.python.calls import LSE, OUT, K, Q, backward, draw, forward
from tests.support.python.dlpack_exporter import Exporter


def refused(message: str) -> Any:
    return pytest.raises(ValueError, match=message)


def test_out_one_row_further_than_q() -> None:
    rows = draw(2, 9, 4, 8)
    with refused(r"^out overlaps q\b"):
        forward(q=rows[:, :8], k=K, v=K, out=rows[:, 1:])


def test_out_is_q() -> None:
    q = Q.copy()
    with refused(r"^out overlaps q\b"):
        forward(q=q, v=K, out=q)


def test_lse_in_the_offsets() -> None:
    memory = numpy.zeros(64, numpy.int32)
    starts = memory[:3]
    starts[:] = 0, 2, 5
    rows = draw(5, 2, 8)
    lse = memory[:10].view(numpy.float32).reshape(2, 5)
    with refused(r"^lse overlaps cu_seqlens_q\b|^cu_seqlens_q overlaps lse\b"):
        aiter_attn.mha_varlen_fwd(rows, rows, rows, starts, starts.copy(), 3, 3, lse=lse)
    assert starts.tolist() == [0, 2, 5]


def appending(q: Any, k_cache: Any, v_cache: Any, **more: Any) -> Any:
    new = numpy.ones((2, 1, *k_cache.shape[2:]), q.dtype)
    return aiter_attn.flash_attn_with_kvcache(
        q, k_cache, v_cache, k=new, v=new, cache_seqlens=3, **more
    )


def test_what_is_appended_over_q() -> None:
    memory = draw(4, 6, 2, 16)
    q, k_cache = memory[1:3, :1], memory[:2]
    before = memory.copy()
    with refused(r"^k_cache overlaps q: an output must share no byte"):
        appending(q, k_cache, draw(2, 6, 2, 16))
    table = draw(8, 8)
    with refused(r"^v_cache overlaps q: the call writes to v_cache"):
        appending(q, draw(2, 6, 2, 16), k_cache, rotary_cos=table, rotary_sin=table)
    numpy.testing.assert_array_equal(memory, before)


def test_what_is_appended_over_slopes() -> None:
    memory = draw(2, 6, 2, 16, dtype=numpy.float32)
    slopes = memory[1, 3, 1, :2]
    with refused(r"^v_cache overlaps alibi_slopes: "):
        appending(
            draw(2, 1, 2, 16, dtype=numpy.float32),
            draw(2, 6, 2, 16, dtype=numpy.float32),
            memory,
            alibi_slopes=slopes,
        )
    assert not memory.any()


def test_q_between_the_rows_of_a_cache() -> None:
    memory = draw(2, 6, 4, 16)
    q, k_cache, v_cache = memory[:, :1, :2].copy(), memory[:, :, 2:].copy(), memory[:, :, 2:].copy()
    want = appending(q, k_cache, v_cache)
    got = appending(memory[:, :1, :2], memory[:, :, 2:], v_cache)
    numpy.testing.assert_array_equal(got, want)
    numpy.testing.assert_array_equal(memory[:, :, 2:], k_cache)


def test_lse_in_out() -> None:
    flat = numpy.zeros(640, numpy.float16)
    lse = flat[:80].view(numpy.float32).reshape(LSE.shape)
    with refused(r"^(lse overlaps out|out overlaps lse)\b"):
        forward(out=flat.reshape(OUT.shape), lse=lse)


@pytest.mark.parametrize("pair", [("dk", "dv"), ("dq", "dk"), ("dv", "dq")], ids="-".join)
def test_one_array_for_two_gradients(pair: tuple[str, str]) -> None:
    q = draw(2, 7, 2, 8)
    shared = draw(2, 7, 2, 8)
    first, second = pair
    with refused(rf"^({first} overlaps {second}|{second} overlaps {first})\b"):
        backward(
            q=q,
            v=K,
            out=q,
            dout=q,
            lse=draw(2, 2, 7, dtype=numpy.float32),
            **{first: shared, second: shared},
        )


@pytest.mark.parametrize("argument", ["q", "dout", "out"])
def test_a_gradient_in_what_it_is_computed_from(argument: str) -> None:
    arrays = {name: draw(*Q.shape) for name in ("q", "dout", "out")}
    with refused(rf"^dq overlaps {argument}\b"):
        backward(v=K, **arrays, dq=arrays[argument])


def test_a_gradient_in_lse() -> None:
    lse = draw(2, 4, 5, dtype=numpy.float32)
    q = draw(2, 5, 4, 2)
    dq = lse.reshape(-1).view(numpy.float16)[:80].reshape(2, 5, 4, 2)
    with refused(r"^dq overlaps lse\b"):
        backward(q=q, k=draw(2, 7, 2, 2), lse=lse, dq=dq)


def test_the_same_through_dlpack() -> None:
    q = draw(*Q.shape)
    with refused(r"^out overlaps q\b"):
        forward(q=Exporter(q), v=K, out=Exporter(q), lse=LSE.copy())


EVEN, ODD = slice(0, None, 2), slice(1, None, 2)
HALVES = {
    "rows": ((2, 10, 4, 8), numpy.s_[:, EVEN], numpy.s_[:, ODD]),
    "heads": ((2, 5, 8, 8), numpy.s_[:, :, EVEN], numpy.s_[:, :, ODD]),
    "columns": ((2, 5, 4, 16), numpy.s_[..., :8], numpy.s_[..., 8:]),
    "batches": ((4, 5, 4, 8), numpy.s_[EVEN], numpy.s_[ODD]),
}


@pytest.mark.parametrize("halves", HALVES)
def test_interleaved_halves_are_apart(halves: str) -> None:
    shape, mine, other = HALVES[halves]
    both = numpy.random.default_rng(0).standard_normal(shape).astype(numpy.float16)
    q = both[other].copy()
    want, want_lse = forward(q=q, v=K)
    out, lse = forward(q=both[other], v=K, out=both[mine])
    numpy.testing.assert_array_equal(out, want)
    numpy.testing.assert_array_equal(lse, want_lse)
    numpy.testing.assert_array_equal(both[other], q)


def test_inputs_may_share_memory() -> None:
    want, _ = forward(q=Q, k=K, v=K.copy())
    out, _ = forward(q=Q, k=K, v=K)
    numpy.testing.assert_array_equal(out, want)


def test_what_has_no_entries_overlaps_nothing() -> None:
    q = draw(2, 0, 4, 8)
    out, _ = forward(q=q, v=K, out=q)
    assert out is q
