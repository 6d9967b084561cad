# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Every implemented opcode has a test, and nothing is tested that does not exist."""

from __future__ import annotations

import pytest

from gfxemu import decoder
from gfxemu.tests import (
    control_test,
    dpp_test,
    float8_test,
    lds_test,
    matrix_test,
    memory_test,
    relative_test,
    scalar_test,
    sdwa_test,
    vector_float_test,
    vector_integer_test,
    vector_lanes_test,
)

_MODULES = (control_test, dpp_test, float8_test, lds_test, matrix_test, memory_test, relative_test,
            scalar_test, sdwa_test, vector_float_test, vector_integer_test,
            vector_lanes_test)  # fmt: skip


def test_every_opcode_is_tested() -> None:
    decoder.load_all()
    tested = set().union(*(module.TESTED() for module in _MODULES))
    missing = sorted(set(decoder.implemented()) - tested)
    assert not missing, f"implemented without a test: {', '.join(missing)}"


def test_a_form_that_no_encoding_has_is_refused() -> None:
    with pytest.raises(KeyError, match="swda"):
        decoder.opcodes("v_mov_b32", form="swda")
