# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Messages of bazelw to its user."""

from __future__ import annotations

import sys


def note(message: str) -> None:
    print(f"bazelw: {message}", file=sys.stderr, flush=True)


class Progress:
    """One line that is rewritten in place; nothing at all where stderr is not a terminal."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()

    def show(self, message: str) -> None:
        if self._shown:
            print(f"\r\033[Kbazelw: {message}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
