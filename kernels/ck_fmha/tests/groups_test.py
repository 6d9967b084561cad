# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The proofs of groups/lock.json, made again for kernels that are drawn."""

import os
from pathlib import Path


def test_a_group_gives_what_its_members_own_compiles_give():
    grouped, plain = (
        {
            Path(path).name.replace(".grouped", ""): Path(path).read_bytes()
            for path in os.environ[variable].split()
        }
        for variable in ("GROUPED", "PLAIN")
    )
    assert grouped
    assert grouped.keys() == plain.keys()
    assert [name for name in grouped if grouped[name] != plain[name]] == []
