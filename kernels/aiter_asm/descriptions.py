# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The descriptions of AITER's objects: spec and key, size, resources, defects.

An object is held against the table (table.py), its metadata and its ELF flags. Resources that the
metadata does not tell, such as spills, are null.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from kernels.aiter_asm import table
from kernels.aiter_asm.launch import instance
from kernels.aiter_asm.table import AsmObject
from kernels.code_object.metadata import read_metadata
from kernels.code_object.spec import ForeignSpec


def find(objects: Sequence[AsmObject], path: str) -> AsmObject:
    """The object of a file. Raises TableError where the table has none."""
    for described in objects:
        if path.endswith("/" + described.file):
            return described
    raise table.TableError(
        f"{path}: no object of the table; it has {', '.join(sorted(o.file for o in objects))}"
    )


def _resources(kernel: Mapping[str, Any], kernarg_size: int) -> dict[str, Any]:
    return {
        "agpr_count": kernel.get(".agpr_count"),
        "kernarg_segment_size": kernel[".kernarg_segment_size"],
        "kernarg_size": kernarg_size,
        "lds_size": kernel[".group_segment_fixed_size"],
        "max_workgroup_size": kernel[".max_flat_workgroup_size"],
        "scratch_size": kernel[".private_segment_fixed_size"],
        "sgpr_count": kernel[".sgpr_count"],
        "sgpr_spill_count": kernel.get(".sgpr_spill_count"),
        "vgpr_count": kernel[".vgpr_count"],
        "vgpr_spill_count": kernel.get(".vgpr_spill_count"),
        "wavefront_size": kernel[".wavefront_size"],
    }


def describe(described: AsmObject, code: bytes) -> tuple[dict[str, Any], ForeignSpec]:
    """The record of an object, as kernels/code_object/describe.py's, and its spec.

    Raises TableError where it is not as its table says.
    """
    table.check(described, code)
    (kernel,) = read_metadata(code)["amdhsa.kernels"]
    sha256 = hashlib.sha256(code).hexdigest()
    spec = ForeignSpec(described.arch, sha256)
    try:
        resources = _resources(kernel, described.layout.size)
    except KeyError as error:
        raise table.TableError(f"{described.file}: its metadata has no {error}") from error
    record = {
        "arch": described.arch,
        "defects": {d.letter: d.when if d.changes_results else "" for d in described.defects},
        "instance": instance(described),
        "kernel": resources,
        "key": spec.key(),
        "sha256": sha256,
        "size": len(code),
    }
    return record, spec
