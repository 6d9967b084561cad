# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The defects that are known of our kernels, and what the emulator finds of them.

known_findings.json says per defect which code objects have it (patterns of INSTANCE.ARCH), what its
signatures are (gfxemu.Finding.signature; an error that stops the kernel has its kind, opcode and
case), and whether //kernels/ck_fmha:barriers=added mends it. CK_BARRIERS is that setting's value;
known_findings.bzl passes it on.
"""

from __future__ import annotations

import functools
import json
import os
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any


def barriers() -> str:
    """What the kernels are compiled with."""
    return os.environ["CK_BARRIERS"]


@functools.cache
def entries() -> list[dict[str, Any]]:
    path = Path(__file__).with_name("known_findings.json")
    return json.loads(path.read_text("utf-8"))["findings"]


def signatures(code_object: str) -> set[str]:
    """Of a code object, named INSTANCE.ARCH, as it was compiled."""
    added = {"upstream": False, "added": True}[barriers()]
    out: set[str] = set()
    for entry in entries():
        if added and entry["mended_by_added_barriers"]:
            continue
        if any(fnmatchcase(code_object, pattern) for pattern in entry["code_objects"]):
            out.update(entry["signatures"])
    return out
