# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Where a user of flash-attn 2 could be bitten: each row of docs/semantics.md that has numbers.

The keys that are seen are spelled out one by one, or made by flash-attn's rules written down once
more; the values are float64's.
"""

from __future__ import annotations

import ast
import itertools
import math
import re
from pathlib import Path
from typing import Any

import aiter_attn
import numpy
import pytest
from aiter_attn._cli import selftest


def draw(*shape: int, seed: int = 0) -> Any:
    return numpy.random.default_rng(seed).standard_normal(shape).astype(numpy.float32)


def flash_attns(window: tuple[int, int], causal: bool, seqlen_k: int) -> tuple[int, int]:
    """The bounds of flash-attn's host code: mha_fwd and mha_varlen_fwd of csrc/flash_attn_ck."""
    left, right = window
    if left >= seqlen_k:
        left = -1
    if right >= seqlen_k:
        right = -1
    if causal:
        right = 0
    return left, right


def seen_by(out: Any) -> list[str]:
    """With v the identity and all scores equal: which keys each query sees."""
    return ["".join("1" if x > 0 else "0" for x in row) for row in out[0, :, 0, :]]


@pytest.mark.parametrize(
    ("seqlen_q", "seqlen_k", "window", "seen"),
    [
        pytest.param(5, 3, (3, 3), ["111"] * 5, id="both reach seqlen_k"),
        pytest.param(5, 3, (-1, 3), ["111"] * 5, id="right reaches seqlen_k"),
        pytest.param(5, 3, (2, 3), ["111"] * 5, id="right reaches seqlen_k, left does not"),
        pytest.param(5, 3, (2, 2), ["100", "110", "111", "111", "111"], id="neither"),
        pytest.param(5, 3, (3, 1), ["000", "100", "110", "111", "111"], id="left reaches seqlen_k"),
        pytest.param(7, 2, (1, -1), ["11"] * 7, id="no bound to the right, many queries"),
        pytest.param(7, 2, (0, -1), ["11"] * 6 + ["01"], id="no bound to the right"),
        pytest.param(3, 3, (-2, -7), ["111"] * 3, id="below -1 on both sides"),
        pytest.param(3, 3, (-2, 0), ["100", "110", "111"], id="below -1 to the left"),
        pytest.param(3, 3, (0, -5), ["111", "011", "001"], id="below -1 to the right"),
        pytest.param(3, 3, (2**40, 10**30), ["111"] * 3, id="beyond 32 bits"),
    ],
)
def test_windows(seqlen_q: int, seqlen_k: int, window: tuple[int, int], seen: list[str]) -> None:
    q, k = draw(1, seqlen_q, 1, 8) * 0, draw(1, seqlen_k, 1, 8)
    v = numpy.eye(seqlen_k, dtype=numpy.float32)[None, :, None, :]
    assert seen_by(aiter_attn.flash_attn_func(q, k, v, window_size=window)) == seen

    starts_q, starts_k = (numpy.array([0, n], numpy.int32) for n in (seqlen_q, seqlen_k))
    out = aiter_attn.flash_attn_varlen_func(
        q[0], k[0], v[0], starts_q, starts_k, seqlen_q, seqlen_k, window_size=window
    )
    assert seen_by(out[None]) == seen


# "    causal=True, 2 queries, 5 keys", and a line for each query.
_DRAWN = re.compile(
    r"^    ((?:\w+=.*?, )+)(\d+) queries, (\d+) keys\n((?:    [01 ]+\n)+)", re.MULTILINE
)


def drawn_masks() -> list[tuple[str, str, str, str]]:
    """The masks that the page draws: arguments, queries, keys, rows."""
    return _DRAWN.findall(Path("docs/semantics.md").read_text(encoding="utf-8"))


def test_the_page_draws_masks() -> None:
    assert len(drawn_masks()) == 5


@pytest.mark.parametrize(("arguments", "queries", "keys", "rows"), drawn_masks())
def test_masks_are_as_they_are_drawn(arguments: str, queries: str, keys: str, rows: str) -> None:
    options = ast.literal_eval(re.sub(r"(\w+)=", r"'\1': ", f"{{{arguments}}}"))
    q, k = draw(1, int(queries), 1, 8) * 0, draw(1, int(keys), 1, 8)
    v = numpy.eye(int(keys), dtype=numpy.float32)[None, :, None, :]
    seen = seen_by(aiter_attn.flash_attn_func(q, k, v, **options))
    assert seen == [row.replace(" ", "") for row in rows.splitlines()]


LENGTHS = [(5, 3), (3, 5), (7, 2), (4, 4), (2, 6)]
WINDOWS = list(itertools.product((-1, 0, 1, 2, 3, 5, 7), repeat=2))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_all_windows_forward_and_backward(lengths: tuple[int, int], causal: bool) -> None:
    seqlen_q, seqlen_k = lengths
    q, dout = draw(1, seqlen_q, 2, 8, seed=1), draw(1, seqlen_q, 2, 8, seed=2)
    k, v = draw(1, seqlen_k, 2, 8, seed=3), draw(1, seqlen_k, 2, 8, seed=4)
    for window in WINDOWS:
        mask: dict[str, Any] = {"causal": causal, "window_size": window}
        out, lse = aiter_attn.mha_fwd(q, k, v, **mask)
        gradients = aiter_attn.mha_bwd(dout, q, k, v, out, lse, **mask)
        want = selftest.reference(
            numpy,
            *(x[0].astype(numpy.float64) for x in (q, k, v, dout, out)),
            causal=False,
            window=flash_attns(window, causal, seqlen_k),
        )
        # Where a row sees one key its gradient is 0, computed by sums that cancel: no ulp.
        for got, exact in zip((out, lse, *gradients), want, strict=True):
            numpy.testing.assert_allclose(got[0], exact, 1e-5, 1e-6, err_msg=str(window))


def test_varlen_windows_have_no_bound_from_the_greatest_length_on() -> None:
    """flash-attn compares with max_seqlen_k, as it knows no single length."""
    lengths_q, lengths_k = [6, 2], [2, 4]
    starts_q, starts_k = (
        numpy.cumsum([0, *lengths]).astype(numpy.int32) for lengths in (lengths_q, lengths_k)
    )
    q, k, v = draw(8, 1, 8, seed=1), draw(6, 1, 8, seed=2), draw(6, 1, 8, seed=3)
    for right in (2, 3, 4, 9):
        out = aiter_attn.flash_attn_varlen_func(
            q, k, v, starts_q, starts_k, 6, 4, window_size=(-1, right)
        )
        for i in range(2):
            rows = slice(starts_q[i], starts_q[i + 1])
            keys = slice(starts_k[i], starts_k[i + 1])
            exact = selftest.reference(
                numpy,
                *(x.astype(numpy.float64) for x in (q[rows], k[keys], v[keys], q[rows])),
                None,
                causal=False,
                window=flash_attns((-1, right), False, 4),
            )[0]
            assert selftest.ulp_error(numpy, out[rows], exact, "float32") <= 8.0


def test_explained_windows_are_those_of_the_call() -> None:
    shapes = [(1, 50, 2, 64), (1, 40, 2, 64), (1, 40, 2, 64)]
    told = [
        aiter_attn.explain(*shapes, dtype="float16", arch="gfx942", causal=True, window_size=window)
        for window in ((-1, -1), (40, 40), (-3, 7))
    ]
    assert told[0] == told[1] == told[2]


def test_a_scale_below_zero_is_that_of_minus_q() -> None:
    q, k, v = (draw(1, 6, 2, 8, seed=i) for i in range(3))
    with pytest.raises(ValueError, match=r"^softmax_scale: -0\.5; .*below 0 pass -q$"):
        aiter_attn.flash_attn_func(q, k, v, softmax_scale=-0.5)
    out = aiter_attn.flash_attn_func(-q, k, v, softmax_scale=0.5, causal=True)
    exact = selftest.reference(
        numpy,
        *(x[0].astype(numpy.float64) for x in (q * (-0.5 * 8**0.5), k, v, v)),
        None,
        causal=True,
        window=(-1, -1),
    )[0]
    assert selftest.ulp_error(numpy, out[0], exact, "float32") <= 8.0


def test_tokens_behind_the_last_sequence_are_refused_where_they_can_be_seen() -> None:
    starts = numpy.array([0, 2, 5], numpy.int32)
    q = draw(7, 1, 8)
    with pytest.raises(ValueError, match=r"^cu_seqlens_q\[2\] is 5, but must equal total_q, 7"):
        aiter_attn.flash_attn_varlen_func(q, q[:5], q[:5], starts, starts, 4, 4)
    out = aiter_attn.flash_attn_varlen_func(q[:5], q[:5], q[:5], starts, starts, 4, 4)
    assert out.shape == (5, 1, 8)


def test_the_lse_of_a_row_without_keys_is_minus_infinity() -> None:
    q, k = draw(1, 4, 1, 8), draw(1, 2, 1, 8)
    _, lse = aiter_attn.mha_fwd(q, k, k, causal=True)
    assert numpy.isneginf(lse[0, 0]).tolist() == [True, True, False, False]


def test_a_batch_of_none() -> None:
    q = draw(0, 4, 2, 8)
    assert aiter_attn.flash_attn_func(q, q, q).shape == (0, 4, 2, 8)


@pytest.mark.parametrize(("p", "stays", "sum_of_weights"), [(0.9, 26, 1.016), (0.999, 1, 3.9)])
def test_a_byte_decides_which_weights_stay(p: float, stays: int, sum_of_weights: float) -> None:
    """(floor(255 (1 - p)) + 1) / 256 of them, divided by 1 - p, so that their sum is not 1."""
    assert stays == math.floor(255 * (1 - p)) + 1
    q = numpy.zeros((1, 512, 16, 8), numpy.float32)
    ones = numpy.ones_like(q)
    out, _, kept = aiter_attn.flash_attn_func(
        q, q, ones, dropout_p=p, rng_state=(1, 2), return_attn_probs=True
    )
    share = stays / 256
    deviation = math.sqrt(share * (1 - share) / kept.size)
    assert abs(kept.mean() - share) < 5 * deviation
    assert out.mean() == pytest.approx(kept.mean() / (1 - p), rel=1e-4)
    assert out.mean() == pytest.approx(sum_of_weights, rel=max(0.003, 5 * deviation / share))
