# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A tiny Llama of random weights learns to count, and then counts: transformers with aiter-attn.

pip install torch transformers  # beside the wheel of this package
python transformers_train.py
"""

from __future__ import annotations

import aiter_attn.transformers
import torch
from transformers import LlamaConfig, LlamaForCausalLM

NUMBERS = 16


def main() -> list[int]:
    aiter_attn.transformers.register()
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=NUMBERS,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        bos_token_id=None,
        eos_token_id=None,
    )
    model = LlamaForCausalLM._from_config(config, attn_implementation="aiter_attn")
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(60):
        first = torch.randint(NUMBERS, (8, 1))
        counting = (first + torch.arange(12)) % NUMBERS
        loss = model(counting, labels=counting).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}")
    model.eval()
    start = torch.tensor([[3, 4, 5]])
    told = model.generate(start, max_new_tokens=6, do_sample=False)[0].tolist()
    print("counted:", told)
    return told


if __name__ == "__main__":
    main()
