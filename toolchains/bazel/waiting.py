# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Tells that an executor lets a build wait, for workers as a rule; ends one that waits for long.

An engine may keep an action for ever that none of its workers can take, and Bazel has no limit.
"""

from __future__ import annotations

_PATIENCE = 20.0
_LIMIT = 1800.0
# From one interruption to the next: Bazel tidies up after the first, and ends at the third.
_AGAIN = 60.0


class Waiting:
    """Follows the actions of a build that are executed elsewhere."""

    def __init__(self, executor: str) -> None:
        """`executor`: its URL, as it may be shown."""
        self._executor = executor
        self._completed = 0
        self._since = 0.0
        self._interrupted = 0.0

    def line(self, completed: int, works_here: bool, now: float) -> str:
        """Says so while no action has been completed for long; else "".

        Args:
          completed: how many were. Before the first one, a build loads and analyses.
          works_here: whether a command runs on this machine, as tests do.
          now: seconds, from any moment on.
        """
        if completed != self._completed or works_here:
            self._completed, self._since = completed, now
        if not completed or now - self._since < _PATIENCE:
            return ""
        return (
            f"no action has ended for {_PATIENCE:.0f} s: {self._executor} has no free worker of "
            "their pools, or its network is slow; look at its workers, or end with Ctrl-C; after "
            f"{_LIMIT / 60:.0f} min the build is ended (docs/scale.md)"
        )

    def is_over(self, now: float) -> bool:
        """Whether to interrupt the build now, after `line` was asked."""
        if not self._completed or now - self._since < _LIMIT or now - self._interrupted < _AGAIN:
            return False
        self._interrupted = now
        return True
