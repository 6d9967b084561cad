# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Facts that follow from shapes alone: the results of calls, and the kernels that would serve
them."""

from __future__ import annotations

import os
import sys
from typing import Any

import aiter_attn
import numpy
import pytest
from aiter_attn import _C
from aiter_attn._core import problems
from aiter_attn._core.options import options

# Nothing here asks a GPU runtime: there is none.
os.environ["AITER_ATTN_HIP_LIBRARY"] = "/nowhere/libamdhip64.so"

ARCH = aiter_attn.kernels()[0]["arch"]
SHAPES = ((2, 40, 4, 64), (2, 50, 2, 64), (2, 50, 2, 64))


def described(*shapes: tuple[int, ...], dtype: str = "float16") -> list[problems.ShapeDtype]:
    return [problems.ShapeDtype(shape, dtype) for shape in shapes]


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 3, 4, 8), (2, 5, 2, 8), (2, 5, 2, 16)),
        ((0, 3, 4, 8), (0, 5, 2, 8), (0, 5, 2, 8)),
        ((7, 4, 8), (9, 1, 8), (9, 1, 16)),
    ],
    ids=["batch", "nothing", "varlen"],
)
def test_results_are_as_foretold(shapes: tuple[tuple[int, ...], ...], dtype: str) -> None:
    arrays = [numpy.zeros(shape, dtype) for shape in shapes]
    if len(shapes[0]) == 4:
        told = problems.attention(*described(*shapes, dtype=dtype))
        out, lse = aiter_attn.mha_fwd(*arrays)
        gradients = aiter_attn.mha_bwd(out, *arrays, out, lse)
    else:
        starts = [numpy.array([0, 2, shape[0]], numpy.int32) for shape in shapes[:2]]
        longest = [int(numpy.diff(x).max()) for x in starts]
        lengths = problems.lengths(2, *longest)
        told = problems.attention(*described(*shapes, dtype=dtype), sequences=lengths)
        out, lse = aiter_attn.mha_varlen_fwd(*arrays, *starts, *longest)
        gradients = aiter_attn.mha_varlen_bwd(out, *arrays, out, lse, *starts, *longest)
    foretold = (told.out, told.lse, told.dq, told.dk, told.dv)
    for array, want in zip((out, lse, *gradients), foretold, strict=True):
        assert (array.shape, array.dtype.name) == want[:2]
        assert len(want.dims) == len(want.shape)


@pytest.mark.parametrize("batch", [(), (object(),)], ids=["varlen", "batch"])
def test_results_of_a_tracers_symbols(batch: tuple[Any, ...]) -> None:
    tokens, heads, head_size, head_size_v = (object() for _ in range(4))
    out, lse = problems.results(
        (*batch, tokens, heads, head_size), (*batch, object(), object(), head_size_v), "bfloat16"
    )  # type: ignore[arg-type]
    assert out[:2] == ((*batch, tokens, heads, head_size_v), "bfloat16")
    assert lse[:2] == ((*batch, heads, tokens), "float32")


def test_the_problem_is_what_was_asked_for() -> None:
    chosen = options(softmax_scale=0.5, causal=True, window_size=(7, 9))
    problem = problems.attention(*described(*SHAPES), chosen).problem
    assert (problem.mode, problem.batch, problem.total_q) == (_C.MODE_BATCH, 2, 0)
    assert (problem.heads_q, problem.heads_k, problem.seqlen_q, problem.seqlen_k) == (4, 2, 40, 50)
    assert (problem.mask, problem.window_left, problem.window_right) == (_C.MASK_BOTTOM_RIGHT, 7, 0)
    assert problem.softmax_scale == 0.5
    rows = described((80, 4, 64), (90, 2, 64), (90, 2, 32))
    problem = problems.attention(*rows, sequences=problems.lengths(3, 40, 50)).problem
    assert (problem.mode, problem.batch, problem.total_q) == (_C.MODE_GROUP, 3, 80)
    assert (problem.seqlen_q, problem.seqlen_k, problem.total_k) == (40, 50, 90)
    assert (problem.head_size_qk, problem.head_size_v, problem.softmax_scale) == (64, 32, 0.125)
    assert problem.mask == _C.MASK_NONE


def test_the_workspace_is_known_without_a_gpu() -> None:
    problem = problems.attention(*described(*SHAPES)).problem
    assert _C.bwd_workspace_size(problem) == 0
    rows_q, rows_k, heads = 2 * 40, 2 * 50, 4
    accumulated = rows_q * heads * (1 + 64) * 4  # float32: delta, dq
    expanded = 2 * rows_k * heads * 64 * 2  # dk and dv of every query head
    size = _C.bwd_workspace_size(problem.on(_C.DEVICE_ROCM, 0, 0))
    assert accumulated + expanded <= size < accumulated + expanded + 4 * 256


def test_a_problem_has_no_other_fields() -> None:
    with pytest.raises(TypeError, match='no number of this call is named "heads"'):
        _C.Problem(heads=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("backward", [False, True])
def test_explained_from_shapes_or_arrays(backward: bool) -> None:
    shapes = aiter_attn.explain(*SHAPES, causal=True, backward=backward, dtype="float16", arch=ARCH)
    arrays = [numpy.zeros(shape, numpy.float16) for shape in SHAPES]
    assert aiter_attn.explain(*arrays, causal=True, backward=backward, arch=ARCH) == shapes
    assert str(shapes) == shapes.text
    assert [k["kind"] for k in shapes.kernels][: 3 if backward else 1] == (
        ["bwd_dot_do_o", "bwd_dq_dk_dv", "bwd_convert_dq"] if backward else ["fwd"]
    )
    for kernel in shapes.kernels:
        assert kernel in aiter_attn.kernels()
        assert kernel["arch"] == ARCH
        assert kernel["provider"] in ("ck", "own")
        named = f"{kernel['kind']}: {kernel['name']}\n  code object {kernel['key']}\n"
        assert f"{named}  provider {kernel['provider']}\n" in shapes.text


def test_host_arrays_are_served_by_the_reference() -> None:
    arrays = [numpy.zeros(shape, numpy.float32) for shape in SHAPES]
    told = aiter_attn.explain(*arrays)
    assert told.kernels == []
    assert told.text.startswith("CPU reference")


def explain(**changes: Any) -> aiter_attn.Explanation:
    usual = {"q": SHAPES[0], "k": SHAPES[1], "v": SHAPES[2], "dtype": "float16", "arch": ARCH}
    return aiter_attn.explain(**{**usual, "causal": True, **changes})


@pytest.mark.parametrize("backward", [False, True])
def test_a_sink_is_one_launch_more(backward: bool) -> None:
    without, told = (explain(backward=backward, sink=sink) for sink in (False, True))
    (added,) = (kernel for kernel in told.kernels if kernel not in without.kernels)
    assert len(told.kernels) == len(without.kernels) + 1
    assert added["kind"] == ("sink_grad" if backward else "sink")
    assert f"{added['kind']}: {added['name']}\n" in told.text


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"arch": "gfx9999"}, aiter_attn.UnsupportedError, rf"on gfx9999\..*code for .*{ARCH}"),
        ({"dtype": "float32"}, aiter_attn.UnsupportedError, "fp32"),
        ({"arch": None}, aiter_attn.DriverError, "/nowhere/libamdhip64.so"),
        ({"dtype": None}, TypeError, "^dtype: None, but q is a shape; allowed: float16, bfloat16"),
        ({"dtype": "float8"}, TypeError, "^q: dtype float8; allowed: float16"),
        ({"sink": 1.0}, TypeError, "^sink: 1.0; allowed: True or False"),
        ({"dtype": "float8_e4m3fnuz", "sink": True}, aiter_attn.UnsupportedError, "^sink is set"),
        ({"q": (2, 40, 4)}, ValueError, r"^q: shape \(2, 40, 4\); allowed: \[batch, "),
        ({"q": "shape"}, TypeError, "^q: str is no array"),
        ({"sequences": (2, -1, 5)}, ValueError, "^max_seqlen_q: -1; allowed: 0 to"),
        ({"sequences": (2, 40, 50)}, ValueError, r"^q: shape .*allowed: \[total tokens, "),
    ],
)
def test_what_cannot_be_explained(
    changes: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        explain(**changes)


def test_head_sizes_that_no_kernel_has() -> None:
    with pytest.raises(aiter_attn.UnsupportedError, match=r"head size 1024.*head sizes up to"):
        explain(q=(2, 40, 4, 1024), k=(2, 50, 2, 1024), v=(2, 50, 2, 1024))


def test_no_framework_is_imported_for_shapes() -> None:
    assert not {"torch", "jax", "cupy"} & set(sys.modules)
