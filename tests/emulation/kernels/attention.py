# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention problems: inputs on an emulated device, kernels launched as the library does, and
a float64 reference.

Tensors are [batch, seqlen, heads, head_size] of fp16 or bf16 bit patterns (uint16).
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
    batch: int = 1
    heads_q: int = 2
    heads_k: int = 2
    seqlen_q: int = 128
    seqlen_k: int = 128
    window: tuple[int, int] | None = None  # left and right of the bottom-right diagonal
    amplitude: float = 1.0

    def __str__(self) -> str:
        window = "" if self.window is None else f"-w{self.window[0]}_{self.window[1]}"
        return (
            f"b{self.batch}h{self.heads_q}_{self.heads_k}s{self.seqlen_q}_{self.seqlen_k}"
            f"{window}-x{self.amplitude:g}"
        )


@dataclasses.dataclass
class Reference:
    o: np.ndarray
    lse: np.ndarray
    delta: np.ndarray
    dq: np.ndarray
    dk: np.ndarray  # per query head
    dv: np.ndarray


class Attention:
    """One problem: its tensors as numpy arrays, its reference, and launches on a device."""

    def __init__(self, instance: Instance, shape: Shape, seed: int = 0):
        self.shape, self.dtype, self.head_size = shape, instance.dtype, instance.head_size
        rng = np.random.default_rng(seed)
        s, d = shape, self.head_size
        q, dout = (s.batch, s.seqlen_q, s.heads_q, d), (s.batch, s.seqlen_q, s.heads_q, d)
        k = (s.batch, s.seqlen_k, s.heads_k, d)

        def draw(size: tuple[int, ...], amplitude: float) -> np.ndarray:
            return to_storage(amplitude * rng.standard_normal(size), self.dtype)

        self.q, self.k = draw(q, s.amplitude), draw(k, s.amplitude)
        self.v, self.dout = draw(k, 1.0), draw(dout, 1.0)
        self.scale = np.float32(d**-0.5)
        self.reference = self._reference()

    def _visible(self) -> np.ndarray:
        s = self.shape
        rows, columns = np.arange(s.seqlen_q)[:, None], np.arange(s.seqlen_k)[None]
        seen = np.ones((s.seqlen_q, s.seqlen_k), bool)
        if s.window is not None:
            diagonal = rows + s.seqlen_k - s.seqlen_q
            left, right = s.window
            seen &= (columns >= diagonal - left) if left >= 0 else True
            seen &= (columns <= diagonal + right) if right >= 0 else True
        return seen

    def _reference(self) -> Reference:
        s = self.shape
        q, k, v, dout = (from_storage(x, self.dtype) for x in (self.q, self.k, self.v, self.dout))
        group = s.heads_q // s.heads_k
        k, v = np.repeat(k, group, axis=2), np.repeat(v, group, axis=2)
        scale = float(self.scale)
        scores = np.einsum("bihd,bjhd->bhij", q, k) * scale
        scores = np.where(self._visible(), scores, -np.inf)
        top = np.max(scores, axis=3, keepdims=True)
        top = np.where(np.isfinite(top), top, 0.0)
        p = np.exp(scores - top)
        total = p.sum(axis=3, keepdims=True)
        with np.errstate(divide="ignore"):
            lse = (top + np.log(total))[..., 0]
        p = p / np.where(total == 0, 1.0, total)
        o = np.einsum("bhij,bjhd->bihd", p, v)
        # The backward kernels see o as it was stored.
        stored = from_storage(to_storage(o, self.dtype), self.dtype)
        delta = np.einsum("bihd,bihd->bhi", dout, stored)
        ds = p * (np.einsum("bihd,bjhd->bhij", dout, v) - delta[..., None])
        return Reference(
            o,
            lse,
            delta,
            np.einsum("bhij,bjhd->bihd", ds, k) * scale,
            np.einsum("bhij,bihd->bjhd", ds, q) * scale,
            np.einsum("bhij,bihd->bjhd", p, dout),
        )

    def problem(self) -> Problem:
        s = self.shape
        out = Problem(
            device_type=10,
            dtype=1 if self.dtype == "fp16" else 2,
            batch=s.batch,
            heads_q=s.heads_q,
            heads_k=s.heads_k,
            head_size_qk=self.head_size,
            head_size_v=self.head_size,
            seqlen_q=s.seqlen_q,
            seqlen_k=s.seqlen_k,
            softmax_scale=float(self.scale),
            window_left=-1,
            window_right=-1,
        )
        if s.window is not None:
            out.mask, out.window_left, out.window_right = 2, *s.window
        return out

    def error(self, actual: np.ndarray, expected: np.ndarray) -> float:
        """Root mean square error relative to the reference's, in units of the storage format."""
        x = from_storage(actual, self.dtype) if actual.dtype == np.uint16 else actual
        norm = float(np.linalg.norm(expected))
        distance = float(np.linalg.norm(x - expected))
        return distance / (norm * _UNIT[self.dtype]) if norm else distance


def _tensor(address: int, array: np.ndarray) -> Tensor:
    batch, seq, head, _ = (stride // array.itemsize for stride in array.strides)
    return Tensor(address, batch, seq, head)


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
        checks = checks or Checks()
        a, r, s = attention, attention.reference, attention.shape
        register, addresses = self.device.memory.register, []

        def place(array: np.ndarray, name: str) -> int:
            addresses.append(register(array, name))
            return addresses[-1]

        inputs = {n: np.ascontiguousarray(getattr(a, n)) for n in ("q", "k", "v", "dout")}
        inputs["o"] = to_storage(r.o, a.dtype)
        lse, delta = (np.ascontiguousarray(x, np.float32) for x in (r.lse, r.delta))
        dq_acc = np.zeros(r.dq.shape, np.float32)
        expanded = np.zeros((s.batch, s.seqlen_k, s.heads_q, a.head_size), np.uint16)
        outputs: dict[str, np.ndarray]
        try:
            at = {name: place(array, name) for name, array in inputs.items()}
            tensors = {name: _tensor(at[name], inputs[name]) for name in inputs}
            if instance.kind == "fwd":
                outputs = {"o": np.zeros_like(inputs["o"]), "lse": np.zeros_like(lse)}
                to = {name: place(array, name) for name, array in outputs.items()}
                args = FwdArgs(
                    problem=a.problem(),
                    q=tensors["q"],
                    k=tensors["k"],
                    v=tensors["v"],
                    o=_tensor(to["o"], outputs["o"]),
                    lse=to["lse"],
                )
                arguments = launches.make_fwd(instance, args)
                written = list(to.values())
            else:
                dq = np.zeros_like(inputs["q"])
                dk, dv = expanded, expanded.copy()
                arrays = {
                    "lse": lse,
                    "delta": delta,
                    "dq_acc": dq_acc,
                    "dq": dq,
                    "dk": dk,
                    "dv": dv,
                }
                kind = instance.kind
                names = {
                    "bwd_dot_do_o": ["delta"],
                    "bwd_dq_dk_dv": ["dq_acc", "dk", "dv"],
                    "bwd_convert_dq": ["dq"],
                }[kind]
                if kind == "bwd_convert_dq":
                    dq_acc[...] = r.dq
                to = {name: place(array, name) for name, array in arrays.items()}
                args = BwdArgs(
                    problem=a.problem(),
                    **tensors,
                    lse=to["lse"],
                    dq=_tensor(to["dq"], dq),
                    dk=_tensor(to["dk"], dk),
                    dv=_tensor(to["dv"], dv),
                )
                buffers = BwdBuffers(to["delta"], to["dq_acc"], args.dk, args.dv)
                arguments = launches.make_bwd(instance, args, buffers)
                outputs = {name: arrays[name] for name in names}
                # dq_acc is an accumulator: zeroed memory, not uninitialised.
                written = [to[name] for name in names if name != "dq_acc"]
            report = self._launch(instance, arguments, schedule, checks, written, mutate, limit)
        finally:
            for address in addresses:
                self.device.memory.unregister(address)
        return Result(report, outputs)


# How far an output may be from the reference, in units of Attention.error: storage rounding
# gives about 0.6; probabilities are rounded (truncated in fp16) to storage on the way.
GATES = {"o": 1.5, "dq": 1.5, "dk": 1.5, "dv": 1.5, "delta": 0.1, "lse": 0.02, "dq_acc": 1.0}


def errors(attention: Attention, result: Result) -> dict[str, float]:
    """Attention.error of every output; infinite where an output is not finite but should be."""
    out = {}
    for name, actual in result.outputs.items():
        expected = getattr(attention.reference, "dq" if name == "dq_acc" else name)
        numbers = from_storage(actual, attention.dtype) if actual.dtype == np.uint16 else actual
        same = np.isfinite(numbers) == np.isfinite(expected)
        if not same.all():
            out[name] = float("inf")
            continue
        finite = np.isfinite(expected)
        out[name] = attention.error(np.where(finite, actual, 0), np.where(finite, expected, 0.0))
    return out
