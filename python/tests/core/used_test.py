# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Packed sequences of which only the first rows are used, on the CPU, against float64."""

from __future__ import annotations

from typing import Any

import aiter_attn
import numpy
import pytest

from tests.support.python.attention import attention
from tests.support.python.caches import draw, numbers
from tests.support.python.calls import Refusal, check_refused, varlen
from tests.support.python.dlpack_exporter import KDL_ROCM, Exporter

STARTS_Q, STARTS_K = numbers(0, 5, 5, 12, 15), numbers(0, 7, 11, 20, 29)
USED_Q, USED_K = numbers(3, 0, 7, 0), numbers(4, 2, 9, 5)
LONGEST = 7, 9
HEADS, SIZE, SIZE_V = 4, 16, 24
SLOPES = draw(4, HEADS, seed=7) ** 2
MASKS: dict[str, dict[str, Any]] = {
    "no mask": {},
    "causal": {"causal": True},
    "a window": {"window_size": (3, 1)},
}


def poisoned(rows: Any, starts: Any, used: Any) -> Any:
    """NaN in all rows that are not used."""
    made = numpy.full_like(rows, numpy.nan)
    for start, count in zip(starts, used, strict=False):
        made[start : start + count] = rows[start : start + count]
    return made


@pytest.mark.parametrize("given", ["q", "k", "both"])
@pytest.mark.parametrize("alibi", [None, "one for all", "per sequence"])
@pytest.mark.parametrize("mask", MASKS)
def test_the_others_are_neither_read_nor_counted(mask: str, alibi: str | None, given: str) -> None:
    if alibi and mask == "a window":
        alibi = None
    used_q = USED_Q if given != "k" else numpy.diff(STARTS_Q)
    used_k = USED_K if given != "q" else numpy.diff(STARTS_K)
    q, k = draw(15, HEADS, SIZE), draw(29, 2, SIZE, seed=1)
    v = draw(29, 2, SIZE_V, seed=2)
    slopes = {None: None, "one for all": SLOPES[1], "per sequence": SLOPES}[alibi]
    out, lse, _ = aiter_attn.flash_attn_varlen_func(
        poisoned(q, STARTS_Q, used_q),
        poisoned(k, STARTS_K, used_k),
        poisoned(v, STARTS_K, used_k),
        STARTS_Q,
        STARTS_K,
        *LONGEST,
        seqused_q=None if given == "k" else USED_Q,
        seqused_k=None if given == "q" else USED_K,
        alibi_slopes=slopes,
        return_attn_probs=True,
        **MASKS[mask],
    )
    options = dict(MASKS[mask])
    window = options.pop("window_size", (-1, -1))
    for b in range(4):
        begin, end = STARTS_Q[b], STARTS_Q[b] + used_q[b]
        keys = slice(STARTS_K[b], STARTS_K[b] + used_k[b])
        of_sequence = slopes if alibi != "per sequence" else slopes[b]
        exact = attention(
            q[begin:end], k[keys], v[keys], window=window, slopes=of_sequence, **options
        )
        numpy.testing.assert_allclose(out[begin:end], exact[0], 1e-4, 1e-5)
        numpy.testing.assert_allclose(lse[:, begin:end], exact[1], 1e-5, 1e-5)
        assert not out[end : STARTS_Q[b + 1]].any()
        assert numpy.isneginf(lse[:, end : STARTS_Q[b + 1]]).all()


def test_dropout_of_the_rows_that_are_used() -> None:
    """probs says which weights stay: 0 for rows and keys that are not used."""
    q, k, v = draw(15, HEADS, SIZE), draw(29, 2, SIZE, seed=1), draw(29, 2, SIZE_V, seed=2)
    out, lse, kept = aiter_attn.flash_attn_varlen_func(
        poisoned(q, STARTS_Q, USED_Q), k, v, STARTS_Q, STARTS_K, *LONGEST, 0.3,
        rng_state=(5, 6), seqused_q=USED_Q, seqused_k=USED_K, return_attn_probs=True,
    )  # fmt: skip
    for b in range(4):
        begin, end = STARTS_Q[b], STARTS_Q[b] + USED_Q[b]
        assert not kept[:, end : STARTS_Q[b + 1]].any()
        assert not kept[:, begin:end, USED_K[b] :].any()
        keys = slice(STARTS_K[b], STARTS_K[b] + USED_K[b])
        wide_k, wide_v = (numpy.repeat(x[keys], 2, axis=1).astype(float) for x in (k, v))
        scores = numpy.einsum("ihd,jhd->hij", q[begin:end], wide_k) / SIZE**0.5
        weights = numpy.exp(scores - lse[:, begin:end, None])
        weights = weights * kept[:, begin:end, : USED_K[b]] / 0.7
        exact = numpy.einsum("hij,jhd->ihd", weights, wide_v)
        numpy.testing.assert_allclose(out[begin:end], exact, 1e-4, 1e-5)
    assert kept.any()


# varlen() has sequences of 2 and 3 queries, of 3 and 4 keys.
WRONG: dict[str, Refusal] = {
    "more than the sequence": (
        varlen,
        {"seqused_k": numbers(3, 5)},
        ValueError,
        "seqused_k[1]: 5; allowed here: 0 to 4, the length of the sequence",
    ),
    "fewer than none": (
        varlen,
        {"seqused_q": numbers(-1, 3)},
        ValueError,
        "seqused_q[0]: -1; allowed here: 0 to 2, the length of the sequence",
    ),
    "of another batch": (
        varlen,
        {"seqused_q": numbers(1)},
        ValueError,
        "seqused_q: shape (1,); allowed here: (2,) [batch]",
    ),
    "int64": (
        varlen,
        {"seqused_k": numpy.array([1, 1])},
        TypeError,
        "seqused_k: dtype int64; allowed: int32",
    ),
    "strided": (
        varlen,
        {"seqused_k": numbers(1, 0, 1, 0)[::2]},
        ValueError,
        "seqused_k: strides (2,) (in elements) of shape (2,); it must be contiguous",
    ),
    "offsets that go back": (
        varlen,
        {"seqused_q": numbers(0, 0), "cu_seqlens_q": numbers(0, 6, 5), "max_seqlen_q": 6},
        ValueError,
        "cu_seqlens_q[2] - cu_seqlens_q[1]: -1; allowed here: 0 to 6, max_seqlen_q",
    ),
    "offsets of other rows": (
        varlen,
        {"seqused_k": numbers(0, 0), "cu_seqlens_k": numbers(0, 3, 6)},
        ValueError,
        "cu_seqlens_k: from 0 to 6; allowed here: from 0 to 7, the rows of k",
    ),
    "longer than the greatest length": (
        varlen,
        {"seqused_k": numbers(1, 1), "max_seqlen_k": 3},
        ValueError,
        "cu_seqlens_k[2] - cu_seqlens_k[1]: 4; allowed here: 0 to 3, max_seqlen_k",
    ),
    "slopes of another batch": (
        varlen,
        {"seqused_k": numbers(1, 1), "alibi_slopes": draw(6, 4)},
        ValueError,
        "alibi_slopes: shape (6, 4); allowed here: [heads_q] or [2, heads_q]",
    ),
    "q of four dimensions": (
        varlen,
        {"seqused_k": numbers(1, 1), "q": draw(1, 5, 4, 8)},
        ValueError,
        "q: shape (1, 5, 4, 8); allowed: [total tokens, heads, head size]",
    ),
    "pages": (
        varlen,
        {"seqused_k": numbers(1, 1), "block_table": numbers([0], [1])},
        ValueError,
        "seqused_k: given beside block_table; allowed: one of them; with block_table pass cu_seq",
    ),
    "fp8": (
        varlen,
        {"seqused_q": numbers(1, 1), "q_descale": 1.0},
        ValueError,
        "q_descale: 1.0, but there is no fp8 beside seqused_q; allowed here: None",
    ),
    "a GPU": (
        varlen,
        {
            "q": Exporter(draw(5, 4, 8, dtype=numpy.float16), device=(KDL_ROCM, 0)),
            "seqused_k": numbers(1, 1),
        },
        aiter_attn.UnsupportedError,
        "seqused_q, seqused_k: given with arrays on a GPU; allowed there: None: pass q, k and v",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named(name: str) -> None:
    check_refused(WRONG[name])
