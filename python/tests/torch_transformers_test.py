# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""aiter_attn.transformers in tiny random models, against transformers' own eager attention."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import aiter_attn
import aiter_attn.transformers
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

aiter_attn.transformers.register()

_SIZES = {
    "vocab_size": 97,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": None,
}
# Grouped heads; and a window that is shorter than the sequences.
_MODELS = {
    "llama": (LlamaForCausalLM, LlamaConfig(**_SIZES)),
    "mistral": (MistralForCausalLM, MistralConfig(**_SIZES, sliding_window=5)),
}
_TOKENS = torch.randint(2, 97, (3, 11), generator=torch.Generator().manual_seed(1))


def models(kind: str) -> list[Any]:
    """Of the same weights, with eager attention and with this package's."""
    kind_of_model, config = _MODELS[kind]
    torch.manual_seed(0)
    made = [
        kind_of_model._from_config(config, attn_implementation=name).eval()
        for name in ("eager", "aiter_attn")
    ]
    made[1].load_state_dict(made[0].state_dict())
    return made


def mask_of(side: str) -> torch.Tensor:
    mask = torch.ones_like(_TOKENS)
    if side == "left":
        mask[0, :4] = mask[2, :7] = 0
    if side == "right":
        mask[0, 7:] = mask[2, 3:] = 0
    return mask


@pytest.mark.parametrize("kind", _MODELS)
@pytest.mark.parametrize("side", ["no", "left", "right"])
def test_padded_batches(kind: str, side: str) -> None:
    mask = mask_of(side)
    want, got = (m(_TOKENS, attention_mask=mask).logits[mask.bool()] for m in models(kind))
    torch.testing.assert_close(got, want, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("side", ["no", "left"])
def test_training(side: str) -> None:
    pair = models("llama")
    mask = mask_of(side)
    for model in pair:
        model.train()
        labels = _TOKENS.where(mask.bool(), -100)
        model(_TOKENS, attention_mask=mask, labels=labels).loss.backward()
    for want, got in zip(*(m.parameters() for m in pair), strict=True):
        torch.testing.assert_close(got.grad, want.grad, atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("kind", _MODELS)
def test_generation(kind: str, cache: str) -> None:
    tokens = [
        model.generate(
            _TOKENS,
            attention_mask=mask_of("left"),
            max_new_tokens=9,
            do_sample=False,
            cache_implementation=cache,
            disable_compile=True,
        ).tolist()
        for model in models(kind)
    ]
    assert tokens[1] == tokens[0]


def test_packed_sequences() -> None:
    eager, ours = models("llama")
    ends = [(0, 4), (4, 7), (7, 11)]
    want = torch.cat([eager(_TOKENS[:1, a:b]).logits for a, b in ends], 1)
    positions = torch.cat([torch.arange(b - a) for a, b in ends])[None]
    starts = torch.tensor([0, 4, 7, 11], dtype=torch.int32)
    told = {"cu_seq_lens_q": starts, "cu_seq_lens_k": starts, "max_length_q": 4, "max_length_k": 4}
    for how in ({}, told):
        got = ours(_TOKENS[:1], position_ids=positions, **how).logits
        torch.testing.assert_close(got, want, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", ["output_attentions", "position_bias", "s_aux", "cache"])
def test_what_is_not_there_is_refused_by_name(name: str) -> None:
    x = torch.zeros(1, 2, 3, 8)
    with pytest.raises(aiter_attn.UnsupportedError, match=f"^{name}: given"):
        aiter_attn.transformers.attention(SimpleNamespace(), x, x, x, None, **{name: x})
