# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Sums over the heads that share a key head."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tests.emulation.harness.cases import Case
from tests.emulation.harness.kinds.kind import Kind
from tests.emulation.harness.launches import Instance
from tests.emulation.harness.reference import UNIT, Expected, Inputs, draw, from_storage

if TYPE_CHECKING:
    from tests.emulation.harness.arguments import Arguments

_CASES = [
    Case("two batches of 33 tokens; heads 8:2", ((33, 1),) * 2, heads_q=8, heads_k=2),
    Case("one token, one group", ((1, 1),), heads_q=3, heads_k=1),
    Case("large magnitudes", ((17, 1),), heads_q=4, heads_k=4, amplitude=1000.0),
]


class SumHeads(Kind):
    """q of a case, summed over the heads of each group."""

    def cases(self, instance: Instance) -> list[Case]:
        return _CASES

    def draw(
        self, instance: Instance, case: Case, head_sizes: tuple[int, int], seed: int
    ) -> Inputs:
        return draw(case, instance.dtype, head_sizes, seed, backward=False)

    def expected(
        self, instance: Instance, case: Case, inputs: Inputs, seed: int
    ) -> dict[str, Expected]:
        """float32 sums, rounded once."""
        values = from_storage(inputs.q, instance.dtype)
        tokens, _, size = values.shape
        grouped = values.reshape(tokens, case.heads_k, -1, size)
        total = grouped.sum(axis=2)
        spread = UNIT["fp32"] * np.abs(grouped).sum(axis=2) * 2
        return {"sum": Expected(total, UNIT[instance.dtype] * np.abs(total) + spread + 1e-30)}

    def outputs(self, instance: Instance) -> tuple[str, ...]:
        return ("sum",)

    def place(self, to: Arguments, inputs: Inputs) -> None:
        tokens, _, size = inputs.q.shape
        # The tokens of this kernel are those of keys.
        to.launch.problem.seqlen_k = length = to.case.lengths[0][0]
        to.launch.sum_head_size = size
        to.launch.sum_from.data = to.place("src", inputs.q)
        to.launch.sum_to = to.output("sum", tokens, to.case.heads_k, size, length)
