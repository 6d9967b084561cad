# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Key-value caches in jax's programs on emulated GPUs: appended to by XLA's kernels, read by split
keys' kernels, in one program; against float64. Room that no key fills is NaN."""

from __future__ import annotations

from typing import Any

import aiter_attn
import aiter_attn.jax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.emulation.wheel.wheel_contents import KINDS
from tests.emulator.hip.emulated_hip import Runtime
from tests.support.python.attention import attention, relative_error
from tests.support.python.caches import draw, gathered, in_pages, numbers, rotated

attend = aiter_attn.jax.flash_attn_with_kvcache
# Half a unit of float16's last place.
_ROUNDING = 2.0**-12
_BATCH, _ROOM, _PAGE, _QUERIES = 3, 192, 64, 4
LENGTHS = numbers(0, 61, 130)
ENTRIES = numbers(2, 4, 0)


def problem(entries: int = _BATCH) -> tuple[Any, Any, Any]:
    """q, and caches of which LENGTHS are filled: the first entries, or of more those of ENTRIES."""
    q = draw(_BATCH, _QUERIES, 4, 64, dtype=np.float16)
    caches = []
    for seed in (1, 2):
        cache = draw(entries, _ROOM, 2, 64, dtype=np.float16, seed=seed)
        filled = np.zeros(entries, np.int32)
        filled[ENTRIES if entries > _BATCH else slice(None)] = LENGTHS
        cache[np.arange(_ROOM) >= filled[:, None]] = np.nan
        caches.append(cache)
    return q, *caches


def new() -> tuple[Any, Any]:
    return tuple(draw(_BATCH, _QUERIES, 2, 64, dtype=np.float16, seed=seed) for seed in (3, 4))


def paged(k: Any, v: Any) -> tuple[tuple[Any, Any], Any]:
    """The caches in pages, and their block table."""
    (k_pages, table), (v_pages, _) = (in_pages(x, _PAGE, spare=2) for x in (k, v))
    return (k_pages, v_pages), table


def check(got: Any, q: Any, k: Any, v: Any, lengths: Any, causal: bool) -> None:
    """out and lse of sequences, whose keys are the first of k's and v's rows."""
    out, lse = got
    wants = [
        attention(q[b], k[b][:n], v[b][:n], causal=causal) for b, n in enumerate(lengths.tolist())
    ]
    error = relative_error(out, np.stack([want for want, _ in wants]))
    print(f"out: relative rms error {error:.1e}")
    assert error < 4 * _ROUNDING
    np.testing.assert_allclose(lse, np.stack([want for _, want in wants]), 1e-4, 1e-4)


def launched(runtime: Runtime) -> list[str]:
    """The kinds of our kernels, all of which were on a stream of XLA's, none on the default one."""
    ours = [launch for launch in runtime.launches if launch.symbol in KINDS]
    assert 0 not in {launch.stream for launch in ours}
    return [KINDS[launch.symbol] for launch in ours]


@pytest.mark.parametrize("splits", [1, 3])
@pytest.mark.parametrize(
    ("storage", "causal"),
    # The set has kernels of pages for masks alone.
    [("in place", True), ("in place", False), ("entries", True), ("pages", True)],
)
def test_a_cache_is_read(runtime: Runtime, storage: str, causal: bool, splits: int) -> None:
    q, k, v = problem(5 if storage == "entries" else _BATCH)
    more = {"cache_seqlens": LENGTHS}
    given = k, v
    if storage == "entries":
        more["cache_batch_idx"] = ENTRIES
        k, v = k[ENTRIES], v[ENTRIES]
    elif storage == "pages":
        given, more["block_table"] = paged(k, v)
    program = jax.jit(
        lambda q, k, v, more: attend(
            q, k, v, **more, causal=causal, num_splits=splits, return_softmax_lse=True
        )
    )
    check(program(q, *given, more), q, k, v, LENGTHS, causal)
    assert launched(runtime) == ["fwd_splitkv", "fwd_splitkv_combine"]


@pytest.mark.parametrize("storage", ["in place", "pages"])
@pytest.mark.parametrize("turned", [None, "pairs", "halves"], ids=str)
def test_new_keys_are_appended_in_the_program(
    runtime: Runtime, storage: str, turned: str | None
) -> None:
    """Donated caches, behind a kernel of XLA's that makes the new keys, before one that reads."""
    q, k_cache, v_cache = problem()
    k, v = new()
    given, more = (k_cache, v_cache), {"cache_seqlens": LENGTHS}
    if storage == "pages":
        given, more["block_table"] = paged(k_cache, v_cache)
    angles = draw(_ROOM, 16, seed=5)
    pairs = turned == "pairs"
    if turned:
        tables = {"rotary_cos": np.cos(angles), "rotary_sin": np.sin(angles)}
        more |= {name: table.astype(np.float16) for name, table in tables.items()}

    def step(q: Any, k_cache: Any, v_cache: Any, k: Any, v: Any, more: Any) -> Any:
        out, lse, k_cache, v_cache = attend(
            q, k_cache, v_cache, 2 * jnp.flip(k, 2), 2 * jnp.flip(v, 2), **more,
            causal=True, rotary_interleaved=pairs, return_softmax_lse=True,
        )  # fmt: skip
        return out.astype(jnp.float32) * 2, lse, k_cache, v_cache

    program = jax.jit(step, donate_argnums=(1, 2))
    out, lse, *grown = program(q, *map(jax.device_put, given), k, v, more)
    k, v = 2 * np.flip(k, 2), 2 * np.flip(v, 2)
    for b, n in enumerate(LENGTHS.tolist()):
        tokens = np.arange(n, n + _QUERIES)
        tables = more.get("rotary_cos"), more.get("rotary_sin")
        of_q, of_k = (
            (rotated(x[b], tokens, *tables, pairs) if turned else x[b]).astype(np.float16)
            for x in (q, k)
        )
        q[b], k_cache[b, tokens], v_cache[b, tokens] = of_q, of_k, v[b]
    table = more.get("block_table")
    for mine, wanted in zip(grown, (k_cache, v_cache), strict=True):
        got = np.asarray(mine) if table is None else gathered(np.asarray(mine), table)
        # A number of 16 bits may be rounded the other way behind a rotation.
        np.testing.assert_allclose(got.astype(np.float32), wanted.astype(np.float32), 2e-3, 2e-3)
    check((np.asarray(out) / 2, lse), q, k_cache, v_cache, LENGTHS + _QUERIES, True)
    assert launched(runtime)[0] == "fwd_splitkv"
    others = [launch.symbol for launch in runtime.launches if launch.symbol not in KINDS]
    print("kernels of XLA:", ", ".join(others))
    assert others


def test_a_cache_grows_in_a_loop_of_the_program(runtime: Runtime) -> None:
    q, k_cache, v_cache = problem()
    steps = new()

    def step(carry: Any, token: Any) -> Any:
        k_cache, v_cache, lengths = carry
        q, k, v = (x[:, None] for x in token)
        out, k_cache, v_cache = attend(q, k_cache, v_cache, k, v, cache_seqlens=lengths)
        return (k_cache, v_cache, lengths + 1), out

    tokens = tuple(jnp.asarray(x.swapaxes(0, 1)) for x in (q, *steps))
    (_, _, lengths), outs = jax.jit(lambda *x: jax.lax.scan(step, *x))(
        tuple(map(jnp.asarray, (k_cache, v_cache, LENGTHS))), tokens
    )
    np.testing.assert_array_equal(lengths, LENGTHS + _QUERIES)
    for b, n in enumerate(LENGTHS.tolist()):
        for cache, more in zip((k_cache, v_cache), steps, strict=True):
            cache[b, n : n + _QUERIES] = more[b]
        for i in range(_QUERIES):
            keys = slice(n + i + 1)
            want, _ = attention(q[b, i : i + 1], k_cache[b, keys], v_cache[b, keys])
            assert relative_error(outs[i, b], want) < 4 * _ROUNDING
    assert launched(runtime).count("fwd_splitkv") == _QUERIES


def test_concrete_arrays(runtime: Runtime) -> None:
    """The package's own function reads caches of jax, and appends to none."""
    q, k, v = problem()
    given = [jax.device_put(x) for x in (q, k, v)]
    lengths = jax.device_put(LENGTHS)
    out = aiter_attn.flash_attn_with_kvcache(
        *given, cache_seqlens=lengths, causal=True, return_softmax_lse=True
    )
    check(out, q, k, v, LENGTHS, True)
    assert launched(runtime)[0] == "fwd_splitkv"
    runtime.launches.clear()
    with pytest.raises(aiter_attn.UnsupportedError, match=r"^k: given .* do not change; call"):
        aiter_attn.flash_attn_with_kvcache(*given, *new(), cache_seqlens=lengths)
    # Without a mask, pages have no kernel in the set.
    (pages, v_pages), table = paged(k, v)
    with pytest.raises(aiter_attn.UnsupportedError, match=r"^no fwd_splitkv.*=features"):
        attend(q, pages, v_pages, cache_seqlens=LENGTHS, block_table=table)
    assert not launched(runtime)
