# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The slim wheel and the compile kit: both passes with a bias and dropout at head size 256, from an
empty cache."""

from __future__ import annotations

import aiter_attn

from tests.emulation.wheel.featured import Featured, run
from tests.emulation.wheel.kit_cache import ARCH, cached, manifest
from tests.emulation.wheel.problems import CAUSAL, Shape
from tests.emulator.hip.hip import Hip

SHAPE = Shape(((77, 130),), heads=(2, 1), window=CAUSAL)


def test_numbers_are_right_and_objects_are_those_of_the_build(hip: Hip) -> None:
    assert not cached()
    problem = Featured(hip, SHAPE, ARCH, sizes=(256, 256), bias="elementwise", p_drop=0.3)
    problem.check(**run(problem))
    made = cached()
    names = {kernel["name"] for kernel in aiter_attn.kernels() if kernel["key"] in made}
    for start in ("fmha_fwd_d256", "fmha_bwd_dot_do_o_d256", "fmha_bwd_d256", "fmha_bwd_convert"):
        assert any(name.startswith(start) for name in names), start
    for passes in ("fmha_fwd_d256", "fmha_bwd_d256"):
        (name,) = (name for name in names if name.startswith(passes))
        assert "_bias_" in name and "_dropout" in name
    assert len(made) == len(names)
    assert made.items() <= manifest().items()
