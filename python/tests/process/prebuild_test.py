# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""`aiter-attn prebuild`: what it chooses, what it refuses before anything is made, and its ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import aiter_attn
import pytest
from aiter_attn import _C
from aiter_attn._cli import kernels as built_in
from aiter_attn._cli import prebuild, store
from aiter_attn._cli.main import main

KERNELS = aiter_attn.kernels()
SET = built_in.manifest()["variant_set"]
FIRST = KERNELS[0]
CALL = "--arch gfx942 --dtype fp16 --seqlen-q 64 --head-size 64 --causal"

Told = Callable[..., tuple[int, str, str]]


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Told:
    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(["prebuild", *arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "list"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys that are asked for; no kernel is there, and the first one cannot be made."""
    asked: list[str] = []
    there: set[str] = set()

    def find(key: str) -> store.Found:
        return store.Found("the compile kit '/kit'", f"plain {key}", (), key not in there)

    def code_object(key: str) -> bytes:
        asked.append(key)
        key = key.removeprefix("plain ")
        if key == FIRST["key"] and len(asked) == 1:
            raise aiter_attn.AttnError("does not compile")
        there.add(key)
        return b""

    monkeypatch.setattr(store, "find", find)
    monkeypatch.setattr(_C, "code_object", code_object)
    return asked


def test_a_set_is_listed_built_and_verified(told: Told) -> None:
    status, listed, _ = told("list", SET)
    assert status == 0
    count = len({kernel["key"] for kernel in KERNELS})
    lines = listed.splitlines()
    assert lines[-1] == f"{count} kernels: {count} are there, 0 to be made, 0 cannot be had"
    assert f"{FIRST['arch']} {FIRST['name']}: the library" in lines
    status, said, _ = told("build", SET)
    assert status == 0
    assert f"all {count} kernels are there" in said
    assert "AITER_ATTN_MACHINE_CACHE" in said
    status, said, _ = told("verify", SET)
    assert (status, said) == (0, f"{count} of {count} kernels are there, and are right\n")


def test_a_set_can_be_narrowed(told: Told) -> None:
    lines = told("list", SET, "--arch", FIRST["arch"], "--kernels", FIRST["name"])[1].splitlines()
    assert lines[-1].startswith("1 kernels: ")
    assert told("list", SET, "--kernels", "nothing*")[0] == 1
    status, _, said = told("list", SET, "--arch", "gfx90a")
    assert status == 1
    assert "no kernel of" in said and FIRST["arch"] in said


def test_a_file_has_names_and_calls(told: Told, file: Path) -> None:
    line = f"{FIRST['arch']} {FIRST['name']}"
    file.write_text(f"# a list\n\n{line}  # once\n{line}\n{CALL}\n{CALL} --backward\n")
    keys = prebuild.read_list(file, KERNELS)
    assert keys[0] == FIRST["key"]
    assert len(keys) == len(set(keys)) > 4
    assert told("verify", str(file))[0] == 0


def test_all_wrong_lines_are_told_before_anything_is_made(
    told: Told, file: Path, made: list[str]
) -> None:
    file.write_text(
        f"{FIRST['arch']} {FIRST['name']}\n"
        "gfx90a fmha\n"
        f"{FIRST['arch']} fmha_of_nobody\n"
        "one two three\n"
        f"{CALL} --dtype fp12\n"
        f"{CALL} --sequence-length 7\n"
        f"{CALL} --softcap nan\n"
        "--help\n"
        "'open\n"
    )
    status, out, said = told("build", str(file))
    assert (status, out, made) == (1, "", [])
    lines = said.removeprefix("prebuild: ").splitlines()
    assert [line.split(":")[1] for line in lines if line.startswith(str(file))] == list("23456789")
    assert f"{file}:2: gfx90a: this wheel has kernels for " in said
    assert f"{file}:3: fmha_of_nobody: this wheel's set, {SET}, has no such kernel for " in said
    assert f"{file}:4: allowed: ARCH NAME, or arguments of" in said
    assert "fp12" in said and "--sequence-length" in said


def test_what_is_no_set_and_no_file(told: Told, file: Path) -> None:
    status, _, said = told("build", "te-and-more")
    assert status == 1
    assert f"no such file, and the variant set of this wheel is {SET}" in said
    file.write_bytes(b"\xff\xfe")
    assert "is no text" in told("build", str(file))[2]
    file.write_text("")
    assert "--arch, --kernels: allowed with a set" in told("list", str(file), "--arch", "gfx942")[2]
    assert "--jobs 0: allowed: 1 or more" in told("build", SET, "--jobs", "0")[2]


def test_one_failure_does_not_hold_up_the_others(told: Told, made: list[str]) -> None:
    count = len({kernel["key"] for kernel in KERNELS})
    assert told("verify", SET)[0] == 1
    status, said, errors = told("build", SET, "--jobs", "1")
    assert status == 1
    assert len(made) == count
    assert all(key.startswith("plain ") for key in made)
    assert f"{FIRST['arch']} {FIRST['name']}: does not compile" in errors
    assert f"1 of {count} failed after " in said
    assert f"{count} of {count} done after " in said
    assert f"1 of {count} kernels are missing; the same command goes on from here" in said
    # Only that one is left.
    status, said, _ = told("build", SET, "--jobs", "2")
    assert status == 0
    assert made[count:] == [f"plain {FIRST['key']}"]
    assert "1 of 1 done after " in said
