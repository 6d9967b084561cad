# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The list that the packer gets."""

import json
from pathlib import Path

from kernels.code_object import write_pack


def test_what_the_packer_gets_is_in_the_order_of_keys(tmp_path: Path):
    for name, key in (("a", "f" * 64), ("b", "0" * 64)):
        record = {"key": key, "sha256": name * 64, "size": 1}
        (tmp_path / f"{name}.json").write_text(json.dumps(record))
    objects = [(tmp_path / "a.json", Path("a.hsaco")), (tmp_path / "b.json", Path("b.cubin"))]
    lines = write_pack.packer_lines(objects)
    assert lines == f"{'0' * 64} {'b' * 64} b.cubin\n{'f' * 64} {'a' * 64} a.hsaco\n"
    assert write_pack.packer_lines(reversed(objects)) == lines
