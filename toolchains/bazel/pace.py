# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""An estimate of the time that is left, from the work that was done and its times."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

# A build that takes no longer needs no progress, in seconds.
PATIENCE = 60.0
# One that may take longer says so at once.
LONG = 180.0
# An estimate is given from that share of the kernels on.
FIRST = 0.1
# The share of its work that a compile which still runs counts with at most.
_MOST = 0.95
# Compiles that a pace is taken from, at least.
_FEWEST = 32


class Running(NamedTuple):
    """A compile that runs: its work, and the processor time that it has had."""

    work: float
    taken: float


class Pace:
    """Work that is done by several at a time; times are in seconds, from any moment on.

    Work is in seconds of a processor, as expected before. A machine that has more to do has another
    pace. Results from a cache take no time; as many of the rest are expected to be such.

    begin  when the work began
    jobs   how many compiles run at a time
    """

    def __init__(self, begin: float, jobs: int) -> None:
        self._jobs = jobs
        # Times, and all work that was done until then.
        self._done = [(begin, 0.0)]
        self._cached = 0.0

    def add(self, work: float, now: float) -> None:
        """Takes a compile that was completed."""
        self._done.append((now, self._done[-1][1] + work))

    def add_cached(self, work: float) -> None:
        """Takes a compile whose result a cache had."""
        self._cached += work

    def left(
        self, rest: Collection[float], now: float, running: Collection[Running] = ()
    ) -> float | None:
        """Seconds until the rest of the compiles are done; None where nothing is known of them.

        Args:
          rest: the work of each.
          now: the time.
          running: those of the rest that run; none where that is not known.
        """
        last, done = self._done[-1]
        count = len(self._done) - 1
        begun = sum(min(one.taken, _MOST * one.work) for one in running)
        # A cache was asked for those that run, too, and did not have them.
        missed = done + sum(one.work for one in running)
        if not done + begun:
            return None
        ahead = sum(rest)
        share = 1.0
        if self._cached:
            share = missed / (self._cached + missed)
            ahead -= (ahead - sum(one.work for one in running)) * (1 - share)
        # The last half of the work says more of the machine as it is now.
        half = bisect.bisect_right(self._done, done / 2, key=lambda at: at[1]) - 1
        first = max(min(half, count - _FEWEST), 0)
        since, before = self._done[first]
        if running and not first and now > since:
            # One job does the longest of them, however many have nothing left to do.
            alone = self._jobs * _longest(rest, running, share)
            return max(ahead - begun, alone) * (now - since) / (done + begun)
        # The others that run are, on average, half done when one of them is completed. It is
        # likelier that a long one runs than a short one; none has had more time than the one that
        # was completed and those before it.
        longest = sum(work * work for work in rest) / ahead if ahead else 0.0
        begun = min((self._jobs - 1) * min(longest / 2, done), ahead)
        work = done - before + (0.0 if first else begun)
        if last <= since or not work:
            return None
        # As much as was begun is lost at the end, where the last ones wait for the very last.
        return max(ahead * (last - since) / work - (now - last), 0.0)


def _longest(rest: Collection[float], running: Collection[Running], share: float) -> float:
    """The most work that is left of a compile; `share`: of those that do not run yet, where caches
    have the others."""
    waiting = Counter(rest) - Counter(one.work for one in running)
    left = (max(one.work - one.taken, (1 - _MOST) * one.work) for one in running)
    return max(share * max(waiting, default=0.0), *left)
