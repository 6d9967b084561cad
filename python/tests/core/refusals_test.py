# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Wrong arrays: each refusal has the name, the value and the allowed ones."""

from __future__ import annotations

from typing import Any

import aiter_attn
import numpy
import pytest

from tests.support.python.calls import (
    LSE,
    OUT,
    ROWS_Q,
    STARTS_K,
    STARTS_Q,
    K,
    Q,
    Refusal,
    V,
    backward,
    check_refused,
    draw,
    flash,
    forward,
    varlen,
)
from tests.support.python.dlpack_exporter import KDL_CUDA, KDL_ROCM, Exporter


def read_only(array: Any) -> Any:
    array = array.copy()
    array.flags.writeable = False
    return array


MASKED = numpy.ma.MaskedArray(K)
WRONG: dict[str, Refusal] = {
    # Objects that are no array, or of another dtype.
    "a list": (forward, {"q": [1, 2]}, TypeError, "q: list is no array; allowed: numpy, torch"),
    "nothing": (forward, {"v": None}, TypeError, "v: NoneType is no array"),
    "a numpy scalar": (forward, {"v": numpy.float32(1)}, TypeError, "v: float32 is no array"),
    "a masked array": (forward, {"k": MASKED}, TypeError, "k: a masked array would lose its mask"),
    "float64": (
        forward,
        {"q": Q.astype(float)},
        TypeError,
        "q: dtype float64; allowed: float16, bfloat16, and on the CPU float32",
    ),
    "an integer dtype": (forward, {"k": K.astype(int)}, TypeError, "k: dtype int64; allowed"),
    "objects": (forward, {"k": K.astype(object)}, TypeError, "k: dtype object; allowed"),
    "the other byte order": (forward, {"k": K.astype(">f2")}, TypeError, "k: dtype >f2 is not in"),
    "two dtypes": (
        forward,
        {"k": K.astype(numpy.float32)},
        TypeError,
        "k: dtype float32; allowed here: float16, as q has; q, k, v, out and the gradients have",
    ),
    "dout of another dtype": (
        backward,
        {"dout": OUT.astype(numpy.float32)},
        TypeError,
        "dout: dtype float32; allowed here: float16, as q has",
    ),
    "lse of another dtype": (
        backward,
        {"lse": LSE.astype(numpy.float16)},
        TypeError,
        "lse: dtype float16; allowed here: float32",
    ),
    "out of another dtype": (
        forward,
        {"out": OUT.astype(numpy.float32)},
        TypeError,
        "out: dtype float32; allowed here: float16, as q has",
    ),
    "long offsets": (
        varlen,
        {"cu_seqlens_k": STARTS_K.astype(numpy.int64)},
        TypeError,
        "cu_seqlens_k: dtype int64; allowed: int32",
    ),
    # Shapes.
    "q of rank 3": (
        forward,
        {"q": ROWS_Q},
        ValueError,
        "q: shape (5, 4, 8); allowed: [batch, seqlen, heads, head size]",
    ),
    "varlen q of rank 4": (
        varlen,
        {"q": Q},
        ValueError,
        "q: shape (2, 5, 4, 8); allowed: [total tokens, heads, head size]",
    ),
    "another batch": (
        forward,
        {"k": K[:1]},
        ValueError,
        "k: shape (1, 7, 2, 8); allowed here: (2, 7, 2, 8) [batch, seqlen, heads, head size]: "
        "batch 1 instead of 2",
    ),
    "another head size": (forward, {"k": V}, ValueError, "head size 16 instead of 8"),
    "v shorter than k": (forward, {"v": V[:, :6]}, ValueError, "v: shape (2, 6, 2, 16); allowed"),
    "v with more heads": (forward, {"v": draw(2, 7, 4, 16)}, ValueError, "heads 4 instead of 2"),
    "heads that do not divide": (
        forward,
        {"q": draw(2, 5, 3, 8)},
        ValueError,
        "k: 2 heads (shape (2, 7, 2, 8)), but q has 3; q's must be a multiple",
    ),
    "no heads": (forward, {"k": draw(2, 7, 0, 8)}, ValueError, "k: 0 heads"),
    "no head size": (
        forward,
        {"q": draw(2, 5, 4, 0), "k": draw(2, 7, 2, 0)},
        ValueError,
        "q, v: head sizes 0, 16; allowed: 1 or more",
    ),
    "out of another shape": (
        forward,
        {"out": draw(2, 5, 4, 8)},
        ValueError,
        "out: shape (2, 5, 4, 8); allowed here: (2, 5, 4, 16) [batch, seqlen, heads, head size]: "
        "head size 8 instead of 16",
    ),
    "lse of another shape": (
        backward,
        {"lse": LSE[:, :3]},
        ValueError,
        "lse: shape (2, 3, 5); allowed here: (2, 4, 5) [batch, heads, seqlen]: heads 3",
    ),
    "dout of another rank": (
        backward,
        {"dout": OUT[0]},
        ValueError,
        "dout: shape (5, 4, 16); allowed here: (2, 5, 4, 16) [batch, seqlen, heads, head size]: "
        "3 dimensions instead of 4",
    ),
    "dk of q's shape": (
        backward,
        {"dk": draw(2, 7, 4, 8)},
        ValueError,
        "dk: shape (2, 7, 4, 8); allowed here: (2, 7, 2, 8) [batch, seqlen, heads, head size]: "
        "heads 4 instead of 2",
    ),
    "offsets of rank 2": (
        varlen,
        {"cu_seqlens_q": STARTS_Q[None]},
        ValueError,
        "cu_seqlens_q: shape (1, 3); allowed: [batch + 1]",
    ),
    "no offsets": (varlen, {"cu_seqlens_q": STARTS_Q[:0]}, ValueError, "cu_seqlens_q: shape (0,)"),
    "offsets of two batches": (
        varlen,
        {"cu_seqlens_k": STARTS_K[:2]},
        ValueError,
        "cu_seqlens_k: 2 entries, but cu_seqlens_q has 3",
    ),
    "offsets that go back": (
        varlen,
        {"cu_seqlens_q": numpy.array([0, 6, 5], numpy.int32), "max_seqlen_q": 6},
        ValueError,
        "cu_seqlens_q",
    ),
    "offsets that end elsewhere": (
        varlen,
        {"cu_seqlens_k": numpy.array([0, 3, 6], numpy.int32)},
        ValueError,
        "cu_seqlens_k",
    ),
    "a sequence that is longer than said": (
        varlen,
        {"cu_seqlens_k": numpy.array([0, 5, 7], numpy.int32)},
        ValueError,
        "cu_seqlens_k[1] - cu_seqlens_k[0] is 5, but must not exceed seqlen_k, 4",
    ),
    "more tokens than sequences can have": (
        varlen,
        {"max_seqlen_k": 3},
        ValueError,
        "cu_seqlens_k, max_seqlen_k: 2 sequence(s) of up to 3 tokens, but k has 7; allowed here: "
        "offsets that end at 7, and a max_seqlen_k of 4 or more",
    ),
    "a bias for all batches and heads, without ones": (
        forward,
        {"bias": draw(5, 7)},
        ValueError,
        "bias: shape (5, 7); allowed here: (2, 4, 5, 7) [batch, heads, queries, keys], with 1 for "
        "any size but the last: it serves all; pass a view of shape (1, 1, 5, 7)",
    ),
    "tokens of no sequence": (
        varlen,
        {"cu_seqlens_q": STARTS_Q[:1], "cu_seqlens_k": STARTS_K[:1]},
        ValueError,
        "q: 5 tokens; allowed here: 0, as cu_seqlens_q has no sequence",
    ),
    "a negative length": (
        varlen,
        {"max_seqlen_q": -1},
        ValueError,
        "max_seqlen_q: -1; allowed: 0 to 2147483647",
    ),
    "a length that is no integer": (
        varlen,
        {"max_seqlen_q": 3.0},
        TypeError,
        "max_seqlen_q: 3.0; allowed: an integer",
    ),
    # Strides.
    "head size not contiguous": (
        forward,
        {"k": draw(2, 7, 2, 16)[..., ::2]},
        ValueError,
        "k: strides (224, 32, 16, 2) (in elements); the last must be 1: pass a copy",
    ),
    "strides of parts of elements": (
        forward,
        {"k": numpy.zeros((2, 7, 2, 17), numpy.uint8)[..., :16].view(numpy.float16)},
        ValueError,
        "k: the stride of dimension 2 is 17 bytes, no multiple",
    ),
    "lse not contiguous": (
        forward,
        {"lse": numpy.zeros((2, 5, 4), numpy.float32).transpose(0, 2, 1)},
        ValueError,
        "lse: strides (20, 1, 4) (in elements) of shape (2, 4, 5); it must be contiguous",
    ),
    "offsets not contiguous": (
        varlen,
        {"cu_seqlens_q": numpy.zeros(6, numpy.int32)[::2]},
        ValueError,
        "cu_seqlens_q: strides (2,)",
    ),
    # Memory that cannot be written.
    "a read-only result": (forward, {"out": read_only(OUT)}, ValueError, "out: is read-only"),
    "a read-only result by DLPack": (
        forward,
        {"out": Exporter(OUT, read_only=True)},
        ValueError,
        "out: is read-only; pass a writable array or out=None",
    ),
    "rows of a result that overlap": (
        forward,
        {"out": numpy.lib.stride_tricks.as_strided(OUT.copy(), OUT.shape, (0, 128, 32, 2))},
        ValueError,
        "overlap",
    ),
    # Devices.
    "a CUDA array": (
        forward,
        {"q": Exporter(Q, device=(KDL_CUDA, 1))},
        ValueError,
        "q: on CUDA:1; allowed: CPU (host memory) and ROCm (AMD GPUs); copy",
    ),
    "a device without a name": (
        forward,
        {"q": Exporter(Q, device=(77, 0))},
        ValueError,
        "q: on DLPack device type 77:0; allowed",
    ),
    "two devices": (
        forward,
        {"k": Exporter(K, device=(KDL_ROCM, 0))},
        ValueError,
        "k: on ROCm:0, but q is on CPU; all arrays of a call are on one device",
    ),
    "offsets elsewhere": (
        varlen,
        {"cu_seqlens_q": Exporter(STARTS_Q, device=(KDL_ROCM, 0))},
        ValueError,
        "cu_seqlens_q: on ROCm:0, but q is on CPU",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_refused(wrong: str) -> None:
    check_refused(WRONG[wrong])


def test_the_usual_is_not_refused() -> None:
    forward()
    backward()
    varlen()
    flash()


def test_more_than_32_bits() -> None:
    q = numpy.broadcast_to(Q[:1, :1, :1, :], (2**31, 1, 1, 8))
    with pytest.raises(ValueError, match="q: batch: 2147483648; allowed: 0 to 2147483647"):
        aiter_attn.mha_fwd(q, q, q, out=q, lse=q)


def test_exceptions_are_what_callers_catch() -> None:
    assert issubclass(aiter_attn.UnsupportedError, NotImplementedError)
    assert issubclass(aiter_attn.OutOfMemoryError, MemoryError)
    for kind in ("UnsupportedError", "OutOfMemoryError", "DriverError", "CorruptError"):
        assert issubclass(getattr(aiter_attn, kind), aiter_attn.AttnError)
    assert issubclass(aiter_attn.AttnError, RuntimeError)
