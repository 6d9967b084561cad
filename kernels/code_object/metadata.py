# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The metadata in a code object, and the record of its kernels' resources."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import msgpack
from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection

_NT_AMDGPU_METADATA = 32


class MetadataError(Exception):
    """The bytes are no code object, or not the promised one."""


def read_metadata(code_object: bytes) -> dict[str, Any]:
    """The metadata of a code object, as LLVM's AMDGPU guide names its fields.

    Raises MetadataError.
    """
    try:
        elf = ELFFile(io.BytesIO(code_object))
        if elf["e_machine"] != "EM_AMDGPU":
            raise MetadataError(f"an ELF file for {elf['e_machine']}, not EM_AMDGPU")
        for section in elf.iter_sections():
            for note in section.iter_notes() if isinstance(section, NoteSection) else ():
                if (note["n_name"], note["n_type"]) == ("AMDGPU", _NT_AMDGPU_METADATA):
                    return msgpack.unpackb(note["n_descdata"])
    except (ConstructError, ELFError, ValueError, msgpack.UnpackException) as error:
        raise MetadataError(f"not a code object: {error}") from error
    raise MetadataError("no AMDGPU metadata note")


def kernel_record(code_object: bytes, symbol: str, arch: str, block_size: int) -> dict[str, Any]:
    """The resources of a lone kernel. Raises MetadataError if the object is not the promised
    one."""
    return kernel_records(code_object, arch, {symbol: block_size})[symbol]


def kernel_records(
    code_object: bytes, arch: str, block_sizes: Mapping[str, int]
) -> dict[str, dict[str, Any]]:
    """The resources of each kernel, by its symbol, as are the promised work-items per workgroup.

    Raises MetadataError if the object is not the promised one.
    """
    try:
        return _records(read_metadata(code_object), arch, block_sizes)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise MetadataError(
            f"{', '.join(block_sizes)}: metadata that is not as LLVM's AMDGPU guide says: {error!r}"
        ) from error


def _records(metadata: Any, arch: str, block_sizes: Mapping[str, int]) -> dict[str, dict[str, Any]]:
    target = f"amdgcn-amd-amdhsa--{arch}"
    if metadata["amdhsa.target"] != target:
        raise MetadataError(f"compiled for {metadata['amdhsa.target']}, not for {target}")
    kernels = {kernel[".name"]: kernel for kernel in metadata["amdhsa.kernels"]}
    if sorted(kernels) != sorted(block_sizes):
        raise MetadataError(f"the kernels are {sorted(kernels)}, not {sorted(block_sizes)}")
    return {name: _record(name, kernels[name], arch, size) for name, size in block_sizes.items()}


def _record(symbol: str, kernel: Any, arch: str, block_size: int) -> dict[str, Any]:
    if kernel[".max_flat_workgroup_size"] != block_size:
        raise MetadataError(
            f"{symbol}: compiled for workgroups of {kernel['.max_flat_workgroup_size']}, "
            f"its description says {block_size}"
        )
    explicit = [a for a in kernel[".args"] if not a[".value_kind"].startswith("hidden_")]
    if len(explicit) != 1 or explicit[0][".value_kind"] != "by_value" or explicit[0][".offset"]:
        raise MetadataError(f"{symbol}: its arguments are not one struct by value: {explicit}")
    return {
        # LLVM writes it for archs that have accumulators of their own.
        "agpr_count": kernel[".agpr_count"] if arch.startswith("gfx9") else 0,
        "kernarg_segment_size": kernel[".kernarg_segment_size"],
        "kernarg_size": explicit[0][".size"],
        "lds_size": kernel[".group_segment_fixed_size"],
        "max_workgroup_size": kernel[".max_flat_workgroup_size"],
        "scratch_size": kernel[".private_segment_fixed_size"],
        "sgpr_count": kernel[".sgpr_count"],
        "sgpr_spill_count": kernel[".sgpr_spill_count"],
        "vgpr_count": kernel[".vgpr_count"],
        "vgpr_spill_count": kernel[".vgpr_spill_count"],
        "wavefront_size": kernel[".wavefront_size"],
    }
