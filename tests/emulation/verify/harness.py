# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Launches of one kernel on an emulated device, with memory that shows every wrong access.

A gap of NaNs follows each head of an input, and one of unwritten memory each head of an output: a
read of the first poisons a result, a write to the second is seen. Inputs must come out unchanged.
"""

from __future__ import annotations

import dataclasses
import math
import struct
from collections.abc import Callable

import launches
import numpy as np
from attention import from_storage, to_storage
from gfxemu import Checks, Device, Report
from gfxemu.checks import POISONS
from gfxemu.decoder import Program
from launches import BwdArgs, BwdBuffers, FwdArgs, Instance, KernelArguments, Problem, Tensor

from tests.emulation.verify.cases import Case
from tests.emulation.verify.reference import Expected, Inputs

Array = np.ndarray
_GAP = 8  # elements: keeps rows aligned to the 16 bytes that kernels load at a time
_NAN = 0x7FFF  # of fp16 and of bf16
_SUM_HEADS = "sum_heads"
_OUTPUTS = {"fwd": ("o", "lse"), "bwd_dot_do_o": ("delta",), "bwd_dq_dk_dv": ("dq_acc", "dk", "dv"),
            "bwd_convert_dq": ("dq",), _SUM_HEADS: ("sum",)}  # fmt: skip


class Overwritten(Exception):
    """A kernel changed memory that is not its output."""


@dataclasses.dataclass
class Outcome:
    """A launch's report, and its outputs as float64 in the reference's shapes."""

    report: Report
    outputs: dict[str, Array]


def outputs_of(kind: str) -> tuple[str, ...]:
    return _OUTPUTS[kind]


class _Buffers:
    """The buffers of one launch, by name."""

    def __init__(self, device: Device):
        self._memory = device.memory
        self.arrays: dict[str, Array] = {}
        self.addresses: dict[str, int] = {}
        self._kept: dict[str, Array] = {}

    def place(self, name: str, array: Array, *, output: bool = False) -> int:
        self.arrays[name] = array = np.ascontiguousarray(array)
        # Empty buffers have an address as well: one that nothing may access.
        backing = array if array.size else np.zeros(1, np.uint32)
        self.addresses[name] = self._memory.register(backing, name)
        if not output:
            self._kept[name] = array.copy()
        return self.addresses[name]

    def tensor(
        self, name: str, stored: Array, batch_tokens: int, *, output: bool = False
    ) -> Tensor:
        """Place [tokens][heads][d] with a gap after each head."""
        gapped = np.full((*stored.shape[:2], stored.shape[2] + _GAP), _NAN, np.uint16)
        gapped[..., :-_GAP] = stored
        address = self.place(name, gapped, output=output)
        seq = gapped.shape[1] * gapped.shape[2]
        return Tensor(address, batch_tokens * seq, seq, gapped.shape[2])

    def stored(self, name: str) -> Array:
        return self.arrays[name][..., :-_GAP]

    def check(self) -> None:
        """Raise Overwritten if an input or a gap has changed."""
        for name, array in self._kept.items():
            if not np.array_equal(array.view(np.uint8), self.arrays[name].view(np.uint8)):
                raise Overwritten(f"the kernel changed its input {name}")

    def check_gap(self, name: str) -> None:
        """Raise Overwritten if the gaps of an output are not the poison they were filled with."""
        gap = self.arrays[name][..., -_GAP:]
        if not any((gap == pattern & 0xFFFF).all() for pattern in (*POISONS, _NAN)):
            raise Overwritten(f"the kernel wrote behind the heads of {name}")

    def release(self) -> None:
        for address in self.addresses.values():
            self._memory.unregister(address)


class Kernel:
    """One instance of a code object, ready to be launched on cases."""

    def __init__(self, device: Device, code: bytes, instance: Instance):
        self.device, self.instance = device, instance
        self.kernel, self.program = device.program(code, instance.symbol)

    def run(
        self,
        case: Case,
        inputs: Inputs,
        expected: dict[str, Expected],
        *,
        schedule: str,
        checks: Checks,
        change: Callable[[Program], Program] | None = None,
    ) -> Outcome:
        """Launch once. Raises EmulationError and Overwritten.

        `change` makes the program that runs in place of the kernel's own, for statistics.
        """
        buffers = _Buffers(self.device)
        try:
            prepare = self._sum_heads if self.instance.kind == _SUM_HEADS else self._attention
            arguments, written = prepare(case, inputs, expected, buffers)
            program = self.program if change is None else change(self.program)
            report = self.device.launch_program(
                self.kernel, program, grid=arguments.grid, kernarg=arguments.data,
                block=(self.instance.block_size, 1, 1), schedule=schedule, checks=checks,
                uninitialised=[buffers.addresses[n] for n in written], instruction_limit=2_000_000,
            )  # fmt: skip
            buffers.check()
            return Outcome(
                report, {n: self._read(case, n, buffers) for n in _OUTPUTS[self.instance.kind]}
            )
        finally:
            buffers.release()

    # Rows of lse and delta: [heads][total] in group mode, else [batch][heads][seqlen].

    def _rows(self, case: Case, values: Array) -> Array:
        values = values.astype(np.float32)
        if self.instance.group_mode:
            return values
        batch, heads = len(case.lengths), case.heads_q
        return values.reshape(heads, batch, -1).transpose(1, 0, 2)

    def _read(self, case: Case, name: str, buffers: _Buffers) -> Array:
        array = buffers.arrays[name]
        if name in ("lse", "delta"):
            if not self.instance.group_mode:
                array = array.transpose(1, 0, 2).reshape(case.heads_q, -1)
            return array.astype(np.float64)
        if name == "dq_acc":
            return array.astype(np.float64)
        buffers.check_gap(name)
        return from_storage(np.ascontiguousarray(buffers.stored(name)), self.instance.dtype)

    def _problem(self, case: Case, head_size: int, scale: float, buffers: _Buffers) -> Problem:
        problem = Problem(
            device_type=10, dtype=1 if self.instance.dtype == "fp16" else 2,
            batch=len(case.lengths), heads_q=case.heads_q, heads_k=case.heads_k,
            head_size_qk=head_size, head_size_v=head_size, softmax_scale=scale,
            seqlen_q=max(q for q, _ in case.lengths), seqlen_k=max(k for _, k in case.lengths),
            mask=case.mask, window_left=case.window[0], window_right=case.window[1],
        )  # fmt: skip
        if self.instance.group_mode:
            starts = np.array(case.starts(), np.int32)
            problem.total_q, problem.total_k = case.total_q, case.total_k
            problem.cu_seqlens_q = buffers.place("cu_seqlens_q", starts[:, 0])
            problem.cu_seqlens_k = buffers.place("cu_seqlens_k", starts[:, 1])
        return problem

    def _attention(
        self, case: Case, inputs: Inputs, expected: dict[str, Expected], buffers: _Buffers
    ) -> tuple[KernelArguments, list[str]]:
        instance, dtype = self.instance, self.instance.dtype
        length_q, length_k = (0, 0) if instance.group_mode else case.lengths[0]
        problem = self._problem(case, inputs.q.shape[2], float(inputs.scale), buffers)
        q, k, v = (
            buffers.tensor(n, x, length)
            for n, x, length in (("q", inputs.q, length_q), ("k", inputs.k, length_k),
                                 ("v", inputs.v, length_k))
        )  # fmt: skip
        lse = self._rows(case, expected["lse"].value)
        o = to_storage(expected["o"].value, dtype)
        if instance.kind == "fwd":
            args = FwdArgs(problem=problem, q=q, k=k, v=v,
                           o=buffers.tensor("o", np.zeros_like(o), length_q, output=True),
                           lse=buffers.place("lse", lse, output=True))  # fmt: skip
            return launches.make_fwd(instance, args), ["o", "lse"]
        outputs = _OUTPUTS[instance.kind]
        delta = self._rows(case, expected["delta"].value)
        dq_acc = np.zeros(inputs.q.shape, np.float32)
        if instance.kind == "bwd_convert_dq":
            dq_acc = expected["dq"].value.astype(np.float32)
        shape = (case.total_k, case.heads_q, inputs.q.shape[2])
        dk, dv = np.zeros(shape, np.uint16), np.zeros(shape, np.uint16)
        args = BwdArgs(
            problem=problem, q=q, k=k, v=v, o=buffers.tensor("o", o, length_q),
            dout=buffers.tensor("dout", inputs.dout, length_q), lse=buffers.place("lse", lse),
            dq=buffers.tensor("dq", np.zeros_like(inputs.q), length_q, output="dq" in outputs),
            dk=buffers.tensor("dk", dk, length_k, output="dk" in outputs),
            dv=buffers.tensor("dv", dv, length_k, output="dv" in outputs),
        )  # fmt: skip
        both = BwdBuffers(buffers.place("delta", delta, output="delta" in outputs),
                          buffers.place("dq_acc", dq_acc, output="dq_acc" in outputs),
                          args.dk, args.dv)  # fmt: skip
        # dq_acc is an accumulator: zeroed memory, not unwritten.
        return launches.make_bwd(instance, args, both), [n for n in outputs if n != "dq_acc"]

    def _sum_heads(
        self, case: Case, inputs: Inputs, expected: dict[str, Expected], buffers: _Buffers
    ) -> tuple[KernelArguments, list[str]]:
        """kernels/sum_heads/sum_heads.h: q of the case summed over the heads of each group."""
        tokens, heads, size = inputs.q.shape
        seqlen = case.lengths[0][0]
        dst = buffers.tensor("sum", np.zeros((tokens, case.heads_k, size), np.uint16), seqlen,
                             output=True)  # fmt: skip
        group = heads // case.heads_k
        workgroups = max(1, math.ceil(tokens * case.heads_k * math.ceil(size / 8) / 256))
        data = struct.pack(
            "<QQqqqqqiiiI", buffers.place("src", inputs.q), dst.data, tokens, seqlen,
            dst.stride_batch, dst.stride_seq, dst.stride_head, case.heads_k, group, size,
            workgroups,
        )  # fmt: skip
        return KernelArguments((workgroups, 1, 1), data), ["sum"]
