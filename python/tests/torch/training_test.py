# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Features of training beside gradients: dropout, checkpoints, autocast, determinism."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import aiter_attn
import numpy
import pytest
import torch
from torch.utils.checkpoint import checkpoint

from python.tests.torch.reference import attention, draw


def inputs() -> list[torch.Tensor]:
    return [draw(2, 5, 4, 16), draw(2, 7, 2, 16), draw(2, 7, 2, 16, seed=1)]


def dropping(q: Any, k: Any, v: Any) -> Any:
    return aiter_attn.flash_attn_func(q, k, v, 0.4)


def test_dropout_follows_torchs_seed() -> None:
    given = inputs()
    torch.manual_seed(3)
    first, second = dropping(*given), dropping(*given)
    torch.manual_seed(3)
    assert torch.equal(dropping(*given), first)
    assert not torch.equal(first, second)
    assert torch.equal(dropping(*given), second)


@pytest.mark.parametrize("state", [(5, 6), (2**64 - 1, 2**63), torch.tensor([5, 6])])
def test_a_given_state_replays(state: Any) -> None:
    given = inputs()
    out, _, kept = aiter_attn.flash_attn_func(*given, 0.4, return_attn_probs=True, rng_state=state)
    assert kept.dtype == torch.uint8
    assert 0.3 < 1 - kept.double().mean() < 0.5
    want = attention(*given, kept=kept, dropout_p=0.4)
    torch.testing.assert_close(out.double(), want, atol=2e-5, rtol=2e-5)
    # The same weights as numpy's arrays are.
    pair = tuple(state.tolist()) if isinstance(state, torch.Tensor) else state
    arrays = [x.detach().numpy() for x in given]
    want = aiter_attn.flash_attn_func(*arrays, 0.4, rng_state=pair)
    numpy.testing.assert_array_equal(out.detach().numpy(), want)


def test_varlen_dropout() -> None:
    starts = torch.tensor([0, 2, 6], dtype=torch.int32)
    q = draw(6, 2, 16)
    out, _, kept = aiter_attn.flash_attn_varlen_func(
        q, q, q, starts, starts, 4, 4, 0.4, return_attn_probs=True
    )
    want = [
        attention(*[q[None, a:b]] * 3, kept=kept[None, :, a:b, : b - a], dropout_p=0.4)[0]
        for a, b in ((0, 2), (2, 6))
    ]
    torch.testing.assert_close(out.double(), torch.cat(want), atol=2e-5, rtol=2e-5)
    (got,) = torch.autograd.grad(out.sum(), q)
    (expected,) = torch.autograd.grad(torch.cat(want).sum(), q)
    torch.testing.assert_close(got, expected, atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_drops_the_same_weights_again(reentrant: bool) -> None:
    given = inputs()
    gradients = []
    for run in (dropping, lambda *x: checkpoint(dropping, *x, use_reentrant=reentrant)):
        torch.manual_seed(3)
        gradients.append(torch.autograd.grad(run(*given).sum(), given) if not reentrant else [])
        if reentrant:  # which has no torch.autograd.grad
            for x in given:
                x.grad = None
            run(*given).sum().backward()
            gradients[-1] = [x.grad.clone() for x in given]
    for got, want in zip(*gradients, strict=True):
        assert torch.equal(got, want)


def test_a_checkpoint_may_keep_what_attention_gave() -> None:
    """Selective checkpointing, which names operators."""
    if not hasattr(torch.utils.checkpoint, "CheckpointPolicy"):
        pytest.skip("torch 2.5 is the first with policies")
    from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

    def policy(_: Any, operator: Any, *__: Any, **___: Any) -> CheckpointPolicy:
        keep = operator is torch.ops.aiter_attn.mha_fwd.default
        return CheckpointPolicy.MUST_SAVE if keep else CheckpointPolicy.PREFER_RECOMPUTE

    given = inputs()
    out = checkpoint(
        lambda *x: aiter_attn.flash_attn_func(*x).sin(),
        *given,
        use_reentrant=False,
        context_fn=lambda: create_selective_checkpoint_contexts(policy),
    )
    want = torch.autograd.grad(attention(*given).sin().sum(), given)
    for got, expected in zip(torch.autograd.grad(out.sum(), given), want, strict=True):
        torch.testing.assert_close(got, expected, atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("traced", [False, True])
def test_autocast(traced: bool) -> None:
    function = aiter_attn.flash_attn_func
    if traced:
        torch.compiler.reset()
        function = torch.compile(function, fullgraph=True, backend="aot_eager")
    q, k, v = inputs()
    with torch.autocast("cpu", torch.bfloat16):
        out = function(q, k.bfloat16(), v)
    assert out.dtype == torch.bfloat16
    gradients = torch.autograd.grad(out.float().sum(), (q, k, v))
    want = torch.autograd.grad(attention(q, k, v).sum(), (q, k, v))
    for got, expected in zip(gradients, want, strict=True):
        assert got.dtype == torch.float32
        torch.testing.assert_close(got, expected, atol=0.05, rtol=0.05)


def test_autocast_leaves_float64() -> None:
    given = [x.double() for x in inputs()]
    with torch.autocast("cpu", torch.bfloat16), pytest.raises(TypeError, match=r"^q: .* float64"):
        aiter_attn.flash_attn_func(*given)


@pytest.fixture
def deterministic_algorithms() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def test_deterministic_algorithms(deterministic_algorithms: None) -> None:
    q, k, v = inputs()
    out = aiter_attn.flash_attn_func(q, k, v)
    # The backward pass is told: what it gets last.
    asked = out.grad_fn.numbers[-1]  # type: ignore[union-attr]
    assert asked is True
    torch.autograd.grad(out.sum(), q)


def test_a_model_trains() -> None:
    """Two layers of attention learn to copy the token before."""
    torch.manual_seed(0)
    width, heads = 32, 2

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = torch.nn.Linear(width, 3 * width)
            self.out = torch.nn.Linear(width, width)

        def forward(self, x: Any) -> Any:
            qkv = self.qkv(x).unflatten(2, (3, heads, width // heads))
            attended = aiter_attn.flash_attn_qkvpacked_func(qkv, causal=True, window_size=(2, 0))
            return x + self.out(attended.flatten(2))

    model = torch.nn.Sequential(
        torch.nn.Embedding(8, width), Layer(), Layer(), torch.nn.Linear(width, 8)
    )
    place = torch.nn.Parameter(torch.randn(12, width) * 0.5)
    optimiser = torch.optim.Adam([*model.parameters(), place], lr=1e-2)
    for _ in range(60):
        tokens = torch.randint(8, (16, 12))
        hidden = model[0](tokens) + place
        logits = model[1:](hidden)
        loss = torch.nn.functional.cross_entropy(
            logits[:, 1:].flatten(0, 1), tokens[:, :-1].flatten()
        )
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.5
