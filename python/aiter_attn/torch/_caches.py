# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The operators over key-value caches. That which appends says what it changes: the caches."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import torch

from aiter_attn import _C
from aiter_attn._core import cache_problems, problems
from aiter_attn._core.cache_call import CacheCall, Keys
from aiter_attn._core.options import Options, folded, names, options, schema
from aiter_attn.torch import _tracing
from aiter_attn.torch._operators import operator, rows

__all__ = ["mha_fwd_kvcache", "mha_fwd_kvcache_append", "mha_varlen_fwd_paged"]

_NAMES: Final = names("dropout_p", "deterministic")
_OPTIONS: Final = f"Tensor? alibi_slopes, {schema(_NAMES)}, bool return_lse"
# cache_seqlens is an array, or a number: cache_seqlen.
_CACHED: Final = (
    "Tensor? cache_seqlens, SymInt? cache_seqlen, Tensor? cache_batch_idx, Tensor? cache_leftpad, "
    f"Tensor? block_table, SymInt num_splits, {_OPTIONS}"
)
_RESULTS: Final = "(Tensor out, Tensor lse)"


class _Options(NamedTuple):
    """The arguments of _OPTIONS."""

    alibi_slopes: torch.Tensor | None
    numbers: tuple[Any, ...]
    return_lse: bool

    @property
    def options(self) -> Options:
        return options(**folded(_NAMES, self.numbers))


def _options(arguments: Any) -> _Options:
    slopes, *numbers, return_lse = arguments
    return _Options(slopes, tuple(numbers), return_lse)


class _Cached(NamedTuple):
    cache_seqlens: torch.Tensor | None
    cache_seqlen: int | None
    cache_batch_idx: torch.Tensor | None
    cache_leftpad: torch.Tensor | None
    block_table: torch.Tensor | None
    num_splits: int
    options: _Options


class _New(NamedTuple):
    k: torch.Tensor
    v: torch.Tensor
    rotary_cos: torch.Tensor | None
    rotary_sin: torch.Tensor | None
    rotary_interleaved: bool


def _cached(arguments: Any) -> _Cached:
    lengths, length, index, leftpad, table, splits, *options = arguments
    return _Cached(lengths, length, index, leftpad, table, splits, _options(options))


def _results(q: torch.Tensor, out: Any, lse: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """(out, lse) as operators give them: an empty lse where none is wanted."""
    return out, q.new_empty(0, dtype=torch.float32) if lse is None else lse


def _attend(q: Any, k_cache: Any, v_cache: Any, *arguments: Any) -> Any:
    return _over_cache(q, k_cache, v_cache, None, _cached(arguments))


def _append(q: Any, k_cache: Any, v_cache: Any, *arguments: Any) -> Any:
    return _over_cache(q, k_cache, v_cache, _New(*arguments[:5]), _cached(arguments[5:]))


def _over_cache(q: Any, k_cache: Any, v_cache: Any, new: _New | None, cached: _Cached) -> Any:
    lengths, length, index, leftpad, table, splits, chosen = cached
    call = CacheCall(
        rows(q),
        Keys(k_cache, v_cache, ("k_cache", "v_cache")),
        block_table=table,
        cache_batch_idx=index,
        options=chosen.options,
        alibi_slopes=rows(chosen.alibi_slopes),
        splits=splits,
    )
    cache_seqlens = length if lengths is None else lengths
    if new is not None:
        tables = cache_problems.appending(
            new.k, new.v, new.rotary_cos, new.rotary_sin, cache_seqlens
        )
        call.append(rows(new.k), rows(new.v), cache_seqlens, tables, new.rotary_interleaved)
    elif cache_seqlens is not None:
        call.set_lengths(cache_seqlens)
    if leftpad is not None:
        call.leave_out(leftpad)
    return _results(q, *call.forward(None, chosen.return_lse))


def _attend_paged(
    q: Any,
    k: Any,
    v: Any,
    starts_q: Any,
    starts_k: Any,
    longest_q: int,
    longest_k: int,
    table: Any,
    *arguments: Any,
) -> Any:
    chosen = _options(arguments)
    call = CacheCall(
        rows(q),
        Keys(k, v),
        sequences=(starts_q, starts_k, longest_q, longest_k),
        block_table=table,
        options=chosen.options,
        alibi_slopes=rows(chosen.alibi_slopes),
    )
    return _results(q, *call.forward(None, chosen.return_lse))


def _empty(q: torch.Tensor, v: torch.Tensor, return_lse: bool) -> Any:
    out, lse = problems.results(q.shape, v.shape, "")
    return q.new_empty(out.shape), q.new_empty(lse.shape if return_lse else 0, dtype=torch.float32)


def _fake_attend(q: Any, k_cache: Any, v_cache: Any, *arguments: Any) -> Any:
    return _fake_over_cache(q, k_cache, v_cache, None, _cached(arguments))


def _fake_append(q: Any, k_cache: Any, v_cache: Any, *arguments: Any) -> Any:
    return _fake_over_cache(q, k_cache, v_cache, _New(*arguments[:5]), _cached(arguments[5:]))


def _fake_over_cache(q: Any, k: Any, v: Any, new: _New | None, cached: _Cached) -> Any:
    lengths, length, index, leftpad, table, splits, chosen = cached
    _tracing.check_devices(
        "q",
        q=q,
        k_cache=k,
        v_cache=v,
        cache_seqlens=lengths,
        cache_batch_idx=index,
        cache_leftpad=leftpad,
        block_table=table,
    )
    if leftpad is not None and q.is_cuda:
        raise cache_problems.no_leftpad()
    if new is not None:
        _tracing.check_devices(
            "q", q=q, k=new.k, v=new.v, rotary_cos=new.rotary_cos, rotary_sin=new.rotary_sin
        )
    _traced(
        q,
        (k, v, table),
        chosen,
        names=("k_cache", "v_cache"),
        splits=splits,
        chooses_entries=index is not None,
        has_lengths=lengths is not None or length is not None,
    )
    return _empty(q, v, chosen.return_lse)


def _fake_paged(
    q: Any,
    k: Any,
    v: Any,
    starts_q: Any,
    starts_k: Any,
    longest_q: int,
    longest_k: int,
    table: Any,
    *arguments: Any,
) -> Any:
    chosen = _options(arguments)
    _tracing.check_devices(
        "q", q=q, k=k, v=v, cu_seqlens_q=starts_q, cu_seqlens_k=starts_k, block_table=table
    )
    _traced(q, (k, v, table), chosen, sequences=(starts_q, starts_k, longest_q, longest_k))
    return _empty(q, v, chosen.return_lse)


def _traced(
    q: Any,
    keys: tuple[Any, Any, Any],
    options: _Options,
    *,
    names: tuple[str, str] = ("k", "v"),
    sequences: tuple[Any, ...] | None = None,
    splits: int = 0,
    chooses_entries: bool = False,
    has_lengths: bool = False,
) -> None:
    """Raises as the call would, as far as shapes, dtypes and numbers say. keys: k, v, and the table
    of their pages."""
    _tracing.check_devices("q", q=q, alibi_slopes=options.alibi_slopes)
    starts_q, starts_k, *longest = sequences or (None, None)
    shapes = _tracing.known(q, *keys, options.alibi_slopes, starts_q, starts_k)
    numbers = [_tracing.known_size(x) for x in (splits, *longest)]
    chosen = _tracing.known_options(_NAMES, options.numbers)
    if shapes is None or None in numbers or chosen is None:
        return
    known_q, known_k, known_v, table, slopes, starts_q, starts_k = shapes
    splits, *greatest = numbers
    lengths = None
    if sequences is not None:
        lengths = problems.lengths(problems.batch_of(starts_q, starts_k), *greatest)
    over = cache_problems.cached(
        known_q,
        known_k,
        known_v,
        names,
        block_table=table,
        chooses_entries=chooses_entries,
        sequences=lengths,
        options=chosen,
        alibi_slopes=slopes,
        splits=splits,
    )
    arch = _tracing.arch_of(q.device)
    if arch is not None:
        problem = over.attention.problem.on(_C.DEVICE_ROCM, 0, 0)
        arrays = ["seqlens_k"] * has_lengths + ["lse"] * options.return_lse
        _C.plan_kvcache_fwd(problem, over.numbers | {"splits": over.splits}, arrays, arch)


mha_fwd_kvcache = operator(
    f"mha_fwd_kvcache(Tensor q, Tensor k_cache, Tensor v_cache, {_CACHED}) -> {_RESULTS}",
    _attend,
    _fake_attend,
)
mha_fwd_kvcache_append = operator(
    "mha_fwd_kvcache_append(Tensor q, Tensor(a!) k_cache, Tensor(b!) v_cache, Tensor k, Tensor v, "
    "Tensor? rotary_cos, Tensor? rotary_sin, bool rotary_interleaved, "
    f"{_CACHED}) -> {_RESULTS}",
    _append,
    _fake_append,
)
mha_varlen_fwd_paged = operator(
    "mha_varlen_fwd_paged(Tensor q, Tensor k, Tensor v, Tensor cu_seqlens_q, Tensor cu_seqlens_k, "
    "SymInt max_seqlen_q, SymInt max_seqlen_k, Tensor block_table, "
    f"{_OPTIONS}) -> {_RESULTS}",
    _attend_paged,
    _fake_paged,
)
