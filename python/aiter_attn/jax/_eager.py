# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The package's functions on concrete arrays of AMD GPUs: the custom calls, run at once by XLA.

Not by DLPack: XLA has no way to learn when work of others that reads an array is done, so it would
hand the memory out again under a running kernel. A custom call is in the order of XLA's own work.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from aiter_attn import jax as front
from aiter_attn._core.errors import UnsupportedError

__all__ = ["at_once"]


def _parts(name: str, packed: Any, parts: int) -> list[Any]:
    """The entries of a packed array, which are copies: jax has no views."""
    if packed.ndim < 4 or packed.shape[-3] != parts:
        raise ValueError(
            f"{name}: shape {packed.shape}; allowed: [..., {parts}, heads, head_size], with batch "
            "and seqlen or tokens in front"
        )
    return [packed[..., i, :, :] for i in range(parts)]


def at_once(of_package: Callable[..., Any]) -> Callable[..., Any]:
    """The front's function of the name of one of the package's, with the arguments of that; packed
    arrays go to the function of separate ones. of_package itself where there is none.

    It raises UnsupportedError for an argument that the front's has not.
    """
    name = of_package.__name__.replace("_qkvpacked", "").replace("_kvpacked", "")
    of_programs = getattr(front, name, None)
    if of_programs is None:
        return of_package
    package, known = inspect.signature(of_package), inspect.signature(of_programs).parameters

    @functools.wraps(of_package)
    def call(*arguments: Any, **more: Any) -> Any:
        given = package.bind(*arguments, **more).arguments
        if "qkv" in given:
            given |= zip("qkv", _parts("qkv", given.pop("qkv"), 3), strict=True)
            if "cu_seqlens" in given:
                given["cu_seqlens_q"] = given["cu_seqlens_k"] = given.pop("cu_seqlens")
                given["max_seqlen_q"] = given["max_seqlen_k"] = given.pop("max_seqlen")
        if "kv" in given:
            given |= zip("kv", _parts("kv", given.pop("kv"), 2), strict=True)
        if of_package.__name__ == "flash_attn_with_kvcache" and given.get("k") is not None:
            raise UnsupportedError(
                "k: given with jax arrays, and the caches, which it would be written to, are "
                "arrays of jax, which do not change; call "
                "aiter_attn.jax.flash_attn_with_kvcache, which returns new ones"
            )
        for name, value in given.items():
            if name not in known and value is not None:
                raise UnsupportedError(
                    f"{name}: given with jax arrays on a GPU, where "
                    f"aiter_attn.jax.{of_programs.__name__} serves the call, which has none; pass "
                    "None, or arrays on the CPU (jax.device_put(x, jax.devices('cpu')[0]))"
                )
        return of_programs(**{name: value for name, value in given.items() if name in known})

    return call
