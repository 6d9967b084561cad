# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Parts of any call of the C ABI that reach a GPU, told by a HIP that records: pointers into the
caller's memory, fills of outputs and workspace, and nothing where the call was refused."""

from __future__ import annotations

import ctypes
import functools
import math
import os
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

from tests.hostile import abi
from tests.hostile.abi_problems import Call, Drawn, drawn
from tests.hostile.explore import Counts, explore, parts
from tests.hostile.memory import Array

_LAUNCH = 3  # RecordedKind
_STATUSES = (abi.OK, abi.INVALID_ARGUMENT, abi.UNSUPPORTED, abi.ABI_MISMATCH, abi.DRIVER)


@functools.cache
def _hip() -> ctypes.CDLL:
    path = os.path.abspath(os.environ["RECORDING_HIP"])
    os.environ["AITER_ATTN_HIP_LIBRARY"] = path  # before the library's first call
    hip = ctypes.CDLL(path)
    hip.recording_hip_calls.restype = ctypes.c_void_p
    return hip


def _launches() -> Iterator[Any]:
    count = ctypes.c_size_t(0)
    address = _hip().recording_hip_calls(ctypes.byref(count))
    if count.value:
        kind = abi.struct("RecordedCall") * count.value
        yield from (call for call in kind.from_address(address) if call.kind == _LAUNCH)


def _ends(view: Array) -> tuple[int, int]:
    """The addresses of its first byte and behind its last."""
    begin = end = view.__array_interface__["data"][0]
    for extent, stride in zip(view.shape, view.strides, strict=True):
        reach = (extent - 1) * stride
        begin, end = begin + min(reach, 0), end + max(reach, 0)
    return begin, end + view.itemsize


def _regions(call: Call) -> list[tuple[int, int]]:
    """Memory that a kernel of the call may be told of."""
    regions = []
    for name in call.inputs + call.outputs:
        view = call.view(name)
        assert view is not None
        address = getattr(call.args, name).data or 0
        regions.append(_ends(view) if view.size else (address, address + 1))
    if call.args.lse and (lse := call.lse_view()) is not None:
        regions.append(_ends(lse))
    if call.is_group and (starts := call.starts()):
        regions += [_ends(view) for view in starts]
    workspace = call.workspace()
    if workspace is not None and workspace.size:
        regions.append(_ends(workspace))
    return regions


def _require_within(launch: Any, call: Call, regions: list[tuple[int, int]]) -> None:
    grid, block = list(launch.grid), list(launch.block)
    symbol = ctypes.string_at(launch.symbol).decode()
    assert min(grid) >= 1, f"{symbol}: grid {grid}"
    assert max(grid[1:]) < 1 << 16, f"{symbol}: grid {grid}"
    assert 1 <= math.prod(block) <= 1024, f"{symbol}: block {block}"
    assert grid[0] * block[0] < 1 << 32, f"{symbol}: {grid[0]} workgroups of {block[0]}"
    kernarg = ctypes.string_at(launch.kernarg, launch.kernarg_size)
    first, last = call.arena.address, call.arena.address + len(call.arena.bytes)
    words = numpy.frombuffer(kernarg[: len(kernarg) // 8 * 8], numpy.uint64)
    for word in words[(words >= first) & (words < last)]:
        assert any(begin <= word < end for begin, end in regions), (
            f"{symbol} gets the address {int(word) - first} of the arena, where no argument is"
        )


def _require_only_filled(call: Call) -> None:
    """Asserts that host code wrote to nothing but outputs and workspace."""
    views = [view for name in call.outputs if (view := call.view(name)) is not None]
    if not call.backward and call.args.lse and (lse := call.lse_view()) is not None:
        views.append(lse)
    if (workspace := call.workspace()) is not None:
        views.append(workspace)
    written = [view.copy() for view in views]
    after = call.arena.bytes.copy()
    call.arena.bytes[...] = call.before
    for view, values in zip(views, written, strict=True):
        view[...] = values
    assert numpy.array_equal(call.arena.bytes, after), "something beside the outputs was filled"


def _gpu_calls(example: Drawn, counts: Counts) -> None:
    hip = _hip()
    call = Call(example)
    if call.problem.device_type != abi.ROCM or not call.is_safe():
        return
    hip.recording_hip_reset()
    direction = "bwd" if call.backward else "fwd"
    status = abi.function(direction)(ctypes.byref(call.args))
    text = abi.last_error()
    launches = list(_launches())
    counts[f"{direction}: status {status}"] += 1
    counts[f"{direction}: launches"] += len(launches)
    assert status in _STATUSES, f"status {status}: {text}"
    assert bool(text) == (status != abi.OK), f"status {status} with the message {text!r}"
    if status != abi.OK:
        assert not launches, f"status {status}, behind {len(launches)} launches: {text}"
        assert numpy.array_equal(call.arena.bytes, call.before), "a refused call wrote something"
        return
    if not call.is_small():
        return
    assert call.shared_bytes() == 0, f"outputs share {call.shared_bytes()} bytes, and were taken"
    regions = _regions(call)
    for launch in launches:
        _require_within(launch, call, regions)
    _require_only_filled(call)


@parts()
def test_what_is_launched_lies_in_the_callers_memory(
    part: int, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = explore(_gpu_calls, drawn(abi.ROCM), part, capsys)
    assert counts["fwd: launches"] > 0
    assert counts["bwd: launches"] > 0
