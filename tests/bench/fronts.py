# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""What a call costs beside its computation: `./bazelw run --config=cache //tests/bench:fronts`.

One token of one head, in host memory. Processor time of this process, the least of some runs; each
beside the same call without work, measured in turn with it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

os.environ["JAX_PLATFORMS"] = "cpu"

import aiter_attn
import aiter_attn.jax
import jax
import jax.numpy as jnp
import numpy as np

_RUNS = 15
_CALLS = 2000


def microseconds(call: Callable[[], object]) -> float:
    """Processor time of a call."""
    before = time.process_time()
    for _ in range(_CALLS):
        result = call()
    jax.block_until_ready(result)
    return (time.process_time() - before) / _CALLS * 1e6


def least(*calls: Callable[[], object]) -> list[float]:
    """Of each call, in turn, so that what else the machine does sways all alike."""
    times = [[microseconds(call) for call in calls] for _ in range(_RUNS)]
    return [min(column) for column in zip(*times, strict=True)]


def main() -> int:
    q = np.zeros((1, 1, 1, 64), np.float32)
    x = jnp.asarray(q)
    forward = jax.jit(aiter_attn.jax.flash_attn_func)
    no_work = jax.jit(lambda q, k, v: q + k + v)
    both = jax.jit(jax.grad(lambda *a: aiter_attn.jax.flash_attn_func(*a).sum(), (0, 1, 2)))
    neither = jax.jit(jax.grad(lambda q, k, v: (q * k * v).sum(), (0, 1, 2)))
    rows = [
        (
            "numpy: flash_attn_func",
            "numpy: q + k + v",
            least(lambda: aiter_attn.flash_attn_func(q, q, q), lambda: q + q + q),
        ),
        (
            "jax, jitted: flash_attn_func",
            "jax, jitted: q + k + v",
            least(lambda: forward(x, x, x), lambda: no_work(x, x, x)),
        ),
        (
            "jax, jitted: its gradient",
            "jax, jitted: gradient of q * k * v",
            least(lambda: both(x, x, x), lambda: neither(x, x, x)),
        ),
    ]
    print(f"{'call':<32}{'us':>8}   {'without work':<36}{'us':>8}{'ratio':>8}")
    for name, beside, (ours, theirs) in rows:
        print(f"{name:<32}{ours:>8.1f}   {beside:<36}{theirs:>8.1f}{ours / theirs:>8.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
