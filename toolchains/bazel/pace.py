# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""An estimate of the time that is left, from the work that was done and its times."""

from __future__ import annotations

import bisect
from collections.abc import Collection

# An estimate is given from that share of the kernels on.
FIRST = 0.1
# Compiles that a pace is taken from, at least.
_FEWEST = 32


class Pace:
    """Work that is done by several at a time; times are in seconds, from any moment on.

    Work is in seconds of a processor, as expected before. A machine that has more to do, or gets
    results from a cache, has another pace.

    begin  when the work began
    jobs   how many compiles run at a time
    """

    def __init__(self, begin: float, jobs: int) -> None:
        self._jobs = jobs
        # Times, and all work that was done until then.
        self._done = [(begin, 0.0)]

    def add(self, work: float, now: float) -> None:
        """Takes a compile that was completed."""
        self._done.append((now, self._done[-1][1] + work))

    def left(self, rest: Collection[float], now: float) -> float | None:
        """Seconds until the rest of the compiles are done; None where nothing is known of them.

        rest: the work of each.
        """
        last, done = self._done[-1]
        count = len(self._done) - 1
        if not count:
            return None
        ahead = sum(rest)
        # The others that run are, on average, half done when one of them is completed. It is
        # likelier that a long one runs than a short one; none has had more time than the one that
        # was completed and those before it.
        running = sum(work * work for work in rest) / ahead if ahead else 0.0
        begun = min((self._jobs - 1) * min(running / 2, done), ahead)
        # The last half of the work says more of the machine as it is now.
        half = bisect.bisect_right(self._done, done / 2, key=lambda at: at[1]) - 1
        first = max(min(half, count - _FEWEST), 0)
        since, before = self._done[first]
        work = done - before + (0.0 if first else begun)
        if last <= since or not work:
            return None
        # As much as was begun is lost at the end, where the last ones wait for the very last.
        return max(ahead * (last - since) / work - (now - last), 0.0)
