# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""aiter::mha_fwd_splitkv and aiter::mha_batch_prefill by the kernels of the variant set `features`,
executed, against float64. Room that no key fills is NaN."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.emulation.harness import reference
from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, MASK_NONE, Case
from tests.emulation.harness.structs import structures
from tests.emulation.verify.verdict import GATES, Gate
from tests.emulator.hip.emulated_hip import Runtime
from tests.emulator.hip.hip import DeviceArray, Hip
from tests.support.python.caches import in_pages

_PROGRAM = Path(os.environ["CONSUMER"]).absolute()
_GATES = {"o": GATES["o"], "lse": Gate(2.0, 8.0)}
_ROOM, _PAGE = 256, 64
_OPEN, _CAUSAL, _WINDOW = (-1, -1), (-1, 0), (70, 3)
# No key, one, an end inside of a page, and at its end.
_BATCH = ((17, 0), (17, 1), (17, 200), (17, 128))
_GROUP = ((1, 200), (0, 64), (40, 0), (66, 150), (3, 1))
# Entries of a page list behind the last key, which kernels read.
_FURTHER = 159

each_window = pytest.mark.parametrize("window", [_OPEN, _CAUSAL], ids=["open", "causal"])
each_split = pytest.mark.parametrize("splits", [1, 3])


class Cached:
    """A case on a device, and the consumer's call for it, which lacks the keys' places."""

    def __init__(
        self, hip: Hip, arch: str, lengths: Any, window: tuple[int, int], *, group: bool = False,
        size: int = 64,
    ) -> None:  # fmt: skip
        self.hip, self.device = hip, hip.device_of(arch)
        hip.make_current(self.device)
        self.stream = hip.stream()
        mask = MASK_NONE if window == _OPEN else MASK_BOTTOM_RIGHT
        self.case = case = Case("", lengths, 4, 2, mask=mask, window=window)
        self.inputs = reference.draw(case, "fp16", (size, size), seed=7, backward=False)
        self._kept: list[DeviceArray] = []  # the memory that the call points to
        self._library = ctypes.CDLL(str(_PROGRAM))
        (self._struct,) = structures(_PROGRAM, ("CachedCall",))
        self.call = c = self._struct()
        self._library.consumer_cached_defaults(ctypes.byref(c))
        c.group, c.batch, c.heads_q, c.heads_k, c.size = group, len(lengths), 4, 2, size
        c.stream, c.scale = self.stream, float(self.inputs.scale)
        c.mask, (c.left, c.right) = mask, window
        c.longest = max(queries for queries, _ in lengths)
        c.rows = case.total_q if group else c.longest
        shape = (1,) if group else (len(lengths),)
        queries = self.inputs.q.view(np.float16)
        c.q = self._tensor(self._put(queries.reshape(*shape, -1, *queries.shape[1:])))
        self.o = self._put(np.full((*shape, c.rows, 4, size), 7, np.float16))
        self.lse = self._put(np.full((*shape, 4, c.rows), 7, np.float32))
        c.o, c.lse_data = self._tensor(self.o), self.lse.array.ctypes.data
        if group:
            c.starts_q = self._numbers([start for start, _ in case.starts()])

    def _put(self, data: Any) -> DeviceArray:
        array = self.hip.array(np.ascontiguousarray(data), self.stream, self.device)
        self._kept.append(array)
        return array

    def _numbers(self, given: Any) -> int:
        return int(self._put(np.asarray(given, np.int32)).array.ctypes.data)

    def _tensor(self, array: DeviceArray) -> Any:
        """Of [batch or pages][rows][heads][size]."""
        _, rows, heads, size = array.shape
        return type(self.call.q)(array.array.ctypes.data, rows * heads * size, heads * size, size)

    def _caches(self) -> list[Any]:
        """k and v, [batch, _ROOM, heads, size]."""
        made = []
        for tokens in (self.inputs.k, self.inputs.v):
            values = tokens.view(np.float16)
            cache = np.full((len(self.case.lengths), _ROOM, *values.shape[1:]), np.nan, np.float16)
            for row, (_, length), (_, start) in zip(
                cache, self.case.lengths, self.case.starts(), strict=False
            ):
                row[:length] = values[start : start + length]
            made.append(cache)
        return made

    def _set_keys(self, k: Any, v: Any) -> None:
        self.call.k, self.call.v = (self._tensor(self._put(x)) for x in (k, v))
        self.call.entries = len(k)

    def _set_lengths(self) -> None:
        self.call.lengths = self._numbers([keys for _, keys in self.case.lengths])

    def in_place(self) -> None:
        """Sequences are in entries of any order, of which two are no sequence's."""
        batch = len(self.case.lengths)
        order = np.random.default_rng(2).permutation(batch + 2)[:batch]
        caches = []
        for cache in self._caches():
            whole = np.full((batch + 2, *cache.shape[1:]), np.nan, np.float16)
            whole[order] = cache
            caches.append(whole)
        self._set_keys(*caches)
        self._set_lengths()
        self.call.index, self.call.keys = self._numbers(order), _ROOM

    def in_pages(self) -> None:
        """Of a block table."""
        (k, table), (v, _) = (in_pages(cache, _PAGE, spare=2) for cache in self._caches())
        self._set_keys(k, v)
        self._set_lengths()
        self.call.pages, self.call.width = self._numbers(table), table.shape[1]
        self.call.page_size = _PAGE

    def in_a_list(self) -> None:
        """Of single keys in any order; nine pages are no sequence's."""
        total = self.case.total_k
        order = np.random.default_rng(1).permutation(total + 9)[:total]
        caches = []
        for tokens in (self.inputs.k, self.inputs.v):
            values = tokens.view(np.float16)
            cache = np.full((total + 9, 1, *values.shape[1:]), np.nan, np.float16)
            cache[order, 0] = values
            caches.append(cache)
        self._set_keys(*caches)
        self.call.by_list, self.call.page_size = True, 1
        self.call.keys = max(keys for _, keys in self.case.lengths)
        self.call.starts_k = self._numbers([start for _, start in self.case.starts()])
        self.call.pages = self._numbers([*order, *[order[0]] * _FURTHER])

    def run(self, function: str) -> float:
        self.hip.make_current(self.device)
        called = getattr(self._library, f"consumer_{function}")
        called.restype = ctypes.c_float
        return float(called(ctypes.byref(self.call)))

    def check(self) -> None:
        self.hip.synchronize(self.stream)
        o = np.ascontiguousarray(self.o.read()).reshape(self.inputs.q.shape).view(np.uint16)
        lse = self.lse.read().transpose(1, 0, 2).reshape(4, -1).astype(np.float64)
        expected = reference.reference(self.case, "fp16", self.inputs, o)
        for name, actual in (("o", reference.from_storage(o, "fp16")), ("lse", lse)):
            error = expected[name].error(actual)
            assert _GATES[name].allows(error.rms, error.largest), f"{name}: {error}"


@each_window
@each_split
def test_splitkv_in_place(hip: Hip, arch: str, splits: int, window: tuple[int, int]) -> None:
    problem = Cached(hip, arch, _BATCH, window)
    problem.in_place()
    problem.call.splits = splits
    assert problem.run("splitkv") == 0
    problem.check()


@each_split
@pytest.mark.parametrize("lengths", [_BATCH, _GROUP], ids=["batch", "group"])
def test_splitkv_in_pages(hip: Hip, arch: str, lengths: Any, splits: int) -> None:
    problem = Cached(hip, arch, lengths, _WINDOW, group=lengths is _GROUP)
    problem.in_pages()
    problem.call.splits = splits
    assert problem.run("splitkv") == 0
    problem.check()


@each_window
def test_batch_prefill_of_a_list(hip: Hip, arch: str, window: tuple[int, int]) -> None:
    lengths = ((17, 17), (0, 40), (3, 0), (130, 300), (1, 128), (0, 0))
    problem = Cached(hip, arch, lengths, window, group=True, size=128)
    problem.in_a_list()
    assert problem.run("prefill") == 0
    problem.check()


def test_batch_prefill_of_a_block_table(hip: Hip, arch: str) -> None:
    problem = Cached(hip, arch, _GROUP, _CAUSAL, group=True)
    problem.in_pages()
    assert problem.run("prefill") == 0
    problem.check()


def test_what_the_kernels_lack_is_refused(
    hip: Hip, arch: str, runtime: Runtime, capfd: pytest.CaptureFixture[str]
) -> None:
    for function, name in (("splitkv", "mha_fwd_splitkv"), ("prefill", "mha_batch_prefill")):
        problem = Cached(hip, arch, _GROUP, _CAUSAL, group=True, size=256)
        problem.in_pages()
        assert problem.run(function) == -1
        message = capfd.readouterr().err
        assert f"aiter::{name}: " in message
        assert "head size 256" in message
    assert not runtime.launches
