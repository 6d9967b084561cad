# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The number of waves of a kernel that fit on a SIMD at once."""

from __future__ import annotations

from collections.abc import Mapping

from kernels.archs.archs import ComputeUnit, rounded


def waves_per_simd(kernel: Mapping[str, int], unit: ComputeUnit) -> int:
    """Of the "kernel" of a code object's metadata (kernels/code_object/describe.py).

    Whole workgroups alone run on a compute unit; their waves are dealt out to its SIMDs in turn.
    """
    waves = -(-kernel["max_workgroup_size"] // kernel["wavefront_size"])
    of_simd = min(
        unit.waves_per_simd,
        unit.waves_by_vgprs(kernel["vgpr_count"]),
        unit.waves_by_sgprs(kernel["sgpr_count"]),
    )
    workgroups = unit.simds * of_simd // waves
    if kernel["lds_size"]:
        workgroups = min(workgroups, unit.lds // rounded(kernel["lds_size"], unit.lds_granule))
    return -(-workgroups * waves // unit.simds)
