# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""When a build is said to wait for its executor."""

from __future__ import annotations

from toolchains.bazel.waiting import Waiting


def test_an_executor_that_lets_wait_is_named_within_thirty_seconds() -> None:
    waiting = Waiting("grpc://host:1")
    assert [waiting.line(3, False, now) for now in (100.0, 119.0)] == ["", ""]
    said = waiting.line(3, False, 121.0)
    assert said.startswith("no action has ended for 20 s: grpc://host:1 has no free worker")
    assert waiting.line(3, False, 500.0) == said


def test_loading_and_analysis_are_no_waiting() -> None:
    waiting = Waiting("grpc://host:1")
    asked = [(0, 0.0), (0, 600.0), (1, 601.0)]
    assert [waiting.line(completed, False, now) for completed, now in asked] == [""] * 3
    assert waiting.line(1, False, 622.0)


def test_an_action_that_ends_ends_it() -> None:
    waiting = Waiting("grpc://host:1")
    assert not waiting.line(1, False, 0.0)
    assert waiting.line(1, False, 30.0)
    assert not waiting.line(2, False, 31.0)
    assert waiting.line(2, False, 60.0)


def test_a_command_of_this_machine_is_not_waited_for() -> None:
    waiting = Waiting("grpc://host:1")
    assert [waiting.line(3, True, now) for now in (0.0, 5000.0)] == ["", ""]
    assert not waiting.is_over(5000.0)
    assert not waiting.line(3, False, 5019.0)
    assert waiting.line(3, False, 5020.0)


def test_it_is_ended_and_each_minute_again() -> None:
    waiting = Waiting("grpc://host:1")
    assert not waiting.is_over(9000.0)
    assert not waiting.line(3, False, 100.0)
    assert "after 30 min the build is ended" in waiting.line(3, False, 1899.0)
    seconds = (1899.0, 1900.0, 1901.0, 1959.0, 1960.0, 1961.0)
    assert [waiting.is_over(now) for now in seconds] == [False, True, False, False, True, False]


def test_an_action_that_ends_begins_a_new_wait() -> None:
    waiting = Waiting("grpc://host:1")
    waiting.line(3, False, 100.0)
    waiting.line(4, False, 1899.0)
    assert not waiting.is_over(1901.0)
