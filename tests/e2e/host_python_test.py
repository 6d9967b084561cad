# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Wheels for a Python of the machine's, by its own headers: built, installed and run.

PYTHON is a program of that Python; bazelw runs on it, too.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import uuid
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import clone, differences

PYTHON = Path(os.environ["PYTHON"])
SHORT = os.environ["VERSION"]
TAG = "cp" + SHORT.replace(".", "")
LOCKED = ("cp311", "cp313", "cp314")
WHEEL = "//python:attn_wheel"
# Needs no other repository: a change of AITER_ATTN_STRICT fetches all that are locked anew.
MACHINE_HEADERS = "//toolchains/python:machine_headers"
SMOKE = "--//kernels:variants=smoke"
ABI = "--//toolchains/python:abi="
HEADERS = "AITER_ATTN_PYTHON_HEADERS"
# An action of each kind: kernels, objects of the library, and the extension's own.
COMPILES = ("HipCodeObject", "CppCompile")


def ask(program: str) -> str:
    done = subprocess.run(
        [str(PYTHON), "-I", "-c", program], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def folder() -> Path:
    return Path(ask("import sysconfig; print(sysconfig.get_path('include'))"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clone.Clone]:
    made = clone.Clone(tmp_path_factory.mktemp("host"), "python", clone.shared_disk_cache())
    # `python3` is that Python, for bazelw and for repository rules.
    programs = made.home / "bin"
    programs.mkdir()
    (programs / "python3").symlink_to(PYTHON)
    made.wrapper = ["env", f"PATH={programs}:{os.environ['PATH']}"]
    yield made
    made.close()


def built(project: clone.Clone, abi: str, tag: str, to: Path) -> tuple[Path, str]:
    """Builds a wheel and keeps it in a folder. Returns it, and what the build said."""
    said = project.bazel("build", SMOKE, ABI + abi, WHEEL).stdout
    (wheel,) = (project.root / "bazel-bin/python").glob(f"*-{tag}-*.whl")
    return Path(shutil.copy(wheel, to)), said


@pytest.fixture(scope="module")
def wheel(project: clone.Clone, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The wheel by the machine's headers, and what its build said."""
    return built(project, "host", TAG, tmp_path_factory.mktemp("wheels"))


def test_the_build_and_the_wheel_say_whose_headers_they_are(wheel: tuple[Path, str]) -> None:
    file, said = wheel
    version = ask("import platform; print(platform.python_version())")
    assert f"headers of Python {version} of this machine" in said
    assert "not locked" in said
    assert f"-{TAG}-{TAG}-manylinux_" in file.name
    with zipfile.ZipFile(file) as contents:
        names = contents.namelist()
        manifest = json.loads(contents.read("aiter_attn/manifest.json"))
        (sbom,) = (json.loads(contents.read(n)) for n in names if n.endswith(".cdx.json"))
        (metadata,) = (name for name in names if name.endswith("dist-info/METADATA"))
        assert "Requires-Python: >=3.10\n" in contents.read(metadata).decode()
        (about,) = (name for name in names if name.endswith("dist-info/WHEEL"))
        assert f"Tag: {TAG}-{TAG}-manylinux_" in contents.read(about).decode()
    suffix = ask("import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))")
    assert [n for n in names if n.startswith("aiter_attn/_C.c")] == [f"aiter_attn/_C{suffix}"]
    assert manifest["machine_headers"]["version"] == version
    assert manifest["machine_headers"]["sha256"] in said
    (headers,) = (c for c in sbom["components"] if c["name"] == "python-headers")
    assert headers["version"] == version
    assert headers["hashes"][0]["content"] == manifest["machine_headers"]["sha256"]


def test_it_is_installed_and_runs(wheel: tuple[Path, str], tmp_path: Path) -> None:
    file, _ = wheel
    subprocess.run([str(PYTHON), "-m", "venv", str(tmp_path / "venv")], check=True)
    python = tmp_path / "venv/bin/python"
    needed = [str(file), "numpy", "ml_dtypes"]
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *needed], check=True)

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [str(python), "-I", "-m", "aiter_attn", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert ", 0 failed, " in run("selftest")
    told = json.loads(run("info", "--json"))
    assert told["python"].startswith(SHORT + ".")
    assert told["machine_headers"]["version"] == told["python"]
    assert f"not locked headers of Python {told['python']}" in run("info")


def test_the_same_headers_elsewhere_are_the_same_actions(
    project: clone.Clone, wheel: tuple[Path, str], folder: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "include" / folder.name
    shutil.copytree(folder, elsewhere)
    machine = folder.parent / "x86_64-linux-gnu" / folder.name
    if machine.is_dir():
        shutil.copytree(machine, tmp_path / "include/x86_64-linux-gnu" / folder.name)
    spawns = project.build(SMOKE, ABI + "host", WHEEL, f"--repo_env={HEADERS}={elsewhere}")
    assert not [s for s in COMPILES if spawns.executed[s]], spawns.executed
    (again,) = (project.root / "bazel-bin/python").glob(f"*-{TAG}-*.whl")
    assert clone.sha256(again) == clone.sha256(wheel[0])
    # Other headers are other keys: the extension is compiled anew, and no kernel. These headers
    # have never been: a cache that outlasts this run has results for its last ones.
    level = elsewhere / "patchlevel.h"
    level.chmod(0o644)
    level.write_text(level.read_text() + f"/* {uuid.uuid4()} */\n")
    spawns = project.build(SMOKE, ABI + "host", WHEEL, f"--repo_env={HEADERS}={elsewhere}")
    assert spawns.executed["CppCompile"] > 0
    assert spawns.executed["HipCodeObject"] == 0
    (changed,) = (project.root / "bazel-bin/python").glob(f"*-{TAG}-*.whl")
    lines = differences.of_wheels(wheel[0], changed)
    found = [line.split(":")[0].rpartition("/")[2] for line in lines]
    assert sorted(found) == ["RECORD", "aiter-attn.cdx.json", "manifest.json"], lines


def refused(project: clone.Clone, abi: str, *words: str, **env: str) -> None:
    said = project.bazel("cquery", ABI + abi, MACHINE_HEADERS, expect=1, **env).stdout
    for word in words:
        assert word in said, f"{word!r} is not in:\n{said[-3000:]}"


def files(project: clone.Clone, abi: str, strict: str) -> list[str]:
    """The files that a wheel's manifest would tell the headers of."""
    command = ("cquery", "--output=files", ABI + abi, MACHINE_HEADERS)
    lines = project.bazel(*command, AITER_ATTN_STRICT=strict).stdout.splitlines()
    return [line for line in lines if line.endswith("host_python_headers/headers.json")]


def test_strict_takes_them_by_name_alone(project: clone.Clone) -> None:
    assert len(files(project, "host", "1")) == 1
    if TAG in LOCKED:
        assert files(project, "auto", "1") == files(project, "auto", "0") == []
        return
    assert len(files(project, "auto", "0")) == 1
    version = ask("import platform; print(platform.python_version())")
    refused(
        project,
        "auto",
        f"machine's Python is {version}",
        "AITER_ATTN_STRICT=1",
        "abi=host",
        "cp311 (of Debian bookworm)",
        AITER_ATTN_STRICT="1",
    )


def test_headers_that_serve_no_build_are_refused_by_name(
    project: clone.Clone, tmp_path: Path
) -> None:
    refused(project, "host", str(tmp_path), "there is no Python.h", **{HEADERS: str(tmp_path)})
    (tmp_path / "Python.h").touch()
    for version, config, word in (
        ("3.9.18", "", "too old; 3.10 or newer"),
        ("3.13.1", "#define Py_GIL_DISABLED 1\n", "free-threaded build (cp313t)"),
    ):
        major, minor, _ = version.split(".")
        (tmp_path / "patchlevel.h").write_text(
            f"#define PY_MAJOR_VERSION {major}\n#define PY_MINOR_VERSION {minor}\n"
            f'#define PY_VERSION "{version}"\n'
        )
        (tmp_path / "pyconfig.h").write_text(config + "#define HAVE_ALARM 1\n")
        for abi in ("auto", "host"):
            refused(project, abi, version, word, "cp313", **{HEADERS: str(tmp_path)})


def test_tests_are_refused_in_one_line(project: clone.Clone) -> None:
    target = "//toolchains/python/tests:py_tool_test"
    said = project.bazel("build", "--nobuild", ABI + "host", target, expect=1).stdout
    assert "tests run on locked Pythons alone" in said


def test_beside_locked_headers_the_wheel_differs_in_what_headers_explain(
    project: clone.Clone, wheel: tuple[Path, str], tmp_path: Path
) -> None:
    """Versions that differ in their last part alone have the same structs and inline functions:
    the extension is the same, byte by byte, and three files tell of the headers. A version that
    no locked headers are of is refused by the name of its ABI."""
    if TAG not in LOCKED:
        refused(project, TAG, f"abi={TAG}: no such ABI", "host", "cp311 (of Debian bookworm)")
        return
    locked, _ = built(project, TAG, TAG, tmp_path)
    with zipfile.ZipFile(locked) as contents:
        assert "machine_headers" not in json.loads(contents.read("aiter_attn/manifest.json"))
    lines = differences.of_wheels(locked, wheel[0])
    found = [line.split(":")[0].rpartition("/")[2] for line in lines]
    assert sorted(found) == ["RECORD", "aiter-attn.cdx.json", "manifest.json"], lines
