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

__all__ = ["attend", "is_fp8", "name_of"]

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
    "Tensor? sink, "
    f"{schema(_NAMES)}, float? q_descale, float? k_descale, float? v_descale, float? out_scale, "
    "Tensor? q_descales, Tensor? k_descales, Tensor? v_descales, Tensor? out_scales, "
    "str? out_dtype, bool return_probs) -> (Tensor out, Tensor lse, Tensor probs)"
)


class _Given(NamedTuple):
    """The arguments of the operator. sequences: None of the form without. scales: each a number, or
    an array, and last the name of out's dtype."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    sequences: tuple[Any, ...] | None
    alibi_slopes: torch.Tensor | None
    rng_state: torch.Tensor | None
    sink: torch.Tensor | None
    numbers: tuple[Any, ...]  # those of _NAMES
    scales: tuple[Any, ...]
    return_probs: bool


def _given(arguments: tuple[Any, ...]) -> _Given:
    sequences = None if arguments[3] is None else arguments[3:7]
    *given, out_dtype, return_probs = arguments
    numbers, arrays = given[-8:-4], given[-4:]
    scales = (n if a is None else a for n, a in zip(numbers, arrays, strict=True))
    options = tuple(given[10:-8])
    return _Given._make(
        (*given[:3], sequences, *given[7:10], options, (*scales, out_dtype), return_probs)
    )


def name_of(out_dtype: Any) -> Any:
    """That of a torch dtype; anything else is left to fp8_scales."""
    if isinstance(out_dtype, torch.dtype):
        return str(out_dtype).removeprefix("torch.")
    return out_dtype


def is_fp8(q: Any, scales: tuple[Any, ...]) -> bool:
    """Whether attend() is asked for. Raises ValueError for scales beside another dtype."""
    if isinstance(q, torch.Tensor) and q.dtype in _DTYPES:
        return True
    if scales != (None,) * len(scales) and isinstance(q, torch.Tensor):
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
    check_inference("fp8", q=q, k=k, v=v, alibi_slopes=chosen[0], sink=chosen[2])
    numbers: list[float | None] = []
    arrays: list[torch.Tensor | None] = []
    *scales_alone, out_dtype = scales
    if out_dtype is not None:
        fp8_scales.check_out_dtype(out_dtype, scales_alone[-1], name_of(q.dtype))
    names = problems.Scales._fields[: len(scales_alone)]
    for name, scale in zip(names, scales_alone, strict=True):
        is_array = isinstance(scale, torch.Tensor)
        arrays.append(scale if is_array else None)
        number = None if is_array or scale is None else reading.number(name, scale, "a number")
        numbers.append(number)
    *leading, _ = chosen  # deterministic is about backward passes
    out, lse, probs = mha_fp8_fwd(
        q, k, v, *(sequences or (None,) * 4), *leading, *numbers, *arrays, out_dtype, with_lse
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
        given.sequences,
        options(**folded(_NAMES, given.numbers)),
        alibi_slopes=rows(given.alibi_slopes),
        rng_state=numbers_of(given.rng_state, given.q),
        sink=None if given.sink is None else given.sink.contiguous(),
        scales=given.scales,
    )
    out, lse = call.forward(None, None, given.return_probs)
    if given.return_probs:
        return out, lse, call.probabilities()
    return out, out.new_empty(0, dtype=torch.float32), out.new_empty(0)


def _fake(*arguments: Any) -> Any:
    given = _given(arguments)
    _traced(given)
    q, out_dtype = given.q, given.scales[-1]
    shape, lse = problems.results(q.shape, given.v.shape, "")
    dtype = q.dtype if out_dtype is None else getattr(torch, out_dtype)
    out = q.new_empty(shape.shape, dtype=dtype)
    if not given.return_probs:
        return out, q.new_empty(0, dtype=torch.float32), out.new_empty(0)
    probs = q.new_empty(0)
    if given.rng_state is not None:
        keys = given.k.shape[1] if given.sequences is None else given.sequences[3]
        probs = q.new_empty((*lse.shape, keys), dtype=torch.uint8)
    return out, q.new_empty(lse.shape, dtype=torch.float32), probs


def _traced(given: _Given) -> None:
    """Raises as the call would, as far as shapes, dtypes and numbers say."""
    arrays = {"q": given.q, "k": given.k, "v": given.v}
    arrays |= {"alibi_slopes": given.alibi_slopes, "sink": given.sink}
    known = _tracing.known_call(arrays, given.sequences, _NAMES, given.numbers)
    if known is None:
        return
    (q, k, v, slopes, sink), chosen, lengths = known
    # The numbers of an array are not known.
    *numbers, out_dtype = given.scales
    q_descale, k_descale, v_descale, out_scale = (
        1.0 if isinstance(scale, torch.Tensor) else scale for scale in numbers
    )
    batch = (*q.shape, 0)[0] if lengths is None else lengths.batch
    scales = fp8_scales.read(
        (q_descale, k_descale, v_descale, out_scale, out_dtype), q, (0, 0, *k.shape)[-2], batch
    )
    beside = problems.beside(None, slopes, scales, _is_by_columns(given.v))
    attention = problems.attention(q, k, v, chosen, lengths, beside)
    if sink is not None:
        problems.check_sink(sink, attention.problem.heads_q)
    _tracing.check_served(given.q.device, attention.problem, False, sink is not None)


mha_fp8_fwd = operator(_SCHEMA, _forward, _fake)
