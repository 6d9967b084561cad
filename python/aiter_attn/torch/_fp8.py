# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The operator for fp8, and how callers' scales reach it."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import torch

from aiter_attn._core import fp8_scales, problems, reading
from aiter_attn._core.call import Call
from aiter_attn._core.options import folded, names, options, schema
from aiter_attn.torch import _tracing
from aiter_attn.torch._arguments import check_inference, check_tensors
from aiter_attn.torch._operators import numbers_of, operator, rows

__all__ = ["attend", "is_fp8"]

_DTYPES: Final = tuple(
    getattr(torch, name)
    for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2")
    if hasattr(torch, name)
)
_NAMES: Final = names("deterministic")
# The sequences are those of the varlen form. A scale is a number, or an array.
_SCHEMA: Final = (
    "mha_fp8_fwd(Tensor q, Tensor k, Tensor v, Tensor? cu_seqlens_q, Tensor? cu_seqlens_k, "
    "SymInt? max_seqlen_q, SymInt? max_seqlen_k, Tensor? alibi_slopes, Tensor? rng_state, "
    f"{schema(_NAMES)}, float? q_descale, float? k_descale, float? v_descale, float? out_scale, "
    "Tensor? q_descales, Tensor? k_descales, Tensor? v_descales, Tensor? out_scales, "
    "bool return_probs) -> (Tensor out, Tensor lse, Tensor probs)"
)


class _Given(NamedTuple):
    """The arguments of the operator."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    cu_seqlens_q: torch.Tensor | None
    cu_seqlens_k: torch.Tensor | None
    max_seqlen_q: int | None
    max_seqlen_k: int | None
    alibi_slopes: torch.Tensor | None
    rng_state: torch.Tensor | None
    numbers: tuple[Any, ...]  # those of _NAMES
    q_descale: float | None
    k_descale: float | None
    v_descale: float | None
    out_scale: float | None
    q_descales: torch.Tensor | None
    k_descales: torch.Tensor | None
    v_descales: torch.Tensor | None
    out_scales: torch.Tensor | None
    return_probs: bool

    @property
    def scales(self) -> tuple[Any, ...]:
        numbers = self.q_descale, self.k_descale, self.v_descale, self.out_scale
        arrays = self.q_descales, self.k_descales, self.v_descales, self.out_scales
        return tuple(n if a is None else a for n, a in zip(numbers, arrays, strict=True))

    @property
    def is_varlen(self) -> bool:
        return self.cu_seqlens_q is not None


def _given(arguments: tuple[Any, ...]) -> _Given:
    place = _Given._fields.index("numbers")
    behind = len(_Given._fields) - place - 1
    numbers = arguments[place:-behind]
    return _Given._make((*arguments[:place], numbers, *arguments[-behind:]))


def is_fp8(q: Any, scales: tuple[Any, ...]) -> bool:
    """Whether attend() is asked for. Raises ValueError for scales beside another dtype."""
    if isinstance(q, torch.Tensor) and q.dtype in _DTYPES:
        return True
    if scales != (None, None, None, None) and isinstance(q, torch.Tensor):
        fp8_scales.check_none(scales, f"q is {_tracing.described(q).dtype}")
    return False


def attend(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    sequences: tuple[Any, ...],
    chosen: tuple[Any, ...],
    scales: tuple[Any, ...],
    with_lse: bool,
) -> Any:
    """out; with_lse (out, lse, probs). sequences, chosen: see aiter_attn.torch._attention."""
    check_tensors(q=q, k=k, v=v)
    check_inference("fp8", q=q, k=k, v=v, alibi_slopes=chosen[0])
    numbers: list[float | None] = []
    arrays: list[torch.Tensor | None] = []
    for name, scale in zip(problems.Scales._fields, scales, strict=True):
        is_array = isinstance(scale, torch.Tensor)
        arrays.append(scale if is_array else None)
        number = None if is_array or scale is None else reading.number(name, scale, "a number")
        numbers.append(number)
    *leading, _ = chosen  # deterministic is about backward passes
    out, lse, probs = mha_fp8_fwd(
        q, k, v, *(sequences or (None,) * 4), *leading, *numbers, *arrays, with_lse
    )
    return (out, lse, probs) if with_lse else out


def _is_by_columns(v: torch.Tensor) -> bool:
    return v.dim() == 4 and bool(_tracing.known_size(v.stride(1)) == 1)


def _forward(*arguments: Any) -> Any:
    given = _given(arguments)
    call = Call(
        rows(given.q),
        rows(given.k),
        given.v if _is_by_columns(given.v) else rows(given.v),
        arguments[3:7] if given.is_varlen else None,
        options(**folded(_NAMES, given.numbers)),
        alibi_slopes=rows(given.alibi_slopes),
        rng_state=numbers_of(given.rng_state, given.q),
        scales=given.scales,
    )
    out, lse = call.forward(None, None, given.return_probs)
    if given.return_probs:
        return out, lse, call.probabilities()
    return out, out.new_empty(0, dtype=torch.float32), out.new_empty(0)


def _fake(*arguments: Any) -> Any:
    given = _given(arguments)
    _traced(given)
    q = given.q
    out, lse = problems.results(q.shape, given.v.shape, "")
    if not given.return_probs:
        return q.new_empty(out.shape), q.new_empty(0, dtype=torch.float32), q.new_empty(0)
    probs = q.new_empty(0)
    if given.rng_state is not None:
        keys = given.max_seqlen_k if given.is_varlen else given.k.shape[1]
        probs = q.new_empty((*lse.shape, keys), dtype=torch.uint8)
    return q.new_empty(out.shape), q.new_empty(lse.shape, dtype=torch.float32), probs


def _traced(given: _Given) -> None:
    """Raises as the call would, as far as shapes, dtypes and numbers say."""
    _tracing.check_devices(
        "q",
        q=given.q,
        k=given.k,
        v=given.v,
        alibi_slopes=given.alibi_slopes,
        cu_seqlens_q=given.cu_seqlens_q,
        cu_seqlens_k=given.cu_seqlens_k,
    )
    shapes = _tracing.known(
        given.q, given.k, given.v, given.alibi_slopes, given.cu_seqlens_q, given.cu_seqlens_k
    )
    longest = given.max_seqlen_q, given.max_seqlen_k
    greatest = [0 if size is None else _tracing.known_size(size) for size in longest]
    chosen = _tracing.known_options(_NAMES, given.numbers)
    if shapes is None or None in greatest or chosen is None:
        return
    q, k, v, slopes, starts_q, starts_k = shapes
    lengths = None
    if given.is_varlen:
        lengths = problems.lengths(problems.batch_of(starts_q, starts_k), *greatest)
    # The numbers of an array are not known.
    q_descale, k_descale, v_descale, out_scale = (
        1.0 if isinstance(scale, torch.Tensor) else scale for scale in given.scales
    )
    batch = (*q.shape, 0)[0] if lengths is None else lengths.batch
    scales = fp8_scales.read(
        (q_descale, k_descale, v_descale, out_scale), q, (0, 0, *k.shape)[-2], batch
    )
    beside = problems.beside(None, slopes, scales, _is_by_columns(given.v))
    attention = problems.attention(q, k, v, chosen, lengths, beside)
    _tracing.check_served(given.q.device, attention.problem, backward=False)


mha_fp8_fwd = operator(_SCHEMA, _forward, _fake)
