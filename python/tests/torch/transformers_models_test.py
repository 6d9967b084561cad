# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Families of transformers' models, tiny and random: as eager attention, or refused by name.

docs/transformers.md has the table of them; a test compares it with this file's.
"""

from __future__ import annotations

import copy
import os
import re
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import aiter_attn
import aiter_attn.transformers
import pytest
import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
)

aiter_attn.transformers.register()
# On a busy machine threads wait for each other, longer than these models take.
torch.set_num_threads(1)

_TOKENS = torch.randint(2, 96, (3, 11), generator=torch.Generator().manual_seed(1))
_IMAGE = 96
_WORDS = {"vocab_size": 97, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None}
_SIZES = _WORDS | {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
}
_HEADS = {"head_dim": 16}
_LAYERS = _HEADS | {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 5}
_EXPERTS = {
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 64,
}
_GPT = {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 128, "n_inner": 128}
_LATENT = _EXPERTS | {
    "n_group": 1,
    "topk_group": 1,
    "first_k_dense_replace": 1,
    "kv_lora_rank": 16,
    "q_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 16,
    "num_key_value_heads": 4,
    "head_dim": 8,
}
_BART = _WORDS | {
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128,
    "max_position_embeddings": 128,
    "decoder_start_token_id": 2,
    "forced_eos_token_id": None,
}
_IMAGES = {
    "text_config": _SIZES | _LAYERS,
    "vision_config": {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "image_size": 28,
        "patch_size": 14,
        "projection_dim": 64,
    },
    "projection_dim": 64,
    "hidden_size": 64,
    "vocab_size": 97,
    "image_token_index": _IMAGE,
    "image_token_id": _IMAGE,
    "mm_tokens_per_image": 4,
}

# Entries of a model type's configuration beside the sizes.
_DECODERS: dict[str, dict[str, Any]] = {
    "bert": {"is_decoder": True},
    "biogpt": {},
    "cohere": {},
    "cohere2": _LAYERS,
    "deepseek_v3": _LATENT,
    "exaone4": _LAYERS,
    "gemma": _HEADS,
    "gemma2": _LAYERS,
    "gemma3_text": _LAYERS,
    "glm4": _HEADS,
    "gpt2": _GPT | {"scale_attn_by_inverse_layer_idx": True},
    "gpt_bigcode": _GPT,
    "gpt_oss": _EXPERTS | _LAYERS,
    "gpt_neox": {},
    "granite": {},
    "llama": {},
    "mistral": {"sliding_window": 5},
    "mixtral": _EXPERTS,
    "modernbert-decoder": _LAYERS | {"local_attention": 8},
    "nemotron": {},
    "olmo": {},
    "olmo2": {},
    "opt": {"ffn_dim": 128, "word_embed_proj_dim": 64},
    "phi": {},
    "phi3": {"sliding_window": 5},
    "qwen2": {"use_sliding_window": True, "max_window_layers": 1, "sliding_window": 5},
    "qwen3": _HEADS,
    "qwen3_moe": _EXPERTS | _HEADS,
    "roberta": {"is_decoder": True},
    "smollm3": {},
    "stablelm": {},
    "starcoder2": {"sliding_window": 5},
}
_ENCODERS: dict[str, dict[str, Any]] = {
    "albert": {"embedding_size": 64},
    "bert": {},
    "camembert": {},
    "distilbert": {"dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128},
    "electra": {"embedding_size": 64},
    "ernie": {},
    "esm": {"mask_token_id": 3},
    "modernbert": {"local_attention": 8},
    "roberta": {},
    "xlm-roberta": {},
    "xlm-roberta-xl": {},
}
_OF_BOTH: dict[str, dict[str, Any]] = {
    name: _BART
    for name in (
        "bart",
        "blenderbot",
        "blenderbot-small",
        "m2m_100",
        "marian",
        "mbart",
        "pegasus",
        "plbart",
    )
}
_WITH_IMAGES = {
    "gemma3": _IMAGES,
    "paligemma": _IMAGES | {"text_config": _SIZES | _HEADS | {"model_type": "gemma"}},
}
# By what the error says.
_REFUSED: dict[str, dict[str, tuple[Any, dict[str, Any]]]] = {
    "computes attention itself": {
        "bloom": (AutoModelForCausalLM, {"n_layer": 2, "n_head": 4}),
        "codegen": (AutoModelForCausalLM, _GPT | {"rotary_dim": 8}),
        "deberta-v2": (AutoModelForMaskedLM, {}),
        "falcon": (AutoModelForCausalLM, {}),
        "gpt_neo": (
            AutoModelForCausalLM,
            {"num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]]},
        ),
        "gptj": (AutoModelForCausalLM, _GPT | {"rotary_dim": 8}),
        "led": (AutoModelForSeq2SeqLM, _BART),
        "megatron-bert": (AutoModelForMaskedLM, {}),
        "mpnet": (AutoModelForMaskedLM, {}),
        "mpt": (AutoModelForCausalLM, {"d_model": 64, "n_heads": 4, "n_layers": 2}),
        "mvp": (AutoModelForSeq2SeqLM, _BART),
        "rembert": (AutoModelForCausalLM, {}),
        "xglm": (
            AutoModelForCausalLM,
            {"d_model": 64, "ffn_dim": 128, "num_layers": 2, "attention_heads": 4},
        ),
    },
    "reads its attention mask itself": {
        "bigbird_pegasus": (AutoModelForSeq2SeqLM, _BART | {"attention_type": "original_full"}),
        "doge": (AutoModelForCausalLM, {}),
    },
    "attention_chunk_size: 5": {
        "llama4_text": (
            AutoModelForCausalLM,
            _EXPERTS | _HEADS | {"attention_chunk_size": 5, "intermediate_size_mlp": 128},
        ),
    },
    "position_bias: given, for biases by position": {
        "t5": (
            AutoModelForSeq2SeqLM,
            _WORDS
            | {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4}
            | {"decoder_start_token_id": 0},
        ),
    },
}


def pair(factory: Any, model_type: str, sizes: dict[str, Any]) -> list[Any]:
    """Of the same weights, with eager attention and with this package's."""
    config = AutoConfig.for_model(model_type, **sizes)
    made = []
    for name in ("eager", "aiter_attn"):
        torch.manual_seed(0)
        # A model changes the configuration that it is given.
        made.append(factory.from_config(copy.deepcopy(config), attn_implementation=name).eval())
    made[1].load_state_dict(made[0].state_dict())
    return made


def mask_of(side: str) -> torch.Tensor:
    mask = torch.ones_like(_TOKENS)
    if side == "left":
        mask[0, :4] = mask[2, :7] = 0
    if side == "right":
        mask[0, 7:] = mask[2, 3:] = 0
    return mask


def check_forward(models: list[Any], side: str, **inputs: Any) -> None:
    mask = mask_of(side)
    counts = torch.ones_like(inputs["decoder_input_ids"]) if inputs else mask
    want, got = (
        m(input_ids=_TOKENS, attention_mask=mask, **inputs).logits[counts.bool()] for m in models
    )
    torch.testing.assert_close(got, want, atol=1e-4, rtol=1e-4)


def check_generation(models: list[Any], side: str) -> None:
    for cache in ("dynamic", "static"):
        want, got = (
            model.generate(
                _TOKENS,
                attention_mask=mask_of(side),
                max_new_tokens=9,
                do_sample=False,
                cache_implementation=cache,
                disable_compile=True,
            ).tolist()
            for model in models
        )
        assert got == want, cache


@pytest.mark.parametrize("model_type", _DECODERS)
@torch.no_grad()
def test_decoders(model_type: str) -> None:
    models = pair(AutoModelForCausalLM, model_type, _SIZES | _DECODERS[model_type])
    for side in ("no", "left", "right"):
        check_forward(models, side)
    for side in ("no", "left"):
        check_generation(models, side)


@pytest.mark.parametrize("model_type", _ENCODERS)
@torch.no_grad()
def test_encoders(model_type: str) -> None:
    models = pair(AutoModelForMaskedLM, model_type, _SIZES | _ENCODERS[model_type])
    for side in ("no", "left", "right"):
        check_forward(models, side)


@pytest.mark.parametrize("model_type", _OF_BOTH)
@torch.no_grad()
def test_cross_attention(model_type: str) -> None:
    """Over an encoder's padded end, by fewer queries than keys, as many and more."""
    models = pair(AutoModelForSeq2SeqLM, model_type, _OF_BOTH[model_type])
    for side in ("no", "left", "right"):
        for seqlen in (1, 6, 11, 14):
            check_forward(models, side, decoder_input_ids=_TOKENS.repeat(1, 2)[:, :seqlen])
        check_generation(models, side)


@pytest.mark.parametrize("model_type", _WITH_IMAGES)
@torch.no_grad()
def test_images_are_refused_and_text_is_served(model_type: str) -> None:
    models = pair(AutoModelForImageTextToText, model_type, _WITH_IMAGES[model_type])
    check_forward(models, "left")
    tokens = torch.tensor([[2, _IMAGE, _IMAGE, _IMAGE, _IMAGE, 5, 6]])
    given = {"token_type_ids": (tokens == _IMAGE).long(), "pixel_values": torch.zeros(1, 3, 28, 28)}
    with pytest.raises(aiter_attn.UnsupportedError, match=r"^mask_function: .*images, a prefix"):
        models[1](input_ids=tokens, **given)


@pytest.mark.parametrize(
    ("reason", "model_type"), [(why, name) for why, names in _REFUSED.items() for name in names]
)
@torch.no_grad()
def test_refused_models(reason: str, model_type: str) -> None:
    factory, sizes = _REFUSED[reason][model_type]
    config = AutoConfig.for_model(
        model_type, **(sizes if factory is AutoModelForSeq2SeqLM else _SIZES | sizes)
    )
    inputs: dict[str, Any] = {"input_ids": _TOKENS}
    if factory is AutoModelForSeq2SeqLM:
        inputs["decoder_input_ids"] = _TOKENS
    with pytest.raises(aiter_attn.UnsupportedError, match=reason) as error:
        factory.from_config(config, attn_implementation="aiter_attn").eval()(**inputs)
    assert 'attn_implementation="eager"' in str(error.value)


@torch.no_grad()
def test_one_chunk_is_served() -> None:
    _, sizes = _REFUSED["attention_chunk_size: 5"]["llama4_text"]
    check_forward(
        pair(AutoModelForCausalLM, "llama4_text", _SIZES | sizes | {"attention_chunk_size": 11}),
        "left",
    )


def test_the_documents_table() -> None:
    rows = dict(
        re.findall(
            r"^\| ([^|]+) \| ((?:`[\w-]+`(?:, )?)+) \|$",
            Path("docs/transformers.md").read_text(),
            re.M,
        )
    )
    assert {about: set(re.findall(r"`([\w-]+)`", names)) for about, names in rows.items()} == {
        "decoders": set(_DECODERS),
        "encoders": set(_ENCODERS),
        "encoders with decoders": set(_OF_BOTH),
        "with images; served for text alone": set(_WITH_IMAGES),
        "refused: computes attention itself": set(_REFUSED["computes attention itself"]),
        "refused: reads its mask itself": set(_REFUSED["reads its attention mask itself"]),
        "refused: longer than one chunk": set(_REFUSED["attention_chunk_size: 5"]),
        "refused: biases by position": set(
            _REFUSED["position_bias: given, for biases by position"]
        ),
    }
