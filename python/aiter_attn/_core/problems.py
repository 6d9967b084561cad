# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""From shapes, dtypes and options to the problem, and to the shapes of its results.

Pure functions: no memory is read and no device is asked. So they serve a call, a question about one
(explain), and whoever evaluates a call in the abstract: a torch fake kernel, a JAX abstract
evaluation. Messages begin with the argument's name.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Final, NamedTuple, Protocol, SupportsIndex

from aiter_attn import _C
from aiter_attn._core import reading
from aiter_attn._core.options import GREATEST_SCALE, LEAST_SCALE, Options, numbers

__all__ = [
    "BATCH",
    "GROUP",
    "NOTHING",
    "Attention",
    "Beside",
    "HasShape",
    "Lengths",
    "Scales",
    "ShapeDtype",
    "attention",
    "batch_of",
    "beside",
    "check",
    "check_dims",
    "check_heads",
    "check_packed",
    "check_rng_state",
    "check_sink",
    "lengths",
    "results",
    "rng_state",
]

DEFAULTS: Final = Options()
BATCH: Final = ("batch", "seqlen", "heads", "head size")
GROUP: Final = ("total tokens", "heads", "head size")
_BATCH_SCORES: Final = ("batch", "heads", "queries", "keys")
_GROUP_SCORES: Final = ("heads", "total queries", "most keys")
_GREATEST_STATE: Final = 2**64 - 1
_STATES: Final = f"(seed, offset), integers from 0 to {_GREATEST_STATE}, or an array of them"
_LSE: Final = {BATCH: ("batch", "heads", "seqlen"), GROUP: ("heads", "total tokens")}


class HasShape(Protocol):
    """A _C.Tensor, a ShapeDtype."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...


class ShapeDtype(NamedTuple):
    """An array without its memory; dims are its dimensions' names, for messages."""

    shape: tuple[int, ...]
    dtype: str
    dims: tuple[str, ...] = ()


class Lengths(NamedTuple):
    """The numbers of varlen mode (the C ABI's group mode) beyond shapes: sequences, greatest
    lengths."""

    batch: int
    max_seqlen_q: int
    max_seqlen_k: int


class Scales(NamedTuple):
    """Of fp8: the factors by which elements of q, k and v are numbers, and that of results before
    they are rounded; and the dtype of the result. None: q's; with another there is no factor, 0."""

    q_descale: float
    k_descale: float
    v_descale: float
    out_scale: float
    out_dtype: str | None = None


class Beside(NamedTuple):
    """Everything of a call beside q, k and v, as far as its problem says. bias is the shape and
    dtype of what is added to the scores, or of ALiBi's slopes where is_alibi. scales: where q, k
    and v are fp8; v may lie by columns then, its keys contiguous."""

    bias: ShapeDtype | None = None
    is_alibi: bool = False
    scales: Scales | None = None
    v_columns: bool = False


NOTHING: Final = Beside()


class Attention(NamedTuple):
    """A problem in host memory (Problem.on puts it elsewhere), and the results of its passes."""

    problem: _C.Problem
    out: ShapeDtype
    lse: ShapeDtype
    dq: ShapeDtype
    dk: ShapeDtype
    dv: ShapeDtype
    dbias: ShapeDtype
    kept: ShapeDtype  # which weights dropout keeps
    dsink: ShapeDtype


def beside(
    bias: HasShape | None = None,
    alibi_slopes: HasShape | None = None,
    scales: Scales | None = None,
    v_columns: bool = False,
) -> Beside:
    """Raises ValueError for a bias and slopes at once."""
    if bias is not None and alibi_slopes is not None:
        raise ValueError("bias, alibi_slopes: both given; allowed: one of them")
    given = bias if alibi_slopes is None else alibi_slopes
    described = None if given is None else ShapeDtype(given.shape, given.dtype)
    return Beside(described, alibi_slopes is not None, scales, v_columns)


def rng_state(
    dropout_p: float, given: tuple[SupportsIndex, SupportsIndex] | None
) -> tuple[int, int]:
    """(seed, offset) of a call's random numbers. Raises where it has dropout and none of them."""
    if given is None:
        if dropout_p > 0.0:
            raise ValueError(
                f"rng_state: None, but dropout_p is {dropout_p}; allowed: {_STATES}, which the "
                "backward pass gets again"
            )
        return 0, 0
    state = reading.pair("rng_state", given, _STATES)
    if not all(0 <= number <= _GREATEST_STATE for number in state):
        raise ValueError(f"rng_state: {reading.shown(state)}; allowed: {_STATES}")
    return state


def check_rng_state(given: HasShape) -> None:
    """Raises TypeError or ValueError for an array that has not seed and offset."""
    if given.dtype not in ("int64", "uint64"):
        raise TypeError(f"rng_state: dtype {given.dtype}; allowed: int64 or uint64, of any bits")
    if tuple(given.shape) != (2,):
        raise ValueError(f"rng_state: shape {given.shape}; allowed: (2,), seed and offset")


def _sink(heads_q: int) -> ShapeDtype:
    return ShapeDtype((heads_q,), "float32", ("heads",))


def check_sink(given: HasShape, heads_q: int) -> None:
    """Raises TypeError or ValueError for an array that is no sink of so many heads."""
    want = _sink(heads_q)
    if given.dtype != want.dtype:
        raise TypeError(f"sink: dtype {given.dtype}; allowed: {want.dtype}")
    if tuple(given.shape) != want.shape:
        raise ValueError(
            f"sink: shape {tuple(given.shape)}; allowed here: {want.shape} [heads of q]"
        )


def attention(
    q: HasShape,
    k: HasShape,
    v: HasShape,
    options: Options = DEFAULTS,
    sequences: Lengths | None = None,
    beside: Beside = NOTHING,
) -> Attention:
    """q, k, v are [batch, seqlen, heads, head size], with sequences [total, heads, head size].

    Raises TypeError or ValueError for arguments that no device would take. Results are remembered.
    """
    return _attention(
        q.shape, q.dtype, k.shape, k.dtype, v.shape, v.dtype, options, sequences, beside
    )


def results(q: tuple[int, ...], v: tuple[int, ...], dtype: str) -> tuple[ShapeDtype, ShapeDtype]:
    """(out, lse) for the shapes of q and v and out's dtype; sizes may be a tracer's symbols."""
    dims = BATCH if len(q) == 4 else GROUP
    *batch, tokens, heads, _ = q
    lse = (*batch, heads, tokens)
    return ShapeDtype((*q[:-1], v[-1]), dtype, dims), ShapeDtype(lse, "float32", _LSE[dims])


def lengths(
    batch: SupportsIndex, max_seqlen_q: SupportsIndex, max_seqlen_k: SupportsIndex
) -> Lengths:
    return Lengths(
        reading.integer("batch", batch),
        reading.integer("max_seqlen_q", max_seqlen_q),
        reading.integer("max_seqlen_k", max_seqlen_k),
    )


def batch_of(cu_seqlens_q: HasShape, cu_seqlens_k: HasShape) -> int:
    """The number of sequences that begin there; both are [batch + 1], int32."""
    shapes = cu_seqlens_q.shape, cu_seqlens_k.shape
    for name, starts, shape in zip(
        ("cu_seqlens_q", "cu_seqlens_k"), (cu_seqlens_q, cu_seqlens_k), shapes, strict=True
    ):
        if starts.dtype != "int32":
            raise TypeError(f"{name}: dtype {starts.dtype}; allowed: int32")
        if len(shape) != 1 or shape[0] < 1:
            raise ValueError(f"{name}: shape {shape}; allowed: [batch + 1]")
    (of_q,), (of_k,) = shapes
    if of_q != of_k:
        raise ValueError(
            f"cu_seqlens_k: {of_k} entries, but cu_seqlens_q has {of_q}; both have batch + 1"
        )
    return of_q - 1


def check(name: str, given: HasShape, want: ShapeDtype) -> None:
    """Raises TypeError or ValueError where `given` is not what the call wants there."""
    if given.dtype != want.dtype:
        as_q = ", as q has; q, k, v, out and the gradients have one dtype"
        raise TypeError(
            f"{name}: dtype {given.dtype}; allowed here: {want.dtype}"
            f"{as_q if want.dims[-1] == 'head size' else ''}"
        )
    if given.shape == want.shape:
        return
    if len(given.shape) == len(want.shape):
        wrong = ", ".join(
            f"{dim} {have} instead of {size}"
            for dim, have, size in zip(want.dims, given.shape, want.shape, strict=True)
            if have != size
        )
    else:
        wrong = f"{len(given.shape)} dimensions instead of {len(want.shape)}"
    raise ValueError(
        f"{name}: shape {given.shape}; allowed here: {want.shape} [{', '.join(want.dims)}]: {wrong}"
    )


def check_packed(name: str, given: HasShape, parts: int, is_varlen: bool) -> int:
    """Which dimension the parts are along. Raises TypeError or ValueError where `given` is not
    [batch, seqlen, parts, heads, head size], with is_varlen [total, parts, heads, head size]."""
    _check_dtype(name, given.dtype)
    dims = GROUP if is_varlen else BATCH
    along = len(dims) - 2
    if len(given.shape) != len(dims) + 1 or given.shape[along] != parts:
        allowed = ", ".join((*dims[:along], str(parts), *dims[along:]))
        raise ValueError(f"{name}: shape {given.shape}; allowed: [{allowed}]")
    return along


def check_dims(name: str, given: HasShape, dims: tuple[str, ...], fp8: bool = False) -> None:
    """Raises TypeError or ValueError where attention takes no such dtype, or not so many
    dimensions. fp8: whether the call has scales."""
    if not (fp8 and given.dtype in _C.FORWARD_FP8_DTYPES):
        _check_dtype(name, given.dtype)
    if len(given.shape) != len(dims):
        raise ValueError(f"{name}: shape {given.shape}; allowed: [{', '.join(dims)}]")


def check_heads(name: str, keys: tuple[int, ...], heads_q: int) -> None:
    """Raises ValueError where queries cannot share the heads of keys."""
    heads_k = keys[-2]
    if min(heads_q, heads_k) < 1 or heads_q % heads_k:
        raise ValueError(
            f"{name}: {heads_k} heads (shape {keys}), but q has {heads_q}; q's must be a multiple "
            f"of {name}'s, and neither 0"
        )


def _check_dtype(name: str, dtype: str) -> None:
    if dtype not in _C.DTYPES:
        fp8 = (
            f"; fp8 is {' or '.join(_C.FORWARD_FP8_DTYPES)}, in flash_attn_func and "
            "flash_attn_varlen_func alone, and has no gradient"
        )
        raise TypeError(
            f"{name}: dtype {dtype}; allowed: float16, bfloat16, and on the CPU float32"
            f"{fp8 if dtype.startswith('float8') else ''}"
        )


@functools.lru_cache(maxsize=1024)
def _attention(
    q: tuple[int, ...],
    q_dtype: str,
    k: tuple[int, ...],
    k_dtype: str,
    v: tuple[int, ...],
    v_dtype: str,
    options: Options,
    sequences: Lengths | None,
    beside: Beside,
) -> Attention:
    dims = BATCH if sequences is None else GROUP
    for name, shape, dtype in (("q", q, q_dtype), ("k", k, k_dtype), ("v", v, v_dtype)):
        check_dims(name, ShapeDtype(shape, dtype), dims, fp8=beside.scales is not None)
    (*batch, seqlen_q, heads_q, head_size), (*_, seqlen_k, heads_k, _), head_size_v = q, k, v[-1]
    check_heads("k", k, heads_q)
    if min(head_size, head_size_v) < 1:
        raise ValueError(f"q, v: head sizes {head_size}, {head_size_v}; allowed: 1 or more")
    dk = ShapeDtype((*batch, seqlen_k, heads_k, head_size), q_dtype, dims)
    dv = ShapeDtype((*k[:-1], head_size_v), q_dtype, dims)
    check("k", ShapeDtype(k, k_dtype), dk)
    check("v", ShapeDtype(v, v_dtype), dv)

    if sequences is None:
        extents = {
            "mode": _C.MODE_BATCH,
            "batch": reading.integer("q: batch", batch[0]),
            "seqlen_q": reading.integer("q: seqlen", seqlen_q),
            "seqlen_k": reading.integer("k: seqlen", seqlen_k),
        }
    else:
        _check_tokens("q", seqlen_q, sequences.batch, sequences.max_seqlen_q)
        _check_tokens("k", seqlen_k, sequences.batch, sequences.max_seqlen_k)
        extents = {
            "mode": _C.MODE_GROUP,
            "batch": sequences.batch,
            "seqlen_q": sequences.max_seqlen_q,
            "seqlen_k": sequences.max_seqlen_k,
            "total_q": reading.integer("q: total tokens", seqlen_q),
            "total_k": reading.integer("k: total tokens", seqlen_k),
        }
    left, right = _bounds(*options.window_size, extents["seqlen_k"])
    right = 0 if options.causal else right
    scores = _scores(extents, seqlen_q, heads_q, q_dtype)
    _check_bias(beside, scores, extents["batch"], heads_q)
    if options.bias_grad and (beside.bias is None or beside.is_alibi):
        raise ValueError("bias_grad: True, but bias is None; allowed: False without a bias")
    if options.min_seqlen_q and sequences is None:
        raise ValueError(
            f"min_seqlen_q: {options.min_seqlen_q}; allowed in batch mode: 0, as its sequences "
            "have one length"
        )
    softmax_scale = options.softmax_scale
    if softmax_scale is None:
        softmax_scale = 1.0 / math.sqrt(head_size)
    given = extents | numbers(options) | _scaled(beside, softmax_scale)
    given |= {
        "dtype": (_C.DTYPES | _C.FORWARD_FP8_DTYPES)[q_dtype],
        "heads_q": reading.integer("q: heads", heads_q),
        "heads_k": heads_k,
        "head_size_qk": reading.integer("q: head size", head_size),
        "head_size_v": reading.integer("v: head size", head_size_v),
        "softmax_scale": softmax_scale,
        "mask": _C.MASK_NONE if left == right == -1 else _C.MASK_BOTTOM_RIGHT,
        "window_left": left,
        "window_right": right,
        "bias": _C.BIASES[_kind_of_bias(beside)],
        "dbias_sums": _dbias_sums(beside, scores) if options.bias_grad else 0,
    }
    problem = _C.Problem(**given)
    out, lse = results(q, v, (beside.scales and beside.scales.out_dtype) or q_dtype)
    kept = ShapeDtype(scores.shape, "uint8", scores.dims)
    dbias = (
        scores._replace(shape=beside.bias.shape) if options.bias_grad and beside.bias else scores
    )
    dq = ShapeDtype(q, q_dtype, dims)
    return Attention(problem, out, lse, dq, dk, dv, dbias, kept, _sink(heads_q))


def _scaled(beside: Beside, softmax_scale: float) -> dict[str, Any]:
    """The problem's fields for fp8. Raises ValueError for scales that float32 cannot multiply."""
    scales = beside.scales
    if scales is None:
        return {}
    of_scores = softmax_scale * scales.q_descale * scales.k_descale
    products = [("softmax_scale * q_descale * k_descale", of_scores)]
    if scales.out_dtype is None:
        products.append(("v_descale * out_scale", scales.v_descale * scales.out_scale))
    else:
        products.append(("v_descale", scales.v_descale))
    for name, product in products:
        if not LEAST_SCALE <= product <= GREATEST_SCALE:
            raise ValueError(
                f"{name}: {product}; allowed: {LEAST_SCALE:.3g} to {GREATEST_SCALE:.3g}: choose "
                "other scales"
            )
    return {
        "descale_q": scales.q_descale,
        "descale_k": scales.k_descale,
        "descale_v": scales.v_descale,
        "scale_o": scales.out_scale,
        "o_dtype": 0 if scales.out_dtype is None else _C.DTYPES[scales.out_dtype],
        "v_layout": _C.V_COLUMNS if beside.v_columns else _C.V_ROWS,
    }


def _kind_of_bias(beside: Beside) -> str:
    if beside.bias is None:
        return "none"
    return "alibi" if beside.is_alibi else "elementwise"


def _scores(extents: dict[str, int], queries: int, heads_q: int, dtype: str) -> ShapeDtype:
    """The shape of an array of scores; queries are all that a tensor has."""
    shape = (heads_q, queries, extents["seqlen_k"])
    if extents["mode"] == _C.MODE_GROUP:
        return ShapeDtype(shape, dtype, _GROUP_SCORES)
    return ShapeDtype((extents["batch"], *shape), dtype, _BATCH_SCORES)


def _dbias_sums(beside: Beside, scores: ShapeDtype) -> int:
    """The dimensions that a bias serves all of, by a 1 for its size."""
    if beside.bias is None:
        return 0
    sizes = zip(beside.bias.shape[-2::-1], scores.shape[-2::-1], _C.DBIAS_SUMS[::-1], strict=False)
    return sum(flag for have, size, flag in sizes if have != size)


def _check_bias(beside: Beside, scores: ShapeDtype, batch: int, heads_q: int) -> None:
    given = beside.bias
    if given is None:
        return
    if beside.is_alibi:
        if given.dtype != "float32":
            raise TypeError(f"alibi_slopes: dtype {given.dtype}; allowed: float32")
        if given.shape not in ((heads_q,), (batch, heads_q)):
            raise ValueError(
                f"alibi_slopes: shape {given.shape}; allowed here: {(heads_q,)} [heads] or "
                f"{(batch, heads_q)} [batch, heads]"
            )
        return
    if given.dtype != scores.dtype:
        raise TypeError(f"bias: dtype {given.dtype}; allowed here: {scores.dtype}, as q has")
    fits = len(given.shape) == len(scores.shape) and given.shape[-1] == scores.shape[-1]
    if not fits or any(
        have not in (1, size) for have, size in zip(given.shape, scores.shape, strict=True)
    ):
        missing = len(scores.shape) - len(given.shape)
        ones = f"; pass a view of shape {(1,) * missing + given.shape}" if missing > 0 else ""
        raise ValueError(
            f"bias: shape {given.shape}; allowed here: {scores.shape} [{', '.join(scores.dims)}], "
            f"with 1 for any size but the last: it serves all{ones}"
        )


def _check_tokens(name: str, tokens: int, batch: int, longest: int) -> None:
    """Raises ValueError where sequences of at most that length cannot have so many tokens."""
    if tokens <= batch * longest:
        return
    if batch == 0:
        raise ValueError(
            f"{name}: {tokens} tokens; allowed here: 0, as cu_seqlens_{name} has no sequence"
        )
    raise ValueError(
        f"cu_seqlens_{name}, max_seqlen_{name}: {batch} sequence(s) of up to {longest} tokens, but "
        f"{name} has {tokens}; allowed here: offsets that end at {tokens}, and a max_seqlen_{name} "
        f"of {-(-tokens // batch)} or more for so many sequences"
    )


def _bounds(left: int, right: int, seqlen_k: int) -> tuple[int, int]:
    """The window as flash-attn takes it: -1 for any number below 0, and for any that reaches the
    (greatest) number of keys, also where more queries than keys would make it a bound."""
    return (left if 0 <= left < seqlen_k else -1), (right if 0 <= right < seqlen_k else -1)
