# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Units of rotated queries: a result that is rounded once is within one of them."""

from __future__ import annotations

import dataclasses

import pytest

from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, Case
from tests.emulation.harness.kinds.registry import kind_of
from tests.emulation.harness.launches import Instance
from tests.emulation.harness.reference import Error, from_storage, to_storage


def _error(dtype: str, rotary: str, size: float, factor: float = 1.0) -> Error:
    """Of the nearest numbers to the expected queries times `factor`, of elements about `size`."""
    append = Instance(0, "append", "fwd_appendkv", 64, 64, {"dtype": dtype, "rotary": rotary})
    kind = kind_of(append)
    case = Case("", ((64, 3), (64, 9)), new_keys=2, mask=MASK_BOTTOM_RIGHT, rotary=rotary)
    inputs = kind.draw(append, case, (128, 128), 0)
    inputs = dataclasses.replace(inputs, q=to_storage(size * from_storage(inputs.q, dtype), dtype))
    expected = kind.expected(append, case, inputs, 0)["q"]
    return expected.error(from_storage(to_storage(factor * expected.value, dtype), dtype))


@pytest.mark.parametrize("size", [1.0, 1e-3, 1e-6])  # the last: below fp16's normal numbers
@pytest.mark.parametrize("rotary", ["halves", "interleaved"])
@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_rounding_once_is_within_a_unit(dtype: str, rotary: str, size: float) -> None:
    error = _error(dtype, rotary, size)
    assert error.rms > 0.1  # the units are of these numbers, not of greater ones
    assert error.largest <= 1.0


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_a_factor_that_is_wrong_is_noticed(dtype: str) -> None:
    assert _error(dtype, "halves", 1.0, factor=1.01).largest > 2.0
