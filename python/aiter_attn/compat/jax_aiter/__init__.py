# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""jax-aiter's attention and RMSNorm, by aiter_attn.jax.

import aiter_attn.compat.jax_aiter
aiter_attn.compat.jax_aiter.install()
from jax_aiter.mha import flash_attn_func
"""

from __future__ import annotations

import sys
from typing import NoReturn

from aiter_attn.compat import _names
from aiter_attn.compat.jax_aiter import mha, rmsnorm

__all__ = ["install", "mha", "rmsnorm"]


def install() -> None:
    """Makes this package the process's jax_aiter. Raises ImportError where there is one already."""
    # There each is a package with a module of its own name.
    modules = {"mha": mha, "mha.mha": mha, "rmsnorm": rmsnorm, "rmsnorm.rmsnorm": rmsnorm}
    _names.install("jax_aiter", sys.modules[__name__], modules)


def __getattr__(name: str) -> NoReturn:
    raise _names.missing("jax_aiter", name, ("mha", "rmsnorm"))
