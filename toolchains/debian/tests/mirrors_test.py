# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Which Debian archives are taken from an apt configuration."""

from __future__ import annotations

import subprocess
from typing import NoReturn

import pytest

from toolchains.debian import mirrors
from toolchains.locks.errors import LocksError

APT_OUTPUT = """\
http://one.example/debian/ bookworm main
http://one.example/debian/ bookworm contrib
http://one.example/debian/ bookworm-updates main
http://security.example/debian-security/ bookworm-security main
https://vendor.example/apt/ cloud-sdk-bookworm main
https://vendor.example/node/ nodistro main
http://two.example/debian forky main
garbage
"""


def test_archives_of_debian_only_in_order_each_once() -> None:
    found = mirrors.parse_indextargets(APT_OUTPUT)
    assert found == ["http://one.example/debian", "http://two.example/debian"]


def test_nothing_configured() -> None:
    assert mirrors.parse_indextargets("") == []


def test_the_variable_wins() -> None:
    environ = {mirrors.VARIABLE: " http://a.example/debian/  file:///srv/mirror "}
    assert mirrors.find(environ) == ["http://a.example/debian", "file:///srv/mirror"]


def _apt(monkeypatch: pytest.MonkeyPatch, stdout: str) -> None:
    def run(*_: object, **__: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], 0, stdout, "")

    monkeypatch.setattr(subprocess, "run", run)


def test_apt_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    _apt(monkeypatch, APT_OUTPUT)
    assert mirrors.find({})[0] == "http://one.example/debian"


def test_no_archive_says_which_variable_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    _apt(monkeypatch, "https://vendor.example/node/ nodistro main\n")
    with pytest.raises(LocksError, match=mirrors.VARIABLE):
        mirrors.find({})


def test_no_apt_says_which_variable_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object, **__: object) -> NoReturn:
        raise FileNotFoundError("apt-get")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(LocksError, match=f"no apt-get.*{mirrors.VARIABLE}"):
        mirrors.find({})


def test_apt_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object, **__: object) -> NoReturn:
        raise subprocess.CalledProcessError(100, "apt-get", stderr="E: malformed line 3\n")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(LocksError, match="malformed line 3"):
        mirrors.find({})
