# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""`./bazelw run //:lint` over work trees with faults: it fails, and names their files."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping

import pytest

LINT = pathlib.Path("toolchains/lint/lint.py").absolute()
CLEAN = {
    "a/BUILD.bazel": '# A folder.\nload(":a.bzl", "f")\n\nf(name = "x")\n',
    # Neither tables nor code have a greatest length.
    "CODE.md": "| " + "x" * 120 + " |\n\n    " + "x" * 120 + "\n\n```\n" + "x" * 120 + "\n```\n",
    "python/aiter_attn/__init__.py": '"""Doc."""\n',
}
# The check -> the path and the text of a file that it finds something in.
MENDED = {
    "ruff check": ("a.py", '"""Doc."""\n\nimport os\n\nx = 1\n'),
    "ruff format": ("b.py", '"""Doc."""\nx=1\n'),
    "buildifier": (
        "a/a.bzl",
        '"""Doc."""\n\nload(":z.bzl", "z")\nload("//a:y.bzl", "y")\n\ndef f(name):\n'
        '    """Calls."""\n    y(name)\n    z(name)\n',
    ),
    "buildifier for external repositories": ("b.BUILD.bazel", "filegroup(name='b')\n"),
    "clang-format": ("c.cc", "int main(){return 0;}\n"),
}
UNMENDED = {
    "ruff check": ("c.py", '"""Doc."""\n\nx = y\n'),
    "buildifier": ("a/b.bzl", '"""Doc."""\n\ndef f(x, y):\n    """Calls."""\n    f(x)\n'),
    "columns": ("README.md", "x" * 50 + " " + "y" * 50 + "\n"),
    "documents": ("DEAD.md", "[a page](gone.md)\n"),
    "prose": ("SAID.md", "What it is.\n"),
    "mypy": ("python/aiter_attn/bad.py", '"""Doc."""\n\nx: int = "1"\n'),
}
Fault = tuple[str, tuple[str, str]]
Lint = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def mypy_cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """For all runs, of which each would read the standard library's stubs anew."""
    return str(tmp_path_factory.mktemp("mypy"))


@pytest.fixture
def lint(tmp_path: pathlib.Path, mypy_cache: str) -> Lint:
    """Runs lint over CLEAN and other files; git tracks none of them yet."""
    programs = [
        f"--{name}={pathlib.Path(os.environ[name.upper()]).absolute()}"
        for name in ("buildifier", "clang_format", "ruff")
    ]
    subprocess.run(["git", "init", "-q", tmp_path], check=True)

    def run(
        files: Mapping[str, str], *options: str, tidy: str = "FLAWLESS"
    ) -> subprocess.CompletedProcess[str]:
        for path, text in (CLEAN | files).items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        return subprocess.run(
            [
                *(sys.executable, LINT, *programs),
                f"--clang_tidy={pathlib.Path(os.environ['CLANG_TIDY_' + tidy]).absolute()}",
                *options,
            ],
            env=os.environ
            | {"BUILD_WORKSPACE_DIRECTORY": str(tmp_path), "MYPY_CACHE_DIR": mypy_cache},
            capture_output=True,
            text=True,
        )

    return run


def check_failed(got: subprocess.CompletedProcess[str], faults: Iterable[Fault]) -> None:
    """Checks that these are told of, and no others."""
    assert got.returncode == 1
    checks = dict.fromkeys(check for check, _ in faults)
    assert f"lint: failed: {', '.join(checks)}. " in got.stderr
    for _, (path, _) in faults:
        assert path in got.stdout + got.stderr


def test_every_fault_is_told_of(lint: Lint) -> None:
    faults = [*MENDED.items(), *UNMENDED.items()]
    check_failed(lint(dict(fault for _, fault in faults)), faults)


def test_what_can_be_mended_is(lint: Lint) -> None:
    got = lint(dict(MENDED.values()), "--fix")
    assert (got.returncode, "FAILED" in got.stdout) == (0, False), got.stdout + got.stderr


def test_what_cannot_be_mended_fails_with_fix_too(lint: Lint) -> None:
    got = lint(dict(UNMENDED.values()), "--fix")
    check_failed(got, UNMENDED.items())


def test_what_clang_tidy_found_is_told(lint: Lint) -> None:
    got = lint({}, tidy="FLAWED")
    fault = "toolchains/lint/tests/flawed.cc:5:5: "
    check_failed(got, [("clang-tidy", (fault, ""))])
    assert "[bugprone-suspicious-semicolon" in got.stderr


def test_reference_page_is_written_by_fix(lint: Lint) -> None:
    header = {"aiter/attn.h": "ATTN_API int attn_f(void);\n", "aiter/norm.h": "int norm;\n"}
    line = {"docs/reference.toml": '[c]\nattn_f = "a function"\n'}
    check_failed(lint(header | line), [("reference", ("docs/reference.md", ""))])
    assert lint({}, "--fix").returncode == 0
    assert lint({}).returncode == 0
    more = {"aiter/attn.h": "ATTN_API int attn_f(void);\nATTN_API int attn_g(void);\n"}
    check_failed(lint(more, "--fix"), [("reference", ("[c] has no line for attn_g", ""))])
