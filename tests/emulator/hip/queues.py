# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Queued work of emulated devices: streams and events.

Work is done as late as HIP allows: nothing runs until a thread waits for it, or for work that
depends on it. So a host that reads too early, or two streams that nothing orders, see memory that
is not written yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable


class Work:
    """One action, done once, after all that it depends on."""

    def __init__(self, action: Callable[[], None], after: Iterable[Work | None]) -> None:
        self._action: Callable[[], None] | None = action
        self._after = [work for work in after if work is not None and not work.done]

    @property
    def done(self) -> bool:
        return self._action is None

    def pending(self) -> list[Work]:
        """The work that this one needs, in an order that is allowed, this one last."""
        order: list[Work] = []
        seen: set[Work] = set()
        stack = [(self, False)]
        while stack:
            work, expanded = stack.pop()
            if expanded:
                order.append(work)
            elif not work.done and work not in seen:
                seen.add(work)
                stack.append((work, True))
                stack.extend((earlier, False) for earlier in work._after)
        return order

    def do(self) -> None:
        """Does the action alone; `pending` says what comes before it."""
        action, self._action, self._after = self._action, None, []
        if action is not None:
            action()

    def wait(self) -> None:
        for work in self.pending():
            work.do()


class Stream:
    """The last piece of a queue; all others come before it."""

    def __init__(self, blocking: bool) -> None:
        self.blocking = blocking
        self.last: Work | None = None


class Streams:
    """The streams of one device. Stream 0, the default one, is in order with all blocking streams:
    its work comes after all that was queued there, and before all that will be."""

    def __init__(self) -> None:
        self._streams: dict[int, Stream] = {0: Stream(blocking=False)}

    def add(self, number: int, blocking: bool) -> None:
        self._streams[number] = Stream(blocking)

    def __contains__(self, number: int) -> bool:
        return number in self._streams

    def __getitem__(self, number: int) -> Stream:
        return self._streams[number]

    def remove(self, number: int) -> None:
        del self._streams[number]

    def submit(
        self, number: int, action: Callable[[], None], after: Iterable[Work | None] = ()
    ) -> Work:
        """Queues an action on a stream, also behind other work."""
        work = Work(action, [*after, *self._before(number)])
        self._streams[number].last = work
        return work

    def wait(self, number: int) -> None:
        for work in self._before(number):
            if work is not None:
                work.wait()

    def wait_all(self) -> None:
        for number in self._streams:
            self.wait(number)

    def next_of(self, number: int) -> Work | None:
        """The first piece that has to be done for a stream's last one."""
        for work in self._before(number):
            if work is not None and not work.done:
                return work.pending()[0]
        return None

    def _before(self, number: int) -> list[Work | None]:
        stream = self._streams[number]
        if number == 0:
            return [stream.last, *(s.last for s in self._streams.values() if s.blocking)]
        return [stream.last, self._streams[0].last if stream.blocking else None]
