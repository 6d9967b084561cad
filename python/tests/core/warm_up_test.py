# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Kernels of coming calls, made in the background: those of forward and backward together."""

from __future__ import annotations

from typing import Any

import aiter_attn
import pytest
from aiter_attn import _C

KERNELS = aiter_attn.kernels()
ARCH = KERNELS[0]["arch"]
SHAPES = ((1, 64, 2, 64),) * 3


def calls() -> list[aiter_attn.Explanation]:
    return [
        aiter_attn.explain(*SHAPES, dtype="float16", causal=True, arch=ARCH, backward=backward)
        for backward in (False, True)
    ]


def test_a_step_of_training_is_warmed_up() -> None:
    forward, backward = calls()
    warm = aiter_attn.warm_up(forward, backward, forward)
    named = [kernel["name"] for kernel in warm.kernels]
    assert named == [kernel["name"] for call in (forward, backward) for kernel in call.kernels]
    assert len(named) > 2
    assert warm.wait() is True, "all are in the library"
    assert warm.wait(0) is warm.wait(0.5) is True
    # The CPU reference has no kernels.
    assert aiter_attn.warm_up().wait(timeout=1) is True


def test_it_asks_for_each_kernel_once_and_tells_what_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []
    left = [2, 0]

    def wait(kernels: list[int], milliseconds: int) -> int:
        asked.append((kernels, milliseconds))
        return left.pop(0)

    monkeypatch.setattr(_C, "warm_up", asked.append)
    monkeypatch.setattr(_C, "warm_up_wait", wait)
    forward, backward = calls()
    warm = aiter_attn.warm_up(forward, backward)
    assert warm.wait(1.2345) is False
    assert warm.wait() is True
    indices = asked[0]
    # Another kernel may have the same code object.
    keys = [KERNELS[index]["key"] for index in indices]
    assert keys == [kernel["key"] for kernel in warm.kernels]
    assert asked[1:] == [(indices, 1235), (indices, -1)]


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="allowed: results of explain and explain_kvcache"):
        aiter_attn.warm_up(KERNELS)  # type: ignore[arg-type]
    warm = aiter_attn.warm_up(*calls())
    for wrong in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="allowed: seconds, 0 or more, or None"):
            warm.wait(wrong)
    with pytest.raises(ValueError, match=r"kernels\[0\] is 4294967295, but this build has "):
        _C.warm_up([2**32 - 1])
