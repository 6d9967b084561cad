# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A kit's description, and the list of its sources."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from kernels.code_object.spec import Recipe
from kernels.compile_kit.by_digest import packer_lines
from kernels.compile_kit.write_kit import description

ONE = Recipe(flags=("-O3",), headers="b" * 64, toolchain="a" * 64)
OTHER = Recipe(flags=("-O2",), headers="0" * 64, toolchain="a" * 64)
FOREIGN = Recipe(flags=(), headers="b" * 64, toolchain="f" * 64)


def test_the_description_is_the_same_for_any_order() -> None:
    expected = (
        f"aiter-attn-compile-kit 1\nversion 1.2.3\ntoolchain {'a' * 64}\narch gfx942\narch gfx950\n"
        f"headers {'0' * 64}\nheaders {'b' * 64}\nend\n"
    )
    assert description("1.2.3", ["gfx950", "gfx942", "gfx950"], [ONE, OTHER, ONE]) == expected
    assert description("1.2.3", ["gfx942", "gfx950"], [OTHER, ONE]) == expected


def test_a_kit_has_one_toolchain() -> None:
    with pytest.raises(ValueError, match="of one toolchain, and not of 2"):
        description("1.2.3", ["gfx942"], [ONE, FOREIGN])
    with pytest.raises(ValueError, match="of one toolchain, and not of 0"):
        description("1.2.3", ["gfx942"], [])


def test_sources_are_listed_once_by_their_digests(tmp_path: Path) -> None:
    texts = {"a.cpp": b"one", "b.cpp": b"two", "c.cpp": b"one"}
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text)
    lines = packer_lines(tmp_path / name for name in texts).splitlines()
    digests = {hashlib.sha256(text).hexdigest(): name for name, text in reversed(texts.items())}
    assert lines == [
        f"{digest} {digest} {tmp_path / digests[digest]}" for digest in sorted(digests)
    ]
