# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""jax_aiter.rmsnorm"""

from __future__ import annotations

import sys
from typing import Any

import jax

from aiter_attn import jax as front
from aiter_attn.compat import _names

__all__ = ["rms_norm", "rms_norm_with_add"]


def rms_norm(x: jax.Array, gamma: jax.Array, epsilon: float = 1e-6) -> Any:
    """aiter_attn.jax.rms_norm: x / sqrt(mean(x^2) + epsilon) * gamma, [..., hidden]."""
    return front.rms_norm(x, gamma, epsilon=epsilon)


def rms_norm_with_add(
    x: jax.Array, residual: jax.Array, gamma: jax.Array, epsilon: float = 1e-6
) -> Any:
    """(y, x + residual), y being rms_norm of x + residual."""
    return front.rms_norm(x, gamma, residual=residual, epsilon=epsilon)


def __getattr__(name: str) -> Any:
    if name == "rmsnorm":  # jax_aiter.rmsnorm.rmsnorm is a module there
        return sys.modules[__name__]
    raise _names.missing("jax_aiter.rmsnorm", name, __all__)
