# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""aiter_attn.transformers in tiny random models, against transformers' own eager attention."""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import aiter_attn
import aiter_attn.transformers
import pytest
import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
    RobertaConfig,
    RobertaModel,
    StaticCache,
    XLMRobertaConfig,
    XLMRobertaModel,
)

aiter_attn.transformers.register()
# On a busy machine threads wait for each other, longer than these models take.
torch.set_num_threads(1)

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


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_training_in_dtypes_of_two_bytes(dtype: torch.dtype) -> None:
    """Gradients are as near to float32's of the same weights as those of eager attention."""
    exact, _ = models("llama")
    exact.load_state_dict({n: x.to(dtype).float() for n, x in exact.state_dict().items()})
    found = []
    for model in (exact, *(m.to(dtype) for m in models("llama"))):
        mask = mask_of("left")
        model.train()
        labels = _TOKENS.where(mask.bool(), -100)
        model(_TOKENS, attention_mask=mask, labels=labels).loss.backward()
        assert all(x.grad.dtype == x.dtype for x in model.parameters())
        found.append(torch.cat([x.grad.float().flatten() for x in model.parameters()]))
    want, eager, ours = found
    size = want.norm().item()
    assert (ours - want).norm().item() < 1.5 * (eager - want).norm().item()
    assert (ours - want).norm().item() < 8 * torch.finfo(dtype).eps * size


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("side", ["no", "left"])
@pytest.mark.parametrize("kind", _MODELS)
def test_generation(kind: str, side: str, cache: str) -> None:
    tokens = [
        model.generate(
            _TOKENS,
            attention_mask=mask_of(side),
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
    for how in ({}, told, {"use_cache": False}):
        got = ours(_TOKENS[:1], position_ids=positions, **how).logits
        torch.testing.assert_close(got, want, atol=1e-4, rtol=1e-4)


def test_packed_sequences_in_each_row() -> None:
    """transformers' masks say so where there is no cache; another boundary in each row."""
    eager, ours = models("mistral")
    ends = [(7, 11), (3, 11), (11,)]
    positions = torch.stack(
        [torch.cat([torch.arange(b - a) for a, b in zip((0, *e), e, strict=False)]) for e in ends]
    )
    want, got = (m(_TOKENS, position_ids=positions, use_cache=False).logits for m in (eager, ours))
    torch.testing.assert_close(got, want, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("config", "model"), [(RobertaConfig, RobertaModel), (XLMRobertaConfig, XLMRobertaModel)]
)
def test_packed_positions_that_begin_behind_0(config: Any, model: Any) -> None:
    """RoBERTa's begin at padding_idx + 1."""
    ours = model._from_config(config(**_SIZES), attn_implementation="aiter_attn").eval()
    ends = [(0, 4), (4, 11)]
    want = torch.cat([ours(_TOKENS[:1, a:b])[0] for a, b in ends], 1)
    positions = torch.cat([torch.arange(b - a) for a, b in ends])[None] + 1
    got = ours(_TOKENS[:1], position_ids=positions)[0]
    torch.testing.assert_close(got, want, atol=1e-4, rtol=1e-4)


def test_positions_that_are_no_packed_sequences() -> None:
    """Some begin with another than the least, others jump: one sequence, over a cache."""
    eager, ours = models("llama")
    for positions in ([3, 0, 1, 2, 3], [0, 1, 5, 0, 1], [0, 0, 2, 1, 0]):
        given = torch.tensor([positions])
        want, got = (m(_TOKENS[:1, :5], position_ids=given).logits for m in (eager, ours))
        torch.testing.assert_close(got, want, atol=1e-4, rtol=1e-4)


def test_a_static_cache_that_is_filled_in_parts() -> None:
    for kind in _MODELS:
        outputs = []
        for model in models(kind):
            cache = StaticCache(model.config, max_cache_len=32)
            parts = [(0, 3), (3, 9), (9, 10), (10, 11)]
            logits = [model(_TOKENS[:, a:b], past_key_values=cache).logits for a, b in parts]
            outputs.append(torch.cat(logits, 1))
        torch.testing.assert_close(outputs[1], outputs[0], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpoints(use_reentrant: bool) -> None:
    gradients = []
    for model in models("llama"):
        model.train()
        model.gradient_checkpointing_enable({"use_reentrant": use_reentrant})
        model(_TOKENS, attention_mask=mask_of("left"), labels=_TOKENS).loss.backward()
        gradients.append(model.model.layers[0].self_attn.v_proj.weight.grad)
    torch.testing.assert_close(gradients[1], gradients[0], atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("block_indices", "sparse attention"),
        ("cache", "a paged cache"),
        ("output_attentions", "attention weights"),
        ("position_bias", "biases by position"),
        ("sinks", "sinks by another name than s_aux"),
    ],
)
def test_arguments_that_are_not_there_are_refused_by_name(name: str, meaning: str) -> None:
    x = torch.zeros(1, 2, 3, 8)
    with pytest.raises(aiter_attn.UnsupportedError, match=f"^{name}: given, for {meaning}; .*eag"):
        aiter_attn.transformers.attention(SimpleNamespace(), x, x, x, None, **{name: x})


@pytest.mark.parametrize(
    ("shape", "error", "message"),
    [
        ((1, 1, 3, 3), aiter_attn.UnsupportedError, r"\(1, 1, 3, 3\), a mask of scores"),
        ((1, 4), ValueError, r"\(1, 4\); allowed: \[1, up to 3\] \[batch, keys\]"),
        ((2, 3), ValueError, r"\(2, 3\); allowed: \[1, up to 3\]"),
        ((3,), ValueError, r"\(3,\); allowed: \[1, up to 3\]"),
    ],
)
def test_masks_of_other_shapes(
    shape: tuple[int, ...], error: type[Exception], message: str
) -> None:
    x = torch.zeros(1, 2, 3, 8)
    with pytest.raises(error, match=r"^attention_mask: shape " + message):
        aiter_attn.transformers.attention(SimpleNamespace(), x, x, x, torch.ones(shape))


def test_a_sink_of_another_shape_is_refused_by_its_name() -> None:
    x = torch.zeros(1, 2, 3, 8)
    with pytest.raises(ValueError, match=r"^s_aux: shape \(3,\); allowed here: \(2,\) \[heads"):
        aiter_attn.transformers.attention(
            SimpleNamespace(), x, x, x, None, s_aux=torch.zeros(3, dtype=torch.bfloat16)
        )


def test_a_mask_of_scores_is_refused() -> None:
    scores = torch.zeros(3, 1, 11, 11)
    with pytest.raises(aiter_attn.UnsupportedError, match=r"^attention_mask: shape .*a mask of"):
        models("llama")[1](_TOKENS, attention_mask=scores)


def test_padding_between_tokens() -> None:
    """Served, but for a window, which counts it."""
    mask = torch.ones_like(_TOKENS)
    mask[1, 3:5] = 0
    want, got = (m(_TOKENS, attention_mask=mask).logits[mask.bool()] for m in models("llama"))
    torch.testing.assert_close(got, want, atol=1e-4, rtol=1e-4)
    with pytest.raises(aiter_attn.UnsupportedError, match=r"^attention_mask: padding between"):
        models("mistral")[1](_TOKENS, attention_mask=mask)


def test_a_mask_that_a_model_reads_is_refused() -> None:
    mask = aiter_attn.transformers.mask(2, 3, 3)
    assert mask.shape == (2, 3) and mask.to(torch.bool).pattern.causal
    for read in (lambda: mask + 1, lambda: mask.all(), lambda: mask[:, None], lambda: mask.view(6)):
        with pytest.raises(aiter_attn.UnsupportedError, match="reads its attention mask itself"):
            read()


def test_a_name_of_flash_attn_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^name: 'my_flash'; allowed: a name without"):
        aiter_attn.transformers.register("my_flash")


def test_a_second_registration_changes_nothing() -> None:
    check = PreTrainedModel.get_correct_attn_implementation
    aiter_attn.transformers.register()
    assert PreTrainedModel.get_correct_attn_implementation is check


@pytest.mark.parametrize("missing", ["AttentionInterface", "masking_utils"])
def test_a_transformers_without_the_interfaces(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = ModuleType("transformers")
    older.__version__ = "4.40.0"
    if missing == "masking_utils":
        older.AttentionInterface = older.PreTrainedModel = object
    for name in [name for name in sys.modules if name.startswith("aiter_attn.transformers")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "transformers", older)
    monkeypatch.setitem(sys.modules, "transformers.masking_utils", None)
    with pytest.raises(ImportError, match=r"^transformers 4\.40\.0 has no .*; allowed: .*; pip "):
        importlib.import_module("aiter_attn.transformers")
