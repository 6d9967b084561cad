# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""One layer of attention of random weights learns to copy: jax with aiter-attn.

pip install jax  # beside the wheel of this package
python jax_train.py
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from aiter_attn.jax import flash_attn_func, rms_norm

NUMBERS, SIZE, HEADS, LENGTH = 12, 64, 4, 8


def logits(weights: Any, tokens: jax.Array) -> jax.Array:
    """Of the next token at each place, [batch, seqlen, NUMBERS]."""
    x = weights["tokens"][tokens] + weights["places"][: tokens.shape[1]]
    q, k, v = jnp.split(rms_norm(x, weights["norm"]) @ weights["qkv"], 3, axis=-1)
    heads = (*tokens.shape, HEADS, SIZE // HEADS)
    out = flash_attn_func(q.reshape(heads), k.reshape(heads), v.reshape(heads), causal=True)
    return (x + out.reshape(x.shape) @ weights["out"]) @ weights["tokens"].T


def loss(weights: Any, tokens: jax.Array) -> jax.Array:
    """The second half of each row is its first half again: that is what can be learned."""
    told = jax.nn.log_softmax(logits(weights, tokens[:, :-1]))
    wanted = jnp.take_along_axis(told, tokens[:, 1:, None], 2)[:, LENGTH - 1 :]
    return -wanted.mean()


@jax.jit
def step(weights: Any, momenta: Any, key: jax.Array) -> tuple[Any, Any, jax.Array]:
    half = jax.random.randint(key, (32, LENGTH), 0, NUMBERS)
    value, gradients = jax.value_and_grad(loss)(weights, jnp.tile(half, (1, 2)))
    momenta = jax.tree.map(lambda m, g: 0.9 * m + g, momenta, gradients)
    return jax.tree.map(lambda w, m: w - 0.1 * m, weights, momenta), momenta, value


def main() -> list[float]:
    keys = iter(jax.random.split(jax.random.key(0), 128))
    weights = {
        "tokens": jax.random.normal(next(keys), (NUMBERS, SIZE)) / 4,
        "places": jax.random.normal(next(keys), (2 * LENGTH, SIZE)) / 4,
        "norm": jnp.ones(SIZE),
        "qkv": jax.random.normal(next(keys), (SIZE, 3 * SIZE)) / 8,
        "out": jax.random.normal(next(keys), (SIZE, SIZE)) / 8,
    }
    momenta = jax.tree.map(jnp.zeros_like, weights)
    losses = []
    for i in range(100):
        weights, momenta, value = step(weights, momenta, next(keys))
        losses.append(float(value))
        if i % 20 == 0:
            print(f"step {i}: loss {losses[-1]:.3f}")
    print(f"loss {losses[-1]:.3f}; guessing: {jnp.log(NUMBERS):.3f}")
    return losses


if __name__ == "__main__":
    main()
