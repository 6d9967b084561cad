# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The operators of attention: mha_fwd, mha_bwd, mha_dropout_mask, and their varlen forms."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import torch

from aiter_attn._core import problems
from aiter_attn._core.call import Call
from aiter_attn._core.errors import UnsupportedError
from aiter_attn._core.options import folded, names, options, schema
from aiter_attn.torch import _prepared, _tracing
from aiter_attn.torch._operators import numbers_of, operator, restored, rows, run, save

__all__ = ["mha_dropout_mask", "mha_fwd", "mha_varlen_dropout_mask", "mha_varlen_fwd"]


# The options that an operator gets last, behind the arrays beside q, k and v.
_NAMES: Final = names()
_QKV: Final = "Tensor q, Tensor k, Tensor v"
_SEQUENCES: Final = (
    "Tensor cu_seqlens_q, Tensor cu_seqlens_k, SymInt max_seqlen_q, SymInt max_seqlen_k"
)
_BESIDE: Final = ("bias", "alibi_slopes", "rng_state", "sink")
_OF_SINK: Final = _BESIDE.index("sink")
_OPTIONS: Final = f"{''.join(f'Tensor? {name}, ' for name in _BESIDE)}{schema(_NAMES)}"
_NO_ARRAYS: Final = (None,) * len(_BESIDE)
_PLAIN: Final = 3 + len(_BESIDE)  # where options begin in a form without sequences
_COUNT: Final = _OPTIONS.count(",") + 1


class _Given(NamedTuple):
    """The arguments of an operator behind its leading ones: q, k, v, the sequences of a varlen
    form, and those of _OPTIONS. rng_state: int64 [2], seed and offset, in host memory or where q
    is."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    sequences: tuple[Any, ...] | None
    bias: torch.Tensor | None
    alibi_slopes: torch.Tensor | None
    rng_state: torch.Tensor | None
    sink: torch.Tensor | None
    numbers: tuple[Any, ...]

    def tensors(self) -> tuple[Any, ...]:
        return (*self[:3], *(self.sequences or ())[:2], *self[4:-1])


def _given(arguments: Any) -> _Given:
    q, k, v, *sequences = arguments[:-_COUNT]
    bias, slopes, state, sink, *numbers = arguments[-_COUNT:]
    return _Given(q, k, v, tuple(sequences) or None, bias, slopes, state, sink, tuple(numbers))


def _call(given: _Given, bias_grad: bool = False) -> Call:
    return Call(
        rows(given.q),
        rows(given.k),
        rows(given.v),
        given.sequences,
        options(**folded(_NAMES, given.numbers), bias_grad=bias_grad),
        alibi_slopes=rows(given.alibi_slopes),
        bias=rows(given.bias),
        rng_state=numbers_of(given.rng_state, given.q),
        sink=None if given.sink is None else given.sink.contiguous(),
    )


def _traced(given: _Given, bias_grad: bool = False, backward: bool = False) -> None:
    """Raises as the call would, as far as shapes, dtypes and numbers say."""
    q, k, v, sequences, bias, slopes, _, sink, numbers = given
    arrays = {"q": q, "k": k, "v": v, "bias": bias, "alibi_slopes": slopes, "sink": sink}
    known = _tracing.known_call(arrays, sequences, _NAMES, numbers)
    if known is None:
        return
    (q, k, v, bias, slopes, sink), chosen, lengths = known
    chosen = chosen._replace(bias_grad=bias_grad)
    attention = problems.attention(q, k, v, chosen, lengths, problems.beside(bias, slopes))
    if sink is not None:
        problems.check_sink(sink, attention.problem.heads_q)
    _tracing.check_served(given.q.device, attention.problem, backward, sink is not None)


def _forward(*arguments: Any) -> Any:
    if len(arguments) == 3 + _COUNT and arguments[3:_PLAIN] == _NO_ARRAYS:
        return _plain_forward(arguments)
    return _call(_given(arguments)).forward(None, None)


def _plain_forward(arguments: tuple[Any, ...]) -> Any:
    """Of a call that has no arrays but q, k and v."""
    q, k, v = arguments[:3]
    signature = _prepared.signature(q, k, v, arguments[_PLAIN:])
    prepared = _prepared.find(signature)
    if prepared is not None:
        return prepared(q, k, v)
    call = _call(_given(arguments))
    results = call.forward(None, None)
    if all(x.stride(-1) == 1 for x in (q, k, v)):  # else there are copies
        _prepared.keep(signature, _prepared.Prepared(call, q.device))
    return results


def _fake_forward(*arguments: Any) -> Any:
    given = _given(arguments)
    _traced(given)
    q = given.q
    out, lse = problems.results(q.shape, given.v.shape, "")
    return q.new_empty(out.shape), q.new_empty(lse.shape, dtype=torch.float32)


def _mask(*arguments: Any) -> Any:
    return _call(_given(arguments)).probabilities()


def _fake_mask(*arguments: Any) -> Any:
    given = _given(arguments)
    _traced(given)
    if given.rng_state is None:
        return given.q.new_empty(0)
    return given.q.new_empty(_scores(given), dtype=torch.uint8)


def _scores(given: _Given) -> tuple[Any, ...]:
    q, k, sequences = given.q, given.k, given.sequences
    keys = k.shape[1] if sequences is None else sequences[3]
    return (*problems.results(q.shape, q.shape, "")[1].shape, keys)


def _backward(
    dout: Any, out: Any, lse: Any, bias_grad: bool, *arguments: Any
) -> tuple[torch.Tensor, ...]:
    if not bias_grad and len(arguments) == 3 + _COUNT and arguments[3:_PLAIN] == _NO_ARRAYS:
        q = arguments[0]
        gradients = _plain_backward(dout, out, lse, arguments)
        return *gradients, q.new_empty(0), q.new_empty(0, dtype=torch.float32)
    given = _given(arguments)
    q = given.q
    call = _call(given, bias_grad)
    made = call.backward(rows(dout), rows(out), lse.contiguous(), (None, None, None), None, None)
    dbias = made[3] if bias_grad else q.new_empty(0)
    dsink = q.new_empty(0, dtype=torch.float32) if given.sink is None else made[-1]
    return *made[:3], dbias, dsink


def _plain_backward(dout: Any, out: Any, lse: Any, arguments: tuple[Any, ...]) -> Any:
    """Of a call as _plain_forward's."""
    inputs = (*arguments[:3], out, lse, dout)
    signature = _prepared.signature_of_backward(inputs, arguments[_PLAIN:])
    prepared = _prepared.find(signature)
    if prepared is not None:
        return prepared(*inputs)
    given = _given(arguments)
    call = _call(given)
    gradients = call.backward(
        rows(dout), rows(out), lse.contiguous(), (None, None, None), None, None
    )
    if lse.is_contiguous() and all(x.stride(-1) == 1 for x in inputs if x is not lse):
        _prepared.keep(signature, _prepared.PreparedBackward(call, given.q.device))
    return gradients


def _fake_backward(
    dout: Any, out: Any, lse: Any, bias_grad: bool, *arguments: Any
) -> tuple[torch.Tensor, ...]:
    given = _given(arguments)
    _traced(given, bias_grad, backward=True)
    q, k, v = given[:3]
    bias = given.bias if bias_grad else None
    dbias = 0 if bias is None else bias.shape
    made = [q.new_empty(shape) for shape in (q.shape, k.shape, v.shape, dbias)]
    dsink = 0 if given.sink is None else given.sink.shape
    return *made, q.new_empty(dsink, dtype=torch.float32)


def _setup_context(ctx: Any, inputs: Any, output: Any) -> None:
    given = _given(inputs)
    slopes = given.alibi_slopes
    if slopes is not None and slopes.requires_grad:
        raise UnsupportedError(
            "alibi_slopes: requires_grad is set, but the backward pass gives gradients of q, k, v, "
            "bias and sink alone; pass alibi_slopes.detach()"
        )
    if _tracing.arch_of(given.q.device) is not None:
        # A backward pass without a kernel is refused here, and not hours later.
        place = len(inputs) - _COUNT  # of bias
        wants_bias, wants_sink = (ctx.needs_input_grad[x] for x in (place, place + _OF_SINK))
        _traced(given if wants_sink else given._replace(sink=None), wants_bias, backward=True)
    save(ctx, inputs, output, constant=[1])


def _differentiate(ctx: Any, dout: Any, _: Any) -> tuple[Any, ...]:
    inputs, (out, lse) = restored(ctx)
    place = len(inputs) - _COUNT  # of bias
    of_sink = place + _OF_SINK
    gradients: list[Any] = [None] * len(inputs)
    if dout is None:
        return tuple(gradients)
    wants_bias, wants_sink = (ctx.needs_input_grad[x] for x in (place, of_sink))
    if not wants_sink:  # the other gradients take it from out and lse
        inputs = [*inputs[:of_sink], None, *inputs[of_sink + 1 :]]
    backward = mha_bwd if place == 3 else mha_varlen_bwd
    tensors = (dout, out, lse, *_given(inputs).tensors())
    *gradients[:3], dbias, dsink = run(backward, (dout, out, lse, wants_bias, *inputs), tensors)
    if wants_bias:
        gradients[place] = dbias
    if wants_sink:
        gradients[of_sink] = dsink
    return tuple(gradients)


_GRADIENTS: Final = "(Tensor dq, Tensor dk, Tensor dv, Tensor dbias, Tensor dsink)"


def _operators(form: str, arguments: str) -> tuple[Any, Any, Any]:
    backward = operator(
        f"{form}_bwd(Tensor dout, Tensor out, Tensor lse, bool bias_grad, {arguments})"
        f" -> {_GRADIENTS}",
        _backward,
        _fake_backward,
    )
    forward = operator(
        f"{form}_fwd({arguments}) -> (Tensor out, Tensor lse)",
        _forward,
        _fake_forward,
        _setup_context,
        _differentiate,
    )
    return (
        forward,
        backward,
        operator(f"{form}_dropout_mask({arguments}) -> Tensor", _mask, _fake_mask),
    )


mha_fwd, mha_bwd, mha_dropout_mask = _operators("mha", f"{_QKV}, {_OPTIONS}")
mha_varlen_fwd, mha_varlen_bwd, mha_varlen_dropout_mask = _operators(
    "mha_varlen", f"{_QKV}, {_SEQUENCES}, {_OPTIONS}"
)
