# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""When a build is said to wait for its executor."""

from __future__ import annotations

from toolchains.bazel.waiting import Waiting


def test_an_executor_that_lets_wait_is_named_within_thirty_seconds() -> None:
    waiting = Waiting("grpc://host:1")
    assert [waiting.line(3, now) for now in (100.0, 119.0)] == ["", ""]
    said = waiting.line(3, 121.0)
    assert said.startswith("no action has ended for 20 s: grpc://host:1 has no free worker")
    assert waiting.line(3, 500.0) == said


def test_loading_and_analysis_are_no_waiting() -> None:
    waiting = Waiting("grpc://host:1")
    assert waiting.line(0, 0.0) == waiting.line(0, 600.0) == waiting.line(1, 601.0) == ""
    assert waiting.line(1, 622.0)


def test_an_action_that_ends_ends_it() -> None:
    waiting = Waiting("grpc://host:1")
    assert not waiting.line(1, 0.0)
    assert waiting.line(1, 30.0)
    assert not waiting.line(2, 31.0)
    assert waiting.line(2, 60.0)
