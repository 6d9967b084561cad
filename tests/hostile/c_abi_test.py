# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Structs of the C ABI with any content: a result by the definition, or a status and its reason.

The CPU computes; c_abi_gpu_test.py is about calls that reach a GPU.
"""

from __future__ import annotations

import ctypes
import itertools

import numpy
import pytest

from tests.hostile import abi, oracle
from tests.hostile.abi_problems import Call, Drawn, drawn
from tests.hostile.explore import Counts, explore, parts
from tests.hostile.memory import Array

# Of a call on the CPU. ATTN_ERROR_INTERNAL is an error of the library's own.
_STATUSES = (abi.OK, abi.INVALID_ARGUMENT, abi.UNSUPPORTED, abi.ABI_MISMATCH, abi.OUT_OF_MEMORY)


def _require_told(status: int, allowed: tuple[int, ...]) -> None:
    text = abi.last_error()
    assert status in allowed, f"status {status}: {text}"
    assert bool(text) == (status != abi.OK), f"status {status} with the message {text!r}"


def _plan_and_sizes(call: Call, counts: Counts) -> None:
    """Questions that may be asked with any pointers."""
    direction = "bwd" if call.backward else "fwd"
    args = ctypes.byref(call.args)
    count, text = ctypes.c_uint32(0), ctypes.c_char_p()
    asked = _STATUSES if call.problem.device_type == abi.CPU else (*_STATUSES, abi.DRIVER)
    arch = (b"gfx942", b"gfx\xff", None)[call.drawn.bits % 3]
    status = abi.function(f"plan_{direction}")(args, arch, None, ctypes.byref(count))
    _require_told(status, asked)
    status = abi.function(f"explain_{direction}")(args, arch, ctypes.byref(text))
    _require_told(status, asked)
    assert (text.value is not None) == (status == abi.OK)
    counts[f"plan_{direction}, explain_{direction}"] += 2
    size = ctypes.c_uint64(1)
    _require_told(abi.function(f"{direction}_workspace_size")(args, ctypes.byref(size)), asked)
    counts[f"{direction}_workspace_size"] += 1


def _written(call: Call) -> list[Array]:
    """The outputs' elements."""
    views = [call.view(name) for name in call.outputs]
    if not call.backward and call.args.lse:
        views.append(call.lse_view())
    assert all(view is not None for view in views), "an output is not where the structs say"
    return [view for view in views if view is not None]


def _require_only_outputs_written(call: Call) -> None:
    after = call.arena.bytes.copy()
    views = _written(call)
    results = [view.copy() for view in views]
    call.arena.bytes[...] = call.before
    for view, result in zip(views, results, strict=True):
        view[...] = result
    assert numpy.array_equal(call.arena.bytes, after), "something beside the outputs was written"


def _require_right(call: Call) -> None:
    """The outputs against the definition, where the inputs are numbers of a usual size."""
    p, args = call.problem, call.args
    inputs = {name: call.view(name) for name in call.inputs}
    outputs = {name: call.view(name) for name in call.outputs}
    lse = call.lse_view() if args.lse else None
    dtype = abi.DTYPES[p.dtype]
    read = [*inputs.values(), *([lse] if call.backward else [])]
    # False where any is NaN, too.
    if not all(v is not None and (abs(v.astype(numpy.float64)) < 100).all() for v in read):
        return
    scale, mask, group = p.softmax_scale, call.mask(), p.heads_q // p.heads_k
    # Of every score; None: not all are known.
    dscores: oracle.Exact | None = None
    if "dbias" in outputs:
        scores = call.extents("bias")
        dscores = oracle.Exact(numpy.zeros(scores), numpy.zeros(scores))
    for (index, i, queries, keys), head in itertools.product(call.sequences(), range(p.heads_q)):
        of = {
            name: view[i, keys, head // group] if name in ("k", "v") else view[i, queries, head]
            for name, view in inputs.items()
            if view is not None
        }
        shape = len(of["q"]), len(of["k"])
        more = call.more(index, head, of.get("bias"), *shape)
        if not call.backward:
            if shape[0] <= args.min_seqlen_q:
                continue  # left out
            out, want_lse = oracle.forward(of["q"], of["k"], of["v"], scale, mask, more)
            assert outputs["o"] is not None
            oracle.require_equal("o", outputs["o"][i, queries, head], out, dtype)
            if lse is not None:
                oracle.require_equal("lse", lse[i, head, queries], want_lse, "float32")
            continue
        assert lse is not None
        stored = [of[name] for name in ("dout", "q", "k", "v", "o")]
        dq, dk, dv, dbias = oracle.backward(*stored, lse[i, head, queries], scale, mask, more)
        if not all(numpy.isfinite(exact.value).all() for exact in (dq, dk, dv, dbias)):
            dscores = None
            continue  # an lse that is not of these q and k: exp overflows
        got = {name: view for name, view in outputs.items() if view is not None}
        oracle.require_equal("dq", got["dq"][i, queries, head], dq, dtype)
        if dscores is not None:
            # Keys beyond the sequence have no gradient.
            dscores.value[i, queries, head, : shape[1]] = dbias.value
            dscores.magnitude[i, queries, head, : shape[1]] = dbias.magnitude
        if group == 1:
            oracle.require_equal("dk", got["dk"][i, keys, head], dk, dtype)
            oracle.require_equal("dv", got["dv"][i, keys, head], dv, dtype)
    if dscores is not None:
        axes = tuple(axis for axis, summed in enumerate(call.dbias_sums) if summed)
        want = oracle.Exact(*(x.sum(axes, keepdims=True) for x in vars(dscores).values()))
        assert outputs["dbias"] is not None
        oracle.require_equal("dbias", outputs["dbias"], want, dtype)


def _calls(example: Drawn, counts: Counts) -> None:
    call = Call(example)
    _plan_and_sizes(call, counts)
    assert numpy.array_equal(call.arena.bytes, call.before), "a question wrote something"
    if not call.is_safe():
        return
    direction = "bwd" if call.backward else "fwd"
    status = abi.function(direction)(ctypes.byref(call.args))
    counts[f"{direction}: status {status}"] += 1
    _require_told(
        status, _STATUSES if call.problem.device_type == abi.CPU else (*_STATUSES, abi.DRIVER)
    )
    if not example.changes:
        assert status == abi.OK, f"a right call is refused: {abi.last_error()}"
    if status != abi.OK:
        assert numpy.array_equal(call.arena.bytes, call.before), "a refused call wrote something"
        return
    if not call.is_small():
        return
    assert call.shared_bytes() == 0, f"outputs share {call.shared_bytes()} bytes, and were taken"
    _require_only_outputs_written(call)
    _require_right(call)


@parts()
def test_any_struct_gives_a_result_or_a_reason(
    part: int, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = explore(_calls, drawn(), part, capsys)
    assert counts["fwd: status 0"] > 0
    assert counts["bwd: status 1"] > 0
