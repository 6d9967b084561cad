# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""flash_attn.flash_attn_interface: arguments and results are flash-attn's."""

from __future__ import annotations

from typing import NoReturn

from aiter_attn import flash_attn_with_kvcache
from aiter_attn.compat import _names
from aiter_attn.compat.flash_attn._passes import (
    _flash_attn_backward,
    _flash_attn_forward,
    _flash_attn_varlen_backward,
    _flash_attn_varlen_forward,
)
from aiter_attn.compat.flash_attn._signed import (
    flash_attn_func,
    flash_attn_kvpacked_func,
    flash_attn_qkvpacked_func,
    flash_attn_varlen_func,
    flash_attn_varlen_kvpacked_func,
    flash_attn_varlen_qkvpacked_func,
)

__all__ = [
    "_flash_attn_backward",
    "_flash_attn_forward",
    "_flash_attn_varlen_backward",
    "_flash_attn_varlen_forward",
    "flash_attn_func",
    "flash_attn_kvpacked_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_varlen_func",
    "flash_attn_varlen_kvpacked_func",
    "flash_attn_varlen_qkvpacked_func",
    "flash_attn_with_kvcache",
]


def __getattr__(name: str) -> NoReturn:
    raise _names.missing("flash_attn.flash_attn_interface", name, __all__)
