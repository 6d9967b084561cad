# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Custom calls of programs that someone else made: each operand and each result that does not have
the shape and the dtype of the problem is refused by its name, and nothing is written."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np
import pytest
from aiter_attn import _C
from aiter_attn.jax import _ffi

_ffi.register()

Arrays = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Program:
    """One custom call.

    free: arrays of which another one is named, since the problem's shape or dtype is theirs.
    """

    target: str
    operands: Arrays
    results: Arrays
    attributes: Mapping[str, Any]
    free_shapes: frozenset[str] = frozenset()
    free_dtypes: frozenset[str] = frozenset()

    def run(self) -> Any:
        results = tuple(jax.ShapeDtypeStruct(r.shape, r.dtype) for r in self.results.values())
        call = jax.ffi.ffi_call(self.target, results)
        given = _ffi.attributes(self.attributes)
        return jax.block_until_ready(jax.jit(lambda *a: call(*a, **given))(*self.operands.values()))

    def replaced(self, name: str, array: np.ndarray) -> Program:
        return dataclasses.replace(
            self,
            operands={n: array if n == name else a for n, a in self.operands.items()},
            results={n: array if n == name else a for n, a in self.results.items()},
        )


def zeros(dtype: Any = np.float32, **shapes: tuple[int, ...]) -> Arrays:
    return {name: np.zeros(shape, dtype) for name, shape in shapes.items()}


def attention(**changed: Any) -> dict[str, Any]:
    plain = {
        "seqlen_q": 9, "seqlen_k": 11, "softmax_scale": 0.25, "mask": 0, "window_left": -1,
        "window_right": -1, "bias": 0, "logits_soft_cap": 0.0, "dropout_p": 0.0,
    }  # fmt: skip
    return plain | changed


_QKV = zeros(q=(2, 9, 4, 16), k=(2, 11, 2, 16), v=(2, 11, 2, 8))
_PACKED = {
    **zeros(q=(10, 4, 16), k=(20, 2, 16), v=(20, 2, 8)),
    "cu_seqlens_q": np.array([0, 3, 3, 10], np.int32),
    "cu_seqlens_k": np.array([0, 5, 9, 20], np.int32),
}
_STATE = zeros(np.uint32, rng_state=(4,))
_ELEMENTWISE, _ALIBI = _C.BIASES["elementwise"], _C.BIASES["alibi"]
_LAYER = {"kind": _C.NORM_LAYER, "zero_centred": 0, "epsilon": 1e-5, "has_residual": 1}

_Q = frozenset({"q"})
_OF_PACKED = frozenset({"q", "k", "cu_seqlens_q"})
_X = frozenset({"x"})
PROGRAMS = {
    "fwd": Program(
        _ffi.FWD,
        _QKV | _STATE | zeros(bias=(2, 4, 9, 11)),
        zeros(out=(2, 9, 4, 8), lse=(2, 4, 9)),
        attention(bias=_ELEMENTWISE, dropout_p=0.5),
        free_dtypes=_Q,
    ),
    "fwd by slopes": Program(
        _ffi.FWD,
        _QKV | zeros(alibi_slopes=(2, 4)),
        zeros(out=(2, 9, 4, 8), lse=(2, 4, 9)),
        attention(bias=_ALIBI),
        free_dtypes=_Q,
    ),
    "fwd of sequences": Program(
        _ffi.FWD,
        _PACKED | zeros(alibi_slopes=(4,)),
        zeros(out=(10, 4, 8), lse=(4, 10)),
        attention(bias=_ALIBI, seqlen_q=7),
        free_shapes=_OF_PACKED,
        free_dtypes=_Q,
    ),
    "bwd": Program(
        _ffi.BWD,
        zeros(dout=(2, 9, 4, 8)) | _QKV | zeros(out=(2, 9, 4, 8), lse=(2, 4, 9))
        | zeros(bias=(2, 4, 9, 11)),
        zeros(dq=(2, 9, 4, 16), dk=(2, 11, 2, 16), dv=(2, 11, 2, 8), dbias=(2, 4, 9, 11)),
        attention(bias=_ELEMENTWISE, bias_grad=1, deterministic=0),
        free_dtypes=_Q,
    ),
    "bwd of sequences": Program(
        _ffi.BWD,
        zeros(dout=(10, 4, 8)) | {n: _PACKED[n] for n in "qkv"} | zeros(out=(10, 4, 8))
        | zeros(lse=(4, 10)) | {n: a for n, a in _PACKED.items() if n.startswith("cu_")} | _STATE,
        zeros(dq=(10, 4, 16), dk=(20, 2, 16), dv=(20, 2, 8)),
        attention(seqlen_q=7, dropout_p=0.5, bias_grad=0, deterministic=1),
        free_shapes=_OF_PACKED,
        free_dtypes=_Q,
    ),
    "dropout_mask": Program(
        _ffi.DROPOUT_MASK,
        _QKV | _STATE,
        zeros(np.uint8, kept=(2, 4, 9, 11)),
        attention(dropout_p=0.5),
        free_dtypes=_Q,
    ),
    "norm_fwd": Program(
        _ffi.NORM_FWD,
        zeros(x=(3, 5, 16), gamma=(16,), beta=(16,), residual=(3, 5, 16)),
        zeros(y=(3, 5, 16), rstd=(3, 5), mean=(3, 5), sum=(3, 5, 16)),
        _LAYER,
        free_shapes=_X,
        free_dtypes=_X | {"gamma"},
    ),
    "norm_bwd": Program(
        _ffi.NORM_BWD,
        zeros(dy=(3, 5, 16), x=(3, 5, 16), gamma=(16,), rstd=(3, 5), mean=(3, 5), dh=(3, 5, 16)),
        zeros(dx=(3, 5, 16), dgamma=(16,), dbeta=(16,)),
        _LAYER,
        free_shapes=_X,
        free_dtypes=_X | {"gamma"},
    ),
    "softmax_fwd": Program(
        _ffi.SOFTMAX_FWD,
        zeros(x=(4, 5, 16)) | zeros(np.uint8, mask=(2, 5, 16)),
        zeros(y=(4, 5, 16)),
        {"mask_kind": _C.SOFTMAX_MASK_EXPLICIT, "scale": 1.0},
        free_shapes=_X | {"mask"},
        free_dtypes=_X,
    ),
    "softmax_bwd": Program(
        _ffi.SOFTMAX_BWD,
        zeros(y=(4, 5, 16), dy=(4, 5, 16)),
        zeros(dx=(4, 5, 16)),
        {"mask_kind": _C.SOFTMAX_MASK_CAUSAL, "scale": 0.5},
        free_shapes=frozenset({"y"}),
        free_dtypes=frozenset({"y"}),
    ),
}  # fmt: skip

each_program = pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)


def with_one_wrong() -> Iterator[Any]:
    for of, program in PROGRAMS.items():
        for name, array in {**program.operands, **program.results}.items():
            # Queries, or what comes first: one less, and one.
            axis = 1 if array.ndim == 4 and name not in ("bias", "dbias") else 0
            for size in {1, array.shape[axis] - 1} if name not in program.free_shapes else ():
                if name != "bias" or size > 1:  # a bias may be repeated
                    shape = (*array.shape[:axis], size, *array.shape[axis + 1 :])
                    yield pytest.param(program, name, np.zeros(shape, array.dtype),
                                       id=f"{of}: {name} {shape}")  # fmt: skip
            if name not in program.free_dtypes:
                dtype = np.float16 if array.dtype == np.float32 else np.float32
                yield pytest.param(program, name, np.zeros(array.shape, dtype),
                                   id=f"{of}: {name} {np.dtype(dtype)}")  # fmt: skip


@each_program
def test_a_right_program_runs(program: Program) -> None:
    for result, wanted in zip(program.run(), program.results.values(), strict=True):
        assert result.shape == wanted.shape


@pytest.mark.parametrize(("program", "name", "array"), list(with_one_wrong()))
def test_a_wrong_array_is_named(program: Program, name: str, array: np.ndarray) -> None:
    with pytest.raises(jax.errors.JaxRuntimeError, match=rf"INVALID_ARGUMENT: {name}: shape \["):
        program.replaced(name, array).run()


@pytest.mark.parametrize("shape", [(3, 5, 16), (0, 5, 16), (2, 4, 16), (2, 16), (8, 5, 16)])
def test_masks_that_do_not_divide_the_matrices_are_refused(shape: tuple[int, ...]) -> None:
    program = PROGRAMS["softmax_fwd"].replaced("mask", np.zeros(shape, np.uint8))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"INVALID_ARGUMENT: mask: shape \["):
        program.run()


@each_program
def test_each_array_is_there_once(program: Program) -> None:
    for kind in ("operands", "results"):
        arrays: Arrays = getattr(program, kind)
        last = list(arrays)[-1]
        fewer = {n: a for n, a in arrays.items() if n != last}
        if fewer:  # a call without a result is none
            message = f"INVALID_ARGUMENT: {last}: no such {kind[:-1]}"
            with pytest.raises(jax.errors.JaxRuntimeError, match=message):
                dataclasses.replace(program, **{kind: fewer}).run()
        message = f"{len(arrays) + 1} {kind}; allowed here: {len(arrays)}"
        with pytest.raises(jax.errors.JaxRuntimeError, match=message):
            dataclasses.replace(program, **{kind: {**arrays, "more": arrays[last]}}).run()
