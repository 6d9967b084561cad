# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention as a function of jax arrays: one XLA custom call for each pass.

Around the calls, from the inside: a rule for partitioned programs (each device has its own batch
entries and heads), a rule for vmap (what is mapped over becomes batch), and the gradient.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy
from jax.custom_batching import custom_vmap
from jax.custom_derivatives import SymbolicZero
from jax.experimental.custom_partitioning import (
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
    custom_partitioning,
)
from jax.sharding import NamedSharding, PartitionSpec

from aiter_attn import _C
from aiter_attn._core import problems
from aiter_attn._core.errors import UnsupportedError
from aiter_attn._core.options import Options
from aiter_attn.jax import _ffi
from aiter_attn.jax._manual import Pass, as_primal, as_varying

__all__ = ["Static", "attention", "device_of", "dropout_mask", "with_sink"]


class Static(NamedTuple):
    """The constants of a compiled program.

    most: (max_seqlen_q, max_seqlen_k) of a varlen call, whose arrays are q, k, v, cu_seqlens_q and
    cu_seqlens_k; else None. With dropout rng_state follows them, uint32 [4]: the words of seed and
    offset, the low one first. bias: the kind of the next array: "", "bias" or "alibi_slopes".
    has_sink: whether the last array is a sink, which attention() alone takes.
    """

    most: tuple[int, int] | None
    options: Options
    bias: str
    has_sink: bool = False

    @property
    def common(self) -> int:
        """The number of arrays ahead of the bias."""
        return (3 if self.most is None else 5) + (self.options.dropout_p > 0.0)


def problem_of(static: Static, arrays: Sequence[Any], bias_grad: bool = False) -> Any:
    """The problems.Attention of these arrays. Raises TypeError or ValueError as that does."""
    described: list[Any] = [problems.ShapeDtype(tuple(a.shape), a.dtype.name) for a in arrays]
    sequences = None
    if static.most is not None:
        sequences = problems.lengths(problems.batch_of(described[3], described[4]), *static.most)
    if bias_grad:
        # The gradient of every score: XLA sums over what the bias serves, and over devices.
        scores = problem_of(static, arrays).kept.shape
        described[static.common] = described[static.common]._replace(shape=scores)
    bias: dict[str, Any] = {static.bias: described[static.common]} if static.bias else {}
    q, k, v = described[:3]
    options = static.options._replace(bias_grad=bias_grad)
    return problems.attention(q, k, v, options, sequences, problems.beside(**bias))


def check_served(static: Static, arrays: Sequence[Any], backward: bool, bias_grad: bool) -> None:
    """Raises UnsupportedError where no kernel of this build serves the call on jax's default GPU:
    now, not when the compiled program runs."""
    device = device_of(arrays)
    if device is None:
        return
    problem = problem_of(static, arrays, bias_grad).problem.on(_C.DEVICE_ROCM, 0, 0)
    plan = _C.plan_bwd if backward else _C.plan_fwd
    plan(problem, device.compute_capability)


def device_of(arrays: Sequence[Any]) -> Any:
    """The GPU that the call will run on; None: the CPU. Raises UnsupportedError for others."""
    device = _device(arrays)
    if device.platform == "cpu":
        return None
    if "rocm" not in device.client.platform_version:
        raise UnsupportedError(
            f"q: jax's device is {device.device_kind}; allowed: an AMD GPU, with jax's ROCm "
            "plugin, or the CPU (jax.default_device(jax.devices('cpu')[0]))"
        )
    return device


def _device(arrays: Sequence[Any]) -> Any:
    """Where the call will run: where an array is, or while it is traced jax's default."""
    for array in arrays:
        if isinstance(array, jax.Array) and not isinstance(array, jax.core.Tracer):
            return next(iter(array.devices()))
    chosen = jax.config.jax_default_device
    return jax.devices()[0] if chosen is None or isinstance(chosen, str) else chosen


def _shaped(*wanted: problems.ShapeDtype) -> tuple[jax.ShapeDtypeStruct, ...]:
    return tuple(jax.ShapeDtypeStruct(w.shape, jnp.dtype(w.dtype)) for w in wanted)


def _call_forward(static: Static, *arrays: jax.Array) -> tuple[jax.Array, ...]:
    """(out, lse)"""
    attention = problem_of(static, arrays)
    call = jax.ffi.ffi_call(_ffi.FWD, _shaped(attention.out, attention.lse))
    return tuple(call(*arrays, **_ffi.attributes(attention.problem.options())))


def _call_backward(static: Static, bias_grad: bool, *arrays: jax.Array) -> tuple[jax.Array, ...]:
    """dq, dk, dv, and with bias_grad the gradient of every score. arrays: dout, q, k, v, out, lse,
    and what else the forward pass had."""
    dout, q, k, v, out, lse, *rest = arrays
    attention = problem_of(static, (q, k, v, *rest), bias_grad)
    wanted = [attention.dq, attention.dk, attention.dv]
    call = jax.ffi.ffi_call(_ffi.BWD, _shaped(*wanted, *([attention.dbias] if bias_grad else [])))
    return tuple(
        call(
            dout, q, k, v, out, lse, *rest,
            **_ffi.attributes(attention.problem.options()),
            bias_grad=numpy.int32(bias_grad),
            deterministic=numpy.int32(static.options.deterministic),
        )
    )  # fmt: skip


def _call_mask(static: Static, *arrays: jax.Array) -> tuple[jax.Array, ...]:
    attention = problem_of(static, arrays)
    call = jax.ffi.ffi_call(_ffi.DROPOUT_MASK, _shaped(attention.kept))
    return tuple(call(*arrays, **_ffi.attributes(attention.problem.options())))


# Which factor each dimension is: b batch, g heads of keys, r queries' heads for each, and those
# that every device has whole.
_Q: Final = ("b", "i", "gr", "d")
_K: Final = ("b", "j", "g", "d")
_V: Final = ("b", "j", "g", "e")
_OUT: Final = ("b", "i", "gr", "e")
_LSE: Final = ("b", "gr", "i")
_SCORES: Final = ("b", "gr", "i", "j")


class _Roles(NamedTuple):
    """The factors of the operands and of the results."""

    operands: tuple[tuple[str, ...], ...]
    results: tuple[tuple[str, ...], ...]


def _last_roles(static: Static, shapes: Sequence[tuple[int, ...]]) -> list[tuple[str, ...]]:
    """Of rng_state and the bias, where they are there."""
    last: list[tuple[str, ...]] = [("",)] if static.options.dropout_p > 0.0 else []
    if not static.bias:
        return last
    shape = shapes[-1]
    roles = _SCORES if static.bias == "bias" else ("b", "gr")[-len(shape) :]
    # An array that serves all is on every device.
    return [*last, tuple("" if n == 1 else role for role, n in zip(roles, shape, strict=True))]


def _whole(shapes: Sequence[tuple[int, ...]], *results: int) -> _Roles:
    """Every device has all. results: their numbers of dimensions."""
    return _Roles(tuple(("",) * len(s) for s in shapes), tuple(("",) * n for n in results))


def _is_split(static: Static) -> bool:
    """Whether devices may share a call. Which weights are dropped follows from the places that
    batch entries and heads have in the whole, and so do the places of packed sequences."""
    return static.most is None and static.options.dropout_p == 0.0


def _partitioned(
    static: Static,
    function: Pass,
    roles_of: Callable[[Sequence[tuple[int, ...]]], _Roles],
    heads_of: Callable[[Sequence[tuple[int, ...]]], tuple[int, int]],
) -> Any:
    """The function, of which each device computes its batch entries and heads."""
    split = custom_partitioning(function)

    def axes(mesh: Any, operands: Any) -> tuple[Any, Any]:
        """The mesh's axes that the batch and the heads are on: those of q's, where they fit."""
        shapes = [o.shape for o in operands]
        if not _is_split(static):
            return None, None
        q = roles_of(shapes).operands.index(_Q)
        sharding = operands[q].sharding
        spec = tuple(getattr(sharding, "spec", ())) + (None,) * 4
        batch, heads = spec[0], spec[2]
        parts = _parts(mesh, heads)
        if heads_of(shapes)[1] % parts or heads_of(shapes)[0] % parts:
            heads = None
        return batch, heads

    def shardings(mesh: Any, operands: Any) -> tuple[list[Any], list[Any]]:
        batch, heads = axes(mesh, operands)
        on = {"b": batch, "g": heads, "gr": heads}
        roles = roles_of([o.shape for o in operands])

        def sharding(of: tuple[str, ...]) -> NamedSharding:
            return NamedSharding(mesh, PartitionSpec(*(on.get(role) for role in of)))

        return [sharding(r) for r in roles.operands], [sharding(r) for r in roles.results]

    def infer(mesh: Any, operands: Any, results: Any) -> tuple[Any, ...]:
        return tuple(shardings(mesh, operands)[1])

    def partition(mesh: Any, operands: Any, results: Any) -> tuple[Any, ...]:
        of_operands, of_results = shardings(mesh, operands)
        return mesh, function, tuple(of_results), tuple(of_operands)

    def rule(mesh: Any, operands: Any, results: Any) -> SdyShardingRule:
        shapes = [tuple(o.shape) for o in operands]
        roles = roles_of(shapes)
        queries, keys = heads_of(shapes)
        # The heads of queries: those of keys, times r. A factor of 1 may not be one of several.
        both = _is_split(static) and 1 < keys < queries
        own = iter(range(10**6))  # a factor of its own for what is not shared

        def mapping(of: tuple[str, ...]) -> ArrayMapping:
            if not _is_split(static):
                return ArrayMapping(*(f"own{next(own)}" for _ in of))
            named: dict[str, Any] = {"b": "b", "g": "g", "gr": "g"}
            if both:
                named["gr"] = CompoundFactor("g", "r")
            elif queries != keys:
                named |= {"g": None, "gr": "r"}
            return ArrayMapping(*(named.get(role) or f"own{next(own)}" for role in of))

        sizes = {"r": queries // keys} if both else {}
        return SdyShardingRule(
            tuple(map(mapping, roles.operands)), tuple(map(mapping, roles.results)), **sizes
        )

    split.def_partition(partition=partition, infer_sharding_from_operands=infer, sharding_rule=rule)
    return split


def _parts(mesh: Any, axes: Any) -> int:
    names = () if axes is None else (axes,) if isinstance(axes, str) else tuple(axes)
    return math.prod(mesh.shape[name] for name in names)


def _mapped(static: Static, function: Pass, is_batched: Sequence[int]) -> Any:
    """The function, and what vmap makes of it: more batch entries. is_batched: which operands have
    a batch dimension as they are; the last of the others is the bias."""
    mapped = custom_vmap(function)

    def fold(size: int, in_axis: Sequence[bool], *arrays: jax.Array) -> tuple[Any, Any]:
        if static.most is not None or static.options.dropout_p > 0.0:
            what = "of a varlen call" if static.most is not None else "with dropout_p"
            raise UnsupportedError(
                f"jax.vmap {what}: allowed: batch mode without dropout; call once for each, or "
                "pass more sequences"
            )
        batch = arrays[is_batched[0]].shape[1 if in_axis[is_batched[0]] else 0]
        folded = []
        for i, (array, is_mapped) in enumerate(zip(arrays, in_axis, strict=True)):
            whole = array if is_mapped else jnp.broadcast_to(array, (size, *array.shape))
            if i not in is_batched:
                rest = whole.shape[1:]
                rest = rest[1:] if len(rest) in (2, 4) else rest
                whole = jnp.broadcast_to(
                    whole if whole.ndim == len(rest) + 2 else whole[:, None], (size, batch, *rest)
                )
            folded.append(whole.reshape(size * batch, *whole.shape[2:]))
        results = mapped(*folded)
        return tuple(r.reshape(size, batch, *r.shape[1:]) for r in results), (True,) * len(results)

    mapped.def_vmap(fold)
    return mapped


@functools.lru_cache(maxsize=256)
def _forward(static: Static) -> Any:
    def function(*arrays: jax.Array) -> tuple[jax.Array, ...]:
        return _call_forward(static, *arrays)

    def roles(shapes: Sequence[tuple[int, ...]]) -> _Roles:
        if static.most is not None:
            return _whole(shapes, 3, 2)
        return _Roles((_Q, _K, _V, *_last_roles(static, shapes)), (_OUT, _LSE))

    split = _partitioned(static, function, roles, lambda shapes: (shapes[0][-2], shapes[1][-2]))
    return _ffi.without_derivative(jax.jit(_mapped(static, split, (0, 1, 2))))


@functools.lru_cache(maxsize=256)
def _backward(static: Static, bias_grad: bool) -> Any:
    def function(*arrays: jax.Array) -> tuple[jax.Array, ...]:
        return _call_backward(static, bias_grad, *arrays)

    def roles(shapes: Sequence[tuple[int, ...]]) -> _Roles:
        if static.most is not None:
            return _whole(shapes, *[3] * (4 if bias_grad else 3))
        operands = (_OUT, _Q, _K, _V, _OUT, _LSE, *_last_roles(static, shapes))
        return _Roles(operands, (_Q, _K, _V, *([_SCORES] if bias_grad else [])))

    split = _partitioned(static, function, roles, lambda shapes: (shapes[1][-2], shapes[2][-2]))
    return _ffi.without_derivative(jax.jit(_mapped(static, split, (0, 1, 2, 3, 4, 5))))


@functools.lru_cache(maxsize=256)
def _mask(static: Static) -> Any:
    def function(*arrays: jax.Array) -> tuple[jax.Array, ...]:
        return _call_mask(static, *arrays)

    def roles(shapes: Sequence[tuple[int, ...]]) -> _Roles:
        return _whole(shapes, 4 if static.most is None else 3)

    split = _partitioned(static, function, roles, lambda shapes: (shapes[0][-2], shapes[1][-2]))
    return jax.jit(_mapped(static, split, (0, 1, 2)))


def dropout_mask(static: Static, *arrays: jax.Array) -> jax.Array:
    """Which weights dropout keeps in a call of attention with the same arguments: uint8,
    [batch, heads_q, seqlen_q, seqlen_k], of a varlen call [heads_q, total_q, max_seqlen_k]."""
    plain, operands = static._replace(bias=""), arrays[: static.common]
    constant = tuple(map(jax.lax.stop_gradient, operands))
    (kept,) = as_varying(_mask(plain)(*constant), constant)
    return kept


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def attention(static: Static, *arrays: jax.Array) -> tuple[jax.Array, ...]:
    """(out, lse) of q, k, v, and the other arrays that static names. lse has no gradient."""
    plain, operands, sink = _apart(static, arrays)
    check_served(plain, operands, False, False)
    out, lse = as_varying(_forward(plain)(*operands), operands)
    return with_sink(out, lse, sink)


def _apart(static: Static, arrays: Sequence[Any]) -> tuple[Static, Sequence[Any], Any]:
    """The call without the sink, its arrays, and the sink, or None."""
    if not static.has_sink:
        return static, arrays, None
    return static._replace(has_sink=False), arrays[:-1], arrays[-1]


def with_sink(out: jax.Array, lse: jax.Array, sink: jax.Array | None) -> tuple[jax.Array, ...]:
    """(out, lse) of those without a sink, by kernels/sinks/sinks.h's algebra: XLA makes one pass
    over out of it, and it is partitioned and mapped as all else."""
    if sink is None:
        return out, lse
    with_sink = jnp.logaddexp(lse, sink[:, None])
    factor = jnp.where(jnp.isneginf(lse), 0.0, jnp.exp(lse - with_sink))
    scaled = out.astype(jnp.float32) * jnp.swapaxes(factor, -1, -2)[..., None]
    return scaled.astype(out.dtype), with_sink


def _sink_gradient(dout: jax.Array, out: jax.Array, lse: jax.Array, sink: jax.Array) -> jax.Array:
    """Of out and lse with the sink."""
    delta = (dout.astype(jnp.float32) * out.astype(jnp.float32)).sum(-1)
    weight = jnp.where(jnp.isneginf(lse), 0.0, jnp.exp(sink[:, None] - lse))
    rows = weight * jnp.swapaxes(delta, -1, -2)
    return -rows.sum([axis for axis in range(rows.ndim) if axis != rows.ndim - 2])


def _attention_fwd(static: Static, *primals: Any) -> tuple[Any, Any]:
    plain, operands, sink = _apart(static, primals)
    arrays = [p.value for p in operands]
    bias_grad = plain.bias == "bias" and operands[-1].perturbed
    if plain.bias == "alibi_slopes" and operands[-1].perturbed:
        raise UnsupportedError(
            "alibi_slopes: differentiated, but Composable Kernel has no gradient of slopes; pass "
            "jax.lax.stop_gradient(alibi_slopes)"
        )
    check_served(plain, arrays, False, False)
    check_served(plain, arrays, True, bias_grad)
    given = None if sink is None else sink.value
    out, lse = as_varying(_forward(plain)(*arrays), arrays)
    out, lse = with_sink(out, lse, given)
    of_sink = given if sink is not None and sink.perturbed else None
    return (out, lse), (arrays, of_sink, out, lse, _Flag(bias_grad))


def _attention_bwd(static: Static, kept: Any, cotangents: Any) -> tuple[Any, ...]:
    (q, k, v, *rest), sink, out, lse, flag = kept
    dout = cotangents[0]
    if isinstance(dout, SymbolicZero):
        dout = jnp.zeros(out.shape, out.dtype)
    operands = (dout, q, k, v, out, lse, *rest)
    backward = _backward(static._replace(has_sink=False), flag.value)
    dq, dk, dv, *scores = as_varying(backward(*operands), operands)
    of_rest: list[Any] = [None] * len(rest)
    if flag.value:
        of_rest[-1] = as_primal(_summed(scores[0], rest[-1].shape), rest[-1])
    if static.has_sink:
        dsink = None if sink is None else _sink_gradient(dout, out, lse, sink)
        of_rest.append(None if dsink is None else as_primal(dsink, sink))
    return as_primal(dq, q), as_primal(dk, k), as_primal(dv, v), *of_rest


attention.defvjp(_attention_fwd, _attention_bwd, symbolic_zeros=True)


def _summed(scores: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """The gradient of a bias that was repeated along its dimensions of size 1."""
    repeated = tuple(i for i, size in enumerate(shape) if size != scores.shape[i])
    total = scores.astype(jnp.float32).sum(repeated, keepdims=True)
    return total.astype(scores.dtype)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class _Flag:
    """A constant among what the backward pass gets."""

    value: bool
