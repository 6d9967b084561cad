# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""What is known of a code object: its spec and key, its sizes, its kernel's needs; and its frame.

The compiler's metadata is held against what the instance's description promised; a difference
fails the build.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgpack
from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection

from kernels.code_object.spec import Recipe

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
    """What the kernel needs. Raises MetadataError if the object is not the promised one."""
    try:
        return _record(read_metadata(code_object), symbol, arch, block_size)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise MetadataError(
            f"{symbol}: metadata that is not as LLVM's AMDGPU guide says: {error!r}"
        ) from error


def _record(metadata: Any, symbol: str, arch: str, block_size: int) -> dict[str, Any]:
    target = f"amdgcn-amd-amdhsa--{arch}"
    if metadata["amdhsa.target"] != target:
        raise MetadataError(f"compiled for {metadata['amdhsa.target']}, not for {target}")
    kernels = metadata["amdhsa.kernels"]
    names = [kernel[".name"] for kernel in kernels]
    if names != [symbol]:
        raise MetadataError(f"the kernels are {names}, not [{symbol!r}]")
    (kernel,) = kernels
    if kernel[".max_flat_workgroup_size"] != block_size:
        raise MetadataError(
            f"{symbol}: compiled for workgroups of {kernel['.max_flat_workgroup_size']}, "
            f"its description says {block_size}"
        )
    explicit = [a for a in kernel[".args"] if not a[".value_kind"].startswith("hidden_")]
    if len(explicit) != 1 or explicit[0][".value_kind"] != "by_value" or explicit[0][".offset"]:
        raise MetadataError(f"{symbol}: its arguments are not one struct by value: {explicit}")
    return {
        "agpr_count": kernel[".agpr_count"],
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--code-object", type=Path, required=True)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--recipe", type=Path, required=True)
    parser.add_argument("--instance", required=True, help="also the kernel's symbol")
    parser.add_argument("--arch", required=True)
    parser.add_argument("--block-size", type=int, required=True)
    parser.add_argument("--compress", required=True, help="the program: compress IN OUT")
    parser.add_argument("--out", type=Path, required=True, help=".json, .spec and .zst beside it")
    options = parser.parse_args()
    code_object = options.code_object.read_bytes()
    try:
        kernel = kernel_record(code_object, options.instance, options.arch, options.block_size)
    except MetadataError as error:
        print(f"{options.instance}, {options.arch}: {error}", file=sys.stderr)
        return 1
    packed = options.out.with_suffix(".zst")
    subprocess.run([options.compress, options.code_object, packed], check=True)
    recipe = Recipe.parse(options.recipe.read_bytes())
    spec = recipe.spec(options.source.read_bytes(), options.arch)
    options.out.with_suffix(".spec").write_bytes(spec.canonical())
    record = {
        "arch": options.arch,
        "instance": options.instance,
        "kernel": kernel,
        "key": spec.key(),
        "packed_size": packed.stat().st_size,
        "sha256": hashlib.sha256(code_object).hexdigest(),
        "size": len(code_object),
    }
    options.out.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", "ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main())
