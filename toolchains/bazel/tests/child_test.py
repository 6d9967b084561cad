# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A program that bazelw waits for is as if it had taken bazelw's place."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from toolchains.bazel import child

_RUN = """
import os, sys
sys.path[:0] = {path!r}
from toolchains.bazel import child
ticks = []
def tick():
    ticks.append(1)
    return False
status = child.run([sys.executable, "-c", sys.argv[1]], tick, 0.05)
print("ticks", len(ticks) > 2, flush=True)
child.end_as(status)
"""
# Says which signals it gets, and ends at the second.
_SIGNALLED = """
import os, signal, time
def got(number, frame):
    os.write(1, signal.Signals(number).name.encode() + b"\\n")
for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(one, got)
os.write(1, b"ready\\n")
time.sleep(1)
os.write(1, b"end\\n")
"""


def _start(program: str) -> subprocess.Popen[str]:
    code = _RUN.format(path=sys.path)
    return subprocess.Popen(
        [sys.executable, "-c", code, program],
        text=True,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )


@pytest.mark.parametrize("code", [0, 1, 8, 37, 255])
def test_the_exit_code_is_kept(code: int) -> None:
    process = _start(f"import time; time.sleep(.3); raise SystemExit({code})")
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (code, "ticks True\n")


def test_the_signal_that_ended_it_ends_us() -> None:
    process = _start("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_for_us_alone_is_forwarded(number: signal.Signals) -> None:
    process = _start(_SIGNALLED)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert out.splitlines()[:2] == [number.name, "end"]
    assert process.returncode == 0


def test_it_is_interrupted_on_request() -> None:
    status = child.run(["/bin/sleep", "600"], lambda: True, 0.05)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGINT


def test_ctrl_c_reaches_it_once() -> None:
    """The terminal sends it to both: a second one would make Bazel more impatient."""
    master, slave = pty.openpty()
    code = _RUN.format(path=sys.path)
    pid = os.fork()
    if not pid:
        os.login_tty(slave)
        os.execv(sys.executable, [sys.executable, "-c", code, _SIGNALLED])  # noqa: S606
    os.close(slave)
    said = b""
    while b"ready" not in said:
        said += os.read(master, 1000)
    os.write(master, b"\x03")
    while b"ticks" not in said:
        said += os.read(master, 1000)
    _, status = os.waitpid(pid, 0)
    assert said.count(b"SIGINT") == 1, said
    assert os.waitstatus_to_exitcode(status) == 0


def test_it_has_the_terminal() -> None:
    master, slave = pty.openpty()
    code = _RUN.format(path=sys.path)
    program = "import os; print(all(map(os.isatty, (0, 1, 2))))"
    got = subprocess.run(
        [sys.executable, "-c", code, program], stdin=slave, stdout=slave, stderr=slave
    )
    assert got.returncode == 0
    assert b"True" in os.read(master, 1000)


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with pytest.raises(FileNotFoundError):
        child.run([str(tmp_path / "no")], lambda: False, 1.0)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_a_signal_before_the_child_runs_is_not_lost() -> None:
    """It is blocked from then on: the child does not start with it blocked."""
    process = _start("import signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, ()))")
    out, _ = process.communicate(timeout=60)
    assert out.splitlines()[0] == "set()"
