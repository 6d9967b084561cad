# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Outputs of sequences without keys; those of the others stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tests.emulation.harness.cases import Case
from tests.emulation.harness.kinds.kind import Kind
from tests.emulation.harness.launches import Instance
from tests.emulation.harness.reference import Expected, Inputs, draw

if TYPE_CHECKING:
    from tests.emulation.harness.arguments import Arguments

# A workgroup fills 32 rows of 64 elements at once, and 256 of lse.
_CASES = [
    Case("some without", ((5, 0), (17, 30), (300, 0), (0, 0), (3, 1)), heads_q=4, heads_k=2),
    Case("one row", ((1, 0),)),
    Case("all have keys", ((33, 5), (2, 1), (0, 7))),
    Case("none has keys", ((31, 0), (32, 0), (33, 0)), heads_q=3, heads_k=3),
    Case("neither queries nor keys", ((0, 0), (4, 2))),
]


class NoKeys(Kind):
    """Zeros in o, minus infinity in lse."""

    writes_lse = True

    def cases(self, instance: Instance) -> list[Case]:
        return _CASES

    def draw(
        self, instance: Instance, case: Case, head_sizes: tuple[int, int], seed: int
    ) -> Inputs:
        return draw(case, instance.dtype, head_sizes, seed, backward=False)

    def expected(
        self, instance: Instance, case: Case, inputs: Inputs, seed: int
    ) -> dict[str, Expected]:
        empty = np.repeat([k == 0 for _, k in case.lengths], [q for q, _ in case.lengths])
        o = np.full((case.total_q, case.heads_q, inputs.v.shape[2]), np.nan)
        o[empty] = 0.0
        lse = np.full((case.heads_q, case.total_q), np.nan)
        lse[:, empty] = -np.inf
        return {"o": Expected(o, np.ones(o.shape)), "lse": Expected(lse, np.ones(lse.shape))}

    def outputs(self, instance: Instance) -> tuple[str, ...]:
        return ("o", "lse")

    def place(self, to: Arguments, inputs: Inputs) -> None:
        case = to.case
        to.launch.o = to.output("o", case.total_q, case.heads_q, inputs.v.shape[2], 0)
        to.launch.lse = to.statistic("lse", np.zeros((case.heads_q, case.total_q)))
