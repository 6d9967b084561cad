# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The wheel on device arrays, forward and backward, against float64."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import aiter_attn
import pytest

from tests.emulation.wheel import wheel_contents
from tests.emulation.wheel.problems import (
    CAUSAL,
    NO_WINDOW,
    SHORT,
    Problem,
    Shape,
    forward_and_backward,
)
from tests.emulation.wheel.wheel_contents import PROVIDERS
from tests.emulator.hip.hip import Hip

KINDS = [(dtype, head_size) for dtype in ("float16", "bfloat16") for head_size in (64, 128)]
LONG = os.environ.get("EMULATED_HIP_LONG") == "1"

# Each runs every kernel of Composable Kernel's of its mode and mask, in every dtype and head
# size.
SHAPES = [
    Shape(((33, 47),) * 2, heads=(2, 1)),
    Shape(((77, 130),), heads=(3, 1), window=CAUSAL),
    Shape(((19, 40), (5, 0), (64, 33), (1, 1)), heads=(4, 2), group=True),
    Shape(((40, 40), (0, 7), (17, 50), (0, 0), (3, 0)), window=CAUSAL, group=True),
]
MORE_SHAPES = [
    Shape(((65, 31),), window=(9, 4)),  # rows that see no key
    Shape(((1, 40),), window=CAUSAL),
    Shape(((70, 70), (0, 9)), group=True),  # where upstream's once left its buffers
]
LONG_SHAPES = [
    Shape(((128, 128),) * 2, heads=(4, 4)),
    Shape(((257, 129),), heads=(6, 2), window=CAUSAL),
    Shape(((129, 300),), heads=(8, 1), window=(40, 10)),
    Shape(((200, 200), (0, 0), (31, 129), (1, 300)), heads=(4, 1), window=(64, 0), group=True),
]


def built(shape: Shape, dtype: str, head_size: int) -> bool:
    mode = "group" if shape.group else "batch"
    return wheel_contents.has(mode, shape.window != NO_WINDOW, SHORT[dtype], head_size)


def cases() -> list[Any]:
    """All that the wheel has kernels for; --//kernels:variants=core has them for all. AITER's serve
    some of them, and where they may Composable Kernel's are asked for, too."""
    if LONG:
        chosen = [(shape, *kind) for shape in LONG_SHAPES for kind in KINDS]
    else:
        chosen = [(shape, *kind) for shape in SHAPES for kind in KINDS]
        chosen += [(shape, *kind) for shape in MORE_SHAPES for kind in (KINDS[0], KINDS[3])]
    params = []
    for shape, dtype, head_size in chosen:
        if not built(shape, dtype, head_size):
            continue
        aiters = dtype == "bfloat16" and shape.window in (NO_WINDOW, CAUSAL)
        either = aiters and "asm" in PROVIDERS.values()
        for kernels in ("fastest", "ck") if either else ("fastest",):
            name = f"{shape}-{dtype}-{head_size}-{kernels}"
            params.append(pytest.param(shape, dtype, head_size, kernels, id=name))
    return params


@pytest.fixture(autouse=True)
def no_preference() -> Iterator[None]:
    yield
    aiter_attn.configure(kernels=None)


@pytest.mark.parametrize("arch", wheel_contents.ARCHS)
@pytest.mark.parametrize(("shape", "dtype", "head_size", "kernels"), cases())
def test_forward_and_backward(
    hip: Hip, arch: str, shape: Shape, dtype: str, head_size: int, kernels: str
) -> None:
    aiter_attn.configure(kernels=kernels)
    forward_and_backward(Problem(hip, shape, dtype, head_size, hip.device_of(arch)))
