# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""flash_attn.bert_padding: between padded batches and packed sequences."""

from __future__ import annotations

from typing import NoReturn

import torch

from aiter_attn.compat import _names

__all__ = [
    "index_first_axis",
    "index_first_axis_residual",
    "index_put_first_axis",
    "pad_input",
    "unpad_input",
    "unpad_input_for_concatenated_sequences",
]


def index_first_axis(input: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """Rows of [rows, ...], [len(indices), ...]; indices: int32 or int64."""
    return input.index_select(0, indices)


def index_first_axis_residual(
    input: torch.Tensor, indices: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """(the rows, the input, of which no gradient comes by this way)"""
    return index_first_axis(input, indices), input.detach()


def index_put_first_axis(
    values: torch.Tensor, indices: torch.Tensor, first_axis_dim: int
) -> torch.Tensor:
    """[first_axis_dim, ...] with the values at these rows, and 0 elsewhere."""
    return values.new_zeros((first_axis_dim, *values.shape[1:])).index_copy(
        0, indices.long(), values
    )


def unpad_input(
    hidden_states: torch.Tensor,
    attention_mask: torch.Tensor,
    unused_mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int, torch.Tensor]:
    """The tokens of a padded batch, packed.

    Args:
        hidden_states: [batch, seqlen, ...]
        attention_mask: [batch, seqlen], 1 where a token counts, else 0.
        unused_mask: the same shape, where a token is kept but does not count.

    Returns:
        (tokens [total, ...], indices [total] in batch * seqlen, cu_seqlens [batch + 1] int32, the
        greatest length, lengths that count [batch] int32)

    Raises:
        ValueError: a mask of another shape.
    """
    _check_mask("attention_mask", attention_mask, hidden_states)
    if unused_mask is not None:
        _check_mask("unused_mask", unused_mask, hidden_states)
    kept = attention_mask if unused_mask is None else attention_mask + unused_mask
    lengths = kept.sum(-1, dtype=torch.int32)
    indices = kept.flatten().nonzero().flatten()
    tokens = index_first_axis(hidden_states.flatten(0, 1), indices)
    used = attention_mask.sum(-1, dtype=torch.int32)
    return tokens, indices, _starts(lengths), int(lengths.max()), used


def unpad_input_for_concatenated_sequences(
    hidden_states: torch.Tensor, attention_mask_in_length: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]:
    """The same for rows that hold several sequences, one after the other, ahead of the padding.

    Args:
        hidden_states: [batch, seqlen, ...]
        attention_mask_in_length: [batch, seqlen]: the lengths of a row's sequences, and 0 behind
            them.

    Returns:
        (tokens [total, ...], indices [total] in batch * seqlen, cu_seqlens [sequences + 1] int32,
        the greatest length of a sequence)

    Raises:
        ValueError: lengths of another shape.
    """
    _check_mask("attention_mask_in_length", attention_mask_in_length, hidden_states)
    seqlen = attention_mask_in_length.shape[-1]
    places = torch.arange(seqlen, device=attention_mask_in_length.device)
    kept = places < attention_mask_in_length.sum(-1, keepdim=True)
    lengths = attention_mask_in_length[attention_mask_in_length != 0].to(torch.int32)
    indices = kept.flatten().nonzero().flatten()
    tokens = index_first_axis(hidden_states.flatten(0, 1), indices)
    return tokens, indices, _starts(lengths), int(lengths.max())


def pad_input(
    hidden_states: torch.Tensor, indices: torch.Tensor, batch: int, seqlen: int
) -> torch.Tensor:
    """unpad_input's tokens in their places of [batch, seqlen, ...], and 0 elsewhere."""
    return index_put_first_axis(hidden_states, indices, batch * seqlen).unflatten(
        0, (batch, seqlen)
    )


def _check_mask(name: str, mask: torch.Tensor, hidden_states: torch.Tensor) -> None:
    """Raises ValueError for a mask that has no entry for each token, such as one of scores."""
    if mask.shape != hidden_states.shape[:2]:
        raise ValueError(
            f"{name}: shape {tuple(mask.shape)}; allowed here: {tuple(hidden_states.shape[:2])} "
            "[batch, seqlen], an entry for each token"
        )


def _starts(lengths: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.pad(lengths.cumsum(0, dtype=torch.int32), (1, 0))


def __getattr__(name: str) -> NoReturn:
    raise _names.missing("flash_attn.bert_padding", name, __all__)
