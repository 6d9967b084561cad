# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""aiter_attn.diffusers in a tiny random model, against diffusers' own native attention."""

from __future__ import annotations

import importlib
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import aiter_attn.diffusers
import diffusers
import pytest
import torch
from aiter_attn import UnsupportedError
from diffusers import FluxTransformer2DModel, PixArtTransformer2DModel
from diffusers.models.attention_dispatch import (
    AttentionBackendName,
    attention_backend,
    dispatch_attention_fn,
)

aiter_attn.diffusers.register()
# On a busy machine threads wait for each other, longer than these models take.
torch.set_num_threads(1)

_GENERATOR = torch.Generator().manual_seed(3)


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=_GENERATOR)


def flux() -> FluxTransformer2DModel:
    torch.manual_seed(0)
    return FluxTransformer2DModel(
        patch_size=1,
        in_channels=4,
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=32,
        pooled_projection_dim=32,
        axes_dims_rope=(4, 4, 8),
    )


FLUX_INPUTS = {
    "hidden_states": draw(2, 12, 4),
    "encoder_hidden_states": draw(2, 7, 32),
    "pooled_projections": draw(2, 32),
    "timestep": torch.tensor([1.0, 0.5]),
    "img_ids": draw(12, 3),
    "txt_ids": draw(7, 3),
}


def run(backend: str) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    model = flux()
    model.set_attention_backend(backend)
    out = model(**FLUX_INPUTS).sample
    out.square().sum().backward()
    return out, {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


def test_a_model_and_its_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    want, want_grads = run("native")
    calls = []
    ours = aiter_attn.diffusers.scaled_dot_product_attention
    monkeypatch.setattr(
        aiter_attn.diffusers,
        "scaled_dot_product_attention",
        lambda *args: calls.append(args) or ours(*args),
    )
    got, grads = run("aiter_attn")
    assert len(calls) == 2, "the double and the single block"
    torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)
    assert grads.keys() == want_grads.keys()
    for name, grad in grads.items():
        torch.testing.assert_close(grad, want_grads[name], atol=1e-4, rtol=1e-4, msg=name)


@pytest.mark.parametrize("kind", ["none", "padding", "bias", "causal"])
def test_calls(kind: str) -> None:
    q, k, v = draw(2, 9, 4, 16), draw(2, 9, 2, 16), draw(2, 9, 2, 24)
    padding = torch.ones(2, 1, 1, 9, dtype=torch.bool)
    padding[1, ..., 5:] = False
    options = {
        "none": {},
        "padding": {"attn_mask": padding},
        "bias": {"attn_mask": draw(2, 1, 9, 9)},
        "causal": {"is_causal": True, "scale": 0.3},
    }[kind]
    want = dispatch_attention_fn(q, k, v, enable_gqa=True, backend="native", **options)
    with attention_backend("aiter_attn"):
        got = dispatch_attention_fn(q, k, v, enable_gqa=True, **options)
    torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_dtypes_of_two_bytes(dtype: torch.dtype) -> None:
    """Both passes, against the native backend on the same numbers in float32."""
    arrays = [draw(2, 9, heads, 16).to(dtype) for heads in (4, 2, 2)]
    dout = draw(2, 9, 4, 16).to(dtype)
    found = []
    for backend, computed in (("native", torch.float32), ("aiter_attn", dtype)):
        leaves = [x.to(computed).requires_grad_() for x in arrays]
        out = dispatch_attention_fn(*leaves, enable_gqa=True, backend=backend)
        assert out.dtype == computed
        found.append([out, *torch.autograd.grad(out, leaves, dout.to(computed))])
    tolerance = 8 * torch.finfo(dtype).eps
    for want, got in zip(*found, strict=True):
        torch.testing.assert_close(got.float(), want, atol=tolerance, rtol=tolerance)


def test_the_log_sum_exp() -> None:
    q, k, v = (draw(2, 9, 4, 16) for _ in range(3))
    kwargs = {"return_lse": True}
    out, lse = dispatch_attention_fn(q, k, v, attention_kwargs=kwargs, backend="aiter_attn")
    scores = torch.einsum("bqhd,bkhd->bqhk", q, k).double() / 4
    torch.testing.assert_close(lse.double(), scores.logsumexp(-1), atol=1e-5, rtol=1e-5)
    want = dispatch_attention_fn(q, k, v, backend="native")
    torch.testing.assert_close(out, want, atol=1e-5, rtol=1e-5)
    with pytest.raises(UnsupportedError, match="return_lse: True, but attn_mask is given"):
        dispatch_attention_fn(
            q, k, v, attn_mask=draw(9, 9), attention_kwargs=kwargs, backend="aiter_attn"
        )
    with pytest.raises(UnsupportedError, match="query has 4 rows, key 9"):
        dispatch_attention_fn(
            q[:, :4], k, v, is_causal=True, attention_kwargs=kwargs, backend="aiter_attn"
        )


def test_a_model_whose_processors_come_from_elsewhere() -> None:
    """PixArt's call torch's attention, with a mask of padding: sdpa() serves them."""
    torch.manual_seed(0)
    model = PixArtTransformer2DModel(
        num_attention_heads=2,
        attention_head_dim=8,
        in_channels=4,
        out_channels=8,
        num_layers=1,
        cross_attention_dim=16,
        sample_size=8,
        patch_size=2,
        caption_channels=16,
        norm_type="ada_norm_single",
        norm_elementwise_affine=False,
        use_additional_conditions=False,
    ).eval()
    inputs = {
        "hidden_states": draw(1, 4, 8, 8),
        "encoder_hidden_states": draw(1, 5, 16),
        "encoder_attention_mask": torch.tensor([[1, 1, 1, 0, 0]]),
        "timestep": torch.tensor([1]),
        "added_cond_kwargs": {"resolution": None, "aspect_ratio": None},
    }
    with torch.no_grad():
        want = model(**inputs).sample
        with aiter_attn.torch.sdpa():
            got = model(**inputs).sample
    torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["native", "aiter_fa2_hub", "Aiter", "a b", ""])
def test_names_that_are_not_taken(name: str) -> None:
    with pytest.raises(ValueError, match=f"name: '{name}'.*allowed"):
        aiter_attn.diffusers.register(name)


def test_a_second_registration_and_another_name() -> None:
    before = len(AttentionBackendName)
    aiter_attn.diffusers.register()
    assert len(AttentionBackendName) == before
    aiter_attn.diffusers.register("aiter_attn_2")
    assert AttentionBackendName("aiter_attn_2").value == "aiter_attn_2"
    q = draw(1, 3, 1, 8)
    want = dispatch_attention_fn(q, q, q, backend="native")
    got = dispatch_attention_fn(q, q, q, backend="aiter_attn_2")
    torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)


def test_context_parallelism_is_refused() -> None:
    q = draw(1, 3, 1, 8)
    with pytest.raises(UnsupportedError, match=r"parallel_config: given; .*native"):
        dispatch_attention_fn(q, q, q, backend="aiter_attn", parallel_config=object())


def test_a_diffusers_without_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diffusers, "__version__", "0.34.0")
    monkeypatch.setitem(sys.modules, "diffusers.models.attention_dispatch", None)
    with pytest.raises(
        ImportError, match=r"^diffusers 0\.34\.0 has no .*; allowed: 0\.35 or newer"
    ):
        importlib.reload(aiter_attn.diffusers)
