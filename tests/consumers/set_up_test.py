# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The layer sets the fields that the headers have, by the rules of TransformerEngine's set-up."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from aiter.compat.tests.set_up import field_names


@pytest.mark.parametrize("this", ["fwd", "bwd"])
def test_the_fields_are_those_of_the_header(this: str) -> None:
    header, source = (
        next(Path(f) for f in os.environ[files].split() if f"_{this}." in f).read_text("utf-8")
        for files in ("HEADERS", "SOURCES")
    )
    fields = set(field_names(header, f"mha_{this}_args"))
    assert len(fields) > 70
    assert set(re.findall(r"fmha_args\.(\w+) =", source)) == fields
