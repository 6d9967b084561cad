# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Tells that an executor lets a build wait: for workers, as a rule.

An engine may keep an action for ever that none of its workers can take, and Bazel has no limit.
"""

from __future__ import annotations

_PATIENCE = 20.0


class Waiting:
    """Follows the actions of a build that are executed elsewhere."""

    def __init__(self, executor: str) -> None:
        """`executor`: its URL, as it may be shown."""
        self._executor = executor
        self._completed = 0
        self._since = 0.0

    def line(self, completed: int, now: float) -> str:
        """Says so while no action has been completed for long; else "".

        Args:
          completed: how many were. Before the first one, a build loads and analyses.
          now: seconds, from any moment on.
        """
        if completed != self._completed:
            self._completed, self._since = completed, now
        if not completed or now - self._since < _PATIENCE:
            return ""
        return (
            f"no action has ended for {_PATIENCE:.0f} s: {self._executor} has no free worker of "
            "their pools, or its network is slow; look at its workers, or end with Ctrl-C "
            "(docs/scale.md)"
        )
