# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A case of attention on a GPU: its numbers against float64, its repeats against each other, the
memory beside its arrays, and its times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy

import aiter_attn
from aiter_attn._cli import selftest
from aiter_attn._cli.hardware import peers
from aiter_attn._cli.hardware.cases import Case, Planned
from aiter_attn._cli.hardware.checks import Output, check
from aiter_attn._cli.hardware.memory import DeviceArray, Memory, numpy_dtype, summary

__all__ = ["run_case"]

_RNG = (0x1234567, 0)  # seed and offset
_GRADIENTS, _SCRATCH = ("dq", "dk", "dv", "dsink"), ("workspace",)


class _Call:
    """The arrays of a case on the host and on a GPU, and its calls."""

    def __init__(self, memory: Memory, case: Case, seed: int) -> None:
        self.memory, self.case = memory, case
        generator = numpy.random.default_rng(seed)
        dtype = numpy_dtype(case.dtype)
        lengths = case.lengths

        def draw(side: int, heads: int, size: int) -> list[Any]:
            """An array of each sequence."""
            shapes = ((pair[side], heads, size) for pair in lengths)
            return [generator.standard_normal(shape).astype(dtype) for shape in shapes]

        self.host = {
            "q": draw(0, case.heads_q, case.head_size),
            "k": draw(1, case.heads_k, case.head_size),
            "v": draw(1, case.heads_k, case.head_size_v),
            "dout": draw(0, case.heads_q, case.head_size_v),
        }
        self.arrays = {name: memory.array(self._joined(x)) for name, x in self.host.items()}
        self.inputs = dict(self.arrays)
        self.options: dict[str, Any] = dict(case.options)
        self.biases: list[Any] = [0.0] * len(lengths)
        self.kept: list[Any] = [1.0] * len(case.sequences)
        self.sink: Any = None
        self._draw_bias(generator, dtype)
        if case.dropout:
            self.options["rng_state"] = _RNG
            self.kept = self._kept_by_dropout()
        if case.sink:
            self.sink = generator.standard_normal(case.heads_q).astype(numpy.float32)
            self.options["sink"] = self._lent("sink", self.sink)
        self.sequences: tuple[Any, ...] = ()
        if case.varlen:
            starts = [
                self._lent(f"cu_seqlens_{'qk'[side]}", _starts(case, side)) for side in (0, 1)
            ]
            self.sequences = (*starts, *_longest(case))

    def _lent(self, name: str, data: Any) -> Any:
        self.inputs[name] = self.memory.array(data)
        return self.inputs[name]

    def _joined(self, parts: list[Any]) -> Any:
        """The sequences' arrays as one, in the layout of the call."""
        parts = parts * self.case.copies
        return numpy.concatenate(parts) if self.case.varlen else numpy.stack(parts)

    def _draw_bias(self, generator: Any, dtype: Any) -> None:
        case = self.case
        longest_q, longest_k = _longest(case)
        if case.bias == "elementwise":
            # One bias for all sequences and heads: a row for each query of the call.
            queries = sum(q for q, _ in case.sequences) if case.varlen else longest_q
            bias = generator.standard_normal((1, queries, longest_k)).astype(dtype)
            whole = bias if case.varlen else bias[None]
            self.options["bias"] = self._lent("bias", whole)
            starts = _starts(case, 0) if case.varlen else [0] * len(case.lengths)
            self.biases = [
                bias[:, start : start + q, :k].astype(numpy.float64)
                for start, (q, k) in zip(starts, case.lengths, strict=False)
            ]
        elif case.bias == "alibi":
            slopes = (0.5 ** numpy.arange(1, case.heads_q + 1)).astype(numpy.float32)
            self.options["alibi_slopes"] = self._lent("alibi_slopes", slopes)
            self.biases = [_alibi(slopes, q, k, case.causal) for q, k in case.lengths]

    def _kept_by_dropout(self) -> list[Any]:
        """By the CPU's own Philox: the factor of each probability, of each sequence."""
        case = self.case
        sequences = case.sequences
        longest_q, longest_k = _longest(case)
        queries = numpy.zeros((len(sequences), longest_q, case.heads_q, 8), numpy.float32)
        keys = numpy.zeros((len(sequences), longest_k, case.heads_q, 8), numpy.float32)
        kept = aiter_attn.flash_attn_func(
            queries, keys, keys, case.dropout, rng_state=_RNG, return_attn_probs=True
        )[2]
        return [
            kept[b, :, :q, :k].astype(numpy.float64) / (1 - case.dropout)
            for b, (q, k) in enumerate(sequences)
        ]

    def forward(self, lent: Mapping[str, Any]) -> tuple[Any, Any]:
        """lent: arrays to write to."""
        function: Any = aiter_attn.mha_varlen_fwd if self.case.varlen else aiter_attn.mha_fwd
        q, k, v = (self.arrays[name] for name in "qkv")
        out, lse = function(q, k, v, *self.sequences, **self.options, **lent)
        return out, lse

    def backward(self, out: Any, lse: Any, lent: Mapping[str, Any]) -> tuple[Any, ...]:
        function: Any = aiter_attn.mha_varlen_bwd if self.case.varlen else aiter_attn.mha_bwd
        dout, q, k, v = (self.arrays[name] for name in ("dout", "q", "k", "v"))
        more = {"deterministic": self.case.deterministic, **self.options, **lent}
        made: tuple[Any, ...] = function(dout, q, k, v, out, lse, *self.sequences, **more)
        return made

    def expected(self, out: Any) -> dict[str, Any]:
        """The right results, as the call gives them. out: as it was stored."""
        case = self.case
        found: list[list[Any]] = []
        stored = self._split(out)
        # Copies have the same data, but for the probabilities that dropout keeps.
        distinct = len(case.sequences) if case.dropout else len(case.lengths)
        for i in range(distinct):
            j = i % len(case.lengths)
            q, k, v, dout = (self.host[n][j].astype(numpy.float64) for n in ("q", "k", "v", "dout"))
            got = stored[i].astype(numpy.float64)
            exact = selftest.reference(
                numpy,
                q,
                k,
                v,
                dout,
                got,
                causal=case.causal,
                window=case.window,
                bias=self.biases[j],
                softcap=case.softcap,
                kept=self.kept[i],
                sink=None if self.sink is None else self.sink.astype(numpy.float64),
            )
            parts = [exact[0], exact[1].T, *exact[2:]]
            if self.sink is not None:
                weight = numpy.exp(self.sink[None, :].astype(numpy.float64) - parts[1])
                parts.append(-weight * (got * dout).sum(axis=2))
            found.append(parts)
        joined = [
            numpy.concatenate([found[i % distinct][part] for i in range(len(case.sequences))])
            for part in range(len(found[0]))
        ]
        names = ("out", "lse", "dq", "dk", "dv", "dsink")
        results = dict(zip(names, joined, strict=False))
        if "dsink" in results:
            terms = results["dsink"]
            results["dsink"] = terms.sum(axis=0)
            results["terms of dsink"] = numpy.abs(terms).sum(axis=0)
        return results

    def _split(self, whole: Any) -> list[Any]:
        if not self.case.varlen:
            return list(whole)
        return list(numpy.split(whole, _starts(self.case, 0)[1:-1]))

    def tokens(self, name: str, got: Any) -> Any:
        """A result in the layout of expected(): tokens first, one sequence after the other."""
        if name == "dsink":
            return got
        if name == "lse":
            return got.T if self.case.varlen else got.transpose(0, 2, 1).reshape(-1, got.shape[1])
        return got if self.case.varlen else got.reshape(-1, *got.shape[2:])


def _starts(case: Case, side: int) -> Any:
    return numpy.cumsum([0, *(pair[side] for pair in case.sequences)], dtype=numpy.int32)


def _longest(case: Case) -> tuple[int, int]:
    return max(pair[0] for pair in case.lengths), max(pair[1] for pair in case.lengths)


def _alibi(slopes: Any, queries: int, keys: int, causal: bool) -> Any:
    columns = numpy.arange(keys)[None, None, :]
    rows = numpy.arange(queries)[None, :, None] + keys - queries
    wide = slopes.astype(numpy.float64)[:, None, None]
    if causal:
        return numpy.broadcast_to(wide * columns, (len(slopes), queries, keys))
    return -wide * numpy.abs(rows - columns)


def run_case(
    memory: Memory, planned: Planned, seed: int, repeat: int, timed: int
) -> dict[str, Any]:
    """The case's findings, errors and times, for a report.

    repeat: how often each pass is called. timed: runs whose time is taken; 0: none.
    """
    case = planned.case
    call = _Call(memory, case, seed)
    memory.wait()
    aiter_attn.configure(kernels=case.kernels)
    memory.made.clear()
    try:
        return _run(memory, planned, call, repeat, timed)
    finally:
        memory.made.clear()
        aiter_attn.configure(kernels=None)


def _run(memory: Memory, planned: Planned, call: _Call, repeat: int, timed: int) -> dict[str, Any]:
    case = planned.case
    forwards = [call.forward({})]
    out, lse = forwards[0]
    backwards = [call.backward(out, lse, {})] if case.backward else []
    # The memory of all repeats is there before the first of them is queued, so that one may
    # overlap the next.
    made = {id(array) for array in (*forwards[0], *(backwards[0] if backwards else ()))}
    scratch = [array for array in memory.made if id(array) not in made]
    lent_to_forward = [_lent(("out", "lse"), forwards[0]) for _ in range(repeat - 1)]
    lent_to_backward = []
    if backwards:
        for _ in range(repeat - 1):
            lent_to_backward.append(_lent(_GRADIENTS, backwards[0]) | _lent(_SCRATCH, scratch))
            memory.made += [a for n, a in lent_to_backward[-1].items() if n in _SCRATCH]
    memory.wait()
    forwards += [call.forward(lent) for lent in lent_to_forward]
    backwards += [call.backward(out, lse, lent) for lent in lent_to_backward]
    memory.wait()
    results = {
        "out": [pair[0] for pair in forwards],
        "lse": [pair[1] for pair in forwards],
    }
    for i, name in enumerate(_GRADIENTS):
        if backwards and i < len(backwards[0]):
            results[name] = [made[i] for made in backwards]
    expected = call.expected(out.read())
    outputs = [
        Output(
            name,
            arrays,
            expected[name],
            "float32" if name in ("lse", "dsink") else case.dtype,
            # dq is summed in the order in which the workgroups get there.
            same=name != "dq" or case.deterministic,
            terms=expected.get(f"terms of {name}", _largest_of_rows(name, expected[name])),
            view=lambda got, name=name: call.tokens(name, got),  # type: ignore[misc]
        )
        for name, arrays in results.items()
    ]
    told = check(memory, outputs, call.inputs, _host(call))
    times, of_torch = {}, {}
    if timed:
        lent = lent_to_backward[0] if lent_to_backward else {}
        times = _times(memory, call, forwards[0], backwards[0] if backwards else None, lent, timed)
        of_torch = _times_of_torch(memory, case, timed)
    return {**told, "repeats": repeat, "milliseconds": times, "torch_milliseconds": of_torch}


def _lent(names: Iterable[str], like: Iterable[DeviceArray]) -> dict[str, DeviceArray]:
    """New arrays for a call to write to, by the names of its arguments."""
    return {
        name: array.memory.empty(array.shape, array.dtype)
        for name, array in zip(names, like, strict=False)
    }


def _largest_of_rows(name: str, expected: Any) -> Any:
    """The size of the terms of a row's sums, which were rounded to 16 bits; lse has none."""
    if name == "lse" or not expected.size:
        return None
    return numpy.abs(expected).max(axis=-1, keepdims=True)


def _host(call: _Call) -> dict[str, Any]:
    """The content that inputs must still have."""
    return {name: call._joined(parts) for name, parts in call.host.items()}


def _times(
    memory: Memory,
    call: _Call,
    forward: tuple[Any, Any],
    backward: Any,
    lent_to_backward: Mapping[str, Any],
    count: int,
) -> dict[str, Any]:
    out, lse = forward
    lent = {"out": out, "lse": lse}

    def measured(run: Callable[[], object]) -> dict[str, Any]:
        try:
            return summary(memory.times(run, count, cold=True))
        finally:
            memory.made.clear()

    found = {"forward": measured(lambda: call.forward(lent))}
    if backward is not None:
        gradients = dict(lent_to_backward) or dict(zip(_GRADIENTS, backward, strict=False))
        found["backward"] = measured(lambda: call.backward(out, lse, gradients))
    return found


def _times_of_torch(memory: Memory, case: Case, count: int) -> dict[str, Any]:
    """Those of scaled_dot_product_attention; none where it has no such call, or torch no GPU."""
    device = f"cuda:{memory.device}"
    if not case.is_plain or peers.why_no_torch(device) is not None:
        return {}
    ((seqlen_q, seqlen_k),) = set(case.lengths)
    shape = peers.Shape(
        batch=len(case.sequences),
        seqlen_q=seqlen_q,
        seqlen_k=seqlen_k,
        heads_q=case.heads_q,
        heads_k=case.heads_k,
        head_size=case.head_size,
        head_size_v=case.head_size_v,
        dtype=case.dtype,
        causal=case.causal,
        backward=case.backward,
    )
    runs = peers.torch_runs(shape, device)
    if isinstance(runs, str):
        return {}
    return {name: summary(memory.times(run, count, cold=True)) for name, run in runs.items()}
