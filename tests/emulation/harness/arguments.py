# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The arguments of one launch, in memory that shows every wrong access.

A gap follows each head: of NaNs in inputs, of unwritten memory in outputs. A read of the first
poisons a result, a write to the second is seen. Inputs must come out unchanged.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np
from gfxemu.checks import POISONS
from gfxemu.memory import Memory

from tests.emulation.harness import launches
from tests.emulation.harness.cases import Case
from tests.emulation.harness.launches import Instance
from tests.emulation.harness.reference import Expected, Inputs, from_storage

if TYPE_CHECKING:
    from tests.emulation.harness.kinds.kind import Kind

Array = np.ndarray
GAP = 8  # elements: keeps rows aligned to the 16 bytes that kernels load at a time
NAN = 0x7FFF  # of fp16 and of bf16
FINITE = 0x4A00  # 12 and 2097152


class Overwritten(Exception):
    """A kernel changed memory that is not its output."""


def _untouched(words: Array) -> bool:
    """Whether all of an output still is the poison of unwritten memory."""
    patterns = (pattern & 0xFFFF for pattern in (*POISONS, NAN, FINITE))
    return any((words.view(np.uint16) == pattern).all() for pattern in patterns)


def _unwritten_rows(words: Array) -> Array:
    """Those of an output that are the poison of unwritten memory from end to end."""
    return np.any([(words == pattern & 0xFFFF).all(axis=-1) for pattern in POISONS], axis=0)


class Arguments:
    """Buffers and a LaunchArgs of one launch, until `release`.

    `finite_gaps`: numbers in place of NaNs behind the heads of inputs.
    """

    def __init__(self, memory: Memory, instance: Instance, kind: Kind, case: Case,
                 inputs: Inputs, expected: dict[str, Expected], *,
                 finite_gaps: bool = False):  # fmt: skip
        self.instance, self.case, self.expected = instance, case, expected
        self.kind, self.outputs = kind, kind.outputs(instance)
        self.launch = launches.launch_args()
        self._memory, self._gap = memory, FINITE if finite_gaps else NAN
        self.arrays: dict[str, Array] = {}
        self._addresses: dict[str, int] = {}
        self._kept: dict[str, Array] = {}
        self.unwritten_names: list[str] = []
        # Tokens from one sequence to the next; in group mode they follow one another.
        self.group_mode = kind.group_mode(instance, case)
        batch_mode = not self.group_mode
        self.length_q, self.length_k = case.lengths[0] if batch_mode else (0, 0)
        try:
            self._problem(inputs)
            kind.place(self, inputs)
        except BaseException:
            self.release()
            raise

    def make(self) -> launches.KernelArguments:
        return launches.make(self.instance, self.launch)

    @property
    def unwritten(self) -> list[int]:
        """The addresses of outputs, whose content is not written yet."""
        return [self._addresses[name] for name in self.unwritten_names]

    def release(self) -> None:
        for address in self._addresses.values():
            self._memory.unregister(address)

    # Buffers.

    def place(self, name: str, array: Array, *, output: bool = False) -> int:
        self.arrays[name] = array = np.ascontiguousarray(array)
        # Empty buffers have an address as well: one that nothing may access.
        backing = array if array.size else np.zeros(1, np.uint32)
        self._addresses[name] = self._memory.register(backing, name)
        if not output:
            self._kept[name] = array.copy()
        return self._addresses[name]

    def tensor(self, name: str, stored: Array, batch_tokens: int, *, output: bool = False) -> Any:
        """Place [tokens][heads][d] with a gap after each head."""
        gapped = np.full((*stored.shape[:2], stored.shape[2] + GAP), self._gap, np.uint16)
        gapped[..., :-GAP] = stored
        address = self.place(name, gapped, output=output)
        seq = gapped.shape[1] * gapped.shape[2]
        return launches.tensor(address, batch_tokens * seq, seq, gapped.shape[2])

    def output(self, name: str, tokens: int, heads: int, size: int, batch_tokens: int) -> Any:
        """A tensor that the kernel writes, if it is one of its outputs."""
        output = name in self.outputs
        if output:
            self.unwritten_names.append(name)
        zeros = np.zeros((tokens, heads, size), np.uint16)
        return self.tensor(name, zeros, batch_tokens, output=output)

    def statistic(self, name: str, values: Array) -> int:
        """lse or delta [heads][total]: as that in group mode, else as [batch][heads][seqlen]."""
        rows = values.astype(np.float32)
        if not self.instance.group_mode:
            rows = rows.reshape(len(rows), len(self.case.lengths), -1).transpose(1, 0, 2)
        output = name in self.outputs
        if output:
            self.unwritten_names.append(name)
        return self.place(name, rows, output=output)

    # The kernel's arguments.

    def _problem(self, inputs: Inputs) -> None:
        case, problem = self.case, self.launch.problem
        problem.struct_size = ctypes.sizeof(problem)
        problem.mode = 2 if self.group_mode else 1
        problem.device_type, problem.dtype = 10, 1 if self.instance.dtype == "fp16" else 2
        problem.batch = len(case.lengths)
        problem.heads_q, problem.heads_k = case.heads_q, case.heads_k
        problem.head_size_qk, problem.head_size_v = inputs.q.shape[2], inputs.v.shape[2]
        problem.softmax_scale = float(inputs.scale)
        problem.seqlen_q, problem.seqlen_k = (max(x) for x in zip(*case.lengths, strict=True))
        problem.mask, (problem.window_left, problem.window_right) = case.mask, case.window
        if self.group_mode:
            starts = np.array(case.starts(), np.int32)
            problem.total_q, problem.total_k = case.total_q, case.total_k
            problem.cu_seqlens_q = self.place("cu_seqlens_q", starts[:, 0])
            problem.cu_seqlens_k = self.place("cu_seqlens_k", starts[:, 1])

    # The kernel's results.

    def read(self) -> dict[str, Array]:
        """The outputs as float64 in the reference's shapes, NaN where that must be and is as it
        was. Raises Overwritten."""
        for name, array in self._kept.items():
            if not np.array_equal(array.view(np.uint8), self.arrays[name].view(np.uint8)):
                raise Overwritten(f"the kernel changed its input {name}")
        return self.kind.read(self)

    def output_of(self, name: str) -> Array:
        """One output, as `read` gives it."""
        array, expected = self.arrays[name], self.expected[name].value
        if name in ("lse", "delta"):
            if not self.group_mode:
                array = array.transpose(1, 0, 2).reshape(self.case.heads_q, -1)
            numbers = array.astype(np.float64)
        elif name == "kept":
            return array.astype(np.float64).swapaxes(0, 1).reshape(expected.shape)
        elif name == "dq_acc":
            # Deterministic kernels have a sum of their own per tile of keys.
            numbers = array.astype(np.float64).sum(axis=0)
        else:
            size = expected.shape[-1]
            if not _untouched(np.ascontiguousarray(array[..., size:])):
                raise Overwritten(f"the kernel wrote behind the rows of {name}")
            array = np.ascontiguousarray(array[..., :size])
            numbers = from_storage(array, self.instance.dtype)
            # One of the poisons is a number, which may be near to what is expected.
            numbers[_unwritten_rows(array)] = np.nan
        skipped = np.isnan(expected)
        if skipped.any():
            if not _untouched(np.ascontiguousarray(array[skipped])):
                raise Overwritten(f"the kernel wrote {name} of a sequence that it must skip")
            numbers = np.where(skipped, np.nan, numbers)
        return numbers
