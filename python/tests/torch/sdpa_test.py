# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""torch's scaled_dot_product_attention by the operators here, against torch's own in float64."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import aiter_attn
import aiter_attn.torch
import pytest
import torch
from aiter_attn.torch import scaled_dot_product_attention, sdpa
from torch.nn import functional
from torch.nn.attention.bias import causal_lower_right, causal_upper_left

from python.tests.torch.reference import check_gradients, draw

# query, key, value.
SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    "usual": ((2, 4, 5, 16), (2, 4, 7, 16), (2, 4, 7, 24)),
    "more queries": ((2, 2, 9, 8), (2, 2, 4, 8), (2, 2, 4, 8)),
    "square": ((1, 2, 6, 8), (1, 2, 6, 8), (1, 2, 6, 8)),
    "no heads": ((3, 5, 16), (3, 7, 16), (3, 7, 16)),
    "no batch": ((5, 16), (7, 16), (7, 16)),
    "two dimensions of batch": ((2, 3, 2, 5, 8), (2, 3, 2, 7, 8), (2, 3, 2, 7, 8)),
    "keys of all": ((2, 3, 4, 5, 8), (3, 1, 7, 8), (1, 3, 1, 7, 8)),
}


def inputs(name: str) -> list[torch.Tensor]:
    return [draw(*shape, seed=i) for i, shape in enumerate(SHAPES[name])]


def scores(name: str) -> tuple[int, ...]:
    q, k, _ = SHAPES[name]
    return (*q[:-1], k[-2])


def ours(*arrays: Any, **options: Any) -> Any:
    return scaled_dot_product_attention(*arrays, **options)


def theirs(*arrays: Any, **options: Any) -> Any:
    return functional.scaled_dot_product_attention(*(x.double() for x in arrays), **options)


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"scale": 0.5}], ids=str)
@pytest.mark.parametrize("name", SHAPES)
def test_numbers_and_gradients(name: str, options: dict[str, Any]) -> None:
    check_gradients(lambda *x: ours(*x, **options), lambda *x: theirs(*x, **options), inputs(name))


def is_seen(*shape: int) -> torch.Tensor:
    """With at least one key for each query, as torch 2.6 gives NaN for those without."""
    seen = draw(*shape, seed=5).detach() > 0
    seen[..., 0] = True
    return seen


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("narrow", [(), (-2,), (-1,), (-3,), (0,)], ids=str)
def test_masks(name: str, narrow: tuple[int, ...]) -> None:
    """Of numbers, with their gradient, and bool; of dimensions that broadcast, and that lack."""
    shape = list(scores(name))
    for axis in narrow:
        if axis == 0 or len(shape) >= -axis + 1:
            shape[axis] = 1
    added, seen = draw(*shape, seed=6), is_seen(*shape)
    arrays = inputs(name)
    check_gradients(
        lambda *x: ours(*x[:3], x[3]),
        lambda *x: theirs(*x[:3], attn_mask=x[3].double()),
        [*arrays, added],
    )
    if shape[0] == 1 and len(shape) > 2:
        seen = seen[0]
    check_gradients(lambda *x: ours(*x, seen), lambda *x: theirs(*x, attn_mask=seen), arrays)


def test_a_query_that_sees_no_key() -> None:
    arrays = inputs("usual")
    mask = is_seen(5, 7)
    mask[2] = False
    out = ours(*arrays, mask)
    assert not out[:, :, 2].any()
    gradients = torch.autograd.grad(out.sum(), arrays)
    assert all(x.isfinite().all() for x in gradients)
    assert not gradients[0][:, :, 2].any()


def test_key_heads_that_query_heads_share() -> None:
    q, k, v = draw(2, 6, 5, 8), draw(2, 2, 7, 8), draw(2, 2, 7, 8, seed=1)
    check_gradients(
        lambda *x: ours(*x, enable_gqa=True),
        lambda q, k, v: theirs(q, *(x.repeat_interleave(3, 1) for x in (k, v))),
        [q, k, v],
    )


@pytest.mark.parametrize("lengths", [(5, 7), (6, 6)], ids=str)
@pytest.mark.parametrize("make", [causal_lower_right, causal_upper_left])
def test_biases_of_torch(make: Any, lengths: tuple[int, int]) -> None:
    seqlen_q, seqlen_k = lengths
    arrays = [draw(2, 2, n, 8, seed=i) for i, n in enumerate((seqlen_q, seqlen_k, seqlen_k))]
    bias = make(seqlen_q, seqlen_k)
    seen = bias._materialize()
    check_gradients(lambda *x: ours(*x, bias), lambda *x: theirs(*x, attn_mask=seen), arrays)


@pytest.mark.filterwarnings("ignore:Lower right causal bias")
def test_queries_ahead_of_the_first_key_see_none() -> None:
    arrays = [draw(2, 2, n, 8, seed=i) for i, n in enumerate((7, 5, 5))]
    out = ours(*arrays, causal_lower_right(7, 5))
    assert not out[:, :, :2].any()
    want = theirs(arrays[0][:, :, 2:], *arrays[1:], is_causal=True).float()
    torch.testing.assert_close(out[:, :, 2:], want, rtol=1e-5, atol=1e-5)


def test_dropout_follows_torchs_seed() -> None:
    """Weights of queries alike are alike, and values 1: a result is how many keys stay."""
    q, k, v = torch.zeros(2, 4, 64, 8), torch.zeros(2, 4, 32, 8), torch.ones(2, 4, 32, 1)
    torch.manual_seed(0)
    first = ours(q, k, v, dropout_p=0.25)
    torch.manual_seed(0)
    assert torch.equal(ours(q, k, v, None, 0.25), first)
    assert not torch.equal(ours(q, k, v, None, 0.25), first)
    torch.testing.assert_close(first.mean(), torch.tensor(1.0), rtol=0.05, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_dtypes_of_two_bytes(dtype: torch.dtype) -> None:
    arrays = [x.to(dtype) for x in inputs("usual")]
    mask = draw(5, 7).detach()
    out = ours(*arrays, mask)
    assert out.dtype == dtype
    want = theirs(*arrays, attn_mask=mask.to(dtype).double())
    torch.testing.assert_close(out.double(), want, rtol=2e-2, atol=2e-2)


def test_nothing_is_copied_that_need_not_be() -> None:
    """Projections are [batch, seqlen, heads, head size], of which modules pass a view."""
    q = draw(2, 5, 4, 16).detach()
    out = ours(*(q.transpose(1, 2),) * 3, is_causal=True)
    assert torch.equal(out.transpose(1, 2), aiter_attn.flash_attn_func(q, q, q, causal=True))
    assert out.transpose(1, 2).is_contiguous()


class Counted:
    """Counts the calls of the operator here."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        function = aiter_attn.torch._sdpa.mha_fwd

        def counted(*arguments: Any, **options: Any) -> Any:
            self.calls += 1
            return function(*arguments, **options)

        monkeypatch.setattr(aiter_attn.torch._sdpa, "mha_fwd", counted)


def test_within_sdpa_modules_of_torch_call_it(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(32, 4, batch_first=True)
    x, hidden = draw(2, 6, 32), ~is_seen(6, 6)
    results = []
    for context in (contextlib.nullcontext(), sdpa()):
        with context:
            out, _ = layer(x, x, x, attn_mask=hidden, need_weights=False)
        results.append((out, *torch.autograd.grad(out.square().sum(), [x, *layer.parameters()])))
    assert counted.calls == 1
    for got, want in zip(*results, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    layer(x, x, x, need_weights=False)
    assert counted.calls == 1, "the context is left"


def test_within_sdpa_a_bias_of_torch_comes_here(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    arrays = inputs("usual")
    with sdpa():
        out = functional.scaled_dot_product_attention(*arrays, causal_lower_right(5, 7))
        assert torch.equal(out, ours(*arrays, causal_lower_right(5, 7)))
    assert counted.calls == 2


def test_contexts_that_overlap() -> None:
    """As those of two threads do: torch's function is back where none is left."""
    before = functional.scaled_dot_product_attention
    first, second = sdpa(), sdpa()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert functional.scaled_dot_product_attention is scaled_dot_product_attention
    second.__exit__(None, None, None)
    assert functional.scaled_dot_product_attention is before


REFUSALS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "both": ({"attn_mask": torch.ones(5, 7), "is_causal": True}, ValueError, "attn_mask: given, "),
    "a mask": ({"attn_mask": torch.ones(5, 8)}, ValueError, "attn_mask: shape (5, 8); allowed: sh"),
    "a mask of more": ({"attn_mask": torch.ones(1, 2, 4, 5, 7)}, ValueError, "attn_mask: shape (1"),
    "a mask of integers": (
        {"attn_mask": torch.ones(5, 7, dtype=torch.int32)},
        TypeError,
        "attn_mask: dtype torch.int32; allowed: torch.bool, torch.float32",
    ),
    "a bias": (
        {"attn_mask": causal_lower_right(4, 7)},
        ValueError,
        "attn_mask: for 4 queries and 7 keys; allowed here: 5 and 7",
    ),
    "no tensor": ({"key": 3}, TypeError, "key: 3; allowed beside torch tensors"),
    "heads": ({"key": torch.ones(2, 2, 7, 16)}, ValueError, "value: 4 heads, but key has 2"),
    "shared heads": (
        {"key": torch.ones(2, 2, 7, 16), "value": torch.ones(2, 2, 7, 16)},
        ValueError,
        "key: 2 heads, but query has 4; allowed: as many, or 1; query heads share those of keys "
        "with enable_gqa=True",
    ),
    "heads that do not divide": (
        {
            "key": torch.ones(2, 3, 7, 16),
            "value": torch.ones(2, 3, 7, 16),
            "enable_gqa": True,
        },
        ValueError,
        "key: 3 heads",
    ),
    "batches": ({"key": torch.ones(3, 4, 7, 16)}, ValueError, "key, value: shapes (3, 4, 7, 16)"),
    "a vector": ({"query": torch.ones(16)}, ValueError, "query: shape (16,); allowed: [..., "),
    "doubles": (
        {name: torch.ones(2, 4, 7, 16).double() for name in ("query", "key", "value")},
        TypeError,
        "query: dtype float64",
    ),
    "head sizes": ({"key": torch.ones(2, 4, 7, 8)}, ValueError, "key: "),
    "scale": ({"scale": -1.0}, ValueError, "scale: -1.0"),
    "dropout": ({"dropout_p": 1.0}, ValueError, "dropout_p: 1.0"),
    "a flag": ({"is_causal": "yes"}, TypeError, "is_causal: 'yes'"),
    "another flag": ({"enable_gqa": None}, TypeError, "enable_gqa: None"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refused(name: str) -> None:
    changes, kind, message = REFUSALS[name]
    usual = dict(zip(("query", "key", "value"), (x.detach() for x in inputs("usual")), strict=True))
    with pytest.raises(kind, match="^" + re.escape(message)):
        scaled_dot_product_attention(**usual | changes)


def test_compiled() -> None:
    mask = is_seen(5, 7)

    def both(q: Any, k: Any, v: Any) -> Any:
        return ours(q, k, v, mask) + ours(q, k, v, is_causal=True)

    compiled = torch.compile(both, backend="aot_eager", fullgraph=True)
    check_gradients(
        compiled,
        lambda *x: theirs(*x, attn_mask=mask) + theirs(*x, is_causal=True),
        inputs("usual"),
    )
