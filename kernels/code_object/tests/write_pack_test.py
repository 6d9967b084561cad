# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""What the packer gets to pack."""

import json
from pathlib import Path

from kernels.code_object import write_pack


def test_what_the_packer_gets_is_in_the_order_of_keys(tmp_path: Path):
    for name, key in (("a", "f" * 64), ("b", "0" * 64)):
        record = {"key": key, "sha256": name * 64, "size": 1}
        (tmp_path / f"{name}.json").write_text(json.dumps(record))
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    lines = write_pack.packer_lines(files)
    first = f"{'0' * 64} {'b' * 64} {tmp_path}/b.hsaco\n"
    assert lines == first + f"{'f' * 64} {'a' * 64} {tmp_path}/a.hsaco\n"
    assert write_pack.packer_lines(reversed(files)) == lines
