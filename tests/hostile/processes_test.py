# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Acts of processes on the package: exits, forks, signals, limits. The programs: scenarios.py."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

# Python 3.12 and newer warn of a fork in a process with threads.
_OPTIONS = ("-W", "ignore::DeprecationWarning", "-m", "tests.hostile.scenarios")
# A scenario that has not ended by then hangs.
_SECONDS = 200
_EXITS = 20


def run(*scenario: str) -> str:
    """Its standard output. Asserts that it ended by itself, without a word on standard error."""
    done = subprocess.run(
        [sys.executable, *_OPTIONS, *scenario],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert (done.returncode, done.stderr) == (0, ""), f"{scenario}: {done.stdout}"
    return done.stdout.strip()


def test_threads_that_call_when_the_interpreter_exits() -> None:
    for _ in range(_EXITS):
        run("daemon_threads_at_exit")


def test_children_of_a_process_whose_threads_call() -> None:
    assert run("fork_while_threads_call") == "0 of 100 failed"


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_multiprocessing(method: str) -> None:
    assert run(f"pool_of_{method}") == "right"


@pytest.mark.parametrize("first", ["main", "other"])
def test_a_subinterpreter_works_or_says_why_not(first: str) -> None:
    found = run("subinterpreter", first)
    assert re.match(r"works: \d|ImportError: .*interpreter", found), found


@pytest.mark.parametrize(
    ("by", "error"), [("SIGINT", "KeyboardInterrupt"), ("SIGALRM", "AlarmedError")]
)
def test_a_signal_ends_a_long_call(by: str, error: str) -> None:
    found = re.fullmatch(rf"{error} after ([\d.]+) s", run("interrupted", by))
    assert found
    assert float(found[1]) < 1.0


def test_a_handler_that_returns_ends_nothing() -> None:
    assert run("handler_that_returns") == "right, with signals handled"


@pytest.mark.parametrize("extra", ["0", "0.5", "4", "64"])
def test_memory_runs_out(extra: str) -> None:
    assert run("little_memory", extra) in ("MemoryError", "OutOfMemoryError")


def test_threads_with_stacks_of_64_kilobytes() -> None:
    assert run("small_stacks") == "8 right"


@pytest.mark.parametrize("most", ["3", "4", "6", "16"])
def test_an_import_with_few_open_files(most: str) -> None:
    found = run("import_with_few_files", most)
    assert found == "works" if most == "16" else re.match(r"works|ImportError|OSError", found), (
        found
    )


@pytest.mark.parametrize("closed", ["0", "1", "2", "012"])
def test_closed_standard_files(closed: str, tmp_path: Path) -> None:
    path = tmp_path / "found"
    run("closed_standard_files", str(path), closed)
    assert path.read_text().startswith("q: dtype int8; allowed: float16")
