# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Inside jax.shard_map: along which of the mesh's axes an array differs. jax tracks that, but
cannot know it of what a custom call gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax

__all__ = ["Pass", "as_primal", "as_varying"]

# A custom call: jax arrays to a tuple of jax arrays.
Pass: TypeAlias = Callable[..., Any]


def _axes(array: Any) -> frozenset[str]:
    """jax tells them since 0.7, and by another name since 0.10."""
    kind: Any = jax.typeof(array) if hasattr(jax, "typeof") else None
    if hasattr(kind, "manual_axis_type"):
        return frozenset(kind.manual_axis_type.varying)
    return frozenset(getattr(kind, "vma", ()))


def as_varying(results: Sequence[jax.Array], operands: Sequence[Any]) -> tuple[jax.Array, ...]:
    """The results of a custom call, which differ along all the axes that an operand does."""
    axes = frozenset[str]().union(*map(_axes, operands))
    if not axes:
        return tuple(results)
    if hasattr(jax.lax, "pcast"):
        return tuple(jax.lax.pcast(r, tuple(axes - _axes(r)), to="varying") for r in results)
    return tuple(jax.lax.pvary(r, tuple(axes - _axes(r))) for r in results)


def as_primal(gradient: jax.Array, primal: jax.Array) -> jax.Array:
    """The sum over the axes along which the primal does not differ."""
    axes = tuple(_axes(gradient) - _axes(primal))
    return jax.lax.psum(gradient, axes) if axes else gradient
