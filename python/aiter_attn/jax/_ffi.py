# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The handlers of libattn_jax.so (python/xla_ffi), made known to XLA."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

import jax
import numpy

from aiter_attn import _C
from aiter_attn._core.errors import UnsupportedError

__all__ = [
    "BWD",
    "DROPOUT_MASK",
    "FWD",
    "KVCACHE_FWD",
    "NORM_BWD",
    "NORM_FWD",
    "SOFTMAX_BWD",
    "SOFTMAX_FWD",
    "attributes",
    "export_checks",
    "register",
    "without_derivative",
]

FWD: Final = "aiter_attn_fwd"
BWD: Final = "aiter_attn_bwd"
DROPOUT_MASK: Final = "aiter_attn_dropout_mask"
KVCACHE_FWD: Final = "aiter_attn_kvcache_fwd"
NORM_FWD: Final = "aiter_attn_norm_fwd"
NORM_BWD: Final = "aiter_attn_norm_bwd"
SOFTMAX_FWD: Final = "aiter_attn_softmax_fwd"
SOFTMAX_BWD: Final = "aiter_attn_softmax_bwd"
_TARGETS: Final = (
    FWD, BWD, DROPOUT_MASK, KVCACHE_FWD, NORM_FWD, NORM_BWD, SOFTMAX_FWD, SOFTMAX_BWD,
)  # fmt: skip
_OLDEST: Final = (0, 6)
_HANDLERS: Final = Path(__file__).with_name("libattn_jax.so")


def check_version(version: tuple[int, ...]) -> None:
    """Raises ImportError for a jax without the FFI that the handlers are written for."""
    if version[:2] < _OLDEST:
        raise ImportError(
            f"aiter_attn.jax: jax {'.'.join(map(str, version))}; allowed: "
            f"{'.'.join(map(str, _OLDEST))} or newer (pip install -U jax)",
            name="jax",
        )


def export_checks() -> list[Any]:
    """jax.export.export's disabled_checks for programs with calls of this package: jax takes only
    custom calls that it knows to be stable.

        exported = jax.export.export(function, disabled_checks=aiter_attn.jax.export_checks())

    A process that runs such a program imports aiter_attn.jax first. The library of the version that
    it was exported with, or a newer one, takes it.
    """
    # Some versions need absl-py for it, which they do not ask for.
    from jax import export

    return [export.DisabledSafetyCheck.custom_call(target) for target in _TARGETS]


@functools.cache
def register() -> None:
    """Raises ImportError where XLA does not take the handlers."""
    check_version(jax.version.__version_info__)
    library = ctypes.CDLL(str(_HANDLERS))
    library.attn_jax_bind.restype = ctypes.c_char_p
    error = library.attn_jax_bind(ctypes.c_void_p(_C.FIND_FUNCTION))
    if error:
        raise ImportError(f"aiter_attn.jax: {error.decode()}")
    for platform, suffix in (("cpu", "cpu"), ("ROCM", "rocm")):
        for target in _TARGETS:
            name = target.replace("aiter_attn", "attn_jax")
            _register(target, getattr(library, f"{name}_{suffix}"), platform)


def attributes(options: Mapping[str, int | float]) -> dict[str, Any]:
    """Options of a C struct as the attributes of a custom call."""
    return {
        name: numpy.float32(value) if isinstance(value, float) else numpy.int32(value)
        for name, value in options.items()
    }


_SECOND: Final = (
    "aiter_attn.jax: a second derivative, or one in forward mode (jax.hessian, jax.jvp of "
    "jax.grad); allowed: first derivatives of aiter_attn.jax's functions by jax.grad, jax.vjp and "
    "jax.jacrev"
)


def without_derivative(call: Callable[..., Any], why: str = _SECOND) -> Any:
    """The custom call, in words of which jax says that it cannot differentiate it."""

    def refuse(primals: Any, tangents: Any) -> NoReturn:
        raise UnsupportedError(why)

    once = jax.custom_jvp(call)
    once.defjvp(refuse)
    return once


def _register(target: str, handler: Any, platform: str) -> None:
    try:
        jax.ffi.register_ffi_target(target, jax.ffi.pycapsule(handler), platform=platform)
    except Exception as error:  # XLA's, of several kinds
        raise ImportError(
            f"aiter_attn.jax: jax {jax.__version__} does not take {target} for {platform}: {error}"
        ) from error
