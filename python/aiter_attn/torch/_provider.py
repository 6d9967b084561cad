# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""This package among torch's implementations of flash attention, of torch 2.11 and newer:

    torch.nn.attention.activate_flash_attention_impl("aiter_attn")

scaled_dot_product_attention on AMD GPUs, where torch takes its flash backend, and
torch.nn.attention.varlen are then computed by the kernels here. Importing aiter_attn.torch adds the
name to torch's list, and activates nothing.
"""

from __future__ import annotations

from typing import Any, Final

import torch

from aiter_attn._core.call import Call
from aiter_attn._core.errors import UnsupportedError
from aiter_attn._core.options import options
from aiter_attn._core.refusals import renamed
from aiter_attn.torch._attention import flash_attn_varlen_func, random_state
from aiter_attn.torch._operators import numbers_of, rows

__all__ = ["NAME", "activate", "register"]

NAME: Final = "aiter_attn"
# torch's arguments by the package's.
_NAMES: Final = {
    "q": "query",
    "k": "key",
    "v": "value",
    "cu_seqlens_q": "cum_seq_q",
    "cu_seqlens_k": "cum_seq_k",
    "max_seqlen_q": "max_q",
    "max_seqlen_k": "max_k",
    "softmax_scale": "scale",
    "causal": "is_causal",
    "window_size": "window_size_left, window_size_right",
    "dout": "grad_out",
    "lse": "logsumexp",
}


def register() -> None:
    """Adds NAME to torch's list; a torch older than 2.11 has none."""
    add = getattr(torch.nn.attention, "register_flash_attention_impl", None)
    if add is not None:
        add(NAME, register_fn=activate)


class _Handle:
    """Kept by torch while the implementation is active."""

    def __init__(self, library: torch.library.Library) -> None:
        self._library: torch.library.Library | None = library

    def remove(self) -> None:
        if self._library is not None:
            self._library._destroy()  # which a garbage collection would do later
        self._library = None


def activate(key: str = "CUDA") -> _Handle:
    """Computes torch's operators of flash attention by the kernels here, until remove().

    Args:
        key: torch's dispatch key of the tensors, which for AMD GPUs is CUDA.

    Raises:
        UnsupportedError: key is CUDA, and this torch has no AMD GPU.
    """
    if key == "CUDA" and (torch.version.hip is None or not torch.cuda.is_available()):
        raise UnsupportedError(
            f"{NAME}: torch {torch.__version__} has no AMD GPU here; allowed: a torch for ROCm, on "
            "a machine with one; aiter_attn.torch.sdpa() serves tensors on the CPU, too"
        )
    library = torch.library.Library("aten", "IMPL")
    for name, kernel in _KERNELS.items():
        library.impl(name, kernel, key)
    return _Handle(library)


def _forward(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    cum_seq_q: torch.Tensor | None,
    cum_seq_k: torch.Tensor | None,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    return_debug_mask: bool,
    **more: Any,
) -> tuple[torch.Tensor, ...]:
    """aten::_flash_attention_forward"""
    # Strides of compiled code: as query's.
    out = torch.empty_like(query)
    if value.shape[-1] != query.shape[-1]:
        out = query.new_empty((*query.shape[:-1], value.shape[-1]))
    tensors = (query, key, value, cum_seq_q, cum_seq_k)
    numbers = (max_q, max_k, dropout_p, is_causal, return_debug_mask)
    lse, state = _attend(out, *tensors, *numbers, **more)
    return out, lse, *state, query.new_empty(0)


def _forward_in_place(
    out: torch.Tensor, query: torch.Tensor, *arguments: Any, **more: Any
) -> torch.Tensor:
    """aten::_flash_attention_forward_no_dropout_inplace"""
    return _attend(out, query, *arguments, **more)[0]


def _attend(
    out: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    cum_seq_q: torch.Tensor | None,
    cum_seq_k: torch.Tensor | None,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    return_debug_mask: bool,
    *,
    scale: float | None = None,
    window_size_left: int | None = None,
    window_size_right: int | None = None,
    seqused_k: torch.Tensor | None = None,
    alibi_slopes: torch.Tensor | None = None,
    block_table: torch.Tensor | None = None,
    num_splits: int | None = None,
) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
    """(lse, (seed, offset)); writes out."""
    if return_debug_mask:
        raise UnsupportedError(
            "return_debug_mask: True; allowed: False; aiter_attn.flash_attn_func's "
            "return_attn_probs tells the weights that dropout keeps"
        )
    if num_splits not in (None, 0, 1) or (num_splits == 1 and block_table is not None):
        raise UnsupportedError(
            f"num_splits: {num_splits}; allowed: None, and without block_table 1: keys that are "
            "not in pages are not split; aiter_attn.flash_attn_with_kvcache takes num_splits"
        )
    window = _window(window_size_left, window_size_right)
    query, key, value = query.detach(), key.detach(), value.detach()
    with renamed(_NAMES):
        if seqused_k is not None or block_table is not None:
            if cum_seq_q is None:
                raise UnsupportedError(
                    "seqused_k, block_table: given, but cum_seq_q is None; allowed: packed "
                    "queries, [total, heads, head size]"
                )
            lse = _attend_used(
                out,
                (query, key, value),
                (cum_seq_q, cum_seq_k, max_q, max_k),
                seqused_k,
                block_table,
                softmax_scale=scale,
                dropout_p=dropout_p,
                causal=is_causal,
                window_size=window,
                alibi_slopes=alibi_slopes,
            )
            return lse, _no_state(query)
        state = None if dropout_p == 0.0 else random_state(dropout_p, None)
        call = Call(
            rows(query),
            rows(key),
            rows(value),
            _sequences(cum_seq_q, cum_seq_k, max_q, max_k),
            options(dropout_p, scale, is_causal, window),
            alibi_slopes=rows(alibi_slopes),
            rng_state=numbers_of(state, query),
        )
        _, lse = call.forward(out, None)
    return lse, _no_state(query) if state is None else (state[0], state[1])


def _attend_used(
    out: torch.Tensor,
    arrays: tuple[torch.Tensor, ...],
    sequences: tuple[Any, ...],
    seqused_k: torch.Tensor | None,
    block_table: torch.Tensor | None,
    **options: Any,
) -> torch.Tensor:
    """The lse of packed queries, whose keys are in pages, or not all used; writes out."""
    starts_q, starts_k, max_q, max_k = sequences
    if block_table is not None:
        options["block_table"] = block_table
        if seqused_k is not None:  # which says how many keys there are
            starts_k = torch.nn.functional.pad(seqused_k.cumsum(0, dtype=torch.int32), (1, 0))
    else:
        options["seqused_k"] = seqused_k
    if starts_k is None:
        raise ValueError("cum_seq_k, seqused_k: None; allowed with block_table: one of them")
    with torch.no_grad():
        q, k, v = arrays
        options["return_attn_probs"] = True
        made, of_made, _ = flash_attn_varlen_func(
            q, k, v, starts_q, starts_k, max_q, max_k, **options
        )
        out.copy_(made)
    lse: torch.Tensor = of_made
    return lse


def _backward(
    grad_out: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    out: torch.Tensor,
    logsumexp: torch.Tensor,
    cum_seq_q: torch.Tensor | None,
    cum_seq_k: torch.Tensor | None,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    rng_state: torch.Tensor,
    unused: torch.Tensor,
    *,
    scale: float | None = None,
    window_size_left: int | None = None,
    window_size_right: int | None = None,
) -> tuple[torch.Tensor, ...]:
    """aten::_flash_attention_backward. rng_state, unused: seed and offset, as on AMD GPUs."""
    arrays = [array.detach() for array in (query, key, value, grad_out, out)]
    gradients = tuple(torch.empty_like(array) for array in arrays[:3])
    window = _window(window_size_left, window_size_right)
    state = None if dropout_p == 0.0 else torch.stack((rng_state, unused))
    deterministic = torch.are_deterministic_algorithms_enabled()
    q, k, v, dout, of_forward = map(rows, arrays)
    with renamed(_NAMES):
        call = Call(
            q,
            k,
            v,
            _sequences(cum_seq_q, cum_seq_k, max_q, max_k),
            options(dropout_p, scale, is_causal, window, deterministic=deterministic),
            rng_state=numbers_of(state, q),
        )
        call.backward(dout, of_forward, logsumexp.contiguous(), gradients, None, None)
    return gradients


def _sdpa_forward(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Any, ...]:
    """aten::_scaled_dot_product_flash_attention, of [batch, heads, seqlen, head size]"""
    q, k, v = (x.transpose(1, 2) for x in (query, key, value))
    lengths = query.shape[2], key.shape[2]
    numbers = (*lengths, dropout_p, is_causal, return_debug_mask)
    out, lse, *rest = _forward(q, k, v, None, None, *numbers, scale=scale)
    seed, offset, mask = rest
    return out.transpose(1, 2), lse, None, None, *lengths, seed, offset, mask


def _sdpa_backward(
    grad_out: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    out: torch.Tensor,
    logsumexp: torch.Tensor,
    cum_seq_q: torch.Tensor | None,
    cum_seq_k: torch.Tensor | None,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    philox_seed: torch.Tensor,
    philox_offset: torch.Tensor,
    *,
    scale: float | None = None,
) -> tuple[torch.Tensor, ...]:
    """aten::_scaled_dot_product_flash_attention_backward"""
    dout, q, k, v, of_forward = (x.transpose(1, 2) for x in (grad_out, query, key, value, out))
    numbers = (max_q, max_k, dropout_p, is_causal, philox_seed, philox_offset)
    made = _backward(dout, q, k, v, of_forward, logsumexp, None, None, *numbers, scale=scale)
    return tuple(x.transpose(1, 2) for x in made)


def _sequences(*given: Any) -> Any:
    """None where they are as long as each other."""
    return None if given[0] is None else given


def _window(left: int | None, right: int | None) -> tuple[int, int]:
    return -1 if left is None else left, -1 if right is None else right


def _no_state(query: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Seed and offset where nothing is dropped: they are not read."""
    return query.new_empty((), dtype=torch.int64), query.new_empty((), dtype=torch.int64)


_KERNELS: Final = {
    "_flash_attention_forward": _forward,
    "_flash_attention_forward_no_dropout_inplace": _forward_in_place,
    "_flash_attention_backward": _backward,
    "_scaled_dot_product_flash_attention": _sdpa_forward,
    "_scaled_dot_product_flash_attention_backward": _sdpa_backward,
}
