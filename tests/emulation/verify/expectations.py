# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The findings that are known of our kernels: exactly these are found, or the verdict is failure.

expected_findings.json says per defect which code objects have it (patterns of INSTANCE.ARCH) and
what its signatures are: a finding's kind and the opcodes that take part.
"""

from __future__ import annotations

import functools
import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any


@functools.cache
def entries() -> list[dict[str, Any]]:
    path = Path(__file__).with_name("expected_findings.json")
    return json.loads(path.read_text("utf-8"))["findings"]


def signatures(code_object: str) -> set[str]:
    """Of a code object, named INSTANCE.ARCH."""
    out: set[str] = set()
    for entry in entries():
        if any(fnmatchcase(code_object, pattern) for pattern in entry["code_objects"]):
            out.update(entry["signatures"])
    return out
