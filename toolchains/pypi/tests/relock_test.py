# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""From requirements.toml and index pages to the lock."""

from __future__ import annotations

import hashlib
import json
import pathlib

import pytest

from toolchains.locks.errors import LocksError
from toolchains.locks.tests.servers import files_up_to, serve
from toolchains.pypi import index, relock

FOLDER = pathlib.Path(relock.__file__).parent
NAMES = [
    "Some_Name-1.0.tar.gz",
    "some_name-1.0-py3-none-any.whl",
    "some_name-1.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    "some_name-1.0-cp311-cp311-musllinux_1_2_x86_64.whl",
    "some_name-1.0-cp311-cp311-macosx_10_9_x86_64.whl",
    "some_name-1.0-cp313-cp313-manylinux_2_28_x86_64.whl",
    "some_name-1.0-cp313-cp313t-manylinux_2_28_x86_64.whl",
    "some_name-1.0-cp313-cp313-manylinux_2_28_aarch64.whl",
    "some_name-1.0-cp39-abi3-manylinux_2_17_x86_64.whl",
    "some_name-1.0-cp314-abi3-manylinux_2_17_x86_64.whl",
    "some_name-1.0.1.tar.gz",
    "some_name-1.0rc1.tar.gz",
    "other_some_name-1.0.tar.gz",
]


def choose(kinds: list[str], names: list[str] = NAMES, tools: str = "cp313") -> dict[str, str]:
    files = [index.File(n, "https://files.example/" + n, "") for n in names]
    chosen = relock.choose(files, "some-name", "1.0", kinds, tools)
    return {k: f.filename for k, f in chosen.items()}


def test_each_kind() -> None:
    assert choose(["sdist", "any", "cp311", "cp313"]) == {
        "sdist": NAMES[0],
        "any": NAMES[1],
        "cp311": NAMES[2],
        "cp313": NAMES[5],
    }


def test_tools_take_the_closest_wheel() -> None:
    exact, stable, newer, pure = NAMES[5], NAMES[8], NAMES[9], NAMES[1]
    for names, best in (
        (NAMES, exact),
        ([pure, stable, newer], stable),
        ([pure, newer], pure),
    ):
        assert choose(["tools"], names) == {"tools": best}
    assert choose(["tools"], [stable, newer], "cp314") == {"tools": newer}
    with pytest.raises(LocksError, match=r"'tools'; it has .*cp314-abi3"):
        choose(["tools"], [newer])


def test_missing_kind_lists_what_there_is() -> None:
    with pytest.raises(LocksError, match=r"'cp38'; it has .*cp313-cp313-manylinux"):
        choose(["cp38"])


def test_an_abi_takes_a_wheel_for_the_stable_one() -> None:
    assert choose(["cp312", "cp311"]) == {"cp312": NAMES[8], "cp311": NAMES[2]}


def test_requirements() -> None:
    text = '[distribution.a-b]\nversion = "1"\nfiles = ["sdist", "abis"]\n'
    wanted = relock.parse_requirements(text, "r.toml", ["cp311", "cp314"])
    assert wanted == {"a-b": ("1", ["sdist", "cp311", "cp314"])}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[distribution.a", "r.toml"),
        ("[packages.a]\n", "packages"),
        ("distribution = 1\n", "distribution is 1; want a table"),
        ("[distribution]\na = 1\n", "distribution.a is 1; want a table"),
        ('[distribution.a]\nversion = "1"\n', "'a'"),
        ("[distribution.a]\nversion = 1\nfiles = []\n", "version 1, .*want a text and a list"),
        ('[distribution.a]\nversion = "1"\nfiles = 1\n', "files 1; want a text and a list"),
        (
            '[distribution.a]\nversion = "1"\nfiles = ["wheel"]\n',
            "'wheel'; want one of sdist, any, abis, site, tools$",
        ),
    ],
)
def test_requirements_errors_name_the_culprit(text: str, message: str) -> None:
    with pytest.raises(LocksError, match=message):
        relock.parse_requirements(text, "r.toml", [])


def test_relock_from_a_local_index(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "simple/a").mkdir(parents=True)
    (tmp_path / "a-1.tar.gz").write_bytes(b"contents")
    (tmp_path / "a-2.tar.gz").write_bytes(b"newer")
    (tmp_path / "simple/a/index.html").write_text(
        '<a href="../../a-1.tar.gz">a</a><a href="../../a-2.tar.gz">a</a>'
    )
    (tmp_path / "r.toml").write_text(
        '[distribution.a]\nversion = "1"\nfiles = ["sdist"]\n'
        '[distribution."a@2"]\nversion = "2"\nfiles = ["sdist"]\n'
    )
    monkeypatch.setattr(relock, "REQUIREMENTS", tmp_path / "r.toml")
    monkeypatch.setattr(relock, "LOCK", tmp_path / "lock.json")
    monkeypatch.setattr(index, "find", lambda: f"file://{tmp_path}/simple")
    (tmp_path / "lock.json").write_text("damaged")
    assert relock.relock() == ["a: none -> 1", "a@2: none -> 2"]
    locked = json.loads((tmp_path / "lock.json").read_text())
    # The page has no digest: it is that of the file.
    digest = hashlib.sha256(b"contents").hexdigest()
    assert locked["distributions"]["a"]["files"]["sdist"] == {
        "filename": "a-1.tar.gz",
        "sha256": digest,
    }
    assert locked["distributions"]["a@2"]["files"]["sdist"]["filename"] == "a-2.tar.gz"
    assert relock.relock() == []
    # A full disk leaves the old one alone, and nothing beside it.
    (tmp_path / "r.toml").write_text("")
    with files_up_to(10), pytest.raises(LocksError, match=r"cannot write .*lock\.json.*too large"):
        relock.relock()
    assert json.loads((tmp_path / "lock.json").read_text()) == locked
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "a-1.tar.gz",
        "a-2.tar.gz",
        "lock.json",
        "r.toml",
        "simple",
    ]


def test_a_local_version_that_this_machine_has_not_is_kept(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = tmp_path / "links"
    links.mkdir()
    (links / "a-1+cpu.tar.gz").write_bytes(b"contents")
    (tmp_path / "simple/a").mkdir(parents=True)
    (tmp_path / "simple/a/index.html").write_text('<a href="a-1.tar.gz">a</a>')
    requirements = {"a": ("1+cpu", ["sdist"])}
    output = [f"global.find-links='{links}'\nglobal.index-url='file://{tmp_path}/simple'"]
    monkeypatch.delenv(index.VARIABLE, raising=False)
    monkeypatch.setattr(index, "_python", lambda *arguments: output[0])
    monkeypatch.setattr(relock, "requirements", lambda: requirements)
    monkeypatch.setattr(relock, "LOCK", tmp_path / "lock.json")
    assert relock.relock() == ["a: none -> 1+cpu"]
    output[0] = f"global.index-url='file://{tmp_path}/simple'"
    assert relock.relock() == []
    # Another version is not in the lock yet, so there is nothing to keep.
    requirements["a"] = ("2+cpu", ["sdist"])
    with pytest.raises(LocksError, match=r"a 2\+cpu: the index has no file of kind 'sdist'"):
        relock.relock()


def test_a_file_that_cannot_be_had_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    page = {"/simple/a/": b'<a href="../../a-1.tar.gz">a</a>'}
    with serve(page) as server:
        monkeypatch.setattr(index, "find", lambda: f"{server.url}/simple")
        monkeypatch.setattr(relock, "requirements", lambda: {"a": ("1", ["sdist"])})
        with pytest.raises(LocksError, match=f"{server.url}/a-1.tar.gz: HTTP 404"):
            relock.relock()


def test_the_committed_lock_holds_what_the_requirements_ask_for() -> None:
    wanted = relock.requirements()
    locked = json.loads((FOLDER / "lock.json").read_text())["distributions"]
    assert {n: (d["version"], sorted(d["files"])) for n, d in locked.items()} == {
        n: (version, sorted(kinds)) for n, (version, kinds) in wanted.items()
    }
