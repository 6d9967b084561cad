# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Structs of aiter/norm.h with any content: a result by the definition, or a status and a reason.

The CPU computes. A GPU is named too, with operands anywhere: the call is refused for want of one.
"""

from __future__ import annotations

import ctypes

import numpy
import pytest

from tests.hostile import abi, norm_oracle, oracle
from tests.hostile.explore import Counts, explore, parts
from tests.hostile.memory import Array
from tests.hostile.norm_abi_problems import CAUSAL, DTYPES, EXPLICIT, LAYER, Call, Drawn, drawn

_STATUSES = (
    abi.OK,
    abi.INVALID_ARGUMENT,
    abi.UNSUPPORTED,
    abi.ABI_MISMATCH,
    abi.DRIVER,
    abi.OUT_OF_MEMORY,
)


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("AITER_ATTN_CUDA_LIBRARY", "AITER_ATTN_HIP_LIBRARY"):
        monkeypatch.setenv(variable, "/nowhere/runtime.so")


def _require_told(status: int) -> None:
    text = abi.last_error()
    assert status in _STATUSES, f"status {status}: {text}"
    assert bool(text) == (status != abi.OK), f"status {status} with the message {text!r}"


def _views(call: Call) -> dict[str, Array]:
    found = {}
    for operand in call.operands():
        found[operand.name] = call.view(operand)
        assert found[operand.name] is not None, f"{operand.name} is not where the structs say"
    return found


def _require_only_outputs_written(call: Call) -> None:
    after = call.arena.bytes.copy()
    every = _views(call)
    views = [every[operand.name] for operand in call.operands() if operand.is_output]
    results = [view.copy() for view in views]
    call.arena.bytes[...] = call.before
    for view, result in zip(views, results, strict=True):
        view[...] = result
    assert numpy.array_equal(call.arena.bytes, after), "something beside the outputs was written"


def _before(call: Call, name: str) -> Array:
    """An operand as it was before the call."""
    (operand,) = (o for o in call.operands() if o.name == name)
    first = operand.address - call.arena.address
    count = operand.columns * operand.dtype.itemsize
    return call.before[first : first + count].view(operand.dtype)


def _usual(*arrays: Array) -> bool:
    """Whether all are numbers of a usual size; False where any is NaN."""
    return all((abs(a.astype(numpy.float64)) < 100).all() for a in arrays)


def _require_equal(name: str, got: Array, want: oracle.Exact, dtype: int) -> None:
    """As far as the exact value is a number: not where rstd is infinite."""
    kind = DTYPES[dtype]
    is_number = numpy.isfinite(want.value) & numpy.isfinite(want.magnitude)
    value = numpy.where(is_number, want.value, 0.0)
    if kind.itemsize == 1:  # fp8 saturates
        largest = float(oracle.FORMATS[kind.name][2])
        value = numpy.clip(value, -largest, largest)
    magnitude = numpy.where(is_number, want.magnitude, 0.0)
    shown = numpy.where(is_number, got.astype(numpy.float64), 0.0)
    oracle.require_equal(name, shown, oracle.Exact(value, magnitude), kind.name)


def _factor(call: Call, v: dict[str, Array]) -> Array:
    if "gamma" not in v:
        return numpy.ones((1, call.problem.hidden))
    return v["gamma"].astype(numpy.float64) + call.problem.zero_centred


def _norm_forward(call: Call, v: dict[str, Array]) -> None:
    p = call.problem
    # Overwritten inputs cannot be read any more; norm_test.cc knows scales.
    if "scales" in v or any(call.is_overwritten(o) for o in call.operands() if not o.is_output):
        return
    read = [v[name] for name in ("x", "residual", "gamma", "beta", "scale") if name in v]
    if not _usual(*read) or ("amax" in v and not _usual(_before(call, "amax"))):
        return
    h = v["x"]
    if "sum" in v:
        terms = [v[name].astype(numpy.float64) for name in ("x", "residual")]
        want = oracle.Exact(sum(terms), abs(terms[0]) + abs(terms[1]))
        _require_equal("sum", v["sum"], want, p.x_dtype)
        h = v["sum"]
    factor = _factor(call, v)
    beta = v["beta"].astype(numpy.float64) if "beta" in v else 0.0
    y, mean, rstd = norm_oracle.norm_forward(h, factor, beta, p.epsilon, p.kind == LAYER)
    scale = float(v["scale"][0, 0]) if "scale" in v else 1.0
    _require_equal("y", v["y"], oracle.Exact(y.value * scale, y.magnitude * abs(scale)), p.y_dtype)
    for name, want in (("mean", mean), ("rstd", rstd)):
        if name in v:
            flat = oracle.Exact(want.value.ravel(), want.magnitude.ravel())
            _require_equal(name, v[name][0], flat, 3)
    if "amax" in v and numpy.isfinite(y.value).all():
        before = float(_before(call, "amax")[0])
        largest = abs(y.value).max(initial=before)
        about = oracle.Exact(numpy.array([largest]), numpy.array([y.magnitude.max(initial=0.0)]))
        _require_equal("amax", v["amax"][0], about, 3)


def _norm_backward(call: Call, v: dict[str, Array]) -> None:
    p = call.problem
    layer = p.kind == LAYER
    read = [v[name] for name in ("x", "dy", "dh", "gamma", "mean", "rstd") if name in v]
    if not _usual(*read):
        return
    factor = _factor(call, v)
    mean = v["mean"].T if layer else numpy.zeros((p.rows, 1))
    dh = v["dh"].astype(numpy.float64) if "dh" in v else 0.0
    dx, dgamma, dbeta = norm_oracle.norm_backward(
        v["x"], v["dy"], mean, v["rstd"].T, factor, dh, layer
    )
    _require_equal("dx", v["dx"], dx, p.x_dtype)
    if "dgamma" in v:
        _require_equal("dgamma", v["dgamma"][0], dgamma, p.weight_dtype)
    if "dbeta" in v:
        _require_equal("dbeta", v["dbeta"][0], dbeta, p.weight_dtype)


def _softmax(call: Call, v: dict[str, Array]) -> None:
    p = call.problem
    seen = norm_oracle.allowed(p.rows, p.columns, p.queries, p.mask_kind == CAUSAL)
    if not _usual(*(v[name] for name in (("x",) if call.forward else ("y", "dy")))):
        return
    if not call.forward:
        want = norm_oracle.softmax_backward(v["y"], v["dy"], p.scale, seen)
        _require_equal("dx", v["dx"], want, p.dtype)
    elif abs(p.scale) <= 100:  # beyond, a score may become the masked one's
        masked = numpy.zeros((p.rows, p.columns), bool)
        if p.mask_kind == EXPLICIT:
            mask = v["mask"].reshape(-1, p.queries, p.columns)
            masked = numpy.repeat(mask, p.mask_repeat, axis=0).reshape(p.rows, p.columns) == 1
        want = norm_oracle.softmax_forward(v["x"], p.scale, masked, seen)
        _require_equal("y", v["y"], want, p.dtype)


def _calls(example: Drawn, counts: Counts) -> None:
    call = Call(example)
    if example.function == "norm_bwd":
        size = ctypes.c_uint64(1)
        status = abi.function("norm_bwd_workspace_size")(
            ctypes.byref(call.args), ctypes.byref(size)
        )
        _require_told(status)
        assert size.value == 0
        counts["norm_bwd_workspace_size"] += 1
    if not call.is_safe():
        return
    status = abi.function(example.function)(ctypes.byref(call.args))
    counts[f"{example.function}: status {status}"] += 1
    _require_told(status)
    if example.device == abi.CPU and not example.changes:
        assert status == abi.OK, f"a right call is refused: {abi.last_error()}"
    if status != abi.OK:
        assert numpy.array_equal(call.arena.bytes, call.before), "a refused call wrote something"
        return
    if call.problem.device_type != abi.CPU:
        assert call.problem.rows == 0, "there is no GPU"
        assert numpy.array_equal(call.arena.bytes, call.before), "no rows, and something is written"
        return
    assert call.is_plausible(), "what the ABI does not allow was taken"
    assert call.shared_bytes() == 0, f"outputs share {call.shared_bytes()} bytes, and were taken"
    _require_only_outputs_written(call)
    views = _views(call)
    if call.softmax:
        _softmax(call, views)
    elif call.forward:
        _norm_forward(call, views)
    else:
        _norm_backward(call, views)


@parts()
def test_any_struct_gives_a_result_or_a_reason(
    part: int, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = explore(_calls, drawn(), part, capsys)
    for function in ("norm_fwd", "norm_bwd", "softmax_fwd", "softmax_bwd"):
        assert counts[f"{function}: status 0"] > 0
        assert counts[f"{function}: status 1"] > 0
