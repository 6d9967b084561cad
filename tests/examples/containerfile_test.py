# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The Containerfile without an engine: its stages, what its commands name, and those of the stage
`wheel`, run. container_test builds it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

FILE = Path("docs/examples/container/Containerfile")
README = Path("README.md")
# Stands in for bazelw: writes down how it was called, and builds a file.
RECORDER = """#!/bin/sh
echo "$*" >>calls
mkdir -p bazel-bin/python && touch bazel-bin/python/aiter_attn-1-cp312-cp312-linux_x86_64.whl
"""
# All that the file may have.
_INSTRUCTIONS = {"ARG", "FROM", "RUN", "USER", "WORKDIR", "COPY", "ENV", "CMD"}


def instructions() -> list[tuple[str, str]]:
    """(ARG, BASE=...), ...: lines that a backslash ends are one."""
    text = FILE.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines)]


def head() -> str:
    lines = FILE.read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if line.startswith("#"))


def stages() -> dict[str, tuple[str, list[tuple[str, str]]]]:
    """By name: what a stage begins from, and its instructions."""
    found: dict[str, tuple[str, list[tuple[str, str]]]] = {}
    name = ""
    for instruction, rest in instructions():
        if instruction == "FROM":
            base, word, name = rest.split()
            assert word == "AS"
            found[name] = base, []
        elif name:
            found[name][1].append((instruction, rest))
    return found


def commands(stage: str) -> list[str]:
    return [rest for name, rest in stages()[stage][1] if name == "RUN"]


def test_its_head_describes_the_stages() -> None:
    assert {name for name, _ in instructions()} <= _INSTRUCTIONS
    assert re.findall(r"^#   ([a-z]+)  ", head(), re.M) == list(stages())
    for name in re.findall(r"--target=(\w+)", head()):
        assert name in stages()
    arguments = {rest.partition("=")[0] for name, rest in instructions() if name == "ARG"}
    assert set(re.findall(r"--build-arg=(\w+)", head())) <= arguments


def test_stages_begin_from_the_base_or_an_earlier_one() -> None:
    earlier: list[str] = []
    for name, (base, own) in stages().items():
        assert base in ("${BASE}", *earlier)
        for copied in (rest for instruction, rest in own if instruction == "COPY"):
            assert all(of in earlier for of in re.findall(r"--from=(\w+)", copied))
        earlier.append(name)


@pytest.mark.parametrize("stage", ["contributor", "wheel", "user"])
def test_its_commands_are_of_a_shell(stage: str) -> None:
    assert commands(stage)
    for command in commands(stage):
        subprocess.run(["sh", "-n", "-c", command], check=True)


def test_it_builds_as_the_readme_does(tmp_path: Path) -> None:
    (line,) = re.findall(r"^\./bazelw (build .*)$", README.read_text(encoding="utf-8"), re.M)
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    program = checkout / "bazelw"
    program.write_text(RECORDER, encoding="utf-8")
    program.chmod(0o755)
    for command in commands("wheel"):
        environ = {"PATH": os.environ["PATH"], "FLAGS": "--disk_cache=/cache --jobs=2"}
        subprocess.run(["sh", "-euc", command], cwd=checkout, env=environ, check=True)
    build, shutdown = (checkout / "calls").read_text().splitlines()
    asked = shlex.split(build)
    assert [word for word in asked if word not in ("--disk_cache=/cache", "--jobs=2")] == (
        shlex.split(line)
    )
    assert len(asked) == len(shlex.split(line)) + 2
    assert shutdown == "shutdown"
    assert [file.suffix for file in (tmp_path / "wheels").iterdir()] == [".whl"]
    # The folder that the next stage takes.
    (copied,) = (rest for name, rest in stages()["user"][1] if name == "COPY")
    home = next(rest for name, rest in stages()["contributor"][1] if name == "WORKDIR")
    assert f"--from=wheel {Path(home).parent}/wheels " in copied
