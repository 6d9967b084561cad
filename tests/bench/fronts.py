# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The cost of a call beside its computation: `./bazelw run --config=cache //tests/bench:fronts`.

One token of one head, in host memory. Processor time of this process, the least of some runs; each
beside the same call without work, measured in turn with it. Of torch: torch_front.py.
"""

from __future__ import annotations

import os
import sys

os.environ["JAX_PLATFORMS"] = "cpu"

import aiter_attn
import aiter_attn.jax
import jax
import jax.numpy as jnp
import numpy as np

from tests.bench import calls


def main() -> int:
    q = np.zeros((1, 1, 1, 64), np.float32)
    x = jnp.asarray(q)
    forward = jax.jit(aiter_attn.jax.flash_attn_func)
    no_work = jax.jit(lambda q, k, v: q + k + v)
    both = jax.jit(jax.grad(lambda *a: aiter_attn.jax.flash_attn_func(*a).sum(), (0, 1, 2)))
    neither = jax.jit(jax.grad(lambda q, k, v: (q * k * v).sum(), (0, 1, 2)))
    pairs: list[tuple[str, str, list[calls.Call]]] = [
        (
            "numpy: flash_attn_func",
            "numpy: q + k + v",
            [lambda: aiter_attn.flash_attn_func(q, q, q), lambda: q + q + q],
        ),
        (
            "jax, jitted: flash_attn_func",
            "jax, jitted: q + k + v",
            [lambda: forward(x, x, x), lambda: no_work(x, x, x)],
        ),
        (
            "jax, jitted: its gradient",
            "jax, jitted: gradient of q * k * v",
            [lambda: both(x, x, x), lambda: neither(x, x, x)],
        ),
    ]
    rows = []
    for name, beside, both_calls in pairs:
        ours, theirs = calls.least(both_calls, finish=jax.block_until_ready)
        rows.append((name, beside, ours, theirs))
    print(calls.table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
