# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Masks of dropout, byte by byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tests.emulation.harness.cases import Case
from tests.emulation.harness.kinds.kind import Kind
from tests.emulation.harness.launches import Instance
from tests.emulation.harness.reference import (
    DROP_OFFSET,
    DROP_SEED,
    Expected,
    Inputs,
    draw,
    kept_of,
)

if TYPE_CHECKING:
    from tests.emulation.harness.arguments import Arguments

# Around tiles of 32 x 32.
_CASES = [
    Case("several tiles", ((77, 130),) * 2, heads_q=2, heads_k=2, p_drop=0.25),
    Case("one by one", ((1, 1),), heads_q=1, heads_k=1, p_drop=0.5),
    Case("tile, tile; numbers in memory", ((32, 32),), heads_q=4, heads_k=2, p_drop=0.9),
    Case("nothing is dropped", ((33, 31),), heads_q=1, heads_k=1),
    Case("empty sequences", ((17, 0), (3, 3), (0, 0), (33, 65), (0, 5)), heads_k=2, p_drop=0.3),
    Case("long and short; numbers in memory", ((2, 97), (65, 1)), p_drop=0.3),
]


class DropoutMask(Kind):
    """Which probabilities dropout keeps; the kernels take either mode."""

    def cases(self, instance: Instance) -> list[Case]:
        return _CASES

    def draw(
        self, instance: Instance, case: Case, head_sizes: tuple[int, int], seed: int
    ) -> Inputs:
        return draw(case, "fp16", head_sizes, seed, backward=False)

    def expected(
        self, instance: Instance, case: Case, inputs: Inputs, seed: int
    ) -> dict[str, Expected]:
        return {"kept": kept_of(case)}

    def outputs(self, instance: Instance) -> tuple[str, ...]:
        return ("kept",)

    def group_mode(self, instance: Instance, case: Case) -> bool:
        return len(set(case.lengths)) > 1

    def place(self, to: Arguments, inputs: Inputs) -> None:
        """Where several heads share a key head, seed and offset are in memory."""
        case, problem = to.case, to.launch.problem
        problem.dropout_p = case.p_drop
        if case.heads_q == case.heads_k:
            problem.dropout_seed, problem.dropout_offset = DROP_SEED, DROP_OFFSET
        else:
            state = np.array([DROP_SEED, DROP_OFFSET], np.uint64)
            problem.rng_state = to.place("rng_state", state)
        batch = 1 if to.group_mode else len(case.lengths)
        shape = (batch, case.heads_q, case.total_q // batch, problem.seqlen_k)
        to.unwritten_names.append("kept")
        to.launch.kept = to.place("kept", np.zeros(shape, np.uint8), output=True)
