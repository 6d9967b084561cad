# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The description of a code object: its spec and key, its size, its kernel's resources.

The compiler's metadata is held against what the instance's description promised; a difference
fails the build.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

from kernels.code_object.metadata import MetadataError, kernel_record, kernel_records
from kernels.code_object.spec import CodeObjectSpec, Recipe

_CODE_OBJECT = flags.DEFINE_string("code_object", None, "the file", required=True)
_SOURCE = flags.DEFINE_string("source", None, "the source that it was compiled from", required=True)
_RECIPE = flags.DEFINE_string("recipe", None, "how it was compiled", required=True)
_INSTANCE = flags.DEFINE_string("instance", None, "also the symbol of a lone kernel", required=True)
_ARCH = flags.DEFINE_string("arch", None, "the arch that it was compiled for", required=True)
_BLOCK_SIZE = flags.DEFINE_integer("block_size", None, "work-items per workgroup")
_KERNELS = flags.DEFINE_multi_string(
    "kernel",
    [],
    "SYMBOL=WORK_ITEMS, of each kernel of an object with several; no --block_size then",
)
_FLAG = flags.DEFINE_multi_string("flag", [], "flags of the compile that the recipe lacks")
_MEMBERS = flags.DEFINE_multi_string(
    "member", [], "the sources that it was compiled together with, and its own, in order"
)
_PROVEN = flags.DEFINE_list(
    "proven", None, "the key of the source's own compile, and the sha256 that it is known to give"
)
_OUT = flags.DEFINE_string("out", None, ".json; .spec is beside it", required=True)


def proven_spec(spec: CodeObjectSpec, sha256: str, proven: Sequence[str]) -> CodeObjectSpec:
    """The spec of an object, given the key of its source's own compile and the sha256 of what that
    is known to give: that of the own compile, if they are of this one; otherwise as it is.

    Raises MetadataError where the object is another than is known.
    """
    known_key, known_sha256 = proven
    if spec.alone().key() != known_key:
        return spec
    if sha256 != known_sha256:
        made = "its group does" if spec.group else "its own compile does"
        raise MetadataError(
            f"{made} not give what is proven of its own compile: its sha256 is {sha256}, "
            f"groups/lock.json has {known_sha256}. Prove the groups anew: ./bazelw run "
            "//kernels/ck_fmha:prove_groups; or restore the lock"
        )
    return spec.alone()


def main(_arguments: Sequence[str]) -> int:
    code_object = Path(_CODE_OBJECT.value).read_bytes()
    recipe = Recipe.parse(Path(_RECIPE.value).read_bytes())
    source = Path(_SOURCE.value).read_bytes()
    members = [Path(member).read_bytes() for member in _MEMBERS.value]
    spec = recipe.spec(source, _ARCH.value, _FLAG.value, members)
    sha256 = hashlib.sha256(code_object).hexdigest()
    try:
        if _KERNELS.value:
            pairs = (kernel.split("=") for kernel in _KERNELS.value)
            sizes = {symbol: int(size) for symbol, size in pairs}
            kernels = {"kernels": kernel_records(code_object, _ARCH.value, sizes)}
        else:
            size = _BLOCK_SIZE.value
            kernels = {"kernel": kernel_record(code_object, _INSTANCE.value, _ARCH.value, size)}
        if _PROVEN.value:
            spec = proven_spec(spec, sha256, _PROVEN.value)
    except MetadataError as error:
        print(f"{_INSTANCE.value}, {_ARCH.value}: {error}", file=sys.stderr)
        return 1
    out = Path(_OUT.value)
    out.with_suffix(".spec").write_bytes(spec.canonical())
    record = {
        "arch": _ARCH.value,
        "instance": _INSTANCE.value,
        **kernels,
        "key": spec.key(),
        "sha256": sha256,
        "size": len(code_object),
    }
    out.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", "ascii")
    return 0


if __name__ == "__main__":
    app.run(main)
