# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Masks of transformers' models, as `attention` takes them: keys that count, and a pattern."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from transformers import masking_utils

from aiter_attn._core.errors import UnsupportedError

__all__ = ["ELSE", "Keys", "Pattern", "Rows", "mask", "rows_of"]

ELSE = 'attn_implementation="eager" (or "sdpa") serves it'


@dataclass(frozen=True)
class Pattern:
    """Which of the keys that count a query sees. If causal, the last query is at the last key."""

    causal: bool = False
    # Keys to its left and to its right; -1: all.
    window: tuple[int, int] = (-1, -1)
    # Of packed sequences: [batch, seqlen], another number for each sequence of a row.
    packed: torch.Tensor | None = None
    # Keys see each other in chunks of so many.
    chunk: int | None = None


@dataclass(frozen=True)
class Rows:
    """Rows of [batch * seqlen, ...] as sequences, one after the other."""

    # Which rows; None: all.
    indices: torch.Tensor | None
    cu_seqlens: torch.Tensor
    max_seqlen: int

    def to(self, device: torch.device) -> Rows:
        indices = None if self.indices is None else self.indices.to(device)
        return Rows(indices, self.cu_seqlens.to(device), self.max_seqlen)


def rows_of(lengths: torch.Tensor, indices: torch.Tensor | None = None) -> Rows:
    starts = torch.nn.functional.pad(lengths.cumsum(0, dtype=torch.int32), (1, 0))
    return Rows(indices, starts, int(lengths.max()))


class Keys(torch.Tensor):  # type: ignore[misc]  # torch has no types here
    """Which keys count: bool, [batch, keys that are there].

    A model hands this to `attention` unread. One that reads it computes attention itself, and
    would do so without the causal part, which is not in it: reading raises UnsupportedError.
    """

    pattern: Pattern
    # Queries and keys, where they are sequences of their own: keys without padding, or packed ones.
    rows: tuple[Rows, Rows] | None

    @classmethod
    def of(cls, counts: torch.Tensor, pattern: Pattern, seqlen_q: int) -> Keys:
        made: Keys = counts.as_subclass(cls)
        made.pattern = pattern
        made.rows = None
        if not counts.all():
            # Only under a causal mask or a window are queries known to be the last of the keys.
            is_aligned = pattern.causal or pattern.window != (-1, -1)
            queries = counts[:, -seqlen_q:] if is_aligned else counts.new_ones(1, seqlen_q)
            made.rows = (_counted(queries.expand(len(counts), seqlen_q)), _counted(counts))
        elif pattern.packed is not None:
            begins = pattern.packed.diff(dim=1, prepend=pattern.packed[:, :1] - 1) != 0
            begins = begins.flatten().nonzero().flatten()
            lengths = begins.diff(append=begins.new_tensor([pattern.packed.numel()]))
            made.rows = (rows_of(lengths),) * 2
        return made

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = (*args, *(kwargs or {}).values())
        if sum(isinstance(x, torch.Tensor) for x in given) == 1:
            with torch._C.DisableTorchFunctionSubclass():
                result = func(*args, **(kwargs or {}))
            # Such as its shape; and attributes that torch.compile asks of a tensor that is new to
            # it.
            if not isinstance(result, torch.Tensor) or func in _OF_TORCH:
                return result
            if func in _CARRIED and result.shape == args[0].shape:
                result = result.as_subclass(cls)
                result.__dict__.update(args[0].__dict__)
                return result
        raise UnsupportedError(
            f"attn_implementation: this model reads its attention mask itself ({func.__name__}), "
            f"in place of leaving it to the attention function; {ELSE}"
        )


_OF_TORCH = (torch.Tensor.grad.__get__, torch.Tensor._base.__get__)
# Functions of a mask that leave it as it is.
_CARRIED = (torch.Tensor.to, torch.Tensor.contiguous, torch.Tensor.detach, torch.Tensor.view)


def _counted(counts: torch.Tensor) -> Rows:
    return rows_of(counts.sum(1), counts.flatten().nonzero().flatten())


@torch.compiler.disable  # type: ignore[misc]  # it reads values, and closures
def mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int | torch.Tensor = 0,
    kv_offset: int = 0,
    mask_function: Callable[..., Any] = masking_utils.causal_mask_function,
    attention_mask: torch.Tensor | None = None,
    device: torch.device | str = "cpu",
    **_: Any,
) -> Keys:
    """A mask function for transformers' AttentionMaskInterface.

    Args:
        q_length, kv_length: of the queries, and of the keys or of the room of a static cache.
        q_offset, kv_offset: the positions of the first of each.
        mask_function: of (batch, head, position of the query, of the key): whether it is seen.
        attention_mask: [batch_size, positions], 0 where there is padding; None: nowhere.

    Raises:
        UnsupportedError: a mask function that is not causal, a window, packed sequences, or one of
            these with the padding.
    """
    if isinstance(attention_mask, Keys):
        return attention_mask  # `generate` made it ahead of the model's call
    pattern = Pattern(**_read(mask_function))
    end = int(q_offset) + q_length
    if pattern.chunk is not None and end > pattern.chunk:
        raise UnsupportedError(
            f"attention_chunk_size: {pattern.chunk}, where there are {end} positions; allowed: "
            f"sequences within one chunk; {ELSE}"
        )
    # Of a static cache the room behind the last query is empty.
    there = min(end - kv_offset, kv_length) if pattern.causal else kv_length
    if attention_mask is None:
        counts = torch.ones(batch_size, there, dtype=torch.bool, device=device)
    else:
        counts = attention_mask[:, kv_offset : kv_offset + there].bool()
        counts = torch.nn.functional.pad(counts, (0, there - counts.shape[1]))
    made = Keys.of(counts, pattern, q_length)
    if made.rows and pattern.window != (-1, -1) and _has_holes(counts):
        raise UnsupportedError(
            "attention_mask: padding between tokens, under a sliding window; allowed: padding at "
            f"the ends; {ELSE}"
        )
    return made


def _has_holes(counts: torch.Tensor) -> bool:
    begins = counts & ~torch.nn.functional.pad(counts[:, :-1], (1, 0))
    return bool((begins.sum(1) > 1).any())


def _read(function: Callable[..., Any]) -> dict[str, Any]:
    """Fields of a Pattern, of one of transformers' own mask functions."""
    if function is masking_utils.bidirectional_mask_function:
        return {}
    if function is masking_utils.causal_mask_function:
        return {"causal": True}
    kind = _KINDS.get(getattr(function, "__code__", None))
    if kind is None:
        raise UnsupportedError(
            f"mask_function: {getattr(function, '__qualname__', function)}; allowed: causal and "
            "bidirectional masks, sliding windows, padding and packed sequences. This model, or "
            "its input (images, a prefix, tokens of several types), has other masks than kernels "
            f"take; {ELSE}"
        )
    bound = inspect.getclosurevars(function).nonlocals
    if kind == "and":
        return {k: v for part in bound["mask_functions"] for k, v in _read(part).items()}
    if kind == "remapped":
        found: Callable[..., Any] = bound["mask_function"]
        return _read(found)
    if kind == "packed":
        return {"packed": bound["packed_sequence_mask"]}
    if kind == "chunked":
        return {"chunk": bound["chunk_size"]}
    size = bound["sliding_window"]
    return {"window": (size - 1, -1) if kind == "window" else (size, size)}


_NONE = torch.empty(0)
# Functions that one `def` made share its code.
_KINDS = {
    made.__code__: kind
    for kind, made in {
        "and": masking_utils.and_masks(),
        "window": masking_utils.sliding_window_overlay(1),
        "window of both sides": masking_utils.sliding_window_bidirectional_overlay(1),
        "chunked": masking_utils.chunked_overlay(1, _NONE),
        "packed": masking_utils.packed_sequence_mask_function(_NONE),
        "remapped": masking_utils.remap_positions_for_packed_sequence(
            masking_utils.causal_mask_function, _NONE
        ),
    }.items()
}
