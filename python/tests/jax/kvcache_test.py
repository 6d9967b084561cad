# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention over key-value caches in jax programs: against the package's own function, which
numpy's arrays have, for every storage; appending, rotation, donation and refusals."""

from __future__ import annotations

import os
import re
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"

import aiter_attn
import aiter_attn.jax
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from aiter_attn import UnsupportedError

attend = aiter_attn.jax.flash_attn_with_kvcache
DTYPES = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
LENGTHS = np.array([3, 0, 9], np.int32)
TABLE = np.array([[4, 1, 6], [0, 2, 7], [5, 3, 8]], np.int32)
ENTRIES = np.array([3, 0, 1], np.int32)
SLOPES = np.array([0.5, 0.25, 0.125, 0.0625], np.float32)
SINK = np.array([0.5, -1.0, 0.0, 2.0], np.float32)


def draw(seed: int, dtype: Any, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def tables(dtype: Any, pairs: int = 8, rows: int = 12) -> dict[str, np.ndarray]:
    angle = np.arange(rows)[:, None] * 10.0 ** (-np.arange(pairs) / 4)
    return {"rotary_cos": np.cos(angle).astype(dtype), "rotary_sin": np.sin(angle).astype(dtype)}


def problem(dtype: Any, in_pages: bool, seqlen_q: int = 2) -> tuple[np.ndarray, ...]:
    """q, k_cache and v_cache; a sequence has room for 12 keys."""
    rows = (9, 4) if in_pages else (4, 12)
    return (
        draw(1, dtype, 3, seqlen_q, 4, 24),
        draw(2, dtype, *rows, 2, 24),
        draw(3, dtype, *rows, 2, 16),
    )


def new(dtype: Any, seqlen: int = 2) -> dict[str, np.ndarray]:
    return {"k": draw(4, dtype, 3, seqlen, 2, 24), "v": draw(5, dtype, 3, seqlen, 2, 16)}


CALLS: dict[str, dict[str, Any]] = {
    "whole": {},
    "an int": {"cache_seqlens": 5},
    "lengths": {"cache_seqlens": LENGTHS},
    "causal": {"cache_seqlens": LENGTHS, "causal": True, "softmax_scale": 0.3},
    "window": {"cache_seqlens": LENGTHS, "window_size": (4, 1), "softcap": 5.0},
    "slopes": {"cache_seqlens": LENGTHS, "causal": True, "alibi_slopes": SLOPES},
    "sink": {"cache_seqlens": LENGTHS, "sink": SINK},
    "entries": {"cache_seqlens": LENGTHS, "cache_batch_idx": ENTRIES},
    "pages": {"cache_seqlens": LENGTHS, "block_table": TABLE},
    "pages, causal": {"cache_seqlens": LENGTHS, "block_table": TABLE, "causal": True},
}


def close(actual: Any, expected: np.ndarray) -> None:
    """To an ulp or two of the dtype, and of float32 in between."""
    unit = float(ml_dtypes.finfo(expected.dtype).eps)
    np.testing.assert_allclose(
        np.asarray(actual).astype(np.float64), expected.astype(np.float64), 2 * unit, 2 * unit
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_of_the_package(name: str, dtype: str) -> None:
    options = CALLS[name]
    arrays = problem(DTYPES[dtype], "block_table" in options)
    out, lse = attend(*arrays, **options, return_softmax_lse=True)
    expected, of_lse = aiter_attn.flash_attn_with_kvcache(
        *arrays, **options, return_softmax_lse=True
    )
    assert out.dtype == dtype
    close(out, expected)
    close(lse, of_lse)
    close(attend(*arrays, **options), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("storage", ["in place", "entries", "pages"])
@pytest.mark.parametrize("turned", [None, True, False], ids=["plain", "pairs", "halves"])
@pytest.mark.parametrize("causal", [True, False], ids=["causal", "all"])
def test_new_keys_are_appended(storage: str, dtype: str, turned: bool | None, causal: bool) -> None:
    of = DTYPES[dtype]
    q, k_cache, v_cache = problem(of, storage == "pages")
    more: dict[str, Any] = {**new(of), "cache_seqlens": LENGTHS, "causal": causal}
    more |= {"entries": {"cache_batch_idx": ENTRIES}, "pages": {"block_table": TABLE}}.get(
        storage, {}
    )
    if turned is not None:
        more |= {**tables(of), "rotary_interleaved": turned}
    before = k_cache.copy(), v_cache.copy()
    traced = {name: x for name, x in more.items() if isinstance(x, np.ndarray)}
    fixed = {name: x for name, x in more.items() if name not in traced}
    program = jax.jit(lambda *a, **arrays: attend(*a, **arrays, **fixed))
    out, new_k, new_v = program(q, k_cache, v_cache, **traced)
    assert np.array_equal(k_cache, before[0]) and np.array_equal(v_cache, before[1])
    expected = aiter_attn.flash_attn_with_kvcache(q, k_cache, v_cache, **more)
    close(new_k, k_cache)
    assert np.array_equal(np.asarray(new_v), v_cache)
    if turned is None:
        assert np.array_equal(np.asarray(new_k), k_cache)
    # Of 16 bits, q and k may each be rotated to the next number.
    bound = 1e-5 if dtype == "float32" else 6 * float(ml_dtypes.finfo(of).eps)
    np.testing.assert_allclose(
        np.asarray(out).astype(np.float64), expected.astype(np.float64), bound, bound
    )


def test_a_cache_grows_in_a_loop_of_the_program() -> None:
    q, k_cache, v_cache = problem(np.float32, False, seqlen_q=1)
    steps = [draw(s, np.float32, 5, 3, 1, 2, n) for s, n in ((6, 24), (7, 16))]

    def step(carry: Any, pair: Any) -> Any:
        k_cache, v_cache, length = carry
        out, k_cache, v_cache = attend(q, k_cache, v_cache, *pair, cache_seqlens=length)
        return (k_cache, v_cache, length + 1), out

    (k_all, _, length), outs = jax.lax.scan(
        step, (k_cache, v_cache, jnp.int32(2)), tuple(map(jnp.asarray, steps))
    )
    assert length == 7
    for i, out in enumerate(outs):
        expected = aiter_attn.flash_attn_with_kvcache(
            q, k_cache, v_cache, steps[0][i], steps[1][i], cache_seqlens=2 + i
        )
        close(out, expected)
    assert np.array_equal(np.asarray(k_all), k_cache)


def test_donated_caches_are_written_in_place() -> None:
    q, k_cache, v_cache = problem(np.float32, False)
    program = jax.jit(
        lambda q, k_cache, v_cache, k, v, n: attend(q, k_cache, v_cache, k, v, cache_seqlens=n),
        donate_argnums=(1, 2),
    )
    lowered = program.lower(q, k_cache, v_cache, *new(np.float32).values(), LENGTHS)
    # Else a GPU writes by compare and swap.
    assert lowered.as_text().count("unique_indices = true") == 2
    text = lowered.compile().as_text()
    aliased = re.search(r"input_output_alias=\{(.*?)\}, entry", text)
    assert aliased and len(re.findall(r"may-alias|must-alias", aliased[1])) == 2
    shape = re.escape(f"f32[{','.join(map(str, k_cache.shape))}]")
    assert not re.search(rf"= {shape}\S* copy\(", text)


def test_rows_behind_the_room_are_not_written() -> None:
    q, k_cache, v_cache = problem(np.float32, True)
    full = np.array([11, 3, 12], np.int32)
    with pytest.raises(Exception, match=r"cache_seqlens|seqlens_k"):
        jax.block_until_ready(
            attend(q, k_cache, v_cache, **new(np.float32), cache_seqlens=full, block_table=TABLE)
        )


def test_pages_that_are_not_there_are_refused_when_the_program_runs() -> None:
    arrays = problem(np.float32, True)
    with pytest.raises(Exception, match="block_table"):
        jax.block_until_ready(attend(*arrays, cache_seqlens=5, block_table=TABLE + 5))


def test_vmap_is_one_call_after_the_other() -> None:
    arrays = problem(np.float32, False)
    stacked = [np.stack([a, a[::-1]]) for a in arrays]
    out = jax.vmap(lambda *a: attend(*a, cache_seqlens=4))(*stacked)
    for i in range(2):
        close(
            out[i],
            aiter_attn.flash_attn_with_kvcache(
                *(np.ascontiguousarray(s[i]) for s in stacked), cache_seqlens=4
            ),
        )


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"cache_leftpad": LENGTHS}, UnsupportedError, "cache_leftpad: given; allowed in"),
        ({"cache_seqlens": 1.5}, TypeError, "cache_seqlens: "),
        ({"cache_seqlens": LENGTHS.astype(np.int64)}, TypeError, "cache_seqlens: dtype int64"),
        ({"cache_seqlens": LENGTHS[:2]}, ValueError, r"cache_seqlens: shape \(2,\)"),
        ({"cache_batch_idx": ENTRIES, "block_table": TABLE}, ValueError, "cache_batch_idx: given"),
        ({**new(np.float32)}, ValueError, "k: given, but cache_seqlens is None"),
        ({**new(np.float16), "cache_seqlens": 1}, TypeError, "k: dtype float16"),
        ({**new(np.float32, 13), "cache_seqlens": 0}, ValueError, "k: 13 new keys"),
        ({"num_splits": 129}, ValueError, "num_splits: 129"),
        (
            {**new(np.float32), "cache_seqlens": 1, **tables(np.float32, pairs=4)},
            ValueError,
            "rotary_cos: .* multiple of 16",
        ),
        (
            {**new(np.float32), "cache_seqlens": 1, **tables(np.float32, rows=7)},
            ValueError,
            "rotary_cos: 7 rows; allowed here: 12",
        ),
    ],
    ids=str,
)
def test_refusals(changes: dict[str, Any], error: type[Exception], text: str) -> None:
    arrays = problem(np.float32, "block_table" in changes)
    with pytest.raises(error, match=text):
        attend(*arrays, **changes)


def test_derivatives_are_refused_by_name() -> None:
    q, k_cache, v_cache = problem(np.float32, False)
    with pytest.raises(UnsupportedError, match="flash_attn_with_kvcache: differentiated"):
        jax.grad(lambda q: attend(q, k_cache, v_cache).sum())(q)
