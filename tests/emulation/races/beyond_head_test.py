# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A head that is smaller than the kernel's: the NaNs behind it must not reach its output.

Upstream's forward kernels read them: defect H of docs/races.md. CK_PATCHES is the value of
//kernels/ck_fmha:patches that the code objects were compiled with.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulation import known_findings
from tests.emulation.harness.cases import Case
from tests.emulation.harness.kernel import Kernel, head_sizes_of, kernels, prepare
from tests.emulation.harness.kinds.registry import kind_of
from tests.emulation.verify.verdict import GATES, TOGETHER

_KINDS = ("fwd", "fwd_batch_prefill")
_PADDED = [k for k in kernels() if k.instance.kind in _KINDS and k.instance.pad_head_size_qk]
# The slices of K that a kernel reads have 32 columns: one too long, and one too many.
_MISSING = (8, 40)


def test_there_are_such_kernels() -> None:
    assert _PADDED


@pytest.mark.parametrize("missing", _MISSING)
@pytest.mark.parametrize("kernel", _PADDED, ids=str)
def test_next_head(kernel: Kernel, missing: int) -> None:
    lengths = (33, kernel.instance.tile_seqlen_k + 9)
    size_qk, size_v = (size - missing for size in head_sizes_of(kernel.instance))
    page_size = kind_of(kernel.instance).page_size(kernel.instance)
    case = Case("", (lengths,), heads_k=2, page_size=page_size)
    prepared = prepare(kernel.instance, case, (size_qk, size_v))
    errors = kernel.run(prepared, schedule=TOGETHER).errors
    if "beyond-head: NaN" in known_findings.signatures(kernel.name):
        assert np.isinf(errors["o"].rms)
        return
    for name, error in errors.items():
        gate = GATES[name]
        assert gate.allows(error.rms, error.largest), f"{name}: {error}, allowed: {gate}"
