# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""All defects of docs/races.md, races or not: what the verification finds in these kernels.

CK_PATCHES is the value of //kernels/ck_fmha:patches that the code objects were compiled with.
"""

from __future__ import annotations

import pytest

from tests.emulation import known_findings
from tests.emulation.harness.kernel import Kernel, code_objects, kernels
from tests.emulation.verify.verdict import judge
from tests.emulation.verify.verification import verify

# Those that the kernels of smoke_upstream_test have instead.
_OF_SMOKE = {"D"}


@pytest.mark.parametrize("kernel", kernels(), ids=str)
def test_exactly_the_known_defects(kernel: Kernel) -> None:
    code = code_objects()[kernel.device.arch, kernel.instance.name]
    verdict = judge(verify(kernel.device, code, kernel.instance))
    print(kernel, verdict)
    assert not verdict.failures, "\n".join(verdict.failures)


def test_every_defect_is_shown() -> None:
    """Each that a patch mends: a kernel of these has it, where there are no patches."""
    shown = {d for kernel in kernels() for d in known_findings.known(kernel.name).values()}
    mended = set(known_findings.document()["mended_by"]) - _OF_SMOKE
    assert shown == {"none": mended, "default": set()}[known_findings.patches()]
