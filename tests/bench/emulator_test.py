# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Choices and counts of the emulator's bench; its figures are measured, not tested."""

from __future__ import annotations

import pytest
from gfxemu import Report

from tests.bench.emulator import chosen, measure


def test_chosen() -> None:
    names = ["fmha_bwd_d64", "fmha_fwd_d64"]
    assert chosen(names, "") == names and chosen(names, "fwd") == names[1:]
    with pytest.raises(ValueError, match=r"--only=fwb: .*\n  fmha_bwd_d64\n  fmha_fwd_d64"):
        chosen(names, "fwb")


def test_the_quickest_round_of_each_problem_counts() -> None:
    """200 instructions: in step 2 + 6 us, one by one 20 + 20; the second problem is not in step."""
    seconds = {
        0: {True: iter((9e-6, 2e-6)), False: iter((20e-6, 30e-6))},
        1: {True: iter((6e-6, 7e-6)), False: iter((25e-6, 20e-6))},
    }

    def launch(problem: int, way: bool) -> Report:
        return Report("k", 100, next(seconds[problem][way]), [], in_step=way and problem == 0)

    problems = [lambda way: launch(0, way), lambda way: launch(1, way)]
    assert measure(problems, rounds=2) == ("1 of 2", "200", "0.04", "0.20", "5.0")
