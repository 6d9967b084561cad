# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Formats and lints the whole tree.

`./bazelw run //:lint` checks, `./bazelw run //:lint -- --fix` mends. Every tool is locked (see
//toolchains/pypi and npm); the files are those git tracks or would track, so that nothing
generated is looked at. Exit status 0 only if every tool is content.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from absl import app, flags

from toolchains.lint import columns, documents, prose, reference

FIX = flags.DEFINE_bool("fix", False, "rewrite files instead of reporting differences")
RUFF = flags.DEFINE_string("ruff", None, "path of the ruff binary", required=True)
BUILDIFIER = flags.DEFINE_string("buildifier", None, "path of the buildifier binary", required=True)
CLANG_FORMAT = flags.DEFINE_string("clang_format", None, "path of clang-format", required=True)
CLANG_TIDY = flags.DEFINE_string("clang_tidy", None, "path of clang-tidy's report", required=True)

# Roots of type checking: the shipped package, and the tools with a stable interface.
MYPY_ROOTS = ("python/aiter_attn",)


@dataclasses.dataclass(frozen=True)
class Check:
    """One tool over the files it is for. `command` gets the mode and ends before the file names."""

    name: str
    matches: Callable[[str], bool]
    check: Sequence[str]
    fix: Sequence[str]


def is_python(path: str) -> bool:
    return path.endswith((".py", ".pyi")) or path == "bazelw"


def is_foreign_build(path: str) -> bool:
    """A BUILD file for an external repository; buildifier does not recognise its name."""
    return path.endswith(".BUILD.bazel")


def is_starlark(path: str) -> bool:
    starlark = path.endswith((".bzl", ".bazel")) or Path(path).name == "WORKSPACE"
    return starlark and not is_foreign_build(path)


def is_cpp(path: str) -> bool:
    return path.endswith((".c", ".cc", ".cpp", ".h", ".hpp", ".hip"))


def tracked_files(root: Path) -> list[str]:
    """Files of the work tree that git tracks or would track, relative to root, sorted."""
    out = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    return sorted(p for p in out.split("\0") if p and (root / p).is_file())


def checks() -> list[Check]:
    # The paths are relative to the runfiles; the tools run in the work tree.
    programs = (RUFF.value, BUILDIFIER.value, CLANG_FORMAT.value)
    ruff, buildifier, clang_format = map(os.path.abspath, programs)
    return [
        Check("ruff check", is_python, [ruff, "check", "-q"], [ruff, "check", "-q", "--fix"]),
        Check("ruff format", is_python, [ruff, "format", "--diff", "-q"], [ruff, "format", "-q"]),
        Check(
            "buildifier",
            is_starlark,
            [buildifier, "-mode=check", "-lint=warn"],
            [buildifier, "-mode=fix", "-lint=fix"],
        ),
        Check(
            "buildifier for external repositories",
            is_foreign_build,
            [buildifier, "-type=build", "-mode=check", "-lint=warn"],
            [buildifier, "-type=build", "-mode=fix", "-lint=fix"],
        ),
        Check("clang-format", is_cpp, [clang_format, "--dry-run", "-Werror"], [clang_format, "-i"]),
    ]


def run(command: Sequence[str], files: Iterable[str], root: Path) -> bool:
    return subprocess.run([*command, *files], cwd=root).returncode == 0


def mypy(root: Path) -> bool:
    """Runs mypy as a module of this interpreter, so that it is the locked one. It keeps a cache in
    MYPY_CACHE_DIR, else none."""
    roots = [r for r in MYPY_ROOTS if (root / r).is_dir()]
    path = os.pathsep.join(p for p in sys.path if p)
    env = {"MYPY_CACHE_DIR": os.devnull, **os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-m", "mypy", "--no-error-summary"]
    return subprocess.run([*command, *roots], cwd=root, env=env).returncode == 0


def _lines_of(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").splitlines()


def report(name: str, scope: str, failed: Sequence[str]) -> None:
    print(f"lint: {name}: {scope}: {'FAILED' if name in failed else 'ok'}", flush=True)


def main(argv: Sequence[str]) -> int:
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]!r}; the only option is --fix")
    workspace = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    if not workspace:
        raise app.UsageError("run it through Bazel: ./bazelw run //:lint")
    root = Path(workspace)
    files = tracked_files(root)
    failed = []
    for check in checks():
        chosen = [f for f in files if check.matches(f)]
        if chosen and FIX.value:
            run(check.fix, chosen, root)
        # Also after mending: buildifier is silent then about what it cannot mend.
        if chosen and not run(check.check, chosen, root):
            failed.append(check.name)
        report(check.name, f"{len(chosen)} files", failed)
    unwrapped = [f for f in files if columns.is_unwrapped(f)]
    for name, scope, findings in (
        ("reference", reference.PAGE, reference.check(root, files, FIX.value)),
        ("columns", f"{len(unwrapped)} files", columns.findings(root, unwrapped)),
        (
            "documents",
            "links, labels and file names of Markdown files",
            documents.findings(root, files),
        ),
        ("prose", "comments, docstrings and documents", prose.findings(root, files)),
        ("clang-tidy", "what //:clang_tidy depends on", _lines_of(CLANG_TIDY.value)),
    ):
        lines = list(findings)
        if lines:
            print("\n".join(lines), file=sys.stderr)
            failed.append(name)
        report(name, scope, failed)
    if not mypy(root):
        failed.append("mypy")
    report("mypy", ", ".join(MYPY_ROOTS), failed)
    if failed:
        print(
            f"lint: failed: {', '.join(failed)}. `./bazelw run //:lint -- --fix` mends formatting.",
            file=sys.stderr,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    app.run(main)
