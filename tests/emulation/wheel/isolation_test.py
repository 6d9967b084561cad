# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The wheel in a process whose first object defines, for all, every name that the wheel's extension
module has inside, AITER's and Composable Kernel's functions; each ends the process."""

from __future__ import annotations

import pytest

from tests.consumers import hostile
from tests.emulation.wheel import wheel_contents
from tests.emulation.wheel.problems import CAUSAL, Problem, Shape, forward_and_backward
from tests.emulator.hip.hip import Hip


@pytest.mark.parametrize(
    "name",
    [
        "_ZN5aiter7mha_fwdENS_12mha_fwd_argsERKN7ck_tile13stream_configE",
        "_ZN7ck_tile13stream_configC1Ev",
        "aiter_attn_fwd",
        "aiter_attn_bwd",
        "aiter_attn_norm_fwd",
    ],
)
def test_the_hostile_object_is_found_first(hip: Hip, name: str) -> None:
    assert hostile.ends_the_process(name)


def test_it_has_all_of_the_wheel() -> None:
    assert hostile.count() > 1500


@pytest.mark.parametrize("arch", wheel_contents.ARCHS)
def test_forward_and_backward(hip: Hip, arch: str) -> None:
    """Every set for training has the kernels."""
    shape = Shape(((77, 130),), heads=(3, 1), window=CAUSAL)
    forward_and_backward(Problem(hip, shape, "float16", 64, hip.device_of(arch)))
