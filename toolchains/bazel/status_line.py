# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A line at the bottom of the terminal, below what Bazel draws.

Bazel moves the cursor up over its own lines, so that a line among them would be drawn over, and
spoil them. The last line is taken out of the region that scrolls, as apt does: Bazel never gets
there.
"""

from __future__ import annotations

import os
import sys

_SAVE, _RESTORE, _CLEAR = "\0337", "\0338", "\033[K"
_FEWEST_LINES = 8


class StatusLine:
    """Of the terminal that stderr is. Nothing is changed before the first `show`."""

    def __init__(self) -> None:
        self._size: os.terminal_size | None = None

    def show(self, text: str) -> None:
        """Shows a text, cut to the terminal's width."""
        size = os.get_terminal_size(sys.stderr.fileno())
        if size.lines < _FEWEST_LINES:
            return
        parts = []
        if size != self._size:
            # The region's start moves the cursor to the top: it is put back, above the last line.
            region = f"\033[1;{size.lines - 1}r"
            parts = ["\n" if self._size is None else "", _SAVE, region, _RESTORE]
            parts += ["\033[1A"] if self._size is None else []
            self._size = size
        shown = text[: size.columns - 1]
        parts += [_SAVE, f"\033[{size.lines};1H", shown, _CLEAR, _RESTORE]
        self._write("".join(parts))

    def close(self) -> None:
        """Gives the line back to the terminal."""
        if self._size is not None:
            lines = self._size.lines
            self._write(f"{_SAVE}\033[1;{lines}r\033[{lines};1H{_CLEAR}{_RESTORE}")
            self._size = None

    @staticmethod
    def _write(text: str) -> None:
        # One call: what Bazel writes does not come in between.
        os.write(sys.stderr.fileno(), text.encode())
