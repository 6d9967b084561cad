# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The problems that each object of AITER's is executed on: small, around its tiles."""

from __future__ import annotations

import dataclasses

from kernels.aiter_asm.table import AsmObject, Defect
from tests.emulation.aiter_asm.launches import GAP
from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, MASK_TOP_LEFT, Case


@dataclasses.dataclass(frozen=True)
class Problem:
    """A case, with `gap` elements after each head, and heads of `head_size` (0: the object's).
    `behind` are numbers behind lse and delta, and their value."""

    case: Case
    gap: int = GAP
    head_size: int = 0
    behind: tuple[int, float] = (0, 0.0)

    def __str__(self) -> str:
        head = f", heads of {self.head_size}" if self.head_size else ""
        return f"{self.case.name}{head}" + ("" if self.gap else ", packed")


# The numbers of launch rule numbers_behind.
BEHIND = (64, 1.0)


def _forward(chosen: AsmObject) -> list[Problem]:
    tile = chosen.tile_q
    if chosen.mode == "batch":
        cases = [
            Case("one by one", ((1, 1),)),
            Case("two tiles of queries, two batches", ((tile + 1, 300),) * 2, heads_q=4, heads_k=2),
            Case("more queries than keys", ((300, 40),), heads_q=3, heads_k=1),
            Case("eight heads", ((2 * tile + 8, 97),), heads_q=8, heads_k=2),
        ]
    else:
        cases = [
            Case("one by one", ((1, 1),)),
            Case("lengths around tiles", ((tile + 1, 300), (3, 31), (tile - 1, 64)), heads_q=4,
                 heads_k=2),
            Case("a sequence without queries", ((0, 5), (17, 300)), heads_q=2, heads_k=1),
            Case("a sequence without keys", ((5, 0), (17, 300))),
        ]  # fmt: skip
    return [Problem(case) for case in cases]


def _plain(chosen: AsmObject) -> list[Problem]:
    """Equal lengths in whole tiles of 64."""
    head = 104 if chosen.pads_head else 0
    return [
        Problem(Case("a tile in part", ((64, 64),), heads_q=4, heads_k=2), head_size=head),
        Problem(Case("two batches", ((256, 256),) * 2), gap=0),
        Problem(Case("two tiles of keys", ((320, 320),), heads_q=3, heads_k=1), head_size=head),
        Problem(Case("two batches", ((64, 64),) * 2)),
    ]


def _window(chosen: AsmObject) -> list[Problem]:
    """A causal window, one to both sides, one of the bottom right."""
    tile = chosen.tile_k
    several = Case("two tiles of keys, two batches", ((100, tile + 60),) * 2, heads_q=4, heads_k=2)
    windows = [
        dataclasses.replace(several, mask=MASK_TOP_LEFT, window=(20, 0)),
        Case("three tiles of keys", ((45, 2 * tile + 9),), heads_q=3, heads_k=1,
             mask=MASK_TOP_LEFT, window=(70, 30)),
        Case("more queries than keys", ((130, 40),), mask=MASK_BOTTOM_RIGHT, window=(9, 5)),
    ]  # fmt: skip
    out = [
        Problem(case, head_size=size, behind=BEHIND)
        for case, size in zip(windows, (104, 0, 72), strict=True)
    ]
    single = Case("one head", ((100, tile + 60),), 1, 1, mask=MASK_TOP_LEFT, window=(70, 30))
    return [*out, Problem(single), Problem(windows[0])]


def _backward(chosen: AsmObject) -> list[Problem]:
    tile = chosen.tile_k
    if chosen.mode == "group":
        cases = [
            Case("one by one", ((1, 1),)),
            Case("lengths around tiles", ((17, tile + 1), (3, 31), (65, tile)), heads_q=4,
                 heads_k=2),
            Case("empty sequences", ((0, 5), (17, 0), (40, 2 * tile + 9)), heads_q=2, heads_k=1),
            Case("two sequences", ((33, tile), (18, 20))),
        ]  # fmt: skip
    else:
        cases = [
            Case("one by one", ((1, 1),)),
            Case("two tiles of keys, two batches", ((100, tile + 60),) * 2, heads_q=4, heads_k=2),
            Case("three tiles of keys", ((45, 2 * tile + 9),), heads_q=3, heads_k=1),
            Case("more queries than keys", ((130, 40),), heads_q=2, heads_k=1),
        ]
    if not chosen.pads_head:
        return [Problem(case) for case in cases]
    large, small = {128: (104, 72), 192: (160, 136)}[chosen.head_size_qk]
    padded = [Problem(c, head_size=s) for c, s in zip(cases[2:], (small, large), strict=True)]
    if chosen.layout.name == "backward_native":  # they do not mask such heads: defect T
        whole = [Problem(case) for case in cases[:3]]
        return [*whole, dataclasses.replace(padded[0], gap=0), padded[1]]
    return [*(Problem(case) for case in cases[:2]), *padded]


def problems(chosen: AsmObject) -> list[Problem]:
    """Those of an object of the forward or the backward pass."""
    if chosen.direction == "forward":
        return _forward(chosen)
    if chosen.mask == "window":
        return _window(chosen)
    return (_plain if chosen.layout.name == "backward_plain" else _backward)(chosen)


def brief(chosen: AsmObject) -> Problem:
    """A small one, for schedules that take long: of one head, with two tiles, and in group mode a
    second sequence."""
    if chosen.direction == "forward":
        lengths = [(chosen.tile_q + 1, 100), (3, 31)]
    elif chosen.layout.name == "backward_plain":
        lengths = [(256, 256)]
    else:
        lengths = [(33, chosen.tile_k + 9), (18, 20)]
    case = Case("brief", tuple(lengths if chosen.mode == "group" else lengths[:1]), 1, 1)
    if chosen.mask == "window":
        case = dataclasses.replace(case, mask=MASK_TOP_LEFT, window=(70, 30))
    return Problem(case)


def meets(defect: Defect, chosen: AsmObject, problem: Problem) -> bool:
    """Whether a launch of the problem, as it is, meets the defect."""
    case, lengths = problem.case, problem.case.lengths
    tile = {"q": chosen.tile_q, "k": chosen.tile_k}[chosen.tiles_of]
    longest = max(pair[chosen.tiles_of == "k"] for pair in lengths)
    answers = {
        "always": True,
        "two_tiles": chosen.tiles_per_workgroup > 1 and longest > tile,
        "two_tiles_of_queries": max(q for q, _ in lengths) > chosen.tile_q,
        "several_rows_of_lse": case.heads_q * len(lengths) > 1 and not problem.behind[0],
        "gaps_after_padded_heads": problem.head_size > 0 and problem.gap > 0,
        "gaps_in_batches": len(lengths) > 1 and problem.gap > 0,
        "no_keys": any(q and not k for q, k in lengths),
        "no_queries": any(k and not q for q, k in lengths),
        "two_tiles_without_keys": any(q - k >= 2 * chosen.tile_q for q, k in lengths),
    }
    return answers[defect.when]
