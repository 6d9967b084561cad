# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A manifest's records of norm kernels that are built in are true of the code objects."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

MANIFEST = json.loads(Path(os.environ["MANIFEST"]).read_text("ascii"))
CODE_OBJECTS = {
    tuple(path.stem.rsplit(".", 1)): path
    for path in map(Path, os.environ["CODE_OBJECTS"].split())
    if path.suffix in (".cubin", ".hsaco")
}
PACK = Path(os.environ["PACK"])
# The kernels of an operation.
SYMBOLS = {
    "layer_backward": {"norm_backward"},
    "layer_forward": {"norm_forward"},
    "norm_columns": {"norm_backward_reduce"},
    "rms_backward": {"norm_backward"},
    "rms_forward": {"norm_forward"},
    "softmax_backward": {"softmax_backward"},
    "softmax_forward": {"softmax_forward"},
}


def test_it_lists_what_is_built_in() -> None:
    listed = {(entry["name"], arch) for entry in MANIFEST for arch in entry["code_objects"]}
    assert listed == CODE_OBJECTS.keys()
    assert {arch for _, arch in listed} == {"gfx942", "sm_90"}
    assert {entry["operation"] for entry in MANIFEST} == SYMBOLS.keys()
    assert all(entry["operation"] in entry["name"] for entry in MANIFEST)


def test_each_is_described() -> None:
    pack = PACK.read_bytes()
    for entry in MANIFEST:
        for arch, known in entry["code_objects"].items():
            path = CODE_OBJECTS[entry["name"], arch]
            data = path.read_bytes()
            assert known["sha256"] == hashlib.sha256(data).hexdigest()
            assert known["size"] == len(data)
            # A pack names its code objects by their keys.
            assert bytes.fromhex(known["key"]) in pack
            assert all(symbol.encode() in data for symbol in SYMBOLS[entry["operation"]])


def test_resources_are_there_where_the_compiler_tells_them() -> None:
    with_kernels = 0
    for entry in MANIFEST:
        for arch, known in entry["code_objects"].items():
            assert ("kernels" in known) == arch.startswith("gfx")
            if "kernels" in known:
                with_kernels += 1
                assert known["kernels"].keys() == SYMBOLS[entry["operation"]]
                assert all(kernel["vgpr_count"] > 0 for kernel in known["kernels"].values())
    assert with_kernels == 1
