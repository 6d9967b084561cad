# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention, forward: in one kernel, over parts of the keys, over pages, and over listed keys."""

from __future__ import annotations

import abc
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.emulation.harness.arguments import FINITE, GAP, NAN
from tests.emulation.harness.cases import (
    MASK_BOTTOM_RIGHT,
    MASK_NONE,
    MASK_TOP_LEFT,
    Case,
    attention_cases,
)
from tests.emulation.harness.kinds.kind import Array, Kind
from tests.emulation.harness.launches import Instance
from tests.emulation.harness.reference import (
    DROP_OFFSET,
    DROP_SEED,
    Expected,
    Inputs,
    add_partial_results,
    draw,
    reference,
)

if TYPE_CHECKING:
    from tests.emulation.harness.arguments import Arguments

# Upstream's host code takes multiples of 128 only.
_PAGE_SIZE = 128
_READ_BEHIND = 159  # entries of page_indices behind the last key's, as aiter/attn.h says


class Attention(Kind):
    """All that takes q, k and v.

    checks_keys  whether the kernels have bounds of keys to check
    any_length   whether all of them check the bounds of lengths
    scores       whether they compute scores
    splits       parts of the keys
    """

    backward = False
    checks_keys = True
    any_length = False
    scores = True
    splits = 1

    def page_size(self, instance: Instance) -> int:
        return _PAGE_SIZE if instance.paged_kv else 0

    def cases(self, instance: Instance) -> list[Case]:
        return attention_cases(instance, self)

    def draw(
        self, instance: Instance, case: Case, head_sizes: tuple[int, int], seed: int
    ) -> Inputs:
        return draw(case, instance.dtype, head_sizes, seed, self.backward)

    def expected(
        self, instance: Instance, case: Case, inputs: Inputs, seed: int
    ) -> dict[str, Expected]:
        return reference(case, instance.dtype, inputs)

    def place(self, to: Arguments, inputs: Inputs) -> None:
        self._features(to, inputs)
        to.launch.q = to.tensor("q", inputs.q, to.length_q)
        to.launch.k, to.launch.v = self._keys(to, "k", inputs.k), self._keys(to, "v", inputs.v)
        self.place_results(to, inputs)

    @abc.abstractmethod
    def place_results(self, to: Arguments, inputs: Inputs) -> None:
        """Makes room for the outputs, and places the other inputs."""

    def _features(self, to: Arguments, inputs: Inputs) -> None:
        case, features = to.case, to.launch.features
        features.logits_soft_cap, features.p_drop = case.soft_cap, case.p_drop
        features.drop_seed, features.drop_offset = DROP_SEED, DROP_OFFSET
        features.min_seqlen_q = case.skipped_seqlen_q
        if inputs.slopes is not None:
            features.bias = to.place("alibi_slopes", inputs.slopes)
            features.bias_stride_seq = case.heads_q
        if inputs.bias is not None:
            heads, rows, columns = inputs.bias.shape
            stride = -(-columns // GAP) * GAP + GAP
            bias = np.full((heads, rows, stride), NAN, np.uint16)
            bias[..., :columns] = inputs.bias
            features.bias = to.place("bias", bias)
            features.bias_stride_seq, features.bias_stride_head = stride, rows * stride
            features.bias_stride_batch = to.length_q * stride
            if to.instance.bias_grad:
                # Kernels skip tiles without a visible key: this is zeroed memory, not unwritten.
                dbias = np.full_like(bias, NAN)
                dbias[..., :columns] = 0
                features.dbias = to.place("dbias", dbias, output=True)
                features.dbias_stride_seq = features.bias_stride_seq
                features.dbias_stride_head = features.bias_stride_head
                features.dbias_stride_batch = features.bias_stride_batch

    def _keys(self, to: Arguments, name: str, stored: Array) -> Any:
        """k or v, in pages in a shuffled order where the instance takes pages."""
        case = to.case
        if not case.page_size:
            return to.tensor(name, stored, to.length_k)
        size = case.page_size
        needed = [math.ceil(length / size) for _, length in case.lengths]
        order = np.random.default_rng(1).permutation(sum(needed))
        # Room that no key fills has finite numbers, as in a cache that was used before; the last
        # page belongs to no sequence, and fills the table beyond a sequence's pages.
        pages = np.full((len(order) + 1, size, *stored.shape[1:]), FINITE, np.uint16)
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
        if name == "k":
            self._page_list(to, order, table)
        return to.tensor(name, pages.reshape(-1, *stored.shape[1:]), size)

    def _page_list(self, to: Arguments, order: Array, table: Array) -> None:
        features = to.launch.features
        features.block_table = to.place("block_table", table)
        features.block_table_stride, features.page_size = table.shape[1], to.case.page_size
        lengths = np.array([k for _, k in to.case.lengths], np.int32)
        features.seqlens_k = to.place("seqlens_k", lengths)


class Forward(Attention):
    """One kernel, over keys in place or in pages."""

    writes_lse = True

    def outputs(self, instance: Instance) -> tuple[str, ...]:
        return ("o", "lse") if instance.lse else ("o",)

    def place_results(self, to: Arguments, inputs: Inputs) -> None:
        case, size_v = to.case, inputs.v.shape[2]
        to.launch.o = to.output("o", case.total_q, case.heads_q, size_v, to.length_q)
        if to.instance.lse:
            to.launch.lse = to.statistic("lse", np.zeros((case.heads_q, case.total_q)))


class ForwardV3(Forward):
    """Its masks are causal."""

    takes_turns = True

    def cases(self, instance: Instance) -> list[Case]:
        causal = (-1, 0)
        cases = [c for c in super().cases(instance) if c.mask == MASK_NONE or c.window == causal]
        keys = 2 * instance.tile_seqlen_k + 9
        tile = tuple(range(instance.tile_seqlen_k))
        cases += [
            Case("scores of -inf, all", ((17, keys),), vanishing=tuple(range(keys))),
            Case("scale of 1, all of a tile -inf", ((17, keys),), scale=1.0, vanishing=tile),
        ]
        if instance.mask:
            rows, few = instance.tile_seqlen_q + 9, instance.tile_seqlen_k // 2
            cases += [
                Case(name, ((rows, keys),), mask=mask, window=causal)
                for name, keys, mask in (
                    ("causal, rows without a key", few, MASK_BOTTOM_RIGHT),
                    ("top-left, causal", rows, MASK_TOP_LEFT),
                )
            ]
        return cases


class BatchPrefill(Forward):
    """Over keys that are listed one by one."""

    def page_size(self, instance: Instance) -> int:
        return 1

    def _keys(self, to: Arguments, name: str, stored: Array) -> Any:
        """NaNs before the tile in which the first window begins: no kernel may look there."""
        case, stored = to.case, stored.copy()
        if case.mask and case.window[0] >= 0:
            for (_, start), (rows, keys) in zip(case.starts(), case.lengths, strict=False):
                diagonal = keys - rows if case.mask == MASK_BOTTOM_RIGHT else 0
                tile = max(0, diagonal - case.window[0]) // to.instance.tile_seqlen_k
                stored[start : start + tile * to.instance.tile_seqlen_k] = NAN
        return super()._keys(to, name, stored)

    def _page_list(self, to: Arguments, order: Array, table: Array) -> None:
        """The pages of all sequences, of one key each, and what is read behind them."""
        features = to.launch.features
        features.pages = len(order) + 1
        starts = np.array([start for _, start in to.case.starts()], np.int32)
        features.page_indptr = to.place("page_indptr", starts)
        listed = np.concatenate([order, np.full(_READ_BEHIND, len(order))])
        features.page_indices = to.place("page_indices", listed.astype(np.int32))


class _Parts(Attention):
    """Results over parts of the keys: written by one kernel, read by the next."""

    splits = 3

    def _parts(self, to: Arguments, inputs: Inputs) -> None:
        """An output where the case has none."""
        case, features = to.case, to.launch.features
        batch = 1 if to.instance.group_mode else len(case.lengths)
        shape = (case.splits, case.heads_q, batch, case.total_q // batch)
        size_v = inputs.v.shape[2]
        is_output = inputs.o_acc is None
        if is_output:
            lse_acc, o_acc = np.zeros(shape, np.float32), np.zeros((*shape, size_v), np.float32)
            to.unwritten_names += ["lse_acc", "o_acc"]
        else:
            lse_acc, o_acc = inputs.lse_acc.reshape(shape), inputs.o_acc.reshape(*shape, size_v)
        # In memory the sequences of batch mode come first, and the parts of a head lie together.
        lse_acc, o_acc = (np.moveaxis(x, 0, 2).swapaxes(0, 1) for x in (lse_acc, o_acc))
        features.splits = case.splits
        features.lse_acc = to.place("lse_acc", lse_acc, output=is_output)
        features.o_acc = to.place("o_acc", o_acc, output=is_output)


class SplitKeys(_Parts):
    """Makes results over parts of the keys, which are put together here."""

    def outputs(self, instance: Instance) -> tuple[str, ...]:
        return ("o", "lse")

    def place_results(self, to: Arguments, inputs: Inputs) -> None:
        self._parts(to, inputs)

    def read(self, of: Arguments) -> dict[str, Array]:
        """o and lse of the results over parts of the keys."""
        lse, o = (
            np.moveaxis(of.arrays[name].astype(np.float64), 2, 0) for name in ("lse_acc", "o_acc")
        )
        top = lse.max(axis=0)
        top = np.where(np.isfinite(top), top, 0.0)
        weights = np.exp(lse - top)
        total = weights.sum(axis=0)
        with np.errstate(divide="ignore"):
            all_lse = top + np.log(total)
        # [batch][heads][rows][d]
        all_o = (weights[..., None] * o).sum(axis=0) / np.where(total == 0, 1.0, total)[..., None]
        case = of.case
        return {
            "o": all_o.transpose(0, 2, 1, 3).reshape(case.total_q, case.heads_q, -1),
            "lse": all_lse.transpose(1, 0, 2).reshape(case.heads_q, -1),
        }


class Combine(_Parts, Forward):
    """Puts the results of another kernel together, and sees no scores."""

    scores = False

    def expected(
        self, instance: Instance, case: Case, inputs: Inputs, seed: int
    ) -> dict[str, Expected]:
        return add_partial_results(case, instance.dtype, inputs, seed)

    def place_results(self, to: Arguments, inputs: Inputs) -> None:
        self._parts(to, inputs)
        super().place_results(to, inputs)
