# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The output of the program, and its message about an unknown set or arch."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kernels.archs.archs import read_archs
from kernels.ck_fmha.groups.groups import Proof, lock_text
from kernels.matrix import choice, matrix

KNOWN = ", ".join(read_archs(os.environ["ARCHS"]))


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    files = {"pool": "POOL", "readme": "README", "archs_file": "ARCHS", "lock": "LOCK"}
    given = [f"--{flag}={os.environ[name]}" for flag, name in files.items()]
    return subprocess.run(
        [sys.executable, "-B", matrix.__file__, *given, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_the_text_adds_up() -> None:
    done = run("--variants=core", "--archs=gfx950")
    assert done.returncode == 0, done.stderr
    assert "core for gfx950: 56 kernel instances" in done.stdout
    lines = re.findall(r"^(\w+) +(\w+) +(\w+) +(\d+) +(\d+) +(\d+) +(\d+)$", done.stdout, re.M)
    table = {tuple(found[:3]): tuple(map(int, found[3:])) for found in lines}
    ck = {key[1:]: numbers for key, numbers in table.items() if key[0] == "ck"}
    assert {key: numbers[:3] for key, numbers in ck.items()} == {
        ("fwd", "64"): (4, 4, 8),
        ("fwd", "128"): (6, 6, 12),
        ("fwd", "all"): (10, 10, 20),
        ("bwd", "64"): (8, 8, 16),
        ("bwd", "128"): (9, 11, 20),
        ("bwd", "all"): (17, 19, 36),
        ("all", "all"): (27, 29, 56),
    }
    assert ck["all", "all"][3] == pytest.approx(ck["fwd", "all"][3] + ck["bwd", "all"][3], abs=2)
    # AITER's objects: with and without a mask, in batch and group mode, not compiled.
    assert table["asm", "fwd", "128"] == table["asm", "fwd", "192x128"] == (4, 0, 4, 0)
    assert table["asm", "fwd", "all"] == (8, 0, 8, 0)
    groups = "56 instances in 10 compile groups (with 4 kernels of other sets), 0 alone"
    assert groups in done.stdout


def test_a_manifest_of_qolas() -> None:
    done = run(f"--file={os.environ['MANIFEST']}", "--archs=gfx942,gfx950")
    assert done.returncode == 0, done.stderr
    assert "te for gfx942: 4,512 kernel instances (884 are left out)" in done.stdout
    assert "te for gfx950: 5,396 kernel instances" in done.stdout


def test_what_is_proven_is_counted(tmp_path: Path) -> None:
    """Of each group all members but the first."""
    groups = json.loads(Path(os.environ["POOL"]).read_text("utf-8"))["groups"]
    proofs = {
        group: {member: Proof("0" * 64, "1" * 64, "" if number else "differs")
                for number, member in enumerate(members)}
        for group, members in groups.items()
    }  # fmt: skip
    lock = tmp_path / "lock.json"
    lock.write_text(lock_text({"gfx942": {}, "gfx950": proofs}))
    of_core = ("--variants=core", f"--lock={lock}")
    assert "the same in both ways: 47." in run(*of_core, "--archs=gfx950").stdout
    assert "the same in both ways: 0." in run(*of_core, "--archs=gfx942").stdout


def test_locks_beside_variant_sets_count_as_well(tmp_path: Path) -> None:
    groups = json.loads(Path(os.environ["POOL"]).read_text("utf-8"))["groups"]
    proofs = {name: dict.fromkeys(ms, Proof("0" * 64, "1" * 64)) for name, ms in groups.items()}
    (tmp_path / "README.md").touch()
    core = Path(os.environ["README"]).with_name("core.toml").read_text()
    (tmp_path / "mine.toml").write_text(core)
    own = tmp_path / "mine.lock.json"
    own.write_text(lock_text({"gfx942": proofs}))
    asked = ("--variants=mine", f"--readme={tmp_path / 'README.md'}")
    assert "the same in both ways: 48." in run(*asked).stdout
    own.write_text("[]")
    done = run(*asked)
    assert done.returncode == 1
    assert done.stderr.startswith("matrix: kernels/variants/mine.lock.json cannot be read: ")


def test_json_has_each_set_for_each_architecture() -> None:
    done = run("--variants=smoke,directions", "--archs=gfx942,gfx950", "--format=json")
    reports = json.loads(done.stdout)
    assert [(each["variant_set"], each["arch"]) for each in reports] == [
        ("smoke", "gfx942"),
        ("smoke", "gfx950"),
        ("directions", "gfx942"),
        ("directions", "gfx950"),
    ]
    for each in reports:
        of_ck = [entry for entry in each["counts"] if entry["provider"] == "ck"]
        assert sum(entry["instances"] for entry in of_ck) == each["instances"]
        asm = [e for e in each["counts"] if (e["provider"], e["direction"]) == ("asm", "fwd")]
        objects = sum(entry["instances"] for entry in asm)
        assert objects == {"gfx942": 24, "gfx950": 8}[each["arch"]]
        of_cells = sum(entry["cpu_seconds_alone"] for entry in each["counts"])
        assert each["compile"]["cpu_seconds_alone"] == pytest.approx(of_cells, abs=2)
    assert {entry["direction"] for entry in reports[2]["counts"]} == {
        "fwd",
        "bwd",
        "fwd_splitkv",
        "fwd_pagedkv",
        "fwd_appendkv",
        "fwd_batch_prefill",
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--variants=tee"],
            "matrix: --variants: unknown variant set 'tee'; known: bench, beside_asm",
        ),
        (["--variants="], "matrix: --variants: name at least one variant set; known: bench"),
        (
            ["--archs=gfx942,gfx9"],
            f"--archs: unknown arch 'gfx9'; known: {KNOWN}",
        ),
        (["--file=/no/such"], "matrix: --file: /no/such: No such file or directory; name a"),
        (["--file=/dev/null", "--missing"], "matrix: --file: --missing asks about a set of"),
        (["te"], "what is 'te'?"),
        (["--missing"], "run it through Bazel: ./bazelw run //kernels:matrix -- --missing"),
        (["--missing", "--jobs=0"], "--jobs=0: no compile would run; allowed: numbers from 1"),
        (["--jobs=1"], "--jobs=1 is of --missing: give that, too"),
        (["--golden"], "run it through Bazel: ./bazelw run //kernels:matrix -- --golden"),
    ],
)
def test_refusals(arguments: list[str], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BUILD_WORKSPACE_DIRECTORY", raising=False)
    done = run(*arguments)
    assert done.returncode != 0
    assert words in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


def test_a_set_that_is_broken_is_named(tmp_path: Path) -> None:
    (tmp_path / "README.md").touch()
    (tmp_path / "odd.toml").write_text("[[variants]]\nmsak = true\n")
    (tmp_path / "Not-A-Set.toml").touch()
    done = run("--variants=odd", f"--readme={tmp_path / 'README.md'}")
    assert done.returncode == 1
    assert done.stderr.startswith("matrix: kernels/variants/odd.toml: [[variants]] #1: unknown key")
    done = run("--variants=Not-A-Set", f"--readme={tmp_path / 'README.md'}")
    assert "unknown variant set 'Not-A-Set'; known: odd\n" in done.stderr


def test_an_architecture_without_any_instance_of_a_set() -> None:
    rows = [
        {"name": "a", "left_out": {"gfx90a": "no fp8"}},
        {"name": "b", "left_out": {"gfx90a": "too little LDS"}},
    ]
    assert choice.present("te", "gfx942", rows) == rows
    with pytest.raises(choice.ChoiceError) as refused:
        choice.present("te", "gfx90a", rows)
    assert str(refused.value) == (
        "variant set te has no instance for gfx90a: all 2 are left out: "
        "no fp8; too little LDS (kernels/archs/gfx90a.json)"
    )
