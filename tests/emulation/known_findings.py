# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The defects that are known of our kernels, and what the emulator finds of them.

known_findings.json says per defect which code objects have it (patterns of INSTANCE.ARCH) and what
its signatures are (gfxemu.Finding.signature; an error that stops the kernel has its kind, opcode
and case). `mended_by` names the patch of kernels/ck_fmha/patches that mends a defect; one that is
not listed there is in both kinds of kernels. CK_PATCHES is the value of //kernels/ck_fmha:patches;
known_findings.bzl passes it on.
"""

from __future__ import annotations

import functools
import json
import os
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any


def patches() -> str:
    """What the kernels are compiled with."""
    return os.environ["CK_PATCHES"]


@functools.cache
def document() -> dict[str, Any]:
    path = Path(__file__).with_name("known_findings.json")
    return json.loads(path.read_text("utf-8"))


def known(code_object: str) -> dict[str, str]:
    """The signatures of a code object, named INSTANCE.ARCH, and the defect that each is of."""
    mended = {"none": {}, "default": document()["mended_by"]}[patches()]
    return {
        signature: entry["defect"]
        for entry in document()["findings"]
        if entry["defect"] not in mended
        and any(fnmatchcase(code_object, pattern) for pattern in entry["code_objects"])
        for signature in entry["signatures"]
    }


def signatures(code_object: str) -> set[str]:
    """Of a code object, named INSTANCE.ARCH, as it was compiled."""
    return set(known(code_object))
