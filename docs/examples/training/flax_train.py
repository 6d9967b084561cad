# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A small language model of random weights learns to copy, and then writes: flax with aiter-attn.

pip install jax flax  # beside the wheel of this package
python flax_train.py
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from aiter_attn.flax import dot_product_attention
from flax import nnx

NUMBERS, SIZE, LENGTH = 12, 64, 8


class Model(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.tokens = nnx.Embed(NUMBERS, SIZE, rngs=rngs)
        self.places = nnx.Embed(2 * LENGTH, SIZE, rngs=rngs)
        self.norm = nnx.RMSNorm(SIZE, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(
            4, SIZE, decode=False, attention_fn=dot_product_attention, rngs=rngs
        )

    def __call__(self, tokens: jax.Array, first: int = 0, decode: bool = False) -> jax.Array:
        """Logits of the next token at each place, [batch, seqlen, NUMBERS]. first: its place."""
        x = self.tokens(tokens) + self.places(first + jnp.arange(tokens.shape[1]))
        x += self.attention(self.norm(x), is_causal=not decode, decode=decode)
        return self.tokens.attend(x)


def loss(model: Model, tokens: jax.Array) -> jax.Array:
    """The second half of each row is its first half again: that is what can be learned."""
    logits = model(tokens[:, :-1])[:, LENGTH - 1 :]
    return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, LENGTH:]).mean()


@nnx.jit
def step(model: Model, optimizer: nnx.Optimizer, key: jax.Array) -> jax.Array:
    half = jax.random.randint(key, (32, LENGTH), 0, NUMBERS)
    value, gradients = nnx.value_and_grad(loss)(model, jnp.tile(half, (1, 2)))
    optimizer.update(model, gradients)
    return value


def write(model: Model, half: jax.Array) -> jax.Array:
    """The model's choice for the second half, token by token with a cache of keys and values."""
    model.attention.init_cache((len(half), 2 * LENGTH, SIZE))
    written = half
    for place in range(2 * LENGTH - 1):
        logits = model(written[:, place : place + 1], place, decode=True)
        if place >= LENGTH - 1:
            written = jnp.concatenate([written, logits.argmax(-1)], axis=1)
    return written[:, LENGTH:]


def main() -> tuple[list[float], float]:
    keys = iter(jax.random.split(jax.random.key(0), 128))
    model = Model(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(3e-3), wrt=nnx.Param)
    losses = []
    for i in range(100):
        losses.append(float(step(model, optimizer, next(keys))))
        if i % 20 == 0:
            print(f"step {i}: loss {losses[-1]:.3f}")
    half = jax.random.randint(next(keys), (16, LENGTH), 0, NUMBERS)
    right = float((write(model, half) == half).mean())
    print(f"loss {losses[-1]:.3f}; of what it writes {right:.0%} is right")
    return losses, right


if __name__ == "__main__":
    main()
