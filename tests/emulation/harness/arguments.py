# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The arguments of one launch, in memory that shows every wrong access.

A gap follows each head: of NaNs in inputs, of unwritten memory in outputs. A read of the first
poisons a result, a write to the second is seen. Inputs must come out unchanged.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
from gfxemu.checks import POISONS
from gfxemu.memory import Memory

from tests.emulation.harness import append, launches
from tests.emulation.harness.cases import Case
from tests.emulation.harness.launches import Instance
from tests.emulation.harness.reference import (
    DROP_OFFSET,
    DROP_SEED,
    Expected,
    Inputs,
    from_storage,
    to_storage,
)

Array = np.ndarray
_GAP = 8  # elements: keeps rows aligned to the 16 bytes that kernels load at a time
_NAN = 0x7FFF  # of fp16 and of bf16
_READ_BEHIND = 159  # entries of page_indices behind the last key's, as aiter/attn.h says
_FINITE = 0x4A00  # 12 and 2097152


class Overwritten(Exception):
    """A kernel changed memory that is not its output."""


def outputs_of(instance: Instance) -> tuple[str, ...]:
    if instance.kind == "bwd_dq_dk_dv":
        return ("dq_acc", "dk", "dv", *(("dbias",) if instance.bias_grad else ()))
    if instance.kind == "fwd_splitkv":  # its partial results are put together here
        return ("o", "lse")
    if instance.kind == "fwd_appendkv":
        return ("k", "v") if instance.rotary == "none" else ("k", "v", "q")
    if instance.kind.startswith("fwd"):
        return ("o", "lse") if instance.lse else ("o",)
    return {
        "bwd_dot_do_o": ("delta",),
        "bwd_convert_dq": ("dq",),
        "sum_heads": ("sum",),
        "dropout_mask": ("kept",),
    }[instance.kind]


def in_group_mode(instance: Instance, case: Case) -> bool:
    """Kernels are for one mode; that of dropout masks takes what the case needs."""
    if instance.kind == "dropout_mask":
        return len(set(case.lengths)) > 1
    return bool(instance.group_mode)


def _untouched(words: Array) -> bool:
    """Whether all of an output still is the poison of unwritten memory."""
    patterns = (pattern & 0xFFFF for pattern in (*POISONS, _NAN, _FINITE))
    return any((words.view(np.uint16) == pattern).all() for pattern in patterns)


class Arguments:
    """Buffers and a LaunchArgs of one launch, until `release`.

    `finite_gaps`: numbers in place of NaNs behind the heads of inputs.
    """

    def __init__(self, memory: Memory, instance: Instance, case: Case, inputs: Inputs,
                 expected: dict[str, Expected], *, finite_gaps: bool = False):  # fmt: skip
        self.instance, self.case, self.expected = instance, case, expected
        self.outputs = outputs_of(instance)
        self.launch = launches.launch_args()
        self._memory, self._gap = memory, _FINITE if finite_gaps else _NAN
        self._arrays: dict[str, Array] = {}
        self._addresses: dict[str, int] = {}
        self._kept: dict[str, Array] = {}
        self._unwritten: list[str] = []
        # Tokens from one sequence to the next; in group mode they follow one another.
        self._group_mode = in_group_mode(instance, case)
        batch_mode = not self._group_mode
        self._length_q, self._length_k = case.lengths[0] if batch_mode else (0, 0)
        try:
            self._problem(inputs)
            if instance.kind == "sum_heads":
                self._sum_heads(inputs)
            elif instance.kind == "dropout_mask":
                self._dropout_mask()
            elif instance.kind == "fwd_appendkv":
                self._append(inputs)
            else:
                self._attention(inputs)
        except BaseException:
            self.release()
            raise

    def make(self) -> launches.KernelArguments:
        return launches.make(self.instance, self.launch)

    @property
    def unwritten(self) -> list[int]:
        """The addresses of outputs, whose content nobody wrote."""
        return [self._addresses[name] for name in self._unwritten]

    def release(self) -> None:
        for address in self._addresses.values():
            self._memory.unregister(address)

    # Buffers.

    def _place(self, name: str, array: Array, *, output: bool = False) -> int:
        self._arrays[name] = array = np.ascontiguousarray(array)
        # Empty buffers have an address as well: one that nothing may access.
        backing = array if array.size else np.zeros(1, np.uint32)
        self._addresses[name] = self._memory.register(backing, name)
        if not output:
            self._kept[name] = array.copy()
        return self._addresses[name]

    def _tensor(self, name: str, stored: Array, batch_tokens: int, *, output: bool = False) -> Any:
        """Place [tokens][heads][d] with a gap after each head."""
        gapped = np.full((*stored.shape[:2], stored.shape[2] + _GAP), self._gap, np.uint16)
        gapped[..., :-_GAP] = stored
        address = self._place(name, gapped, output=output)
        seq = gapped.shape[1] * gapped.shape[2]
        return launches.tensor(address, batch_tokens * seq, seq, gapped.shape[2])

    def _output(self, name: str, tokens: int, heads: int, size: int, batch_tokens: int) -> Any:
        """A tensor that the kernel writes, if it is one of its outputs."""
        output = name in self.outputs
        if output:
            self._unwritten.append(name)
        zeros = np.zeros((tokens, heads, size), np.uint16)
        return self._tensor(name, zeros, batch_tokens, output=output)

    def _statistic(self, name: str, values: Array) -> int:
        """lse or delta [heads][total]: as that in group mode, else as [batch][heads][seqlen]."""
        rows = values.astype(np.float32)
        if not self.instance.group_mode:
            rows = rows.reshape(len(rows), len(self.case.lengths), -1).transpose(1, 0, 2)
        output = name in self.outputs
        if output:
            self._unwritten.append(name)
        return self._place(name, rows, output=output)

    # What the kernel is given.

    def _problem(self, inputs: Inputs) -> None:
        case, problem = self.case, self.launch.problem
        problem.struct_size = ctypes.sizeof(problem)
        problem.mode = 2 if self._group_mode else 1
        problem.device_type, problem.dtype = 10, 1 if self.instance.dtype == "fp16" else 2
        problem.batch = len(case.lengths)
        problem.heads_q, problem.heads_k = case.heads_q, case.heads_k
        problem.head_size_qk, problem.head_size_v = inputs.q.shape[2], inputs.v.shape[2]
        problem.softmax_scale = float(inputs.scale)
        problem.seqlen_q, problem.seqlen_k = (max(x) for x in zip(*case.lengths, strict=True))
        problem.mask, (problem.window_left, problem.window_right) = case.mask, case.window
        if self._group_mode:
            starts = np.array(case.starts(), np.int32)
            problem.total_q, problem.total_k = case.total_q, case.total_k
            problem.cu_seqlens_q = self._place("cu_seqlens_q", starts[:, 0])
            problem.cu_seqlens_k = self._place("cu_seqlens_k", starts[:, 1])

    def _sum_heads(self, inputs: Inputs) -> None:
        """q of the case summed over the heads of each group."""
        tokens, _, size = inputs.q.shape
        # The tokens of this kernel are those of keys.
        self.launch.problem.seqlen_k = length = self.case.lengths[0][0]
        self.launch.sum_head_size = size
        self.launch.sum_from.data = self._place("src", inputs.q)
        self.launch.sum_to = self._output("sum", tokens, self.case.heads_k, size, length)

    def _dropout_mask(self) -> None:
        """Where several heads share a key head, seed and offset are in memory."""
        case, problem = self.case, self.launch.problem
        problem.dropout_p = case.p_drop
        if case.heads_q == case.heads_k:
            problem.dropout_seed, problem.dropout_offset = DROP_SEED, DROP_OFFSET
        else:
            state = np.array([DROP_SEED, DROP_OFFSET], np.uint64)
            problem.rng_state = self._place("rng_state", state)
        batch = 1 if self._group_mode else len(case.lengths)
        shape = (batch, case.heads_q, case.total_q // batch, problem.seqlen_k)
        self._unwritten.append("kept")
        self.launch.kept = self._place("kept", np.zeros(shape, np.uint8), output=True)

    def _append(self, inputs: Inputs) -> None:
        """To a cache that was used before, as nothing but finite numbers in it says."""
        case, launch, features = self.case, self.launch, self.launch.features
        places, rows = append.pages(case), append.rows(case)
        launch.problem.seqlen_k = rows * (places.shape[1] if case.page_size else 1)
        for name, new in (("k", inputs.k), ("v", inputs.v)):
            used = np.full(((places.size + 1) * rows, *new.shape[1:]), _FINITE, np.uint16)
            setattr(launch, name, self._tensor(name, used, rows, output=True))
            setattr(features, f"{name}_new", self._tensor(f"{name}_new", new, case.new_keys))
        launch.q = self._tensor("q", inputs.q, self._length_q, output="q" in self.outputs)
        lengths = np.array([k for _, k in case.lengths], np.int32)
        features.seqlens_k = self._place("seqlens_k", lengths)
        features.seqlen_new = case.new_keys
        where = self._place("places", places.astype(np.int32))
        if case.page_size:
            features.block_table, features.page_size = where, case.page_size
            features.block_table_stride = places.shape[1]
        else:
            features.batch_index = where
        if inputs.rotary_cos is not None:
            features.rotary_size = 2 * inputs.rotary_cos.shape[1]
            features.rotary_cos = self._place("rotary_cos", inputs.rotary_cos)
            features.rotary_sin = self._place("rotary_sin", inputs.rotary_sin)

    def _attention(self, inputs: Inputs) -> None:
        launch = self.launch
        self._features(inputs)
        launch.q = self._tensor("q", inputs.q, self._length_q)
        launch.k, launch.v = self._keys("k", inputs.k), self._keys("v", inputs.v)
        if self.instance.kind.startswith("bwd"):
            self._backward(inputs)
            return
        if self.instance.kind.startswith("fwd_splitkv"):
            self._parts(inputs)
            if self.instance.kind == "fwd_splitkv":
                return
        case = self.case
        launch.o = self._output("o", case.total_q, case.heads_q, inputs.v.shape[2], self._length_q)
        if self.instance.lse:
            launch.lse = self._statistic("lse", np.zeros((case.heads_q, case.total_q)))

    def _features(self, inputs: Inputs) -> None:
        case, features = self.case, self.launch.features
        features.logits_soft_cap, features.p_drop = case.soft_cap, case.p_drop
        features.drop_seed, features.drop_offset = DROP_SEED, DROP_OFFSET
        features.min_seqlen_q = case.skipped_seqlen_q
        if inputs.slopes is not None:
            features.bias = self._place("alibi_slopes", inputs.slopes)
            features.bias_stride_seq = case.heads_q
        if inputs.bias is not None:
            heads, rows, columns = inputs.bias.shape
            stride = -(-columns // _GAP) * _GAP + _GAP
            bias = np.full((heads, rows, stride), _NAN, np.uint16)
            bias[..., :columns] = inputs.bias
            features.bias = self._place("bias", bias)
            features.bias_stride_seq, features.bias_stride_head = stride, rows * stride
            features.bias_stride_batch = self._length_q * stride
            if self.instance.bias_grad:
                # Kernels skip tiles without a visible key: this is zeroed memory, not unwritten.
                dbias = np.full_like(bias, _NAN)
                dbias[..., :columns] = 0
                features.dbias = self._place("dbias", dbias, output=True)
                features.dbias_stride_seq = features.bias_stride_seq
                features.dbias_stride_head = features.bias_stride_head
                features.dbias_stride_batch = features.bias_stride_batch

    def _keys(self, name: str, stored: Array) -> Any:
        """k or v, in pages in a shuffled order where the instance takes pages."""
        case, features = self.case, self.launch.features
        if not case.page_size:
            return self._tensor(name, stored, self._length_k)
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
        if self.instance.kind == "fwd_batch_prefill":
            self._page_list(order)
        elif not features.block_table:
            features.block_table = self._place("block_table", table)
            features.block_table_stride, features.page_size = table.shape[1], size
            lengths = np.array([k for _, k in case.lengths], np.int32)
            features.seqlens_k = self._place("seqlens_k", lengths)
        return self._tensor(name, pages.reshape(-1, *stored.shape[1:]), size)

    def _page_list(self, order: Array) -> None:
        """The pages of all sequences, of one key each, and what is read behind them."""
        features = self.launch.features
        if features.page_indptr:
            return
        features.pages = len(order) + 1
        starts = np.array([start for _, start in self.case.starts()], np.int32)
        features.page_indptr = self._place("page_indptr", starts)
        listed = np.concatenate([order, np.full(_READ_BEHIND, len(order))])
        features.page_indices = self._place("page_indices", listed.astype(np.int32))

    def _parts(self, inputs: Inputs) -> None:
        """Results over parts of the keys: written by one kernel, read by the next."""
        case, features = self.case, self.launch.features
        batch = 1 if self.instance.group_mode else len(case.lengths)
        shape = (case.splits, case.heads_q, batch, case.total_q // batch)
        size_v = inputs.v.shape[2]
        is_output = inputs.o_acc is None
        if is_output:
            lse_acc, o_acc = np.zeros(shape, np.float32), np.zeros((*shape, size_v), np.float32)
            self._unwritten += ["lse_acc", "o_acc"]
        else:
            lse_acc, o_acc = inputs.lse_acc.reshape(shape), inputs.o_acc.reshape(*shape, size_v)
        # In memory the sequences of batch mode come first, and the parts of a head lie together.
        lse_acc, o_acc = (np.moveaxis(x, 0, 2).swapaxes(0, 1) for x in (lse_acc, o_acc))
        features.splits = case.splits
        features.lse_acc = self._place("lse_acc", lse_acc, output=is_output)
        features.o_acc = self._place("o_acc", o_acc, output=is_output)

    def _backward(self, inputs: Inputs) -> None:
        case, launch, expected = self.case, self.launch, self.expected
        launch.lse = self._statistic("lse", expected["lse"].value)
        launch.delta = self._statistic("delta", expected["delta"].value)
        stored_o = to_storage(expected["o"].value, self.instance.dtype)
        launch.o = self._tensor("o", stored_o, self._length_q)
        launch.dout = self._tensor("dout", inputs.dout, self._length_q)
        dq_acc = inputs.dq_acc
        if dq_acc is None:
            tiles = 1
            if self.instance.deterministic:
                longest = max(length for _, length in case.lengths)
                tiles = max(1, math.ceil(longest / self.instance.tile_seqlen_k))
            # An accumulator: zeroed memory, not unwritten.
            dq_acc = np.zeros((tiles, *inputs.q.shape), np.float32)
        launch.dq_acc = self._place("dq_acc", dq_acc, output="dq_acc" in self.outputs)
        launch.features.dq_acc_stride_split = dq_acc[0].size
        launch.dq = self._output("dq", *inputs.q.shape, self._length_q)
        for name, like in (("dk", inputs.k), ("dv", inputs.v)):  # per query head
            size = like.shape[2]
            tensor = self._output(name, case.total_k, case.heads_q, size, self._length_k)
            setattr(launch, name, tensor)

    # What the kernel leaves.

    def read(self) -> dict[str, Array]:
        """The outputs as float64 in the reference's shapes, NaN where that must be and is as it
        was. Raises Overwritten."""
        for name, array in self._kept.items():
            if not np.array_equal(array.view(np.uint8), self._arrays[name].view(np.uint8)):
                raise Overwritten(f"the kernel changed its input {name}")
        if self.instance.kind == "fwd_splitkv":
            return self._put_together()
        return {name: self._read(name) for name in self.outputs}

    def _read(self, name: str) -> Array:
        array, expected = self._arrays[name], self.expected[name].value
        if name in ("lse", "delta"):
            if not self.instance.group_mode:
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
        skipped = np.isnan(expected)
        if skipped.any():
            if not _untouched(np.ascontiguousarray(array[skipped])):
                raise Overwritten(f"the kernel wrote {name} of a sequence that it must skip")
            numbers = np.where(skipped, np.nan, numbers)
        return numbers

    def _put_together(self) -> dict[str, Array]:
        """o and lse of the results over parts of the keys."""
        lse, o = (
            np.moveaxis(self._arrays[name].astype(np.float64), 2, 0)
            for name in ("lse_acc", "o_acc")
        )
        top = lse.max(axis=0)
        top = np.where(np.isfinite(top), top, 0.0)
        weights = np.exp(lse - top)
        total = weights.sum(axis=0)
        with np.errstate(divide="ignore"):
            all_lse = top + np.log(total)
        # [batch][heads][rows][d]
        all_o = (weights[..., None] * o).sum(axis=0) / np.where(total == 0, 1.0, total)[..., None]
        case = self.case
        return {
            "o": all_o.transpose(0, 2, 1, 3).reshape(case.total_q, case.heads_q, -1),
            "lse": all_lse.transpose(1, 0, 2).reshape(case.heads_q, -1),
        }
