# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""What is recorded of a code object: its key, its sizes, and its kernel's needs.

The compiler's metadata is held against what the instance's description promised; a difference
fails the build.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from kernels.private.amdgpu_metadata import MetadataError, read_metadata


def kernel_record(code_object: bytes, symbol: str, arch: str, block_size: int) -> dict[str, Any]:
    """What the kernel needs. Raises MetadataError if the object is not the promised one."""
    metadata = read_metadata(code_object)
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
    parser.add_argument("--packed", type=Path, required=True)
    parser.add_argument("--key", type=Path, required=True)
    parser.add_argument("--instance", required=True, help="also the kernel's symbol")
    parser.add_argument("--arch", required=True)
    parser.add_argument("--block-size", type=int, required=True)
    parser.add_argument("--data-symbol", required=True, help="of the embedded bytes")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    code_object = options.code_object.read_bytes()
    try:
        kernel = kernel_record(code_object, options.instance, options.arch, options.block_size)
    except MetadataError as error:
        print(f"{options.instance}, {options.arch}: {error}", file=sys.stderr)
        return 1
    record = {
        "arch": options.arch,
        "data_symbol": options.data_symbol,
        "instance": options.instance,
        "kernel": kernel,
        "key": options.key.read_text("ascii").strip(),
        "packed_size": options.packed.stat().st_size,
        "sha256": hashlib.sha256(code_object).hexdigest(),
        "size": len(code_object),
    }
    options.out.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", "ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main())
