# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Launches of one kernel on an emulated device, with memory that shows every wrong access.

A gap follows each head: of NaNs in inputs, of unwritten memory in outputs. A read of the first
poisons a result, a write to the second is seen. Inputs must come out unchanged.
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
from launches import (
    BwdArgs,
    BwdBuffers,
    Features,
    FwdArgs,
    Instance,
    KernelArguments,
    Problem,
    Tensor,
)

from tests.emulation.verify.cases import Case
from tests.emulation.verify.reference import DROP_OFFSET, DROP_SEED, Expected, Inputs

Array = np.ndarray
_GAP = 8  # elements: keeps rows aligned to the 16 bytes that kernels load at a time
_NAN = 0x7FFF  # of fp16 and of bf16
_FINITE = 0x4A00  # 12 and 2097152
_SUM_HEADS = "sum_heads"


class Overwritten(Exception):
    """A kernel changed memory that is not its output."""


@dataclasses.dataclass
class Outcome:
    """A launch's report, and its outputs as float64 in the reference's shapes."""

    report: Report
    outputs: dict[str, Array]


def outputs_of(instance: Instance) -> tuple[str, ...]:
    if instance.kind == "bwd_dq_dk_dv":
        return ("dq_acc", "dk", "dv", *(("dbias",) if instance.bias_grad else ()))
    if instance.kind == "fwd_splitkv":  # its partial results are put together here
        return ("o", "lse")
    if instance.kind.startswith("fwd"):
        return ("o", "lse") if instance.lse else ("o",)
    return {"bwd_dot_do_o": ("delta",), "bwd_convert_dq": ("dq",), _SUM_HEADS: ("sum",)}[
        instance.kind
    ]


def _untouched(words: Array) -> bool:
    """Whether all of an output still is the poison of unwritten memory."""
    patterns = (pattern & 0xFFFF for pattern in (*POISONS, _NAN, _FINITE))
    return any((words.view(np.uint16) == pattern).all() for pattern in patterns)


class _Buffers:
    """The buffers of one launch, by name."""

    def __init__(self, device: Device, gap: int):
        self._memory, self._gap = device.memory, gap
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
        gapped = np.full((*stored.shape[:2], stored.shape[2] + _GAP), self._gap, np.uint16)
        gapped[..., :-_GAP] = stored
        address = self.place(name, gapped, output=output)
        seq = gapped.shape[1] * gapped.shape[2]
        return Tensor(address, batch_tokens * seq, seq, gapped.shape[2])

    def check(self) -> None:
        """Raise Overwritten if an input or a gap has changed."""
        for name, array in self._kept.items():
            if not np.array_equal(array.view(np.uint8), self.arrays[name].view(np.uint8)):
                raise Overwritten(f"the kernel changed its input {name}")

    def check_gap(self, name: str, size: int) -> None:
        """Raise Overwritten if an output's rows have changed behind their `size` elements."""
        if not _untouched(np.ascontiguousarray(self.arrays[name][..., size:])):
            raise Overwritten(f"the kernel wrote behind the rows of {name}")

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
        finite_gaps: bool = False,
    ) -> Outcome:
        """Launch once. Raises EmulationError and Overwritten.

        `change` makes the program that runs in place of the kernel's own, for statistics. With
        `finite_gaps` there are numbers in place of NaNs behind the heads of inputs.
        """
        buffers = _Buffers(self.device, _FINITE if finite_gaps else _NAN)
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
                report,
                {n: self._read(case, n, buffers, expected[n]) for n in outputs_of(self.instance)},
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

    def _read(self, case: Case, name: str, buffers: _Buffers, expected: Expected) -> Array:
        """An output, NaN where it must be and is as it was."""
        if self.instance.kind == "fwd_splitkv":
            return self._put_together(case, name, buffers)
        array = buffers.arrays[name]
        if name in ("lse", "delta"):
            if not self.instance.group_mode:
                array = array.transpose(1, 0, 2).reshape(case.heads_q, -1)
            numbers = array.astype(np.float64)
        elif name == "dq_acc":
            # Deterministic kernels have a sum of their own per tile of keys.
            numbers = array.astype(np.float64).sum(axis=0)
        else:
            size = expected.value.shape[-1]
            buffers.check_gap(name, size)
            array = np.ascontiguousarray(array[..., :size])
            numbers = from_storage(array, self.instance.dtype)
        skipped = np.isnan(expected.value)
        if skipped.any():
            if not _untouched(np.ascontiguousarray(array[skipped])):
                raise Overwritten(f"the kernel wrote {name} of a sequence that it must skip")
            numbers = np.where(skipped, np.nan, numbers)
        return numbers

    def _put_together(self, case: Case, name: str, buffers: _Buffers) -> Array:
        """o or lse of the results over parts of the keys."""
        lse, o = (buffers.arrays[n].astype(np.float64) for n in ("lse_acc", "o_acc"))
        top = lse.max(axis=0)
        top = np.where(np.isfinite(top), top, 0.0)
        weights = np.exp(lse - top)
        total = weights.sum(axis=0)
        if name == "o":  # [batch][heads][rows][d]
            out = (weights[..., None] * o).sum(axis=0) / np.where(total == 0, 1.0, total)[..., None]
            return out.transpose(0, 2, 1, 3).reshape(case.total_q, case.heads_q, -1)
        with np.errstate(divide="ignore"):
            return (top + np.log(total)).transpose(1, 0, 2).reshape(case.heads_q, -1)

    def _problem(self, case: Case, inputs: Inputs, buffers: _Buffers) -> Problem:
        problem = Problem(
            device_type=10, dtype=1 if self.instance.dtype == "fp16" else 2,
            batch=len(case.lengths), heads_q=case.heads_q, heads_k=case.heads_k,
            head_size_qk=inputs.q.shape[2], head_size_v=inputs.v.shape[2],
            softmax_scale=float(inputs.scale),
            seqlen_q=max(q for q, _ in case.lengths), seqlen_k=max(k for _, k in case.lengths),
            mask=case.mask, window_left=case.window[0], window_right=case.window[1],
        )  # fmt: skip
        if self.instance.group_mode:
            starts = np.array(case.starts(), np.int32)
            problem.total_q, problem.total_k = case.total_q, case.total_k
            problem.cu_seqlens_q = buffers.place("cu_seqlens_q", starts[:, 0])
            problem.cu_seqlens_k = buffers.place("cu_seqlens_k", starts[:, 1])
        return problem

    def _features(self, case: Case, inputs: Inputs, buffers: _Buffers) -> Features:
        features = Features(
            logits_soft_cap=case.soft_cap, p_drop=case.p_drop, drop_seed=DROP_SEED,
            drop_offset=DROP_OFFSET, min_seqlen_q=case.skipped_seqlen_q,
        )  # fmt: skip
        if inputs.slopes is not None:
            features.bias = buffers.place("alibi_slopes", inputs.slopes)
            features.bias_stride_seq = case.heads_q
        if inputs.bias is not None:
            heads, rows, columns = inputs.bias.shape
            stride = -(-columns // _GAP) * _GAP + _GAP
            bias = np.full((heads, rows, stride), _NAN, np.uint16)
            bias[..., :columns] = inputs.bias
            features.bias = buffers.place("bias", bias)
            features.bias_stride_seq, features.bias_stride_head = stride, rows * stride
            if not self.instance.group_mode:
                features.bias_stride_batch = case.lengths[0][0] * stride
            if self.instance.bias_grad:
                # Kernels skip tiles without a visible key: this is zeroed memory, not unwritten.
                dbias = np.full_like(bias, _NAN)
                dbias[..., :columns] = 0
                features.dbias = buffers.place("dbias", dbias, output=True)
        return features

    def _keys(
        self, case: Case, name: str, stored: Array, features: Features, buffers: _Buffers
    ) -> Tensor:
        """k or v, in pages in a shuffled order where the instance takes pages."""
        if not case.page_size:
            length = 0 if self.instance.group_mode else case.lengths[0][1]
            return buffers.tensor(name, stored, length)
        size = case.page_size
        needed = [math.ceil(length / size) for _, length in case.lengths]
        order = np.random.default_rng(1).permutation(sum(needed))
        # What no key fills has finite numbers, as a cache that was used before has; the last page
        # is one that no sequence owns, and what the table has beyond a sequence's pages.
        pages = np.full((len(order) + 1, size, *stored.shape[1:]), _FINITE, np.uint16)
        table = np.full((len(needed), max(1, *needed)), len(order), np.int32)
        at = 0
        for row, count, (_, start), (_, length) in zip(
            table, needed, case.starts(), case.lengths, strict=False
        ):
            row[:count] = order[at : at + count]
            for page in range(count):
                part = stored[start + page * size : start + min(length, (page + 1) * size)]
                pages[row[page], : len(part)] = part
            at += count
        if not features.block_table:
            features.block_table = buffers.place("block_table", table)
            features.block_table_stride, features.page_size = table.shape[1], size
            lengths = np.array([k for _, k in case.lengths], np.int32)
            features.seqlens_k = buffers.place("seqlens_k", lengths)
        return buffers.tensor(name, pages.reshape(-1, *stored.shape[1:]), size)

    def _attention(
        self, case: Case, inputs: Inputs, expected: dict[str, Expected], buffers: _Buffers
    ) -> tuple[KernelArguments, list[str]]:
        problem = self._problem(case, inputs, buffers)
        features = self._features(case, inputs, buffers)
        length_q = 0 if self.instance.group_mode else case.lengths[0][0]
        q = buffers.tensor("q", inputs.q, length_q)
        k = self._keys(case, "k", inputs.k, features, buffers)
        v = self._keys(case, "v", inputs.v, features, buffers)
        if self.instance.kind.startswith("fwd"):
            args, written = FwdArgs(problem=problem, q=q, k=k, v=v), []
            self._add_forward_outputs(case, inputs, args, features, buffers, written)
            return self._make(args, None, features), written
        return self._backward(case, inputs, expected, buffers, features, problem, q, k, v)

    def _make(
        self, args: FwdArgs | BwdArgs, both: BwdBuffers | None, features: Features
    ) -> KernelArguments:
        if launches.is_direct():
            return launches.make_direct(self.instance, args, both, features)
        if isinstance(args, FwdArgs):
            return launches.make_fwd(self.instance, args)
        return launches.make_bwd(self.instance, args, both)

    def _add_forward_outputs(
        self, case: Case, inputs: Inputs, args: FwdArgs, features: Features, buffers: _Buffers,
        written: list[str],
    ) -> None:  # fmt: skip
        kind, rows = self.instance.kind, (case.heads_q, case.total_q)
        size_v = inputs.v.shape[2]
        if kind.startswith("fwd_splitkv"):
            batch = 1 if self.instance.group_mode else len(case.lengths)
            shape = (case.splits, case.heads_q, batch, case.total_q // batch)
            lse_acc, o_acc = np.zeros(shape, np.float32), np.zeros((*shape, size_v), np.float32)
            if inputs.o_acc is not None:
                lse_acc, o_acc = inputs.lse_acc.reshape(shape), inputs.o_acc.reshape(o_acc.shape)
            # In memory the sequences of batch mode come before the heads.
            lse_acc, o_acc = (x.swapaxes(1, 2) for x in (lse_acc, o_acc))
            is_output = inputs.o_acc is None
            features.splits = case.splits
            features.lse_acc = buffers.place("lse_acc", lse_acc, output=is_output)
            features.o_acc = buffers.place("o_acc", o_acc, output=is_output)
            if is_output:
                written += ["lse_acc", "o_acc"]
                return
        length_q = 0 if self.instance.group_mode else case.lengths[0][0]
        o = np.zeros((case.total_q, case.heads_q, size_v), np.uint16)
        args.o = buffers.tensor("o", o, length_q, output=True)
        written.append("o")
        if self.instance.lse:
            lse = self._rows(case, np.zeros(rows))
            args.lse = buffers.place("lse", lse, output=True)
            written.append("lse")

    def _backward(
        self, case: Case, inputs: Inputs, expected: dict[str, Expected], buffers: _Buffers,
        features: Features, problem: Problem, q: Tensor, k: Tensor, v: Tensor,
    ) -> tuple[KernelArguments, list[str]]:  # fmt: skip
        instance, outputs = self.instance, outputs_of(self.instance)
        length_q, length_k = (0, 0) if instance.group_mode else case.lengths[0]
        lse = self._rows(case, expected["lse"].value)
        delta = self._rows(case, expected["delta"].value)
        o = to_storage(expected["o"].value, instance.dtype)
        if inputs.dq_acc is not None:
            dq_acc = inputs.dq_acc
        else:
            tiles = 1
            if instance.deterministic:
                longest = max(length for _, length in case.lengths)
                tiles = max(1, math.ceil(longest / instance.tile_seqlen_k))
            dq_acc = np.zeros((tiles, *inputs.q.shape), np.float32)
        features.dq_acc_stride_split = dq_acc[0].size
        heads = (case.total_k, case.heads_q)  # gradients of k and v are per query head
        dk, dv = (np.zeros((*heads, x.shape[2]), np.uint16) for x in (inputs.k, inputs.v))
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
        # dq_acc and dbias are zeroed memory, not unwritten.
        written = [n for n in outputs if n not in ("dq_acc", "dbias")]
        return self._make(args, both, features), written

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
