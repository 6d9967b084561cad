# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The verdict on every code object; the results are those of actions (VerifyCodeObject)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.emulation.verify.verdict import judge

RESULTS = [json.loads(Path(p).read_text("utf-8")) for p in os.environ["RESULTS"].split()]


@pytest.mark.parametrize("result", RESULTS, ids=lambda r: f"{r['instance']}.{r['arch']}")
def test_code_object(result: dict[str, Any]) -> None:
    assert result["runs"] and result["profile"]["wave_instructions"]
    failures = judge(result).failures
    assert not failures, "\n".join(failures)
