# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Appending to caches, and batch prefill over SGLang's page list, through the C ABI of a wheel on
device arrays, against float64."""

from __future__ import annotations

import ctypes
import itertools
import math

import numpy as np
import pytest

from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, MASK_NONE, Case
from tests.emulation.harness.reference import draw, from_storage, reference
from tests.emulation.verify.verdict import GATES
from tests.emulation.wheel import wheel_contents
from tests.emulation.wheel.c_abi import Arrays, call, new
from tests.emulator.hip.hip import Hip
from tests.hostile import abi

Array = np.ndarray
NO_ROTARY, HALVES, INTERLEAVED = range(3)
each_arch = pytest.mark.parametrize("arch", wheel_contents.ARCHS)


def rotated(rows: Array, tokens: Array, cos: Array, sin: Array, rotary: int) -> Array:
    """[tokens][heads][d], each row as the token of its number."""
    out = rows.astype(np.float64)
    if rotary == NO_ROTARY:
        return out
    pairs = cos.shape[1]
    first, second = (
        (slice(0, pairs), slice(pairs, 2 * pairs))
        if rotary == HALVES
        else (slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2))
    )
    x, y = out[..., first].copy(), out[..., second].copy()
    c, s = (table.astype(np.float64)[tokens][:, None] for table in (cos, sin))
    out[..., first], out[..., second] = x * c - y * s, y * c + x * s
    return out


def check_rotated(actual: Array, expected: Array, size: int) -> None:
    """Rounded once; columns that are not rotated are copied."""
    np.testing.assert_array_equal(actual[..., size:], expected[..., size:])
    # Two products and a sum in float32, of numbers below 32.
    error = np.abs(actual.astype(np.float64) - expected)
    assert (error <= np.abs(expected) * 2.0**-11 + 2.0**-16).all(), error.max()


@each_arch
@pytest.mark.parametrize("head_size", [64, 40])
@pytest.mark.parametrize("page_size", [0, 64])
@pytest.mark.parametrize("rotary", [NO_ROTARY, HALVES, INTERLEAVED])
def test_append(hip: Hip, arch: str, rotary: int, page_size: int, head_size: int) -> None:
    """Into an empty sequence, over the end of a page, and up to the end of the room."""
    rng = np.random.default_rng(rotary + page_size + head_size)
    batch, queries, new_keys, room, heads_q, heads_k = 3, 70, 70, 192, 4, 2
    lengths = np.array([0, 63, 122], np.int32)
    rotary_size = 0 if rotary == NO_ROTARY else 32

    def numbers(*shape: int) -> Array:
        return rng.standard_normal(shape).astype(np.float16)

    pages = room // page_size if page_size else 1
    places = rng.permutation(batch * pages + 1)[: batch * pages].reshape(batch, pages)
    caches = [numbers(batch * pages + 1, page_size or room, heads_k, head_size) for _ in "kv"]
    added = [numbers(batch, new_keys, heads_k, head_size) for _ in "kv"]
    q = numbers(batch, queries, heads_q, head_size)
    cos, sin = (numbers(room, rotary_size // 2) for _ in range(2))

    for mask in (MASK_NONE, MASK_BOTTOM_RIGHT):
        a = Arrays(hip, arch)
        k, v, k_new, v_new, q_device = (a.put(x) for x in (*caches, *added, q))
        problem = a.problem(
            mode=abi.BATCH, batch=batch, heads_q=heads_q, heads_k=heads_k, head_size_qk=head_size,
            head_size_v=head_size, seqlen_q=queries, seqlen_k=room, softmax_scale=1.0, mask=mask,
        )  # fmt: skip
        cache = new("attn_kvcache", entries=len(caches[0]), seqlens_k=a.address(lengths))
        where = a.address(places.astype(np.int32))
        if page_size:
            cache.page_size, cache.block_table, cache.block_table_stride = page_size, where, pages
        else:
            cache.batch_index = where
        args = new("attn_append_kv_args", seqlen_new=new_keys, problem=ctypes.addressof(problem),
                   cache=ctypes.addressof(cache), k=a.tensor(k), v=a.tensor(v),
                   k_new=a.tensor(k_new), v_new=a.tensor(v_new))  # fmt: skip
        if rotary != NO_ROTARY:
            args.q, args.rotary, args.rotary_size = a.tensor(q_device), rotary, rotary_size
            args.rotary_cos, args.rotary_sin = a.address(cos), a.address(sin)
            args.rotary_length = room
        call("append_kv", args)
        hip.synchronize(a.stream)

        results = [k.read(), v.read()]
        kept = np.ones(results[0].shape[:2], bool)
        for b, i in itertools.product(range(batch), range(new_keys)):
            token = lengths[b] + i
            size = page_size or room
            place = places[b, token // size], token % size
            kept[place] = False
            expected = rotated(added[0][b, i : i + 1], np.array([token]), cos, sin, rotary)[0]
            check_rotated(results[0][place], expected, rotary_size)
            np.testing.assert_array_equal(results[1][place], added[1][b, i])
        for result, before in zip(results, caches, strict=True):
            np.testing.assert_array_equal(result[kept], before[kept])
        for b in range(batch):
            tokens = lengths[b] + (np.arange(queries) if mask else np.zeros(queries, int))
            tokens = np.minimum(tokens, room - 1)
            check_rotated(q_device.read()[b], rotated(q[b], tokens, cos, sin, rotary), rotary_size)


@each_arch
def test_a_token_each_in_small_pages(hip: Hip, arch: str) -> None:
    """A step of decoding: pages may be smaller than a tile where few keys are new."""
    a = Arrays(hip, arch)
    rng = np.random.default_rng(5)
    caches = [rng.standard_normal((7, 16, 1, 64)).astype(np.float16) for _ in "kv"]
    added = [rng.standard_normal((2, 3, 1, 64)).astype(np.float16) for _ in "kv"]
    table, lengths = np.array([[4, 0, 2], [5, 1, 6]], np.int32), np.array([15, 32], np.int32)
    k, v, k_new, v_new = (a.put(x) for x in (*caches, *added))
    problem = a.problem(mode=abi.BATCH, batch=2, heads_q=1, heads_k=1, head_size_qk=64,
                        head_size_v=64, seqlen_q=3, seqlen_k=48, softmax_scale=1.0)  # fmt: skip
    cache = new("attn_kvcache", entries=7, seqlens_k=a.address(lengths), page_size=16,
                block_table=a.address(table), block_table_stride=3)  # fmt: skip
    args = new("attn_append_kv_args", seqlen_new=3, problem=ctypes.addressof(problem),
               cache=ctypes.addressof(cache), k=a.tensor(k), v=a.tensor(v), k_new=a.tensor(k_new),
               v_new=a.tensor(v_new))  # fmt: skip
    call("append_kv", args)
    hip.synchronize(a.stream)
    for result, before, new_rows in zip((k, v), caches, added, strict=True):
        expected = before.copy()
        expected[4, 15], expected[0, :2] = new_rows[0, 0], new_rows[0, 1:]
        expected[6, :3] = new_rows[1]
        np.testing.assert_array_equal(result.read(), expected)


# Entries behind the last key that kernels read, as attn.h says.
_FURTHER = 159


def _prefill(
    hip: Hip, arch: str, lengths: tuple[tuple[int, int], ...], window: tuple[int, int] | None
) -> None:
    """Keys in a shuffled order, in a cache with pages that no sequence owns."""
    a = Arrays(hip, arch)
    size, masked = 128, window is not None
    case = Case("", lengths, 4, 2, mask=MASK_BOTTOM_RIGHT if masked else MASK_NONE,
                window=window or (-1, -1))  # fmt: skip
    inputs = draw(case, "fp16", (size, size), seed=3, backward=False)
    order = np.random.default_rng(1).permutation(case.total_k + 9).astype(np.int32)
    order = order[: case.total_k]
    cache_arrays = []
    for stored in (inputs.k, inputs.v):
        array = np.full((case.total_k + 9, 2, size), np.nan, np.float16)
        array[order] = stored.view(np.float16)
        cache_arrays.append(a.put(array[:, None]))
    starts = np.array(case.starts(), np.int32)
    listed = np.concatenate([order, np.full(_FURTHER, order[0], np.int32)])
    q = a.put(inputs.q.view(np.float16))
    o = a.put(np.full((case.total_q, 4, size), 7, np.float16))
    lse = a.put(np.full((4, case.total_q), 7, np.float32))
    problem = a.problem(
        mode=abi.GROUP, batch=len(lengths), heads_q=4, heads_k=2, head_size_qk=size,
        head_size_v=size, seqlen_q=max(n for n, _ in lengths), seqlen_k=max(n for _, n in lengths),
        total_q=case.total_q, cu_seqlens_q=a.address(starts[:, 0]),
        softmax_scale=float(inputs.scale), mask=case.mask,
    )  # fmt: skip
    problem.window_left, problem.window_right = case.window
    cache = new("attn_kvcache", entries=case.total_k + 9, page_size=1,
                page_indptr=a.address(starts[:, 1]), page_indices=a.address(listed))  # fmt: skip
    args = new("attn_kvcache_fwd_args", problem=ctypes.addressof(problem),
               cache=ctypes.addressof(cache), q=a.tensor(q), k=a.tensor(cache_arrays[0]),
               v=a.tensor(cache_arrays[1]), o=a.tensor(o),
               lse=lse.array.ctypes.data)  # fmt: skip
    call("kvcache_fwd", args)
    hip.synchronize(a.stream)
    stored = np.ascontiguousarray(o.read()).view(np.uint16)
    expected = reference(case, "fp16", inputs)
    for name, actual in (("o", from_storage(stored, "fp16")), ("lse", lse.read())):
        error = expected[name].error(actual.astype(np.float64))
        assert GATES[name].allows(error.rms, error.largest), f"{name}: {error}"


_RAGGED = ((17, 17), (0, 40), (3, 0), (130, 300), (1, 129), (0, 0))


@each_arch
@pytest.mark.parametrize("window", [None, (-1, 0)], ids=["open", "causal"])
def test_batch_prefill(hip: Hip, arch: str, window: tuple[int, int] | None) -> None:
    """Ragged lengths, with sequences without queries, without keys, and without either."""
    _prefill(hip, arch, _RAGGED, window)


@each_arch
@pytest.mark.parametrize("window", [None, (-1, 0)], ids=["open", "causal"])
def test_aiter_3032_the_page_list_ends_with_a_tile(
    hip: Hip, arch: str, window: tuple[int, int] | None
) -> None:
    """Kernels read entries behind a list that ends where a tile of keys does: a fault, or pages of
    others. Here these entries are asked of the caller, and no kernel reads more."""
    _prefill(hip, arch, ((1, 128), (130, 256)), window)


@each_arch
def test_batch_prefill_with_a_window(hip: Hip, arch: str) -> None:
    """The windows begin in any tile of keys. Upstream's kernels, without our patch, would read
    the pages of the first tiles: docs/races.md, M."""
    _prefill(hip, arch, ((40, 400), (200, 300), (1, 300)), (64, 0))


def test_rotation_is_that_of_complex_numbers() -> None:
    """The tests' own rotation, against another formula."""
    rng = np.random.default_rng(0)
    rows, angle = rng.standard_normal((1, 1, 8)), rng.standard_normal((1, 2))
    turned = rotated(rows, np.array([0]), np.cos(angle), np.sin(angle), INTERLEAVED)[0, 0]
    for pair in range(2):
        z = complex(*rows[0, 0, 2 * pair : 2 * pair + 2]) * complex(
            math.cos(angle[0, pair]), math.sin(angle[0, pair])
        )
        np.testing.assert_allclose(turned[2 * pair : 2 * pair + 2], [z.real, z.imag])
    halves = rotated(rows[..., [0, 2, 1, 3, 4, 5, 6, 7]], np.array([0]), np.cos(angle),
                     np.sin(angle), HALVES)[0, 0]  # fmt: skip
    np.testing.assert_allclose(halves[[0, 2, 1, 3]], turned[:4])
