# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The index that is asked, and its pages."""

from __future__ import annotations

import json
import pathlib
import sys

import pytest

from toolchains.locks.errors import LocksError
from toolchains.pypi import index

SHA = "ab" * 32
PAGE_URL = "https://index.example/simple/some-name/"
HTML = f"""<!DOCTYPE html><html><body><h1>Links</h1>
<a href="https://files.example/a/some_name-1.0.tar.gz#sha256={SHA}" data-python="&gt;=3.9">x</a>
<a class="y" href='../../packages/some_name-1.0%2Bcpu-py3-none-any.whl?a=1&amp;b=2#md5=00'>x</a>
<a href="/files/some_name-1.1.tar.gz">x</a>
<a name="no-href">x</a>
</body></html>"""
FILES = [
    index.File("some_name-1.0.tar.gz", "https://files.example/a/some_name-1.0.tar.gz", SHA),
    index.File(
        "some_name-1.0+cpu-py3-none-any.whl",
        "https://index.example/packages/some_name-1.0%2Bcpu-py3-none-any.whl?a=1&b=2",
        "",
    ),
    index.File("some_name-1.1.tar.gz", "https://index.example/files/some_name-1.1.tar.gz", ""),
]


def test_html_page() -> None:
    assert index.parse_page(HTML, PAGE_URL) == FILES


def test_json_page() -> None:
    page = {
        "meta": {"api-version": "1.1"},
        "files": [
            {"filename": "a-1.tar.gz", "url": "../../f/a-1.tar.gz", "hashes": {"sha256": SHA}},
            {"filename": "a-2.tar.gz", "url": "https://files.example/a-2.tar.gz", "hashes": {}},
        ],
    }
    assert index.parse_page(json.dumps(page), PAGE_URL) == [
        index.File("a-1.tar.gz", "https://index.example/f/a-1.tar.gz", SHA),
        index.File("a-2.tar.gz", "https://files.example/a-2.tar.gz", ""),
    ]


@pytest.mark.parametrize(
    ("output", "url"),
    [
        ("", None),
        ("global.extra-index-url='file:///x/simple'\nglobal.find-links='/w'\n", None),
        ("global.index-url='https://a.example/simple/'\n", "https://a.example/simple"),
        (
            "global.index-url='https://a.example/s'\nuser.index-url='https://b.example/s'\n",
            "https://b.example/s",
        ),
        (
            "user.index-url='https://b.example/s'\n:env:.index-url='https://c.example/s'\n",
            "https://c.example/s",
        ),
        ("install.index-url='https://d.example/s'\n", "https://d.example/s"),
    ],
)
def test_pip_configuration(output: str, url: str | None) -> None:
    assert index.parse_pip_config(output) == url


def test_the_variable_wins() -> None:
    assert index.find({index.VARIABLE: "file:///srv/simple/"}) == "file:///srv/simple"


def test_pip_configuration_then_its_default(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {
        "-m": "global.index-url='https://a.example/simple'",
        "-c": "https://z.example/simple",
    }
    monkeypatch.setattr(index, "_python", lambda *arguments: answers[arguments[0]])
    assert index.find({}) == "https://a.example/simple"
    answers["-m"] = ""
    assert index.find({}) == "https://z.example/simple"


def test_places_that_pip_adds(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    links, added = tmp_path / "links", tmp_path / "simple/some-name"
    links.mkdir()
    added.mkdir(parents=True)
    (links / "some_name-1.0+cpu-py3-none-any.whl").touch()
    (added / "index.html").write_text('<a href="some_name-1.0%2Bgpu-py3-none-any.whl">x</a>')
    (tmp_path / "page.html").write_text('<a href="some_name-1.0%2Bold-py3-none-any.whl">x</a>')
    output = (
        f":env:.find-links='{links} file://{links} file://{tmp_path}/page.html'\n"
        f"global.extra-index-url='file:///nosuch/simple\\nfile://{tmp_path}/simple/'\n"
        "global.find-links='/overridden'\n"
    )
    monkeypatch.setattr(index, "_python", lambda *arguments: output)
    files = index.read_added("Some_Name", {})
    cpu = index.File(
        "some_name-1.0+cpu-py3-none-any.whl",
        f"file://{links}/some_name-1.0%2Bcpu-py3-none-any.whl",
        "",
    )
    assert files[:2] == [cpu, cpu]
    assert [f.filename.split("-")[1] for f in files[2:]] == ["1.0+old", "1.0+gpu"]
    # The variable stands for all of pip's configuration.
    assert index.read_added("Some_Name", {index.VARIABLE: "file:///srv/simple"}) == []


def test_no_pip_says_which_variable_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_python", lambda *arguments: None)
    with pytest.raises(LocksError, match=index.VARIABLE):
        index.find({})


def _interpreter(folder: pathlib.Path, script: str) -> None:
    folder.mkdir()
    (folder / "python3").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "python3").chmod(0o755)


def test_a_python_without_pip_asks_the_one_that_has_it(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has = "case $* in *config*) echo \"global.index-url='https://a.example/simple'\" ;; esac"
    _interpreter(tmp_path / "without", "exit 1")
    _interpreter(tmp_path / "with", has)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "without/python3"))
    monkeypatch.setattr(index, "_python_with_pip", index._python_with_pip.__wrapped__)
    monkeypatch.setenv("PATH", f"/nosuch:{tmp_path}/without:{tmp_path}/with")
    assert index.find({}) == "https://a.example/simple"
    monkeypatch.setenv("PATH", f"{tmp_path}/without")
    with pytest.raises(LocksError, match=rf"without/python3 nor .*; set {index.VARIABLE} "):
        index.find({})


def test_page_of_a_local_index(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "some-name"
    folder.mkdir()
    (folder / "index.html").write_text(f'<a href="../f/a-1.tar.gz#sha256={SHA}">a</a>')
    files = index.read_page(f"file://{tmp_path}", "Some_Name")
    assert files == [index.File("a-1.tar.gz", f"file://{tmp_path}/f/a-1.tar.gz", SHA)]


def test_unreachable_index_names_url_and_variable(tmp_path: pathlib.Path) -> None:
    with pytest.raises(LocksError, match=f"nosuch/index.html.*{index.VARIABLE}"):
        index.read_page(f"file://{tmp_path}", "nosuch")
