# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""xformers' memory_efficient_attention, by this package.

    import aiter_attn.compat.xformers

    aiter_attn.compat.xformers.install()
    import xformers.ops
    xformers.ops.memory_efficient_attention(q, k, v, attn_bias=xformers.ops.LowerTriangularMask())

Where xformers is installed, its own classes of attn_bias are served, too: call the function here.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Final, NoReturn

import torch

from aiter_attn._core.errors import UnsupportedError
from aiter_attn._core.refusals import renamed
from aiter_attn.compat import _names
from aiter_attn.compat.xformers import attn_bias as biases
from aiter_attn.compat.xformers.attn_bias import (
    AttentionBias,
    LowerTriangularFromBottomRightMask,
    LowerTriangularMask,
    Pattern,
    pattern_of,
)
from aiter_attn.torch import flash_attn_varlen_func, mha_fwd, scaled_dot_product_attention

__all__ = [
    "AttentionBias",
    "LowerTriangularFromBottomRightMask",
    "LowerTriangularMask",
    "install",
    "memory_efficient_attention",
    "memory_efficient_attention_forward",
]

_RENAMED: Final = {
    "q": "query",
    "k": "key",
    "v": "value",
    "bias": "attn_bias",
    "dropout_p": "p",
    "softmax_scale": "scale",
}


def memory_efficient_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_bias: Any = None,
    p: float = 0.0,
    scale: float | None = None,
    *,
    op: Any = None,
    output_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """Attention of [batch, seqlen, heads, head size], differentiable; [batch, seqlen, head size]:
    of one head; [batch, seqlen, groups, heads, head size]: query heads of a group share the keys
    that key and value have for all of them, expanded.

    Args:
        attn_bias: a class of attn_bias, or of xformers' module of that name; or a tensor that is
            added to the scores, [batch, heads, queries, keys], of 3 or 5 dimensions as query is.
            Masks of padded keys and of pages are without a gradient.
        p: the probability with which a weight is dropped.
        scale: factor of query key^T; None: 1 / sqrt(head size).
        op: not looked at: there is one implementation.
        output_dtype: None, or query's.

    Raises:
        TypeError, ValueError, UnsupportedError: see aiter_attn.mha_fwd, in the names here.
    """
    del op
    if output_dtype not in (None, query.dtype):
        raise UnsupportedError(
            f"output_dtype: {output_dtype}; allowed: None, {query.dtype}; convert the result"
        )
    shape = query.shape[:-1]
    q, k, v = _by_heads(query, key, value)
    options = {"dropout_p": p, "softmax_scale": scale}
    with renamed(_RENAMED):
        out = _attend(q, k, v, attn_bias, options)
    return out.reshape(*shape, value.shape[-1])


def memory_efficient_attention_forward(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_bias: Any = None,
    p: float = 0.0,
    scale: float | None = None,
    *,
    op: Any = None,
    output_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """memory_efficient_attention without a gradient."""
    with torch.no_grad():
        return memory_efficient_attention(
            query, key, value, attn_bias, p, scale, op=op, output_dtype=output_dtype
        )


def install() -> None:
    """Makes this the process's xformers. Raises ImportError where there is one."""
    # xformers' own modules of these names hold more, which is missing here by name.
    fmha = _module("xformers.ops.fmha", attn_bias=biases)
    ops = _module("xformers.ops", fmha=fmha)
    modules = {"ops": ops, "ops.fmha": fmha, "ops.fmha.attn_bias": biases}
    _names.install("xformers", _module("xformers", ops=ops), modules)


def _module(name: str, **more: Any) -> ModuleType:
    known = sys.modules.get(name)
    if getattr(known, "_of_aiter_attn", False):
        return known  # type: ignore[return-value]  # is a module
    module = ModuleType(name, __doc__)
    names = {name: globals()[name] for name in __all__ if name != "install"} | more
    vars(module).update(names, _of_aiter_attn=True, __path__=[])

    def missing(asked: str) -> NoReturn:
        raise _names.missing(name, asked, names)

    module.__getattr__ = missing  # type: ignore[method-assign]  # PEP 562's
    return module


def _by_heads(*arrays: torch.Tensor) -> list[torch.Tensor]:
    """As [batch, seqlen, heads, head size]."""
    made = []
    for name, array in zip(("query", "key", "value"), arrays, strict=True):
        if array.dim() not in (3, 4, 5) or array.dim() != arrays[0].dim():
            raise ValueError(
                f"{name}: shape {tuple(array.shape)}; allowed: [batch, seqlen, heads, head size], "
                "the same without heads, or with groups of heads, as query"
            )
        if array.dim() == 3:
            made.append(array.unsqueeze(2))
        elif array.dim() == 5 and name != "query" and _are_shared(arrays[1:]):
            made.append(array[:, :, :, 0])
        else:
            made.append(array.flatten(2, -2))
    return made


def _are_shared(arrays: tuple[torch.Tensor, ...]) -> bool:
    """Whether the heads of a group are one."""
    return all(array.shape[3] == 1 or array.stride(3) == 0 for array in arrays)


def _attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bias: Any, options: dict[str, Any]
) -> torch.Tensor:
    if bias is None:
        return mha_fwd(q, k, v, **options)[0]
    if isinstance(bias, torch.Tensor):
        return mha_fwd(q, k, v, bias=_scores(bias, q, k), **options)[0]
    pattern = pattern_of(bias)
    if hasattr(bias, "q_seqinfo"):
        return _attend_blocks(q, k, v, bias, pattern, options)
    same = q.shape[1] == k.shape[1]
    added = getattr(bias, "_bias", None)
    if added is not None:
        if not same:
            raise UnsupportedError(
                f"attn_bias: a triangle and a tensor, with {q.shape[1]} queries and {k.shape[1]} "
                "keys; allowed: as many; pass one tensor with -inf where no key is seen"
            )
        return mha_fwd(q, k, v, bias=_scores(added, q, k), causal=True, **options)[0]
    if pattern.at_first and not same:
        # torch's causal mask is aligned as this one.
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        more = {"dropout_p": options["dropout_p"], "scale": options["softmax_scale"]}
        made = scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True, **more)
        return made.transpose(1, 2)
    return mha_fwd(q, k, v, window_size=(pattern.left, pattern.right), **options)[0]


def _scores(bias: torch.Tensor, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """A tensor as mha_fwd takes it: [batch or 1, heads or 1, queries or 1, keys]."""
    whole = (q.shape[0], q.shape[2], q.shape[1], k.shape[1])
    four = bias.unsqueeze(1) if bias.dim() == 3 else bias
    four = four.flatten(1, 2) if four.dim() == 5 else four
    four = four.reshape((1,) * (4 - four.dim()) + tuple(four.shape)) if four.dim() < 4 else four
    if four.dim() != 4 or any(
        size not in (1, most) for size, most in zip(four.shape, whole, strict=True)
    ):
        raise ValueError(
            f"attn_bias: shape {tuple(bias.shape)}; allowed here: {whole} [batch, heads, queries, "
            "keys], each or 1"
        )
    return four.expand(*four.shape[:3], whole[3]).to(q.dtype)


def _attend_blocks(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    bias: Any,
    pattern: Pattern,
    options: dict[str, Any],
) -> torch.Tensor:
    """Of sequences one after the other, [1, rows, heads, head size]."""
    queries, keys = bias.q_seqinfo, bias.k_seqinfo
    if len(q) != 1 or q.shape[1] != queries.seqstart_py[-1]:
        raise ValueError(
            f"query: shape {tuple(q.shape)}; allowed with {type(bias).__name__}: [1, "
            f"{queries.seqstart_py[-1]}, heads, head size]"
        )
    if pattern.at_first and list(queries.seqstart_py) != list(keys.seqstart_py):
        raise UnsupportedError(
            f"attn_bias: {type(bias).__name__} with other lengths of keys than of queries; "
            "allowed: the same lengths; make_causal_from_bottomright() aligns at the last"
        )
    options = {**options, "window_size": (pattern.left, pattern.right)}
    starts, longest = queries.seqstart.to(q.device), queries.max_seqlen
    table = getattr(bias, "block_tables", None)
    if table is None and not hasattr(keys, "padding"):
        _check_rows(k, keys.seqstart_py[-1])
        packed = (q[0], k[0], v[0], starts, keys.seqstart.to(q.device), longest, keys.max_seqlen)
        return flash_attn_varlen_func(*packed, **options)[None]
    lengths = keys.seqlen.to(q.device)
    size = keys.padding
    if table is None:  # each sequence is a page
        _check_rows(k, keys.seqstart_py[-1])
        table = torch.arange(len(lengths), dtype=torch.int32, device=q.device)[:, None]
    else:
        size = bias.page_size
    used = torch.nn.functional.pad(lengths.cumsum(0, dtype=torch.int32), (1, 0))
    k, v = (x.reshape(-1, size, *x.shape[2:]) for x in (k, v))
    packed = (q[0], k, v, starts, used, longest, keys.max_seqlen)
    options["block_table"] = table.to(q.device)
    return flash_attn_varlen_func(*packed, **options)[None]


def _check_rows(k: torch.Tensor, rows: int) -> None:
    if len(k) != 1 or k.shape[1] != rows:
        raise ValueError(
            f"key: shape {tuple(k.shape)}; allowed here: [1, {rows}, heads, head size]"
        )


def __getattr__(name: str) -> NoReturn:
    raise _names.missing("xformers.ops", name, __all__)
