# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""contents.toml and copyrights.json, the committed ones and bad ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from license_expression import get_spdx_licensing

from toolchains.sbom import contents, materials
from toolchains.sbom.materials import Material

COMMITTED = Path("toolchains/sbom/contents.toml")
COPYRIGHTS = Path("toolchains/sbom/copyrights.json")


@pytest.fixture(scope="module")
def known() -> contents.Contents:
    return contents.read(COMMITTED, COPYRIGHTS)


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


def test_every_licence_is_an_spdx_expression(
    known: contents.Contents, locked: set[Material]
) -> None:
    licensing = get_spdx_licensing()
    for licence in {known.licence(material) for material in locked} - {contents.UNKNOWN}:
        assert not licensing.validate(licence).errors, licence


def test_what_packages_say_was_read_of_the_locked_ones(
    known: contents.Contents, locked: set[Material]
) -> None:
    """Otherwise: ./bazelw run //toolchains/sbom:read_copyrights."""
    wanted = {
        m.name: (m.sha256, known.sources(m))
        for m in locked
        if known.is_in_wheel(m) and known.sources(m) is not None
    }
    assert len(wanted) >= 4
    got = {name: (entry["sha256"], entry["sources"]) for name, entry in known.copyrights.items()}
    assert got == wanted


def test_another_version_than_the_one_that_was_read_is_unknown() -> None:
    read = {"x-dev": {"sha256": "a" * 64, "sources": ["x.h"], "licence": "MIT"}}
    known = contents.Contents({"in_wheel": {"debian": {"x-dev": ["x.h"]}}}, read)
    assert known.licence(Material("debian", "x-dev", "1", "a" * 64)) == "MIT"
    assert known.licence(Material("debian", "x-dev", "2", "b" * 64)) == "NOASSERTION"
    assert known.licence(Material("debian", "y", "1", "a" * 64)) == "NOASSERTION"


def test_what_is_in_the_wheel_has_a_licence(
    known: contents.Contents, locked: set[Material]
) -> None:
    inside = {m.name for m in locked if known.is_in_wheel(m)}
    # Packages that are linked in, by their known names: not by the file under test.
    assert {"amd-aiter", "zstandard", "pybind11", "libstdc++-12-dev", "linux-libc-dev"} <= inside
    assert not {"clang-22", "pytest", "bazel-bootstrap", "libstdc++6"} & inside
    unknown = {m.name for m in locked if known.licence(m) == contents.UNKNOWN}
    assert not inside & unknown
    assert unknown, "most of what runs nowhere but in tests"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tool.npm]\nx = 'MIT'", ("unknown table [tool]", "in_wheel, tools")),
        ("[tools.cargo]\nx = 'MIT'", ("[tools.cargo]", "tools.debian")),
        ("[tools.npm]\nx = 1", ("[tools.npm] 'x' is 1", "SPDX")),
        ("[tools.npm]\nx = ''", ("'x' is ''",)),
        ("[tools.npm]\nx = ['x.h']", ("'x' is ['x.h']", "in_wheel.debian")),
        ("[in_wheel.debian]\nx = []", ("'x' is []", "source files")),
        ("tools = 3", ("tools is 3", "table")),
        ("[tools", ("contents.toml",)),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    path = tmp_path / "contents.toml"
    path.write_text(text)
    with pytest.raises(contents.ContentsError) as error:
        contents.read(path, None)
    for word in words:
        assert word in str(error.value)


def test_copyrights_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "copyrights.json").write_text("{")
    with pytest.raises(contents.ContentsError, match="read_copyrights"):
        contents.read(COMMITTED, tmp_path / "copyrights.json")
