# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The verdict on every code object; the results are those of actions (VerifyCodeObject).

SAMPLE_SEED is the seed of the draw, if the instances were drawn.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.emulation.verify.verdict import judge

RESULTS = [json.loads(Path(p).read_text("utf-8")) for p in os.environ["RESULTS"].split()]
SEED = os.environ.get("SAMPLE_SEED")


def _name(result: dict[str, Any]) -> str:
    name = f"{result['instance']}.{result['arch']}"
    return f"seed {SEED}: {name}" if SEED else name


@pytest.mark.parametrize("result", RESULTS, ids=_name)
def test_code_object(result: dict[str, Any]) -> None:
    assert result["runs"]
    assert "stopped" in result["profile"] or result["profile"]["wave_instructions"]
    failures = judge(result).failures
    assert not failures, "\n".join(failures)
