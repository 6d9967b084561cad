# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The defects that are known of our kernels, and the emulator's findings of them.

known_findings.json has two lists. A finding's signature is gfxemu.Finding.signature; an error that
stops the kernel has its kind, opcode and case.

findings    of the kernels that are in a variant set, and in the default draw of the sample: which
            code objects have a defect (patterns of INSTANCE.ARCH), with exactly which signatures
recognised  of any other kernel: the signs of a defect where it is. `kernels` has the values that
            traits must have for a kernel to have it; `signatures` are patterns, of the kind of
            finding and of each thing that takes part, such as the opcodes of two accesses

`mended_by` names the patch of kernels/ck_fmha/patches that mends a defect; one that is not listed
there is in both kinds of kernels. CK_PATCHES is the value of //kernels/ck_fmha:patches, which
known_findings.bzl passes on. KNOWN_FINDINGS says which list counts: "findings", the default, or
"recognised".
"""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tests.emulation.aiter_asm import known as of_asm

# Between the tile and the traits of an instance's name.
_PIPELINE = re.compile(r"_(q[rs](?:_[a-z0-9]+)*?)_v[rc]_")
_LISTS = ("findings", "recognised")


def patches() -> str:
    """The value of //kernels/ck_fmha:patches that the kernels are compiled with."""
    return os.environ["CK_PATCHES"]


@functools.cache
def document() -> dict[str, Any]:
    path = Path(__file__).with_name("known_findings.json")
    return json.loads(path.read_text("utf-8"))


def _entries(which: str) -> list[dict[str, Any]]:
    """Those of a list whose defects are not mended."""
    mended = {"none": {}, "default": document()["mended_by"]}[patches()]
    return [entry for entry in document()[which] if entry["defect"] not in mended]


def known(code_object: str) -> dict[str, str]:
    """The signatures of a code object, named INSTANCE.ARCH, and the defect that each is of."""
    return {
        signature: entry["defect"]
        for entry in _entries("findings")
        if any(fnmatchcase(code_object, pattern) for pattern in entry["code_objects"])
        for signature in entry["signatures"]
    }


def signatures(kernel: str) -> set[str]:
    """Of a code object, named INSTANCE.ARCH, as it was compiled; or of a kernel of AITER's, named
    SYMBOL.ARCH."""
    return set(known(kernel)) | of_asm.signatures(kernel)


def takes_turns(kernel: str) -> bool:
    """Whether waves of a kernel, SYMBOL.ARCH, may meet at different barriers: of AITER's, and of
    upstream's third version of forward."""
    return of_asm.takes_turns(kernel) or kernel.startswith("fmha_fwd_v3_")


def pipeline_of(instance: str) -> str:
    """Upstream's pipeline, as the name of an instance says it; "" where a kind has none."""
    found = _PIPELINE.search(instance)
    return found[1] if found else ""


def _matches(signature: str, pattern: str) -> bool:
    """Whether it is of the pattern's kind, and all that takes part in either is in the other."""
    kind, _, parts = signature.partition(": ")
    wanted_kind, _, patterns = pattern.partition(": ")
    taking_part, wanted = parts.split(", "), patterns.split(", ")
    return (
        kind == wanted_kind
        and all(any(fnmatchcase(part, p) for p in wanted) for part in taking_part)
        and all(any(fnmatchcase(part, p) for part in taking_part) for p in wanted)
    )


def recognise(instance: str, kind: str, traits: Mapping[str, Any], signature: str) -> str | None:
    """The defect that a finding about an instance is of, if it is one that such kernels have.

    `traits` are by their names in kernels/launch_table/traits.toml.
    """
    about = {**traits, "kind": kind, "pipeline": pipeline_of(instance)}
    for entry in _entries("recognised"):
        if all(about.get(name) in values for name, values in entry["kernels"].items()) and any(
            _matches(signature, pattern) for pattern in entry["signatures"]
        ):
            return entry["defect"]
    return None


def known_of(result: Mapping[str, Any]) -> dict[str, str]:
    """The known findings of the code object of a verification's result: signatures and defects."""
    which = os.environ.get("KNOWN_FINDINGS", _LISTS[0])
    if which not in _LISTS:
        raise ValueError(f"KNOWN_FINDINGS is {which!r}; want one of {', '.join(_LISTS)}")
    if which == "findings":
        return known(f"{result['instance']}.{result['arch']}")
    about = (result["instance"], result["kind"], result["traits"])
    found = {f["signature"]: recognise(*about, f["signature"]) for f in result["findings"]}
    return {signature: defect for signature, defect in found.items() if defect}
