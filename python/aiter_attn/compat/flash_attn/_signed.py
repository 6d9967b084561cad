# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The package's functions, with flash-attn's signs of dropped weights."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import aiter_attn

__all__ = [
    "flash_attn_func",
    "flash_attn_kvpacked_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_varlen_func",
    "flash_attn_varlen_kvpacked_func",
    "flash_attn_varlen_qkvpacked_func",
]


def _with_signs(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with 1 and -1 in out's dtype for probs' 1 and 0: flash-attn's probabilities are
    negative where a weight is dropped, and `probs >= 0` says which stay."""

    @functools.wraps(function)
    def call(*arguments: Any, **more: Any) -> Any:
        result = function(*arguments, **more)
        if not isinstance(result, tuple) or 0 in result[2].shape:
            return result
        out, lse, kept = result
        signs = kept.astype(out.dtype) if hasattr(kept, "astype") else kept.to(out.dtype)
        return out, lse, 2 * signs - 1

    return call


flash_attn_func = _with_signs(aiter_attn.flash_attn_func)
flash_attn_kvpacked_func = _with_signs(aiter_attn.flash_attn_kvpacked_func)
flash_attn_qkvpacked_func = _with_signs(aiter_attn.flash_attn_qkvpacked_func)
flash_attn_varlen_func = _with_signs(aiter_attn.flash_attn_varlen_func)
flash_attn_varlen_kvpacked_func = _with_signs(aiter_attn.flash_attn_varlen_kvpacked_func)
flash_attn_varlen_qkvpacked_func = _with_signs(aiter_attn.flash_attn_varlen_qkvpacked_func)
