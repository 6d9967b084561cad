# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention problems: inputs on an emulated device, kernels launched as the library does, and
a float64 reference.

Tensors are fp16 or bf16 bit patterns (uint16).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import launches
import numpy as np
from gfxemu import Checks, Device, Report
from gfxemu.code_object import Kernel
from gfxemu.decoder import Program
from launches import BwdArgs, BwdBuffers, FwdArgs, Instance, KernelArguments, Problem, Tensor

_UNIT = {"fp16": 2.0**-11, "bf16": 2.0**-8}  # half a unit in the last place, relative


def to_storage(x: np.ndarray, dtype: str) -> np.ndarray:
    if dtype == "fp16":
        return x.astype(np.float16).view(np.uint16)
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_storage(x: np.ndarray, dtype: str) -> np.ndarray:
    if dtype == "fp16":
        return x.view(np.float16).astype(np.float64)
    return (x.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


@dataclasses.dataclass(frozen=True)
class Shape:
    """Lengths of queries and keys: one pair for all of the batch, or (group mode) one each."""

    lengths: tuple[tuple[int, int], ...] = ((128, 128),)
    batch: int = 1  # group mode: ignored
    heads_q: int = 2
    heads_k: int = 2
    window: tuple[int, int] | None = None  # left and right of the bottom-right diagonal
    amplitude: float = 1.0

    def __str__(self) -> str:
        window = "" if self.window is None else f"-w{self.window[0]}_{self.window[1]}"
        lengths = "+".join(f"{q}x{k}" for q, k in self.lengths)
        return f"b{self.batch}h{self.heads_q}_{self.heads_k}s{lengths}{window}-x{self.amplitude:g}"


@dataclasses.dataclass
class Reference:
    """[sequence's tokens, heads, ...] of all sequences one after the other."""

    o: np.ndarray
    lse: np.ndarray
    delta: np.ndarray
    dq: np.ndarray
    dk: np.ndarray  # per query head
    dv: np.ndarray


class Attention:
    """One problem: its tensors, [tokens of all sequences, heads, head_size], and its reference."""

    def __init__(self, instance: Instance, shape: Shape, seed: int = 0):
        self.shape, self.dtype, self.head_size = shape, instance.dtype, instance.head_size_qk
        self.group_mode = instance.group_mode
        self.lengths = shape.lengths if self.group_mode else shape.lengths * shape.batch
        if not self.group_mode and len(shape.lengths) != 1:
            raise ValueError(f"batch mode has one pair of lengths, not {shape.lengths}")
        self.total_q, self.total_k = (sum(x) for x in zip(*self.lengths, strict=True))
        rng = np.random.default_rng(seed)

        def draw(tokens: int, heads: int, amplitude: float) -> np.ndarray:
            numbers = amplitude * rng.standard_normal((tokens, heads, self.head_size))
            return to_storage(numbers, self.dtype)

        self.q = draw(self.total_q, shape.heads_q, shape.amplitude)
        self.k = draw(self.total_k, shape.heads_k, shape.amplitude)
        self.v = draw(self.total_k, shape.heads_k, 1.0)
        self.dout = draw(self.total_q, shape.heads_q, 1.0)
        self.scale = np.float32(self.head_size**-0.5)
        self.reference = self._reference()

    def _visible(self, rows: int, columns: int) -> np.ndarray:
        i, j = np.arange(rows)[:, None], np.arange(columns)[None]
        seen = np.ones((rows, columns), bool)
        if self.shape.window is not None:
            diagonal = i + columns - rows
            left, right = self.shape.window
            seen &= (j >= diagonal - left) if left >= 0 else True
            seen &= (j <= diagonal + right) if right >= 0 else True
        return seen

    def _reference(self) -> Reference:
        group = self.shape.heads_q // self.shape.heads_k
        q, k, v, dout = (from_storage(x, self.dtype) for x in (self.q, self.k, self.v, self.dout))
        k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
        parts, at_q, at_k = [], 0, 0
        for rows, columns in self.lengths:
            a, b = slice(at_q, at_q + rows), slice(at_k, at_k + columns)
            parts.append(self._sequence(q[a], k[b], v[b], dout[a]))
            at_q, at_k = at_q + rows, at_k + columns
        return Reference(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _sequence(
        self, q: np.ndarray, k: np.ndarray, v: np.ndarray, dout: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        scale = float(self.scale)
        scores = np.einsum("ihd,jhd->hij", q, k) * scale
        scores = np.where(self._visible(len(q), len(k)), scores, -np.inf)
        top = np.max(scores, axis=2, keepdims=True, initial=-np.inf)
        top = np.where(np.isfinite(top), top, 0.0)
        p = np.exp(scores - top)
        total = p.sum(axis=2, keepdims=True)
        with np.errstate(divide="ignore"):
            lse = (top + np.log(total))[..., 0].T
        p = p / np.where(total == 0, 1.0, total)
        o = np.einsum("hij,jhd->ihd", p, v)
        # The backward kernels see o as it was stored.
        stored = from_storage(to_storage(o, self.dtype), self.dtype)
        delta = np.einsum("ihd,ihd->ih", dout, stored)
        ds = p * (np.einsum("ihd,jhd->hij", dout, v) - delta.T[..., None])
        dq = np.einsum("hij,jhd->ihd", ds, k) * scale
        dk = np.einsum("hij,ihd->jhd", ds, q) * scale
        return o, lse, delta, dq, dk, np.einsum("hij,ihd->jhd", p, dout)

    def rows(self, x: np.ndarray) -> np.ndarray:
        """lse or delta [tokens, heads] as the kernels lay it out, float32: [batch, heads, seqlen]
        or [heads, total]."""
        if not self.group_mode:
            x = x.reshape(self.shape.batch, -1, self.shape.heads_q).transpose(0, 2, 1)
        else:
            x = x.T
        return np.ascontiguousarray(x, np.float32)

    def problem(self, cumulative: tuple[int, int]) -> Problem:
        """`cumulative` are the addresses of cu_seqlens_q and cu_seqlens_k."""
        s = self.shape
        longest_q, longest_k = (max(x) for x in zip(*self.lengths, strict=True))
        out = Problem(
            device_type=10,
            dtype=1 if self.dtype == "fp16" else 2,
            batch=len(self.lengths),
            heads_q=s.heads_q,
            heads_k=s.heads_k,
            head_size_qk=self.head_size,
            head_size_v=self.head_size,
            seqlen_q=longest_q,
            seqlen_k=longest_k,
            softmax_scale=float(self.scale),
            window_left=-1,
            window_right=-1,
        )
        if self.group_mode:
            out.total_q, out.total_k = self.total_q, self.total_k
            out.cu_seqlens_q, out.cu_seqlens_k = cumulative
        if s.window is not None:
            out.mask, out.window_left, out.window_right = 2, *s.window
        return out

    def tensor(self, address: int, array: np.ndarray) -> Tensor:
        tokens, heads, size = array.shape
        batch = 0 if self.group_mode else tokens // self.shape.batch * heads * size
        return Tensor(address, batch, heads * size, size)

    def error(self, actual: np.ndarray, expected: np.ndarray) -> float:
        """Root mean square error relative to the reference's, in units of the storage format."""
        x = from_storage(actual, self.dtype) if actual.dtype == np.uint16 else actual
        norm = float(np.linalg.norm(expected))
        distance = float(np.linalg.norm(x - expected))
        return distance / (norm * _UNIT[self.dtype]) if norm else distance


@dataclasses.dataclass
class Result:
    report: Report
    outputs: dict[str, np.ndarray]


Mutate = Callable[[Program], Program]


class Runner:
    """Launches instances on one emulated device, as aiter's launch code would."""

    def __init__(self, device: Device):
        self.device = device

    def _launch(
        self,
        instance: Instance,
        arguments: KernelArguments,
        schedule: str,
        checks: Checks,
        written: list[int],
        mutate: Mutate | None,
        limit: int,
    ) -> Report:
        code = launches.code(instance, self.device.arch)
        kernel: Kernel
        kernel, program = self.device.program(code, instance.symbol)
        if mutate is not None:
            program = mutate(program)
        return self.device.launch_program(
            kernel,
            program,
            grid=arguments.grid,
            block=(instance.block_size, 1, 1),
            kernarg=arguments.data,
            schedule=schedule,
            checks=checks,
            uninitialised=written,
            instruction_limit=limit,
        )

    def run(
        self,
        instance: Instance,
        attention: Attention,
        *,
        schedule: str = "sliced:8",
        checks: Checks | None = None,
        mutate: Mutate | None = None,
        limit: int = 2_000_000,
    ) -> Result:
        """Launch one instance on inputs that the reference provides; returns what it wrote."""
        a, r = attention, attention.reference
        addresses: list[int] = []

        def place(array: np.ndarray, name: str) -> int:
            addresses.append(self.device.memory.register(array, name))
            return addresses[-1]

        arrays = {
            "q": a.q,
            "k": a.k,
            "v": a.v,
            "dout": a.dout,
            "o": to_storage(r.o, a.dtype),
            "lse": a.rows(r.lse),
            "delta": a.rows(r.delta),
            "dq_acc": np.zeros(r.dq.shape, np.float32),
            "dq": np.zeros(r.dq.shape, np.uint16),
            "dk": np.zeros(r.dk.shape, np.uint16),
            "dv": np.zeros(r.dv.shape, np.uint16),
        }
        arrays = {name: array.copy() for name, array in arrays.items()}
        if instance.kind == "bwd_convert_dq":
            arrays["dq_acc"][...] = r.dq
        cumulative = [np.cumsum([0, *x], dtype=np.int32) for x in zip(*a.lengths, strict=True)]
        try:
            at = {name: place(array, name) for name, array in arrays.items()}
            ends = tuple(place(x, f"cu_seqlens_{n}") for n, x in zip("qk", cumulative, strict=True))
            tensors = {n: a.tensor(at[n], x) for n, x in arrays.items() if x.ndim == 3}
            arguments = self._arguments(instance, a.problem(ends), at, tensors)
            outputs = _OUTPUTS[instance.kind]
            # dq_acc is an accumulator: zeroed memory, not uninitialised.
            written = [at[name] for name in outputs if name != "dq_acc"]
            report = self._launch(
                instance, arguments, schedule, checks or Checks(), written, mutate, limit
            )
        finally:
            for address in addresses:
                self.device.memory.unregister(address)
        return Result(report, {name: arrays[name] for name in outputs})

    def _arguments(
        self, instance: Instance, problem: Problem, at: dict[str, int], tensors: dict[str, Tensor]
    ) -> KernelArguments:
        if instance.kind == "fwd":
            inputs = {n: tensors[n] for n in ("q", "k", "v", "o")}
            return launches.make_fwd(instance, FwdArgs(problem=problem, lse=at["lse"], **inputs))
        names = ("q", "k", "v", "o", "dout", "dq", "dk", "dv")
        args = BwdArgs(problem=problem, lse=at["lse"], **{n: tensors[n] for n in names})
        buffers = BwdBuffers(at["delta"], at["dq_acc"], args.dk, args.dv)
        return launches.make_bwd(instance, args, buffers)


_OUTPUTS = {
    "fwd": ("o", "lse"),
    "bwd_dot_do_o": ("delta",),
    "bwd_dq_dk_dv": ("dq_acc", "dk", "dv"),
    "bwd_convert_dq": ("dq",),
}

# How far an output may be from the reference, in units of Attention.error: storage rounding
# gives about 0.6; probabilities are rounded (truncated in fp16) to storage on the way.
GATES = {"o": 1.5, "dq": 1.5, "dk": 1.5, "dv": 1.5, "delta": 0.1, "lse": 0.02, "dq_acc": 1.0}


def errors(attention: Attention, result: Result) -> dict[str, float]:
    """Attention.error of every output; infinite where an output is not finite but should be."""
    out = {}
    for name, actual in result.outputs.items():
        expected = getattr(attention.reference, "dq" if name == "dq_acc" else name)
        if name in ("lse", "delta"):
            expected = attention.rows(expected)
        numbers = from_storage(actual, attention.dtype) if actual.dtype == np.uint16 else actual
        same = np.isfinite(numbers) == np.isfinite(expected)
        if not same.all():
            out[name] = float("inf")
            continue
        finite = np.isfinite(expected)
        out[name] = attention.error(np.where(finite, actual, 0), np.where(finite, expected, 0.0))
    return out
