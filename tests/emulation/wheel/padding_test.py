# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Padded sequences through the C ABI of a wheel on device arrays, against float64 of the used rows:
padding is NaN where it could be read, and stays as it was where it could be written."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, MASK_NONE, Case
from tests.emulation.harness.reference import draw, from_storage, gradients, reference
from tests.emulation.verify.verdict import GATES, Gate
from tests.emulation.wheel import wheel_contents
from tests.emulation.wheel.c_abi import Array, Arrays, call, new
from tests.emulation.wheel.problems import dsink_of
from tests.emulator.hip.hip import DeviceArray, Hip
from tests.hostile import abi

_HEADS_Q, _HEADS_K, _SIZE = 4, 2, 64
# Used rows, and rows behind them: none, some, more than a tile, all; without queries, without keys.
_USED = ((33, 47), (70, 40), (1, 130), (0, 20), (9, 0), (0, 0))
_PADDING = ((0, 0), (5, 90), (140, 0), (12, 3), (7, 30), (4, 4))
_UNTOUCHED, _NAN = 7.0, np.nan
_GATES = {name: GATES["o"] for name in ("o", "dq", "dk", "dv")} | {"lse": Gate(2.0, 8.0)}
# Of little weight, of nearly all of it, none, and the usual.
_SINK = np.array([-2.0, 5.0, -np.inf, 0.5], np.float32)

each_arch = pytest.mark.parametrize("arch", wheel_contents.ARCHS)
each_form = pytest.mark.parametrize("by_sums", [False, True], ids=["numbers", "sums"])


class Side:
    """The rows of queries, or of keys: which of a packed tensor's are used."""

    def __init__(self, side: int) -> None:
        self.used = np.array([lengths[side] for lengths in _USED], np.int32)
        rooms = self.used + [lengths[side] for lengths in _PADDING]
        self.starts = np.concatenate([[0], np.cumsum(rooms)]).astype(np.int32)
        self.sums = np.concatenate([[0], np.cumsum(self.used)]).astype(np.int32)
        self.total = int(self.starts[-1])
        self.is_used = np.zeros(self.total, bool)
        for start, count in zip(self.starts, self.used, strict=False):
            self.is_used[start : start + count] = True

    def padded(self, rows: Array) -> Array:
        """Of bits [used tokens][heads][size]."""
        out = np.full((self.total, *rows.shape[1:]), _NAN, np.float16)
        out[self.is_used] = rows.view(np.float16)
        return out

    def output(self, a: Arrays, heads: int) -> DeviceArray:
        return a.put(np.full((self.total, heads, _SIZE), _UNTOUCHED, np.float16))

    def used_rows(self, array: DeviceArray) -> Array:
        """Bits [used tokens][heads][size]; padding must be untouched."""
        rows = np.ascontiguousarray(array.read())
        assert (rows[~self.is_used] == _UNTOUCHED).all(), "padding was written"
        return rows[self.is_used].view(np.uint16)


def _used(q: Array, k: Array, *, by_sums: bool) -> dict[str, Any]:
    """The fields that say which rows are used."""
    return {"cu_seqused_q": q, "cu_seqused_k": k} if by_sums else {"seqused_q": q, "seqused_k": k}


def _workspace(a: Arrays, function: str, args: Any) -> None:
    size = ctypes.c_uint64()
    assert abi.function(function)(ctypes.byref(args), ctypes.byref(size)) == abi.OK, (
        abi.last_error()
    )
    if size.value:
        array = a.hip.empty((size.value,), "uint8", a.stream, a.device)
        a.kept.append(array)
        args.workspace, args.workspace_size = array.array.ctypes.data, size.value


@each_arch
@each_form
@pytest.mark.parametrize("sink", [False, True], ids=["", "sink"])
def test_forward_and_backward(hip: Hip, arch: str, sink: bool, by_sums: bool) -> None:
    a, q, k = Arrays(hip, arch), Side(0), Side(1)
    masked = wheel_contents.has("group", True, "fp16", _SIZE)
    case = Case("", _USED, _HEADS_Q, _HEADS_K, mask=MASK_BOTTOM_RIGHT if masked else MASK_NONE,
                window=(-1, 0) if masked else (-1, -1))  # fmt: skip
    inputs = draw(case, "fp16", (_SIZE, _SIZE), seed=5, backward=True)
    inputs.sink = _SINK if sink else None
    problem = a.problem(
        mode=abi.GROUP, batch=len(_USED), heads_q=_HEADS_Q, heads_k=_HEADS_K, head_size_qk=_SIZE,
        head_size_v=_SIZE, seqlen_q=int(q.used.max()), seqlen_k=int(k.used.max()), total_q=q.total,
        total_k=k.total, cu_seqlens_q=a.address(q.starts), cu_seqlens_k=a.address(k.starts),
        softmax_scale=float(inputs.scale), mask=case.mask,
        **_used(*(a.address(s.sums if by_sums else s.used) for s in (q, k)), by_sums=by_sums),
    )  # fmt: skip
    problem.window_left, problem.window_right = case.window
    tensors = {
        "q": a.put(q.padded(inputs.q)),
        "k": a.put(k.padded(inputs.k)),
        "v": a.put(k.padded(inputs.v)),
        "o": q.output(a, _HEADS_Q),
    }
    lse = a.put(np.full((_HEADS_Q, q.total), _UNTOUCHED, np.float32))
    shared: dict[str, Any] = {"problem": ctypes.addressof(problem), "lse": lse.array.ctypes.data}
    if sink:
        shared["sink"] = a.address(_SINK)
    forward = new("attn_fwd_args", **shared, **{n: a.tensor(x) for n, x in tensors.items()})
    call("fwd", forward)
    hip.synchronize(a.stream)
    rows = lse.read()
    assert (rows[:, ~q.is_used] == _UNTOUCHED).all(), "padding of lse was written"

    # Nothing that lies in padding may matter to backward.
    o = tensors["o"].read()
    o[~q.is_used] = _NAN
    tensors["o"] = a.put(o)
    rows = rows.copy()
    rows[:, ~q.is_used] = _NAN
    shared["lse"] = a.address(rows)
    tensors |= {"dout": a.put(q.padded(inputs.dout)), "dq": q.output(a, _HEADS_Q),
                "dk": k.output(a, _HEADS_K), "dv": k.output(a, _HEADS_K)}  # fmt: skip
    dsink = a.put(np.full(_HEADS_Q, _NAN, np.float32))
    if sink:
        shared["dsink"] = dsink.array.ctypes.data
    backward = new("attn_bwd_args", **shared, **{n: a.tensor(x) for n, x in tensors.items()})
    _workspace(a, "bwd_workspace_size", backward)
    call("bwd", backward)
    hip.synchronize(a.stream)

    stored = {"o": np.ascontiguousarray(o[q.is_used]).view(np.uint16)}
    stored |= {n: side.used_rows(tensors[n]) for n, side in (("dq", q), ("dk", k), ("dv", k))}
    expected = reference(case, "fp16", inputs, stored["o"])
    expected |= gradients(case, "fp16", expected)
    numbers = {name: from_storage(bits, "fp16") for name, bits in stored.items()}
    numbers["lse"] = rows[:, q.is_used].astype(np.float64)
    for name, actual in numbers.items():
        error = expected[name].error(actual)
        assert _GATES[name].allows(error.rms, error.largest), f"{name}: {error}"
    if sink:
        error = dsink_of(case, "fp16", inputs, stored["o"]).error(dsink.read().astype(float))
        assert error.largest < 8, error


@each_arch
@each_form
def test_dropout_mask(hip: Hip, arch: str, by_sums: bool) -> None:
    """That of the CPU reference, byte for byte."""
    a, q, k = Arrays(hip, arch), Side(0), Side(1)
    longest = int(k.used.max())
    numbers = (q.starts, k.starts, *(s.sums if by_sums else s.used for s in (q, k)))
    kept = [np.full((_HEADS_Q, q.total, longest), 7, np.uint8) for _ in range(2)]
    on_device = a.put(kept[0])
    for device, addresses, results in (
        (abi.ROCM, [a.address(x) for x in numbers], on_device.array),
        (abi.CPU, [x.ctypes.data for x in numbers], kept[1]),
    ):
        problem = a.problem(
            mode=abi.GROUP, batch=len(_USED), heads_q=_HEADS_Q, heads_k=_HEADS_K,
            head_size_qk=_SIZE, head_size_v=_SIZE, seqlen_q=int(q.used.max()), seqlen_k=longest,
            total_q=q.total, total_k=k.total, cu_seqlens_q=addresses[0],
            cu_seqlens_k=addresses[1], **_used(*addresses[2:], by_sums=by_sums),
            softmax_scale=1.0, dropout_p=0.3, dropout_seed=5, dropout_offset=64,
        )  # fmt: skip
        problem.device_type = device
        if device == abi.CPU:
            problem.device_id, problem.stream = 0, None
        args = new("attn_dropout_mask_args", problem=ctypes.addressof(problem),
                   kept=results.ctypes.data)  # fmt: skip
        call("dropout_mask", args)
    hip.synchronize(a.stream)
    np.testing.assert_array_equal(on_device.read(), kept[1])
    assert (kept[1][:, ~q.is_used] == 7).all()
    assert not (kept[1][:, q.is_used] == 7).any()


@each_arch
def test_only_padding(hip: Hip, arch: str) -> None:
    """No row is used, so that nothing is written, though the tensors have rows."""
    a, q = Arrays(hip, arch), Side(0)
    masked = wheel_contents.has("group", True, "fp16", _SIZE)
    problem = a.problem(
        mode=abi.GROUP, batch=len(_USED), heads_q=_HEADS_Q, heads_k=_HEADS_K, head_size_qk=_SIZE,
        head_size_v=_SIZE, seqlen_q=1, seqlen_k=1, total_q=q.total, total_k=0,
        cu_seqlens_q=a.address(q.starts), cu_seqlens_k=a.address(np.zeros_like(q.starts)),
        softmax_scale=1.0, mask=MASK_BOTTOM_RIGHT if masked else MASK_NONE,
        seqused_q=a.address(np.zeros_like(q.used)),
    )  # fmt: skip
    if masked:
        problem.window_right = 0
    out, lse = q.output(a, _HEADS_Q), a.put(np.full((_HEADS_Q, q.total), _UNTOUCHED, np.float32))
    zeros = a.put(np.zeros((q.total, _HEADS_Q, _SIZE), np.float16))
    nothing = a.put(np.zeros((1, _HEADS_K, _SIZE), np.float16))
    args = new("attn_fwd_args", problem=ctypes.addressof(problem), q=a.tensor(zeros),
               k=a.tensor(nothing), v=a.tensor(nothing), o=a.tensor(out),
               lse=lse.array.ctypes.data)  # fmt: skip
    call("fwd", args)
    hip.synchronize(a.stream)
    assert (out.read() == _UNTOUCHED).all()
    assert (lse.read() == _UNTOUCHED).all()
