# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""seqused_q and seqused_k of torch tensors: gradients against float64, and compiled code."""

from __future__ import annotations

from typing import Any

import aiter_attn
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from python.tests.torch.reference import attention, draw


def integers(*numbers: int) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.int32)


STARTS_Q, STARTS_K = integers(0, 5, 8, 12), integers(0, 7, 11, 20)
USED_Q, USED_K = integers(3, 0, 4), integers(4, 2, 9)
SLOPES = draw(3, 4, seed=3).detach().abs()
OPTIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "causal": ({"causal": True}, {"causal": True}),
    "window": ({"window_size": (2, 1)}, {"window": (2, 1)}),
    "alibi": ({"alibi_slopes": SLOPES}, {"slopes": SLOPES}),
    "softcap": ({"softcap": 1.5}, {"softcap": 1.5}),
    "dropout": ({"dropout_p": 0.25, "rng_state": (3, 4)}, {"dropout_p": 0.25}),
}


def inputs() -> list[torch.Tensor]:
    return [draw(12, 4, 16), draw(20, 2, 16), draw(20, 2, 8, seed=1), draw(12, 4, 8, seed=2)]


def is_used(starts: torch.Tensor, used: torch.Tensor) -> torch.Tensor:
    rows = torch.arange(int(starts[-1]))[:, None]
    return ((rows >= starts[:-1]) & (rows < starts[:-1] + used)).any(1)


def attend(q: Any, k: Any, v: Any, **options: Any) -> Any:
    return aiter_attn.flash_attn_varlen_func(
        q, k, v, STARTS_Q, STARTS_K, 5, 9, seqused_q=USED_Q, seqused_k=USED_K, **options
    )


@pytest.mark.parametrize("name", OPTIONS)
def test_gradients(name: str) -> None:
    """Rows that are not used hold NaN, in the gradient of out, too; their gradients are 0."""
    given, of_reference = OPTIONS[name]
    q, k, v, dout = (x.detach() for x in inputs())
    used_q, used_k = is_used(STARTS_Q, USED_Q), is_used(STARTS_K, USED_K)
    poisoned = [
        x.masked_fill(~used[:, None, None], torch.nan)
        for x, used in ((q, used_q), (k, used_k), (v, used_k), (dout, used_q))
    ]
    leaves = [x.requires_grad_() for x in poisoned[:3]]
    out, _, probs = attend(*leaves, return_attn_probs=True, **given)
    got = torch.autograd.grad(out, leaves, poisoned[3])
    exact = [x.double().requires_grad_() for x in (q, k, v)]
    total = torch.zeros((), dtype=torch.float64)
    for b, (n, m) in enumerate(zip(USED_Q.tolist(), USED_K.tolist(), strict=True)):
        rows, keys = (slice(int(s[b]), int(s[b]) + x) for s, x in ((STARTS_Q, n), (STARTS_K, m)))
        options = dict(of_reference)
        if "slopes" in options:
            options["slopes"] = options["slopes"][b]
        if name == "dropout":
            options["kept"] = probs[None, :, rows, :m].double()
        one = attention(
            *(x[None, y] for x, y in zip(exact, (rows, keys, keys), strict=True)), **options
        )
        torch.testing.assert_close(out[rows].double(), one[0], rtol=1e-5, atol=1e-5)
        total = total + (one[0] * dout[rows]).sum()
    assert not out[~used_q].any()
    for gradient, want in zip(got, torch.autograd.grad(total, exact), strict=True):
        torch.testing.assert_close(gradient.double(), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled(dynamic: bool) -> None:
    q, k, v, dout = inputs()
    torch.compiler.reset()
    compiled = torch.compile(attend, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    results = []
    for function in (attend, compiled):
        out = function(q, k, v, causal=True, alibi_slopes=SLOPES)
        results.append((out, *torch.autograd.grad(out, (q, k, v), dout)))
    for got, want in zip(*results, strict=True):
        torch.testing.assert_close(got, want, rtol=0, atol=0)


def test_operator() -> None:
    torch.library.opcheck(
        torch.ops.aiter_attn.varlen_used.default,
        (STARTS_Q, STARTS_K, USED_Q, None, 5, 9, 12, 20),
    )


def test_refusals() -> None:
    q, k, v, _ = inputs()
    call = aiter_attn.flash_attn_varlen_func
    lengths = STARTS_Q, STARTS_K, 5, 9
    with pytest.raises(ValueError, match=r"^seqused_k\[1\]: 5; allowed here: 0 to 4, the length"):
        call(q, k, v, *lengths, seqused_k=integers(1, 5, 1))
    with pytest.raises(ValueError, match=r"^seqused_q: shape \(2,\); allowed here: \(3,\)"):
        call(q, k, v, *lengths, seqused_q=integers(1, 1))
    with pytest.raises(ValueError, match=r"^alibi_slopes: shape \(2, 4\); .* or \[3, heads_q\]"):
        call(q, k, v, *lengths, seqused_q=USED_Q, alibi_slopes=SLOPES[:2])
    with pytest.raises(
        TypeError, match=r"^seqused_q: \[1, 1, 1\]; allowed beside torch tensors: a"
    ):
        call(q, k, v, *lengths, seqused_q=[1, 1, 1])
    with pytest.raises(ValueError, match=r"^seqused_k: given beside block_table"):
        call(q, k, v, *lengths, seqused_k=USED_K, block_table=integers(1, 1))
    with (
        FakeTensorMode(),
        pytest.raises(aiter_attn.UnsupportedError, match=r"^seqused_q, seqused_k: given .* GPU"),
    ):
        on_gpu = [torch.empty(x.shape, device="cuda") for x in (q, k, v)]
        starts, used = (torch.empty(n, dtype=torch.int32, device="cuda") for n in (4, 3))
        call(*on_gpu, starts, starts, 5, 9, seqused_k=used)
