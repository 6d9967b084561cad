# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The usual calls, with changes, which tests of refusals share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aiter_attn
import numpy
import pytest

# The function, the changed arguments, the exception, and the start or a part of its message.
Refusal = tuple[Callable[..., Any], dict[str, Any], type[Exception], str]


def draw(*shape: int, dtype: Any = numpy.float16) -> Any:
    return numpy.zeros(shape, dtype)


Q, K, V = draw(2, 5, 4, 8), draw(2, 7, 2, 8), draw(2, 7, 2, 16)
OUT, LSE = draw(2, 5, 4, 16), draw(2, 4, 5, dtype=numpy.float32)
ROWS_Q, ROWS_K = draw(5, 4, 8), draw(7, 2, 8)
STARTS_Q, STARTS_K = numpy.array([0, 2, 5], numpy.int32), numpy.array([0, 3, 7], numpy.int32)


def forward(**changes: Any) -> Any:
    return aiter_attn.mha_fwd(**{"q": Q, "k": K, "v": V, **changes})


def backward(**changes: Any) -> Any:
    usual = {"dout": OUT, "q": Q, "k": K, "v": V, "out": OUT, "lse": LSE}
    return aiter_attn.mha_bwd(**{**usual, **changes})


_SEQUENCES = {
    "q": ROWS_Q,
    "k": ROWS_K,
    "v": ROWS_K,
    "cu_seqlens_q": STARTS_Q,
    "cu_seqlens_k": STARTS_K,
    "max_seqlen_q": 3,
    "max_seqlen_k": 4,
}


def varlen(**changes: Any) -> Any:
    return aiter_attn.flash_attn_varlen_func(**{**_SEQUENCES, **changes})


def mha_varlen(**changes: Any) -> Any:
    return aiter_attn.mha_varlen_fwd(**{**_SEQUENCES, **changes})


def explained(**changes: Any) -> Any:
    shape = (1, 4, 2, 64)
    usual = {"q": shape, "k": shape, "v": shape, "dtype": "float16", "arch": "gfx942"}
    return aiter_attn.explain(**{**usual, **changes})


def flash(**changes: Any) -> Any:
    return aiter_attn.flash_attn_func(**{"q": Q, "k": K, "v": V, **changes})


def check_refused(refusal: Refusal) -> None:
    function, changes, kind, message = refusal
    with pytest.raises(kind) as caught:
        function(**changes)
    assert message in str(caught.value)
    assert "incompatible function arguments" not in str(caught.value)
    if kind is NotImplementedError:
        assert isinstance(caught.value, aiter_attn.UnsupportedError)
