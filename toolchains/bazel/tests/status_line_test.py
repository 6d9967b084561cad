# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The line below a terminal's region that scrolls."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import sys
import termios
from collections.abc import Callable, Iterator

import pytest

from toolchains.bazel.status_line import StatusLine

_COLUMNS = 20


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], Callable[[], str]]]:
    """Makes stderr a terminal of so many lines; returns a function that reads what it got."""
    ends = pty.openpty()
    master, slave = ends

    def make(lines: int) -> Callable[[], str]:
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, _COLUMNS, 0, 0))
        attributes = termios.tcgetattr(slave)
        attributes[1] &= ~termios.OPOST
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        monkeypatch.setattr(sys, "stderr", os.fdopen(os.dup(slave), "w"))
        os.set_blocking(master, False)

        def got() -> str:
            try:
                return os.read(master, 10_000).decode()
            except BlockingIOError:
                return ""

        return got

    yield make
    for end in ends:
        os.close(end)


def test_the_last_line_is_taken_and_given_back(
    terminal: Callable[[int], Callable[[], str]],
) -> None:
    got = terminal(12)
    line = StatusLine()
    assert got() == ""
    line.show("one")
    # A new line, so that there is one; the region of the others; the cursor as it was.
    assert got() == "\n\0337\033[1;11r\0338\033[1A\0337\033[12;1Hone\033[K\0338"
    line.show("x" * 50)
    assert got() == f"\0337\033[12;1H{'x' * (_COLUMNS - 1)}\033[K\0338"
    line.close()
    assert got() == "\0337\033[1;12r\033[12;1H\033[K\0338"
    line.close()
    assert got() == ""


def test_a_terminal_that_gets_another_size(
    terminal: Callable[[int], Callable[[], str]],
) -> None:
    got = terminal(12)
    line = StatusLine()
    line.show("one")
    got()
    got = terminal(30)
    line.show("two")
    assert got() == "\0337\033[1;29r\0338\0337\033[30;1Htwo\033[K\0338"


def test_a_terminal_without_room(terminal: Callable[[int], Callable[[], str]]) -> None:
    got = terminal(5)
    line = StatusLine()
    line.show("one")
    line.close()
    assert got() == ""
