# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Forward and backward on the CPU against float64: `python -m aiter_attn selftest`.

Errors are in units of the last place (ulp) of the storage dtype, so that rounding the exact result
costs at most 0.5. A value much smaller than its tensor's greatest is measured with the ulp of a
share of that (_CANCELLED): it is a float32 sum whose terms cancel, which keeps no more of it.
"""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any, Final

import aiter_attn

__all__ = ["CASES", "Case", "Row", "reference", "report", "run", "ulp_error"]

# Mantissa bits behind the point.
_BITS: Final = {"float16": 10, "bfloat16": 7, "float32": 23}
# Greatest error that passes, in ulp. One rounding at the end is 0.5; the float32 sums before it are
# a small part of a 16-bit ulp, and some ulp of float32 itself.
_GATES: Final = {"float16": 1.0, "bfloat16": 1.0, "float32": 8.0}
_LSE_GATE: Final = 8.0  # float32, for any dtype
_CANCELLED: Final = {"float16": 1 / 64, "bfloat16": 1 / 64, "float32": 1.0}


@dataclasses.dataclass(frozen=True)
class Case:
    """lengths are (seqlen_q, seqlen_k) of each sequence; batch mode needs them all equal."""

    name: str
    dtype: str
    lengths: tuple[tuple[int, int], ...]
    heads_q: int = 2
    heads_k: int = 2
    head_size: int = 64
    head_size_v: int = 64
    causal: bool = False
    window: tuple[int, int] = (-1, -1)
    varlen: bool = False
    form: str = ""  # of _FORMS, which have no backward pass; "": separate arrays


@dataclasses.dataclass(frozen=True)
class Row:
    """The result of a case. errors: of out and lse, and of dq, dk and dv where it has a backward
    pass; empty where it was skipped."""

    case: Case
    errors: tuple[float, ...]
    skipped: str = ""

    @property
    def passed(self) -> bool:
        gate = _GATES[self.case.dtype]
        gates = (gate, _LSE_GATE, gate, gate, gate)
        return all(error <= limit for error, limit in zip(self.errors, gates, strict=False))


def _cases() -> Iterator[Case]:
    same, ragged = ((37, 53),) * 2, ((37, 53), (1, 64), (64, 1), (0, 5), (20, 0))
    decoding = ((3, 37), (3, 64), (3, 3))
    for dtype in _BITS:
        yield Case("plain", dtype, same)
        yield Case("causal", dtype, same, causal=True)
        yield Case("causal, more queries than keys", dtype, ((53, 37),) * 2, causal=True)
        yield Case("window (8, 3)", dtype, same, window=(8, 3))
        yield Case("grouped heads, causal", dtype, same, heads_q=6, heads_k=2, causal=True)
        yield Case("head sizes 128 and 64", dtype, same, head_size=128)
        yield Case("varlen", dtype, ragged, varlen=True)
        yield Case("varlen, causal, grouped", dtype, ragged, 4, 1, causal=True, varlen=True)
        yield Case("packed keys and values", dtype, ragged, causal=True, form="packed")
        yield Case("keys appended to pages", dtype, decoding, 4, 2, causal=True, form="pages")
        yield Case("keys listed one by one", dtype, ragged, 4, 2, form="list")


CASES: Final[tuple[Case, ...]] = tuple(_cases())


def reference(
    numpy: ModuleType,
    q: Any,
    k: Any,
    v: Any,
    dout: Any,
    out: Any,
    *,
    causal: bool,
    window: tuple[int, int],
    bias: Any = 0.0,
    softcap: float = 0.0,
    kept: Any = 1.0,
    sink: Any = None,
) -> tuple[Any, Any, Any, Any, Any]:
    """(out, lse, dq, dk, dv) of one sequence in float64, arrays [seqlen, heads, head_size].

    The backward pass takes `out` as it was stored, as the library does; None: the exact one.

    bias: added to the scores, [heads, seqlen_q, seqlen_k]. softcap: of the forward pass alone.
    kept: a factor of each probability, of dropout. sink: [heads].
    """
    seqlen_q, heads_q, head_size = q.shape
    seqlen_k, heads_k, _ = k.shape
    group = heads_q // heads_k
    scale = 1.0 / math.sqrt(head_size)
    left, right = window[0], 0 if causal else window[1]

    rows = numpy.arange(seqlen_q)[:, None] + (seqlen_k - seqlen_q)
    columns = numpy.arange(seqlen_k)[None, :]
    seen = numpy.ones((seqlen_q, seqlen_k), bool)
    if left >= 0:
        seen &= columns >= rows - left
    if right >= 0:
        seen &= columns <= rows + right

    wide_k, wide_v = numpy.repeat(k, group, axis=1), numpy.repeat(v, group, axis=1)
    scores = numpy.einsum("ihd,jhd->hij", q, wide_k, optimize=True) * scale + bias
    if softcap:
        scores = softcap * numpy.tanh(scores / softcap)
    scores = numpy.where(seen, scores, -numpy.inf)
    top = numpy.max(scores, axis=2, keepdims=True, initial=-numpy.inf)
    top = numpy.where(numpy.isfinite(top), top, 0.0)
    weights = numpy.exp(scores - top)
    total = weights.sum(axis=2, keepdims=True)
    if sink is not None:
        total = total + numpy.exp(sink[:, None, None] - top)
    with numpy.errstate(divide="ignore"):
        lse = (top + numpy.log(total))[:, :, 0]
    probabilities = weights / numpy.where(total > 0.0, total, 1.0)
    passed = probabilities * kept
    exact = numpy.einsum("hij,jhd->ihd", passed, wide_v, optimize=True)

    stored = exact if out is None else out
    delta = (dout * stored).sum(axis=2).T[:, :, None]
    dscores = numpy.einsum("ihd,jhd->hij", dout, wide_v, optimize=True) * kept
    dscores = probabilities * (dscores - delta) * scale
    dq = numpy.einsum("hij,jhd->ihd", dscores, wide_k, optimize=True)
    wide_dk = numpy.einsum("hij,ihd->jhd", dscores, q, optimize=True)
    wide_dv = numpy.einsum("hij,ihd->jhd", passed, dout, optimize=True)
    dk = wide_dk.reshape(seqlen_k, heads_k, group, head_size).sum(axis=2)
    dv = wide_dv.reshape(seqlen_k, heads_k, group, v.shape[2]).sum(axis=2)
    return exact, lse, dq, dk, dv


def ulp_error(numpy: ModuleType, got: Any, want: Any, dtype: str, terms: Any = None) -> float:
    """The greatest difference in ulp of dtype; infinite where only one is finite, or NaN is.

    terms: the size of the terms that were rounded to dtype before they were summed, where there
    were any; no smaller value keeps more than they do.
    """
    got = numpy.asarray(got, numpy.float64)
    want = numpy.asarray(want, numpy.float64)
    finite = numpy.isfinite(want)
    if not numpy.array_equal(got[~finite], want[~finite]) or not numpy.isfinite(got[finite]).all():
        return math.inf
    if terms is not None:
        terms = numpy.broadcast_to(terms, want.shape)[finite]
    got, want = got[finite], want[finite]
    if want.size == 0:
        return 0.0
    greatest = float(numpy.abs(want).max())
    if greatest == 0.0:
        return 0.0 if not got.any() else math.inf
    size = numpy.maximum(numpy.abs(want), greatest * _CANCELLED[dtype])
    if terms is not None:
        size = numpy.maximum(size, terms)
    ulp = numpy.exp2(numpy.floor(numpy.log2(size)) - _BITS[dtype])
    return float((numpy.abs(got - want) / ulp).max())


def _dtype(numpy: ModuleType, name: str) -> Any:
    if name != "bfloat16":
        return numpy.dtype(name)
    import ml_dtypes

    return numpy.dtype(ml_dtypes.bfloat16)


def _starts(numpy: ModuleType, case: Case, side: int) -> Any:
    lengths = (pair[side] for pair in case.lengths)
    return numpy.array([0, *itertools.accumulate(lengths)], numpy.int32)


def _longest(case: Case) -> tuple[int, int]:
    return max(pair[0] for pair in case.lengths), max(pair[1] for pair in case.lengths)


def _sequences(numpy: ModuleType, case: Case) -> tuple[Any, Any, int, int]:
    """cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k."""
    return _starts(numpy, case, 0), _starts(numpy, case, 1), *_longest(case)


def _packed(numpy: ModuleType, case: Case, q: Any, k: Any, v: Any) -> tuple[Any, Any]:
    out, lse, _ = aiter_attn.flash_attn_varlen_kvpacked_func(
        q,
        numpy.stack([k, v], axis=1),
        *_sequences(numpy, case),
        causal=case.causal,
        return_attn_probs=True,
    )
    return out, lse


def _in_pages(numpy: ModuleType, case: Case, q: Any, k: Any, v: Any) -> tuple[Any, Any]:
    """The last keys of each sequence, as many as queries, are appended by the call."""
    new, page_size = case.lengths[0][0], 16
    batch, pages = len(case.lengths), -(-_longest(case)[1] // page_size)
    table = numpy.arange(batch * pages, dtype=numpy.int32)[::-1].reshape(batch, pages).copy()
    starts = _starts(numpy, case, 1)
    caches, news = [], []
    for packed in (k, v):
        cache = numpy.zeros((batch * pages, page_size, *packed.shape[1:]), packed.dtype)
        for b in range(batch):
            kept = packed[starts[b] : starts[b + 1] - new]
            rows = numpy.zeros((pages * page_size, *packed.shape[1:]), packed.dtype)
            rows[: len(kept)] = kept
            cache[table[b]] = rows.reshape(pages, page_size, *packed.shape[1:])
        caches.append(cache)
        news.append(numpy.stack([packed[end - new : end] for end in starts[1:]]))
    out, lse = aiter_attn.flash_attn_with_kvcache(
        q.reshape(batch, new, *q.shape[1:]),
        *caches,
        *news,
        cache_seqlens=starts[1:] - starts[:-1] - new,
        block_table=table,
        causal=case.causal,
        return_softmax_lse=True,
    )
    return out.reshape(len(q), *out.shape[2:]), lse.transpose(1, 0, 2).reshape(case.heads_q, -1)


def _listed(numpy: ModuleType, case: Case, q: Any, k: Any, v: Any) -> tuple[Any, Any]:
    return aiter_attn.mha_batch_prefill(
        q,
        k[::-1].copy(),
        v[::-1].copy(),
        _starts(numpy, case, 0),
        _starts(numpy, case, 1),
        numpy.arange(len(k), dtype=numpy.int32)[::-1].copy(),
        *_longest(case),
        causal=case.causal,
        return_lse=True,
    )


# Forward passes whose arrays lie otherwise. Of packed q, k and v: (out, lse), in the layout of
# varlen mode.
_FORMS: Final = {"packed": _packed, "pages": _in_pages, "list": _listed}


def _with_numpy(
    numpy: ModuleType, case: Case, q: Any, k: Any, v: Any, dout: Any
) -> tuple[Any, ...]:
    if case.form:
        return _FORMS[case.form](numpy, case, q, k, v)
    options: Any = {"causal": case.causal, "window_size": case.window}
    if case.varlen:
        sequences = _sequences(numpy, case)
        out, lse = aiter_attn.mha_varlen_fwd(q, k, v, *sequences, **options)
        gradients = aiter_attn.mha_varlen_bwd(dout, q, k, v, out, lse, *sequences, **options)
        return out, lse, *gradients
    dout, q, k, v = (_by_sequence(case, x) for x in (dout, q, k, v))
    out, lse = aiter_attn.mha_fwd(q, k, v, **options)
    return _packed_again(out, lse, *aiter_attn.mha_bwd(dout, q, k, v, out, lse, **options))


def _with_jax(numpy: ModuleType, case: Case, q: Any, k: Any, v: Any, dout: Any) -> tuple[Any, ...]:
    import jax

    from aiter_attn import jax as front

    options: Any = {"causal": case.causal, "window_size": case.window, "return_attn_probs": True}
    sequences: Any = _sequences(numpy, case)

    def passes(dout: Any, *arrays: Any) -> tuple[Any, ...]:
        def forward(*x: Any) -> tuple[Any, Any]:
            if case.varlen:
                out, lse, _ = front.flash_attn_varlen_func(*x, *sequences, **options)
            else:
                out, lse, _ = front.flash_attn_func(*x, **options)
            return out, lse

        out, pull, lse = jax.vjp(forward, *arrays, has_aux=True)
        return out, lse, *pull(dout)

    program = jax.jit(passes)
    with jax.default_device(jax.devices("cpu")[0]):
        if case.varlen:
            return tuple(map(numpy.asarray, program(dout, q, k, v)))
        results = program(*(_by_sequence(case, x) for x in (dout, q, k, v)))
        return _packed_again(*map(numpy.asarray, results))


def _with_torch(
    numpy: ModuleType, case: Case, q: Any, k: Any, v: Any, dout: Any
) -> tuple[Any, ...]:
    import torch

    from aiter_attn import torch as front

    def tensor(array: Any) -> Any:
        if case.dtype != "bfloat16":
            return torch.from_numpy(array)
        return torch.from_numpy(array.view(numpy.int16)).view(torch.bfloat16)

    def array(given: Any) -> Any:
        given = given.detach()
        if given.dtype != torch.bfloat16:
            return given.numpy()
        return given.view(torch.int16).numpy().view(q.dtype)

    options: Any = {"causal": case.causal, "window_size": case.window, "return_attn_probs": True}
    given = (dout, q, k, v) if case.varlen else [_by_sequence(case, x) for x in (dout, q, k, v)]
    dout, *arrays = map(tensor, given)
    for each in arrays:
        each.requires_grad_()
    if case.varlen:
        starts = [torch.from_numpy(_starts(numpy, case, side)) for side in (0, 1)]
        sequences: Any = (*starts, *_longest(case))
        out, lse, _ = front.flash_attn_varlen_func(*arrays, *sequences, **options)
    else:
        out, lse, _ = front.flash_attn_func(*arrays, **options)
    results = [array(x) for x in (out, lse, *torch.autograd.grad(out, arrays, dout))]
    return tuple(results) if case.varlen else _packed_again(*results)


def _by_sequence(case: Case, packed: Any) -> Any:
    return packed.reshape(len(case.lengths), -1, *packed.shape[1:])


def _packed_again(out: Any, lse: Any, *gradients: Any) -> tuple[Any, ...]:
    """Results of batch mode, in the layout of varlen mode."""
    lse = lse.transpose(1, 0, 2).reshape(lse.shape[1], -1)
    packed, *others = (x.reshape(-1, *x.shape[2:]) for x in (out, *gradients))
    return packed, lse, *others


# The frameworks that a case is computed with. Of packed q, k, v and dout: out, lse, and the
# gradients where the case has a backward pass.
_FRAMEWORKS: Final = {"numpy": _with_numpy, "jax": _with_jax, "torch": _with_torch}


def _run_case(numpy: ModuleType, case: Case, seed: int, framework: str) -> Row:
    try:
        dtype = _dtype(numpy, case.dtype)
    except ImportError:
        return Row(case, (), "needs ml_dtypes: pip install ml_dtypes")
    generator = numpy.random.default_rng(seed)
    batch = len(case.lengths)
    starts_q, starts_k = _starts(numpy, case, 0), _starts(numpy, case, 1)

    def draw(total: int, heads: int, head_size: int) -> Any:
        return generator.standard_normal((total, heads, head_size)).astype(dtype)

    total_q, total_k = int(starts_q[-1]), int(starts_k[-1])
    q = draw(total_q, case.heads_q, case.head_size)
    k = draw(total_k, case.heads_k, case.head_size)
    v = draw(total_k, case.heads_k, case.head_size_v)
    dout = draw(total_q, case.heads_q, case.head_size_v)

    out, lse, *gradients = _FRAMEWORKS[framework](numpy, case, q, k, v, dout)
    got = (out, lse.T, *gradients)
    want: list[list[Any]] = [[] for _ in got]
    for i in range(batch):
        rows = slice(starts_q[i], starts_q[i + 1])
        columns = slice(starts_k[i], starts_k[i + 1])
        exact = reference(
            numpy,
            q[rows].astype(numpy.float64),
            k[columns].astype(numpy.float64),
            v[columns].astype(numpy.float64),
            dout[rows].astype(numpy.float64),
            out[rows].astype(numpy.float64),
            causal=case.causal,
            window=case.window,
        )
        for parts, part in zip(want, (exact[0], exact[1].T, *exact[2:]), strict=False):
            parts.append(part)
    dtypes = (case.dtype, "float32", *[case.dtype] * 3)
    errors = [
        ulp_error(numpy, x, numpy.concatenate(parts), kind)
        for x, parts, kind in zip(got, want, dtypes, strict=False)
    ]
    return Row(case, tuple(errors))


def run(cases: Sequence[Case] = CASES, framework: str = "numpy") -> Iterator[Row]:
    """Each case's row as it is done; with another framework than numpy, of those with a backward
    pass. Raises ImportError, at once, without numpy or the framework."""
    import numpy

    if framework != "numpy":
        importlib.import_module(f"aiter_attn.{framework}")
        cases = [case for case in cases if not case.form]
    return (_run_case(numpy, case, seed, framework) for seed, case in enumerate(cases))


_COLUMNS: Final = ("out", "lse", "dq", "dk", "dv")


def report(rows: Iterable[Row], write: Callable[[str], object], framework: str = "numpy") -> bool:
    """Writes a table, line by line as the rows come, at most 100 columns; whether none failed."""
    write(
        f"{framework}: forward and backward on the CPU against float64; errors in ulp (units of "
        "the last place)"
    )
    write("")
    columns = "".join(f"{name:>8}" for name in _COLUMNS)
    write(f"{'case':<31} {'dtype':<9}{columns}{'gate':>7}   result")
    passed = failed = 0
    reasons: list[str] = []
    for row in rows:
        start = f"{row.case.name:<31} {row.case.dtype:<9}"
        if row.skipped:
            reasons.append(row.skipped)
            write(f"{start}  skipped")
            continue
        passed += row.passed
        failed += not row.passed
        numbers = "".join(f"{error:8.3f}" for error in row.errors)
        verdict = "ok" if row.passed else "FAILED"
        write(f"{start}{numbers:<{8 * len(_COLUMNS)}}{_GATES[row.case.dtype]:7.1f}   {verdict}")
    write("")
    for reason in dict.fromkeys(reasons):
        write(f"skipped: {reason}")
    write(
        f"{passed} passed, {failed} failed, {len(reasons)} skipped (gate of lse, float32: "
        f"{_LSE_GATE})"
    )
    return failed == 0
