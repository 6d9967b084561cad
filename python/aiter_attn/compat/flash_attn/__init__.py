# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""flash-attn 2's attention functions, bert_padding and layers.rotary, by this package.

import aiter_attn.compat.flash_attn
aiter_attn.compat.flash_attn.install()
from flash_attn import flash_attn_func
"""

from __future__ import annotations

import sys
from typing import Final, NoReturn

from aiter_attn.compat import _names
from aiter_attn.compat.flash_attn import bert_padding, flash_attn_interface, layers
from aiter_attn.compat.flash_attn.flash_attn_interface import (
    flash_attn_func,
    flash_attn_kvpacked_func,
    flash_attn_qkvpacked_func,
    flash_attn_varlen_func,
    flash_attn_varlen_kvpacked_func,
    flash_attn_varlen_qkvpacked_func,
    flash_attn_with_kvcache,
)

__all__ = [
    "bert_padding",
    "flash_attn_func",
    "flash_attn_interface",
    "flash_attn_kvpacked_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_varlen_func",
    "flash_attn_varlen_kvpacked_func",
    "flash_attn_varlen_qkvpacked_func",
    "flash_attn_with_kvcache",
    "install",
    "layers",
]

# The flash-attn whose arguments and results these are: whoever asks for its version means that.
__version__: Final = "2.8.3"


def install() -> None:
    """Makes this package the process's flash_attn. Raises ImportError where there is one."""
    modules = {
        "bert_padding": bert_padding,
        "flash_attn_interface": flash_attn_interface,
        "layers": layers,
        "layers.rotary": layers.rotary,
    }
    _names.install("flash_attn", sys.modules[__name__], modules, __version__)


def __getattr__(name: str) -> NoReturn:
    raise _names.missing("flash_attn", name, __all__)
