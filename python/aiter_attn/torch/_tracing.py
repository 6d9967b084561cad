# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The checks of a call before it has memory: for fake kernels, and ahead of autograd graphs.

So a call that nothing serves is refused where it is traced, or recorded, and not where it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from aiter_attn import _C
from aiter_attn._core import problems
from aiter_attn._core.options import Options, folded, options
from aiter_attn._core.problems import Lengths, ShapeDtype

__all__ = [
    "arch_of",
    "check_devices",
    "check_served",
    "described",
    "known_call",
    "known_size",
]


def described(tensor: torch.Tensor) -> ShapeDtype:
    """Sizes may be symbols."""
    return ShapeDtype(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))


def known_size(size: Any) -> Any:
    """A symbol's is that of the call which is traced. It is only looked at: what is traced serves
    other sizes, too. None: a size that follows from a tensor's contents."""
    if not isinstance(size, torch.SymInt):
        return int(size)
    return int(size.node.hint) if size.node.has_hint() else None


def _known(*tensors: torch.Tensor | None) -> list[Any] | None:
    """The shapes and dtypes of those that are given, in their places; None where a size of one is
    not known."""
    shapes: list[ShapeDtype | None] = []
    for tensor in tensors:
        if tensor is None:
            shapes.append(None)
            continue
        sizes = [known_size(size) for size in tensor.shape]
        if None in sizes:
            return None
        shapes.append(described(tensor)._replace(shape=tuple(sizes)))
    return shapes


def _options(names: Sequence[str], numbers: Sequence[Any]) -> Options | None:
    """The record of an operator's numbers; None where one of them is not known."""
    known = [known_size(x) if isinstance(x, torch.SymInt) else x for x in numbers]
    if any(x is None and isinstance(y, torch.SymInt) for x, y in zip(known, numbers, strict=True)):
        return None
    return options(**folded(names, known))


def check_devices(lead: str, /, **tensors: torch.Tensor | None) -> None:
    """Raises ValueError where one, by its argument's name, is elsewhere than `lead`."""
    device = tensors[lead].device  # type: ignore[union-attr]  # is always given
    for name, tensor in tensors.items():
        if tensor is not None and tensor.device != device:
            raise ValueError(
                f"{name}: on {tensor.device}, but {lead} is on {device}; all tensors of a call are "
                "on one device"
            )


def known_call(
    arrays: dict[str, Any],
    sequences: Sequence[Any] | None,
    names: Sequence[str],
    numbers: Sequence[Any],
) -> tuple[list[Any], Options, Lengths | None] | None:
    """The shapes and dtypes of the arrays, q first, the record of an operator's numbers, and the
    lengths of sequences; None where one is not known. Raises ValueError for arrays that are not all
    on one device."""
    starts_q, starts_k, *longest = sequences or (None, None)
    check_devices("q", **arrays, cu_seqlens_q=starts_q, cu_seqlens_k=starts_k)
    shapes = _known(*arrays.values(), starts_q, starts_k)
    greatest = [known_size(size) for size in longest]
    chosen = _options(names, numbers)
    if shapes is None or None in greatest or chosen is None:
        return None
    *described, of_q, of_k = shapes
    if sequences is None:
        return described, chosen, None
    return described, chosen, problems.lengths(problems.batch_of(of_q, of_k), *greatest)


def arch_of(device: torch.device) -> str | None:
    """Of an AMD GPU that is there, whose kernels a call needs. None: the CPU serves every problem,
    and other devices refuse when they are called."""
    if device.type != "cuda" or torch.version.hip is None or not torch.cuda.device_count():
        return None
    name: str = torch.cuda.get_device_properties(device).gcnArchName
    return name.partition(":")[0]


def check_served(
    device: torch.device, problem: _C.Problem, backward: bool, sink: bool = False
) -> None:
    """Raises UnsupportedError where no kernel of this build serves the problem on the device, with
    a sink in a forward pass, or with its gradient in a backward pass."""
    arch = arch_of(device)
    if arch is not None:
        plan = _C.plan_bwd if backward else _C.plan_fwd
        plan(problem.on(_C.DEVICE_ROCM, 0, 0), arch, sink)
