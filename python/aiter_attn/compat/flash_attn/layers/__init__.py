# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""flash_attn.layers: rotary alone."""

from __future__ import annotations

from typing import NoReturn

from aiter_attn.compat import _names
from aiter_attn.compat.flash_attn.layers import rotary

__all__ = ["rotary"]


def __getattr__(name: str) -> NoReturn:
    raise _names.missing("flash_attn.layers", name, __all__)
