# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""flash_attn_with_kvcache and flash_attn_varlen_func over pages: the wheel of the variant set
`features` on device arrays, against float64. Room that no key fills is NaN."""

from __future__ import annotations

from typing import Any

import aiter_attn
import numpy as np
import pytest

from tests.emulation.harness import reference
from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, Case
from tests.emulation.verify.verdict import GATES, Gate
from tests.emulation.wheel import wheel_contents
from tests.emulation.wheel.problems import CAUSAL
from tests.emulator.hip import emulated_hip
from tests.emulator.hip.hip import Hip
from tests.support.python.caches import in_pages

_GATES = {"o": GATES["o"], "lse": Gate(2.0, 8.0)}
SIZE, ROOM, PAGE = 64, 256, 64
BATCH = ((17, 0), (17, 1), (17, 200), (17, 128))
DECODING = tuple((1, k) for _, k in BATCH)
GROUP = ((1, 200), (40, 0), (66, 150), (3, 1))

each_arch = pytest.mark.parametrize("arch", wheel_contents.ARCHS)


class Cached:
    """A case, causal if nothing else is said, and its arrays on a device."""

    def __init__(
        self,
        hip: Hip,
        arch: str,
        lengths: Any,
        size: int = SIZE,
        window: tuple[int, int] = CAUSAL,
    ) -> None:
        self.hip, self.device = hip, hip.device_of(arch)
        self.case = Case("", lengths, 4, 2, mask=MASK_BOTTOM_RIGHT, window=window)
        self.inputs = reference.draw(self.case, "fp16", (size, size), seed=7, backward=False)
        self.workspace = hip.empty((1 << 23,), "uint8", 0, self.device)

    def put(self, array: Any) -> Any:
        return self.hip.array(np.ascontiguousarray(array), 0, self.device)

    def numbers(self, given: Any) -> Any:
        return self.put(np.asarray(given, np.int32))

    def caches(self) -> list[Any]:
        """k and v in numpy, [batch, ROOM, heads, size]."""
        made = []
        for tokens in (self.inputs.k, self.inputs.v):
            values = tokens.view(np.float16)
            cache = np.full((len(self.case.lengths), ROOM, *values.shape[1:]), np.nan, np.float16)
            for row, (_, length), (_, start) in zip(
                cache, self.case.lengths, self.case.starts(), strict=False
            ):
                row[:length] = values[start : start + length]
            made.append(cache)
        return made

    def pages(self, size: int) -> tuple[Any, Any, Any]:
        """(k, v, block_table) on the device."""
        (k, table), (v, _) = (in_pages(cache, size, spare=2) for cache in self.caches())
        return self.put(k), self.put(v), self.put(table)

    def queries(self, *batch: int) -> Any:
        values = self.inputs.q.view(np.float16)
        return self.put(values.reshape(*batch, *values.shape[1:]))

    def lengths(self) -> Any:
        return self.numbers([length for _, length in self.case.lengths])

    def check(self, out: Any, lse: Any = None) -> None:
        """out and lse on the device, of batch or varlen mode."""
        self.hip.synchronize()
        o = out.read()
        stored = np.ascontiguousarray(o.reshape(-1, *o.shape[-2:])).view(np.uint16)
        expected = reference.reference(self.case, "fp16", self.inputs, stored)
        actual = {"o": reference.from_storage(stored, "fp16")}
        if lse is not None:
            rows = lse.read().transpose(1, 0, 2)
            actual["lse"] = rows.reshape(len(rows), -1).astype(np.float64)
        for name, numbers in actual.items():
            error = expected[name].error(numbers)
            assert _GATES[name].allows(error.rms, error.largest), f"{name}: {error}"


@each_arch
@pytest.mark.parametrize("splits", [1, 3, 0])
@pytest.mark.parametrize("lengths", [BATCH, DECODING], ids=["17 queries", "decoding"])
def test_keys_in_place(
    hip: Hip, arch: str, lengths: Any, splits: int, runtime: emulated_hip.Runtime
) -> None:
    problem = Cached(hip, arch, lengths)
    order = [3, 0, 5, 1]
    entries = [np.full((6, *cache.shape[1:]), np.nan, np.float16) for cache in problem.caches()]
    for made, cache in zip(entries, problem.caches(), strict=True):
        made[order] = cache
    options: dict[str, Any] = {"causal": True, "num_splits": splits, "return_softmax_lse": True}
    q, (k, v) = problem.queries(len(lengths), -1), (problem.put(x) for x in entries)
    results = aiter_attn.flash_attn_with_kvcache(
        q,
        k,
        v,
        cache_seqlens=problem.lengths(),
        cache_batch_idx=problem.numbers(order),
        workspace=problem.workspace,
        **options,
    )
    problem.check(*results)
    del options["return_softmax_lse"]
    told = aiter_attn.explain_kvcache(q, k, v, return_lse=True, **options)
    assert [x.symbol for x in runtime.launches] == [kernel["name"] for kernel in told.kernels]


@each_arch
@pytest.mark.parametrize("paged", [False, True], ids=["in place", "in pages"])
@pytest.mark.parametrize("splits", [1, 3])
def test_a_sink(hip: Hip, arch: str, splits: int, paged: bool) -> None:
    """Its kernel needs an lse also where the call wants none."""
    problem = Cached(hip, arch, BATCH)
    problem.inputs.sink = np.array([-2.0, 5.0, -np.inf, 0.5], np.float32)
    table = None
    if paged:
        k, v, table = problem.pages(PAGE)
    else:
        k, v = (problem.put(x) for x in problem.caches())
    options: dict[str, Any] = {
        "cache_seqlens": problem.lengths(),
        "block_table": table,
        "causal": True,
        "num_splits": splits,
        "sink": problem.put(problem.inputs.sink),
        "workspace": problem.workspace,
    }
    q = problem.queries(len(BATCH), -1)
    problem.check(*aiter_attn.flash_attn_with_kvcache(q, k, v, return_softmax_lse=True, **options))
    problem.check(aiter_attn.flash_attn_with_kvcache(q, k, v, **options))


@each_arch
@pytest.mark.parametrize("splits", [1, 3])
def test_keys_in_pages(hip: Hip, arch: str, splits: int) -> None:
    problem = Cached(hip, arch, BATCH)
    k, v, table = problem.pages(PAGE)
    results = aiter_attn.flash_attn_with_kvcache(
        problem.queries(len(BATCH), -1),
        k,
        v,
        cache_seqlens=problem.lengths(),
        block_table=table,
        causal=True,
        num_splits=splits,
        return_softmax_lse=True,
        workspace=problem.workspace,
    )
    problem.check(*results)


@each_arch
@pytest.mark.parametrize("splits", [1, 3])
def test_vllm_34570_decoding_with_a_window(hip: Hip, arch: str, splits: int) -> None:
    """A token of decoding over pages with a sliding window was wrong from the second token on."""
    problem = Cached(hip, arch, DECODING, window=(63, 0))
    k, v, table = problem.pages(PAGE)
    results = aiter_attn.flash_attn_with_kvcache(
        problem.queries(len(DECODING), -1),
        k,
        v,
        cache_seqlens=problem.lengths(),
        block_table=table,
        window_size=(63, 0),
        num_splits=splits,
        return_softmax_lse=True,
        workspace=problem.workspace,
    )
    problem.check(*results)


@each_arch
def test_varlen_queries_over_pages(hip: Hip, arch: str) -> None:
    problem = Cached(hip, arch, GROUP, size=128)
    k, v, table = problem.pages(128)
    starts_q, starts_k = (np.cumsum([0, *lengths]) for lengths in zip(*GROUP, strict=True))
    out = aiter_attn.flash_attn_varlen_func(
        problem.queries(-1),
        k,
        v,
        problem.numbers(starts_q),
        problem.numbers(starts_k),
        66,
        200,
        causal=True,
        block_table=table,
        workspace=problem.workspace,
    )
    problem.check(out)


@each_arch
def test_the_workspace_is_asked_for_by_its_size(hip: Hip, arch: str) -> None:
    problem = Cached(hip, arch, DECODING)
    q, (k, v) = problem.queries(4, 1), (problem.put(x) for x in problem.caches())
    options: dict[str, Any] = {"cache_seqlens": problem.lengths(), "return_softmax_lse": True}
    with pytest.raises(TypeError, match=r"^workspace: .* pass workspace= of \d+ bytes"):
        aiter_attn.flash_attn_with_kvcache(q, k, v, causal=True, num_splits=2, **options)
    small = hip.empty((256,), "uint8", 0, problem.device)
    with pytest.raises(ValueError, match=r"^workspace: \d+ bytes .*; allowed here: \d+ or more"):
        aiter_attn.flash_attn_with_kvcache(
            q, k, v, causal=True, num_splits=2, workspace=small, **options
        )
