# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention over caches through the C ABI, by the wheel of the variant set `features`, on device
arrays, against float64. Room that no key fills is NaN, and entries that a table does not need are
out of range."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.emulation.harness import reference
from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, MASK_NONE, Case
from tests.emulation.verify.verdict import GATES, Gate
from tests.emulation.wheel import wheel_contents
from tests.emulation.wheel.problems import CAUSAL, NO_WINDOW
from tests.emulator.hip import emulated_hip
from tests.emulator.hip.hip import DeviceArray, Hip
from tests.hostile import abi

WINDOW = (70, 3)
_GATES = {"o": GATES["o"], "lse": Gate(2.0, 8.0)}
_NOWHERE = 1 << 30
# No key, one, an end inside of a page, at its end, and behind it.
BATCH = ((17, 0), (17, 1), (17, 200), (17, 128), (17, 129))
DECODING = tuple((1, k) for _, k in BATCH)
GROUP = ((1, 200), (0, 64), (40, 0), (66, 150), (3, 1))

each_arch = pytest.mark.parametrize("arch", wheel_contents.ARCHS)


@dataclasses.dataclass
class Results:
    o: np.ndarray[Any, Any]  # [tokens][heads][head_size]
    lse: np.ndarray[Any, Any] | None  # [heads][tokens]


class Cached:
    """A case over a cache on a device."""

    def __init__(self, hip: Hip, arch: str, case: Case, *, group: bool, size: int = 64) -> None:
        self.hip, self.case, self.group = hip, case, group
        self.device = hip.device_of(arch)
        hip.make_current(self.device)
        self.stream = hip.stream()
        self.inputs = reference.draw(case, "fp16", (size, size), seed=7, backward=False)
        self.kept: list[DeviceArray] = []  # memory of the call
        self.problem = problem = abi.struct("attn_problem")()
        problem.struct_size = ctypes.sizeof(problem)
        problem.mode = abi.GROUP if group else abi.BATCH
        problem.device_type, problem.device_id = abi.ROCM, self.device
        problem.stream, problem.dtype = self.stream, 1
        problem.batch, problem.heads_q, problem.heads_k = (
            len(case.lengths), case.heads_q, case.heads_k,
        )  # fmt: skip
        problem.head_size_qk = problem.head_size_v = size
        problem.softmax_scale = float(self.inputs.scale)
        problem.seqlen_q, problem.seqlen_k = (max(x) for x in zip(*case.lengths, strict=True))
        problem.mask, (problem.window_left, problem.window_right) = case.mask, case.window
        if group:
            problem.total_q = case.total_q
            problem.cu_seqlens_q = self.place([q for q, _ in case.starts()])
        self.cache = cache = abi.struct("attn_kvcache")()
        cache.struct_size = ctypes.sizeof(cache)
        cache.seqlens_k = self.place([k for _, k in case.lengths])

    def put(self, array: np.ndarray[Any, Any]) -> DeviceArray:
        out = self.hip.array(array, self.stream, self.device)
        self.kept.append(out)
        return out

    def place(self, numbers: Any) -> int:
        """int32s on the device."""
        return self.put(np.ascontiguousarray(numbers, np.int32)).block.address

    def tensor(self, array: DeviceArray) -> Any:
        """Of [batch or pages][seq][heads][head_size]."""
        out = abi.struct("attn_tensor")()
        out.data = array.block.address
        _, seq, heads, size = array.shape
        out.stride_batch, out.stride_seq, out.stride_head = seq * heads * size, heads * size, size
        return out

    def stored(self, entries: int, rows: int, places: list[list[tuple[int, int]]]) -> list[Any]:
        """k and v, of which each sequence's keys are at (entry, row)."""
        self.cache.entries = entries
        tensors = []
        for tokens in (self.inputs.k, self.inputs.v):
            values = tokens.view(np.float16)
            memory = np.full((entries, rows, *values.shape[1:]), np.nan, np.float16)
            for places_of_one, (_, start) in zip(places, self.case.starts(), strict=False):
                for j, (entry, row) in enumerate(places_of_one):
                    memory[entry, row] = values[start + j]
            tensors.append(self.tensor(self.put(memory)))
        return tensors

    def in_place(self) -> list[Any]:
        entries = len(self.case.lengths) + 2
        order = np.random.default_rng(2).permutation(entries)[: len(self.case.lengths)]
        self.cache.batch_index = self.place(order)
        self.problem.seqlen_k = room = self.problem.seqlen_k + 30
        places = [[(int(entry), j) for j in range(k)]
                  for entry, (_, k) in zip(order, self.case.lengths, strict=True)]  # fmt: skip
        return self.stored(entries, room, places)

    def in_pages(self, size: int) -> list[Any]:
        needed = [-(-k // size) for _, k in self.case.lengths]
        order = iter(np.random.default_rng(3).permutation(sum(needed) + 2).tolist())
        table = np.full((len(needed), max(needed) + 1), _NOWHERE)
        for row, count in zip(table, needed, strict=True):
            row[:count] = [next(order) for _ in range(count)]
        self.cache.page_size, self.cache.block_table_stride = size, table.shape[1]
        self.cache.block_table = self.place(table)
        if not self.group:
            self.problem.seqlen_k = table.shape[1] * size
        places = [[(int(row[j // size]), j % size) for j in range(k)]
                  for row, (_, k) in zip(table, self.case.lengths, strict=True)]  # fmt: skip
        return self.stored(sum(needed) + 2, size, places)

    def run(self, keys: list[Any], splits: int, *, lse: bool = True, skipped: int = 0) -> Results:
        case, hip = self.case, self.hip
        batch = 1 if self.group else len(case.lengths)
        shape = (batch, case.total_q // batch, case.heads_q, self.problem.head_size_qk)
        args = abi.struct("attn_kvcache_fwd_args")()
        args.struct_size = ctypes.sizeof(args)
        args.splits, args.min_seqlen_q = splits, skipped
        args.problem = ctypes.addressof(self.problem)
        args.cache = ctypes.addressof(self.cache)
        args.q = self.tensor(self.put(self.inputs.q.view(np.float16).reshape(shape)))
        args.k, args.v = keys
        o = self.put(np.full(shape, 7, np.float16))
        rows = self.put(np.full((batch, case.heads_q, case.total_q // batch), 7, np.float32))
        args.o = self.tensor(o)
        args.lse = rows.block.address if lse else None
        size = ctypes.c_uint64()
        self.call("kvcache_fwd_workspace_size", args, size)
        args.workspace_size = size.value
        if size.value:
            workspace = hip.empty((size.value,), "uint8", self.stream, self.device)
            self.kept.append(workspace)
            args.workspace = workspace.block.address
        self.call("kvcache_fwd", args)
        hip.synchronize(self.stream)
        flat = rows.read().transpose(1, 0, 2).reshape(case.heads_q, -1)
        return Results(o.read().reshape(-1, *shape[2:]), flat if lse else None)

    @staticmethod
    def call(name: str, args: Any, *more: Any) -> None:
        status = abi.function(name)(ctypes.byref(args), *(ctypes.byref(x) for x in more))
        assert status == abi.OK, abi.last_error()

    def check(self, results: Results) -> None:
        stored = np.ascontiguousarray(results.o).view(np.uint16)
        expected = reference.reference(self.case, "fp16", self.inputs, stored)
        actual = {"o": reference.from_storage(stored, "fp16")}
        if results.lse is not None:
            actual["lse"] = results.lse.astype(np.float64)
        for name, numbers in actual.items():
            error = expected[name].error(numbers)
            assert _GATES[name].allows(error.rms, error.largest), f"{name}: {error}"
            left_out = np.isnan(expected[name].value)
            assert (numbers[left_out] == 7).all(), f"{name} of a sequence that is left out"


def case_of(lengths: Any, window: tuple[int, int], **more: Any) -> Case:
    mask = MASK_NONE if window == NO_WINDOW else MASK_BOTTOM_RIGHT
    return Case("", lengths, 4, 2, mask=mask, window=window, **more)


@each_arch
@pytest.mark.parametrize("splits", [1, 3, 0])
@pytest.mark.parametrize("window", [NO_WINDOW, CAUSAL, WINDOW], ids=str)
@pytest.mark.parametrize("lengths", [BATCH, DECODING], ids=["17 queries", "decoding"])
def test_keys_in_place(
    hip: Hip, arch: str, lengths: Any, window: tuple[int, int], splits: int
) -> None:
    problem = Cached(hip, arch, case_of(lengths, window), group=False)
    problem.check(problem.run(problem.in_place(), splits))


@each_arch
@pytest.mark.parametrize("size", [64, 128])
@pytest.mark.parametrize("splits", [1, 3, 8])
def test_keys_in_pages(hip: Hip, arch: str, splits: int, size: int) -> None:
    problem = Cached(hip, arch, case_of(BATCH, WINDOW), group=False)
    problem.check(problem.run(problem.in_pages(size), splits))


@each_arch
@pytest.mark.parametrize("splits", [1, 3, 0])
@pytest.mark.parametrize("window", [CAUSAL, WINDOW], ids=str)
def test_pages_in_group_mode(hip: Hip, arch: str, window: tuple[int, int], splits: int) -> None:
    problem = Cached(hip, arch, case_of(GROUP, window), group=True)
    problem.check(problem.run(problem.in_pages(64), splits))


@each_arch
def test_lengths_by_cu_seqlens(hip: Hip, arch: str) -> None:
    problem = Cached(hip, arch, case_of(GROUP, CAUSAL), group=True)
    problem.cache.seqlens_k = None
    problem.problem.total_k = problem.case.total_k
    problem.problem.cu_seqlens_k = problem.place([k for _, k in problem.case.starts()])
    problem.check(problem.run(problem.in_pages(128), 2))


@each_arch
@pytest.mark.parametrize("skipped", [0, 3])
def test_pages_that_are_not_split(
    hip: Hip, arch: str, skipped: int, runtime: emulated_hip.Runtime
) -> None:
    """One kernel, without a workspace; sequences of up to `skipped` queries are left out."""
    case = case_of(GROUP, CAUSAL, skipped_seqlen_q=skipped)
    problem = Cached(hip, arch, case, group=True, size=128)
    problem.check(problem.run(problem.in_pages(128), 1, lse=False, skipped=skipped))
    (launch,) = runtime.launches
    assert launch.symbol.startswith("fmha_fwd_pagedkv_d128_fp16_group_")


@each_arch
def test_results_do_not_depend_on_where_keys_are(hip: Hip, arch: str) -> None:
    """The same parts of the same keys give the same bits, in place and in pages of any size."""
    results = []
    for layout in ("place", 64, 192):
        problem = Cached(hip, arch, case_of(DECODING, CAUSAL), group=False)
        given = problem.in_place() if layout == "place" else problem.in_pages(int(layout))
        results.append(problem.run(given, 1))
    for other in results[1:]:
        np.testing.assert_array_equal(other.o, results[0].o)
        np.testing.assert_array_equal(other.lse, results[0].lse)
