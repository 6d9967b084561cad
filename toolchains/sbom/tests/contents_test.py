# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""contents.toml, the committed one and bad ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from license_expression import get_spdx_licensing

from toolchains.sbom import contents, materials
from toolchains.sbom.materials import Material

COMMITTED = Path("toolchains/sbom/contents.toml")


@pytest.fixture(scope="module")
def known() -> contents.Contents:
    return contents.read(COMMITTED)


@pytest.fixture(scope="module")
def locked() -> set[Material]:
    return materials.of_locks(
        *(Path(f"toolchains/{source}/lock.json") for source in ("debian", "pypi", "npm"))
    )


def test_every_pattern_still_matches(known: contents.Contents, locked: set[Material]) -> None:
    assert known.unused(locked) == []


def test_a_pattern_that_matches_nothing_is_named() -> None:
    known = contents.Contents({"tools": {"npm": {"gone": "MIT", "here": "MIT"}}})
    assert known.unused([Material("npm", "here", "1", "a" * 64)]) == ["[tools.npm] 'gone'"]


def test_every_licence_is_an_spdx_expression(known: contents.Contents) -> None:
    licensing = get_spdx_licensing()
    for sources in known.tables.values():
        for patterns in sources.values():
            for licence in patterns.values():
                assert not licensing.validate(licence).errors, licence


def test_what_is_in_the_wheel_has_a_licence(
    known: contents.Contents, locked: set[Material]
) -> None:
    inside = {m.name for m in locked if known.is_in_wheel(m)}
    # What is linked in, by what it is known to be: not by the file under test.
    assert {"flash-attn", "zstandard", "pybind11", "libstdc++-12-dev"} <= inside
    assert not {"clang-22", "pytest", "bazel-bootstrap", "libstdc++6"} & inside
    assert all(known.licence(m) for m in locked if known.is_in_wheel(m))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tool.npm]\nx = 'MIT'", ("unknown table [tool]", "in_wheel, tools")),
        ("[tools.cargo]\nx = 'MIT'", ("[tools.cargo]", "tools.debian")),
        ("[tools.npm]\nx = 1", ("[tools.npm] 'x' is 1", "SPDX")),
        ("[tools.npm]\nx = ''", ("'x' is ''",)),
        ("tools = 3", ("tools is 3", "table")),
        ("[tools", ("contents.toml",)),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    path = tmp_path / "contents.toml"
    path.write_text(text)
    with pytest.raises(contents.ContentsError) as error:
        contents.read(path)
    for word in words:
        assert word in str(error.value)
