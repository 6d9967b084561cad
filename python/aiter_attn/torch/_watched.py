# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Whether anything of torch but autograd would notice that an operator is called.

Where nothing would, its kernel is called without torch's dispatcher, which takes longer than all
else that a small call needs. All that is not known to be plain counts as noticing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch
from torch.autograd import forward_ad

from aiter_attn import _C

__all__ = ["WATCHER", "is_compiling", "is_watched", "is_watched_since"]

is_compiling: Final = torch.compiler.is_compiling
# Private in torch. With a version that lacks one, all calls are watched.
_keys: Final[Any] = getattr(torch._C, "_dispatch_keys", None)
_keys_of_thread: Final[Any] = getattr(torch._C, "_dispatch_tls_local_include_set", None)
_function_modes: Final[Any] = getattr(torch._C, "_len_torch_function_stack", None)
_is_profiled: Final[Any] = getattr(torch.autograd, "_profiler_enabled", None)
_CAN_TELL: Final = None not in (_keys, _keys_of_thread, _function_modes, _is_profiled) and hasattr(
    forward_ad, "_current_level"
)

# Subclasses have functions of their own.
_CLASSES: Final = (torch.Tensor, torch.nn.Parameter)
# The devices that kernels serve, or refuse. Of others, as meta, an operator knows more.
_DEVICES: Final = ("cpu", "cuda")
# Dispatch keys, as bits, of tensors without a lazy conjugate or negative, a layout of their own, a
# transform or a functionalisation: as tensors of the devices that were met so far have them.
_PLAIN: Final[set[int]] = set()


def _keys_of_plain_threads() -> tuple[int, ...]:
    """Dispatch keys, as bits, that are on in a thread by themselves: outside and within inference
    mode. Modes of dispatch, transforms and tracing add to them."""
    key, of = torch._C.DispatchKey, torch._C.DispatchKeySet
    within = of(key.BackendSelect)
    return within.add(key.ADInplaceOrView).raw_repr(), within.raw_repr()


def is_watched(tensors: Sequence[Any]) -> bool:
    """Whether an operator must be called as torch calls it. tensors: all tensors of the call, or
    what a caller took for such; None where one is not given."""
    # Compiling first, as what follows cannot be traced.
    return is_compiling() or WATCHER is None or WATCHER.watches(tensors)


def is_watched_since(given: Sequence[Any], saved: Sequence[Any]) -> bool:
    """is_watched() of all, in a backward pass whose forward pass was not watched. given: gradients.
    saved: what that pass saved, which a hook may have replaced by tensors of another class."""
    for tensor in saved:
        if tensor is not None and type(tensor) not in _CLASSES:
            return True
    return is_watched(given)


def _is_plain(tensor: torch.Tensor) -> bool:
    """For the first tensor of a device, and for those that are not plain."""
    if tensor.device.type not in _DEVICES:
        return False
    for within in (False, True):
        with torch.inference_mode(within):
            _PLAIN.add(_keys(torch.empty(0, device=tensor.device)).raw_repr())
    return _keys(tensor).raw_repr() in _PLAIN


WATCHER: Final = (
    _C.Watcher(
        modes=_function_modes,
        thread_keys=_keys_of_thread,
        plain_threads=_keys_of_plain_threads(),
        forward_ad=forward_ad,
        is_profiled=_is_profiled,
        keys=_keys,
        plain=_PLAIN,
        is_plain=_is_plain,
        is_grad_enabled=torch.is_grad_enabled,
        classes=_CLASSES,
    )
    if _CAN_TELL
    else None
)
