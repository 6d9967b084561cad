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
_OPTIONS: Final = f"Tensor? alibi_slopes, Tensor? sink, {schema(_NAMES)}, bool return_lse"
# cache_seqlens is an array, or a number: cache_seqlen.
_CACHED: Final = (
    "Tensor? cache_seqlens, SymInt? cache_seqlen, Tensor? cache_batch_idx, Tensor? cache_leftpad, "
    f"Tensor? block_table, SymInt num_splits, {_OPTIONS}"
)
_RESULTS: Final = "(Tensor out, Tensor lse)"


class _Options(NamedTuple):
    """The arguments of _OPTIONS."""

    alibi_slopes: torch.Tensor | None
    sink: torch.Tensor | None
    numbers: tuple[Any, ...]
    return_lse: bool

    @property
    def options(self) -> Options:
        return options(**folded(_NAMES, self.numbers))


def _options(arguments: Any) -> _Options:
    slopes, sink, *numbers, return_lse = arguments
    return _Options(slopes, sink, tuple(numbers), return_lse)


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


_COUNT: Final = _CACHED.count(",") + 1
_AHEAD: Final = _Cached._fields.index("options")


def _given(arguments: Any) -> tuple[_New | None, _Cached]:
    """The arguments behind q and the caches."""
    new, cached = arguments[:-_COUNT], arguments[-_COUNT:]
    of_cache = _Cached._make((*cached[:_AHEAD], _options(cached[_AHEAD:])))
    return _New(*new) if new else None, of_cache


def _results(q: torch.Tensor, out: Any, lse: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """(out, lse) as operators give them: an empty lse where none is wanted."""
    return out, q.new_empty(0, dtype=torch.float32) if lse is None else lse


def _over_cache(q: Any, k_cache: Any, v_cache: Any, *arguments: Any) -> Any:
    new, cached = _given(arguments)
    lengths, length, index, leftpad, table, splits, chosen = cached
    call = CacheCall(
        rows(q),
        Keys(k_cache, v_cache, ("k_cache", "v_cache")),
        block_table=table,
        cache_batch_idx=index,
        options=chosen.options,
        alibi_slopes=rows(chosen.alibi_slopes),
        sink=None if chosen.sink is None else chosen.sink.contiguous(),
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


def _attend_paged(q: Any, k: Any, v: Any, *arguments: Any) -> Any:
    sequences, table, chosen = arguments[:4], arguments[4], _options(arguments[5:])
    call = CacheCall(
        rows(q),
        Keys(k, v),
        sequences=sequences,
        block_table=table,
        options=chosen.options,
        alibi_slopes=rows(chosen.alibi_slopes),
        sink=None if chosen.sink is None else chosen.sink.contiguous(),
    )
    return _results(q, *call.forward(None, chosen.return_lse))


def _empty(q: torch.Tensor, v: torch.Tensor, return_lse: bool) -> Any:
    out, lse = problems.results(q.shape, v.shape, "")
    return q.new_empty(out.shape), q.new_empty(lse.shape if return_lse else 0, dtype=torch.float32)


def _fake_over_cache(q: Any, k_cache: Any, v_cache: Any, *arguments: Any) -> Any:
    new, cached = _given(arguments)
    lengths, length, index, leftpad, table, splits, chosen = cached
    _tracing.check_devices(
        "q", q=q, cache_seqlens=lengths, cache_batch_idx=index, cache_leftpad=leftpad
    )
    if leftpad is not None and q.is_cuda:
        raise cache_problems.no_leftpad()
    if new is not None:
        _tracing.check_devices(
            "q", q=q, k=new.k, v=new.v, rotary_cos=new.rotary_cos, rotary_sin=new.rotary_sin
        )
    _traced(
        {"q": q, "k_cache": k_cache, "v_cache": v_cache, "block_table": table},
        chosen,
        splits=splits,
        chooses_entries=index is not None,
        has_lengths=lengths is not None or length is not None,
    )
    return _empty(q, v_cache, chosen.return_lse)


def _fake_paged(q: Any, k: Any, v: Any, *arguments: Any) -> Any:
    sequences, table, chosen = arguments[:4], arguments[4], _options(arguments[5:])
    arrays = {"q": q, "k": k, "v": v, "block_table": table}
    _traced(arrays, chosen, sequences=sequences)
    return _empty(q, v, chosen.return_lse)


def _traced(
    arrays: dict[str, Any],
    options: _Options,
    *,
    sequences: tuple[Any, ...] | None = None,
    splits: int = 0,
    chooses_entries: bool = False,
    has_lengths: bool = False,
) -> None:
    """Raises as the call would, as far as shapes, dtypes and numbers say. arrays: q, keys, values,
    and the table of their pages."""
    _, k_name, v_name, _ = arrays
    given = arrays | {"alibi_slopes": options.alibi_slopes, "sink": options.sink}
    known = _tracing.known_call(given, sequences, _NAMES, options.numbers)
    parts = _tracing.known_size(splits)
    if known is None or parts is None:
        return
    (q, k, v, table, slopes, sink), chosen, lengths = known
    over = cache_problems.cached(
        q,
        k,
        v,
        (k_name, v_name),
        block_table=table,
        chooses_entries=chooses_entries,
        sequences=lengths,
        options=chosen,
        alibi_slopes=slopes,
        splits=parts,
    )
    if sink is not None:
        problems.check_sink(sink, over.attention.problem.heads_q)
    arch = _tracing.arch_of(arrays["q"].device)
    if arch is not None:
        problem = over.attention.problem.on(_C.DEVICE_ROCM, 0, 0)
        told = ["seqlens_k"] * has_lengths + ["lse"] * options.return_lse
        told += ["sink"] * (sink is not None)
        _C.plan_kvcache_fwd(problem, over.numbers | {"splits": over.splits}, told, arch)


mha_fwd_kvcache = operator(
    f"mha_fwd_kvcache(Tensor q, Tensor k_cache, Tensor v_cache, {_CACHED}) -> {_RESULTS}",
    _over_cache,
    _fake_over_cache,
)
mha_fwd_kvcache_append = operator(
    "mha_fwd_kvcache_append(Tensor q, Tensor(a!) k_cache, Tensor(b!) v_cache, Tensor k, Tensor v, "
    "Tensor? rotary_cos, Tensor? rotary_sin, bool rotary_interleaved, "
    f"{_CACHED}) -> {_RESULTS}",
    _over_cache,
    _fake_over_cache,
)
mha_varlen_fwd_paged = operator(
    "mha_varlen_fwd_paged(Tensor q, Tensor k, Tensor v, Tensor cu_seqlens_q, Tensor cu_seqlens_k, "
    "SymInt max_seqlen_q, SymInt max_seqlen_k, Tensor block_table, "
    f"{_OPTIONS}) -> {_RESULTS}",
    _attend_paged,
    _fake_paged,
)
